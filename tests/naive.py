"""The slow truth: the model by its definition, in plain loops and float64. Tests compare the fast code with this."""

import itertools
import math

import numpy as np
from scipy import stats
from scipy.special import gammaln, log_expit

GOLDEN, MASK = 0x9E3779B97F4A7C15, 2**64 - 1


def bits(key, i):
    """The i-th number of SplitMix64 that starts at key, in Python's whole numbers."""
    x = (int(key) + (i + 1) * GOLDEN) & MASK
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & MASK
    return x ^ (x >> 31)


def weights(word, n, count, phi, eta, kappa, lam, alpha, beta, n_tokens, own):
    """The paper's conditional of one token: n (K,) and count (V, K) or phi (V, K), the token itself taken out."""
    n_topics = len(alpha)
    log_weight = np.empty(n_topics)
    for k in range(n_topics):
        if phi is None:
            log_weight[k] = math.log((count[word, k] + beta) / (count[:, k].sum() + len(count) * beta))
        else:
            log_weight[k] = math.log(phi[word, k])
        log_weight[k] += math.log(n[k] + alpha[k])
        for r in range(len(eta)):
            rest = sum(eta[r, j] * n[j] for j in range(n_topics))
            linear = eta[r, k] * (kappa[r] / n_tokens - lam[r] * rest / n_tokens**2)
            log_weight[k] += linear - lam[r] * eta[r, k] ** 2 / (2 * n_tokens**2)
    return np.exp(log_weight - log_weight.max())


def eight_lanes(k):
    """Topics lane by lane of eight: the order in which the kernel adds up."""
    return k % 8, k // 8


def choose(weight, u, j, order=eight_lanes):
    """j first, then the others in the kernel's order."""
    order = [j] + sorted((k for k in range(len(weight)) if k != j), key=order)
    cumulated = np.cumsum(weight[order])
    return order[min(int(np.searchsorted(cumulated, u * cumulated[-1], side="right")), len(order) - 1)]


def sweep(docs, z, count, phi, eta, kappa, lam, alpha, beta, streams, live, order=eight_lanes, most=None):
    """One sweep. docs and z are lists of lists; returns the new z; count (V, K) is updated when live.

    With `most`, documents of more tokens are cut into parts, which see each other as they were before the sweep.
    """
    z = [list(topics) for topics in z]
    frozen = None if count is None else count.copy()
    for d, words in enumerate(docs):
        before = np.bincount(z[d], minlength=len(alpha)).astype(float)
        n, n_parts = before.copy(), 1 if most is None else max(-(-len(words) // most), 1)
        for i, word in enumerate(words):
            if i in [part * len(words) // n_parts for part in range(n_parts)]:
                n = before.copy()
            j = z[d][i]
            seen = count if live or count is None else frozen.copy()
            n[j] -= 1
            if seen is not None:
                seen[word, j] -= 1
            weight = weights(word, n, seen, phi, eta, kappa[d], lam[d], alpha, beta, len(words), j)
            u = (bits(streams[d], i) >> 40) * 2.0**-24
            k = choose(weight, u, j, order)
            n[k] += 1
            if live:
                count[word, k] += 1
            z[d][i] = k
    return z


def sweep_sparse(docs, z, count, phi, eta, kappa, lam, alpha, beta, streams, n_lanes=1, order_of_all=eight_lanes):
    """One sweep of the sampler for many topics, proposals and acceptance by their definitions.

    A topic is proposed from LDA's conditional: the token's own topic first, then those that the document has, in the
    order in which they came (the last one takes the place of one that goes), dealt out to some lanes, then any, by its
    alpha. Returns the new z, and how many tokens stayed, or went the one way or the other, or were refused.
    """
    z, tally = [list(topics) for topics in z], dict.fromkeys(("stays", "present", "smooth", "refused"), 0)
    like = phi if phi is not None else (count + beta) / (count.sum(axis=0) + len(count) * beta)
    for d, words in enumerate(docs):
        order = list(dict.fromkeys(z[d]))
        n = np.bincount(z[d], minlength=len(alpha)).astype(float)
        for i, word in enumerate(words):
            j, u = z[d][i], [(bits(streams[d], 3 * i + m) >> 40) * 2.0**-24 for m in range(3)]
            own = like[word, j]
            if phi is None:  # the token is taken out of its word and its topic
                own = (count[word, j] - 1 + beta) / (count[:, j].sum() - 1 + len(count) * beta)
            stays = (n[j] - 1 + alpha[j]) * own
            dealt = [k for lane in range(n_lanes) for k in order[lane::n_lanes]]
            others = [(k, n[k] * like[word, k]) for k in dealt if k != j]
            smooth = np.array([0.0 if k == j else alpha[k] * like[word, k] for k in range(len(alpha))])
            rest = u[0] * (stays + sum(weight for _, weight in others) + smooth.sum()) - stays
            if rest < 0:
                tally["stays"] += 1
                continue
            way, k = "smooth", None
            for topic, weight in others:
                if rest < weight:
                    way, k = "present", topic
                    break
                rest -= weight
            if k is None:
                k = choose(smooth, u[1], j, order_of_all)
            if k == j:
                continue
            change = 0.0
            for r in range(len(eta)):
                before = eta[r] @ n / len(words)
                after = before + (eta[r, k] - eta[r, j]) / len(words)
                change += kappa[d, r] * (after - before) - lam[d, r] * (after**2 - before**2) / 2
            if change < 0 and u[2] > math.exp(change):
                tally["refused"] += 1
                continue
            tally[way] += 1
            n[j] -= 1
            if n[j] == 0:
                order[order.index(j)] = order[-1]
                order.pop()
            if k not in order:
                order.append(k)
            n[k] += 1
            z[d][i] = k
    return z, tally


def log_words(docs, z, n_words, n_topics, beta, pseudo_counts=0):
    """log p(w | z); pseudo-counts (V, K) join beta, so that each word of each topic has a prior of its own."""
    prior = beta + np.zeros((n_topics, n_words)) + np.transpose(pseudo_counts)
    count = np.zeros((n_topics, n_words))
    for words, topics in zip(docs, z, strict=True):
        for w, k in zip(words, topics, strict=True):
            count[k, w] += 1
    whole = prior.sum(axis=1)
    per_word = (gammaln(count + prior) - gammaln(prior)).sum()
    return float(per_word + np.sum(gammaln(whole) - gammaln(whole + count.sum(axis=1))))


def log_documents(z, alpha):
    total = 0.0
    for topics in z:
        n = np.bincount(topics, minlength=len(alpha))
        total += np.sum(gammaln(n + alpha) - gammaln(alpha)) + gammaln(alpha.sum()) - gammaln(len(topics) + alpha.sum())
    return float(total)


def zbars(z, n_topics):
    return np.array([np.bincount(t, minlength=n_topics) / max(len(t), 1) for t in z])


def logistic(c):
    """log psi(y | omega) of the paper: c times the log-likelihood of a logistic regression."""
    return lambda y, omega, scale=None: c * log_expit(np.where(y > 0.5, omega, -omega))


def hinge(c, margin):
    return lambda y, omega, scale=None: -2 * c * np.maximum(0, margin - np.where(y > 0.5, omega, -omega))


def gaussian(c):
    return lambda y, omega, sigma2: c * stats.norm.logpdf(y, omega, np.sqrt(sigma2))


def negative_binomial(c):
    """Mean exp(omega), variance mean + mean**2 / r."""
    return lambda y, omega, r: c * stats.nbinom.logpmf(y, r, r / (r + np.exp(omega)))


def exact_posterior(
    docs,
    target,
    n_words,
    alpha,
    beta,
    nu2,
    log_psi,
    points,
    scales=(1.0,),
    log_scale=(0.0,),
    pseudo_counts=0,
    known=None,
):
    """Every z with its probability, and the weight of every (eta, scale) given z, by enumeration and a trapezoid.

    Given z the columns factorise, so that the integral has K + P dimensions for any R, and one more for the response's
    own parameter. `points` is the grid on each axis of eta, `scales` and `log_scale` the grid of the parameter and the
    log of its prior mass. `pseudo_counts` are (V, K), `known` the precision (R, K + P, K + P) and the shift
    (R, K + P) that are known of eta. Returned: the states, their probabilities p (S,), the grid (G, K + P + 1), and for
    each state and column the weights of its points (S, R, G), from which eta and the scale can be drawn given z.
    """
    n_topics, n_covariates = len(alpha), target.covariates.shape[1]
    axes = itertools.product(*[points] * (n_topics + n_covariates), range(len(scales)))
    grid = np.array(list(axes))  # (G, K + P + 1)
    log_prior = -0.5 * np.sum(grid[:, :-1] ** 2, axis=1) / nu2 + np.asarray(log_scale)[grid[:, -1].astype(int)]
    grid[:, -1] = np.asarray(scales)[grid[:, -1].astype(int)]
    lengths = [len(words) for words in docs]
    splits = np.cumsum(lengths)[:-1]
    states, logs, etas = [], [], []
    for flat in itertools.product(range(n_topics), repeat=sum(lengths)):
        z = [list(map(int, part)) for part in np.split(np.array(flat, int), splits)]
        x = np.hstack([zbars(z, n_topics), target.covariates])
        log_z = log_words(docs, z, n_words, n_topics, beta, pseudo_counts) + log_documents(z, alpha)
        columns = []
        for r in range(target.y.shape[1]):
            offset = np.broadcast_to(target.offset, target.y.shape)[:, r]
            psi = log_psi(target.y[:, r], grid[:, :-1] @ x.T + offset, grid[:, -1:])  # (G, n_docs)
            log_eta = log_prior + (target.weight[:, r] * psi).sum(axis=1)
            if known:
                eta = grid[:, :-1]
                log_eta += eta @ known[1][r] - 0.5 * np.einsum("gi,ij,gj->g", eta, known[0][r], eta)
            log_z += np.logaddexp.reduce(log_eta)
            columns.append(np.exp(log_eta - np.logaddexp.reduce(log_eta)))
        states.append(z)
        logs.append(log_z)
        etas.append(columns)
    p = np.exp(np.array(logs) - np.logaddexp.reduce(logs))
    return states, p, grid, np.array(etas).reshape(len(p), target.y.shape[1], len(grid))
