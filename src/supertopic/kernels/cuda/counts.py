"""Kernels around a sweep on a GPU: documents and their counts, topics from counts, lam and kappa, densities.

A thread works on one document, word or number, and `add_up` adds the results in an order that is always the same. Rows
of documents and topics are `width` numbers long.
"""

import math

from numba import int32, int64, uint64

from supertopic.kernels import draws, responses
from supertopic.kernels.cuda.device import BLOCK, SUMS, cuda, here
from supertopic.kernels.cuda.layout import SPARSE_FROM, row_width

derive, log_gamma, mix, uniform = map(here, (draws.derive, draws.log_gamma, draws.mix, draws.uniform))
draw_lam, log_density = map(here, (responses.draw_lam, responses.log_density))
kappa_constant, kappa_slope = map(here, (responses.kappa_constant, responses.kappa_slope))

WORDS = 64  # words that are summed as one
WIDEST = row_width(SPARSE_FROM)  # numbers of a row where documents are cut


@cuda.jit
def interleave(flat, start, docs, group, out):
    """Flat tokens, those of row d from start[d] on, in the places where a warp reads them."""
    d = cuda.grid(1)
    if d < len(docs.length):
        place = docs.base[d // group] + d % group
        for i in range(docs.length[d]):
            out[place + i * group] = flat[start[d] + i]


@cuda.jit
def collect(tokens, start, docs, group, flat):
    """Tokens in the order of the corpus, from the places where a warp reads them."""
    d = cuda.grid(1)
    if d < len(docs.length):
        place = docs.base[d // group] + d % group
        for i in range(docs.length[d]):
            flat[start[d] + i] = tokens[place + i * group]


@cuda.jit
def start_z(docs, group, n_topics, key):
    """Every z from the uniform distribution."""
    d = cuda.grid(1)
    if d < len(docs.length):
        stream, place = derive(key, docs.number[docs.leader[d]]), docs.base[d // group] + d % group
        for i in range(docs.length[d]):
            docs.z[place + i * group] = int(uniform(stream, docs.first[d] + i) * n_topics)


@cuda.jit
def count_rows(docs, group, width):
    """The tokens of each topic in each document; rows are 0 before."""
    d = cuda.grid(1)
    if d < len(docs.length):
        place = docs.base[d // group] + d % group
        for i in range(docs.length[d]):
            docs.n[d * width + docs.z[place + i * group]] += 1.0


@cuda.jit
def join_parts(docs, group, width, leader, parts, response, begin, summed):
    """Count the tokens of documents that are cut into parts, and compute their omega; a block has a document.

    The counts are added to `summed`, from a place on, if it is not empty.
    """
    first, n_parts, t = leader[cuda.blockIdx.x], parts[cuda.blockIdx.x], cuda.threadIdx.x
    count = cuda.shared.array(WIDEST, int32)
    for k in range(t, width, BLOCK):
        count[k] = 0
    cuda.syncthreads()
    for d in range(first, first + n_parts):
        place = docs.base[d // group] + d % group
        for i in range(t, docs.length[d], BLOCK):
            cuda.atomic.add(count, int64(docs.z[place + i * group]), 1)
    cuda.syncthreads()
    for k in range(t, width, BLOCK):
        for d in range(first, first + n_parts):
            docs.n[d * width + k] = count[k]
        if len(summed) > 0:
            summed[begin + first * width + k] += count[k]
    n_topics = response.exact.shape[1] - response.covariates.shape[1]
    for r in range(t, len(response.exact), BLOCK):
        value = 0.0
        for k in range(n_topics):
            value += response.exact[r, k] * count[k]
        value /= docs.whole[first]
        for p in range(response.covariates.shape[1]):
            value += response.exact[r, n_topics + p] * response.covariates[first, p]
        response.omega[first, r] = value + response.offset[first, r]


@cuda.jit
def count_words(docs, group, width, count):
    """Add the tokens to the counts of the words."""
    d = cuda.grid(1)
    if d < len(docs.length):
        place = docs.base[d // group] + d % group
        for i in range(docs.length[d]):
            p = place + i * group
            cuda.atomic.add(count, docs.word[p] * width + docs.z[p], 1)


@cuda.jit
def content_numbers(word, start, length, key, number):
    """Random numbers that depend on a document's words only: neither on its neighbours nor its place."""
    d = cuda.grid(1)
    if d < len(length):
        stream = key
        for i in range(start[d], start[d] + length[d]):
            stream = mix(stream + uint64(word[i]) + uint64(1))
        number[d] = derive(stream, 0)


@cuda.jit
def add_columns(count, width, n_topics, tokens):
    """The tokens of each topic; a block has some words."""
    first = cuda.blockIdx.x * WORDS
    last = min(first + WORDS, len(count) // width)
    for k in range(cuda.threadIdx.x, n_topics, cuda.blockDim.x):
        total = 0
        for w in range(first, last):
            total += count[w * width + k]
        cuda.atomic.add(tokens, k, total)


@cuda.jit
def copy_counts(count, table):
    """Counts as a table that stays as it is while they change."""
    i = cuda.grid(1)
    if i < len(count):
        table[i] = count[i]


@cuda.jit
def invert(tokens, whole, inverse, inverse_own):
    """1 over the mass of each topic, and the same with one token less; `whole` is V beta."""
    k = cuda.grid(1)
    if k < len(tokens):
        mass = tokens[k] + whole
        inverse[k], inverse_own[k] = 1.0 / mass, 1.0 / max(mass - 1.0, whole)


@cuda.jit
def draw_log_gammas(count, beta, key, width, n_topics, phi):
    """log Gamma(count + beta); most empty cells are so small that the first factor alone shows it."""
    i = cuda.grid(1)
    if i < len(count):
        w, k = i // width, i % width
        x = -1e3
        if k < n_topics:
            cell = derive(derive(key[0], w), k)
            if count[i] > 0 or math.log(uniform(cell, 0)) > -100.0 * beta:
                x = log_gamma(count[i] + beta, cell)
        phi[i] = x


@cuda.jit
def add_exponentials(phi, width, n_topics, largest, total):
    """The largest of some words' logs, and the sum of their exponentials relative to it; a block has some words."""
    first = cuda.blockIdx.x * WORDS
    last = min(first + WORDS, len(phi) // width)
    for k in range(cuda.threadIdx.x, n_topics, cuda.blockDim.x):
        top, value = -1e30, 0.0
        for w in range(first, last):
            top = max(top, phi[w * width + k])
        for w in range(first, last):
            value += math.exp(phi[w * width + k] - top)
        largest[cuda.blockIdx.x, k], total[cuda.blockIdx.x, k] = top, value


@cuda.jit
def log_sums(largest, total, log_sum):
    """The logarithm of the sum over all words, for each topic."""
    k = cuda.grid(1)
    if k < len(log_sum):
        top, value = -1e30, 0.0
        for b in range(len(largest)):
            top = max(top, largest[b, k])
        for b in range(len(largest)):
            value += total[b, k] * math.exp(largest[b, k] - top)
        log_sum[k] = top + math.log(value)


@cuda.jit
def normalise(phi, width, log_sum):
    """Logs become topics, whose columns sum to 1."""
    i = cuda.grid(1)
    if i < len(phi):
        k = i % width
        phi[i] = max(math.exp(phi[i] - log_sum[k]), 1e-37) if k < len(log_sum) else 0.0


@cuda.jit
def add_counts(count, total):
    """Add counts to a sum of counts."""
    i = cuda.grid(1)
    if i < len(count):
        total[i] += count[i]


@cuda.jit
def count_distinct(docs, group, out):
    """The different words of each document; equal ones are neighbours."""
    d = cuda.grid(1)
    if d < len(docs.length):
        place, size = docs.base[d // group] + d % group, 0
        for i in range(docs.length[d]):
            size += i == 0 or docs.word[place + i * group] != docs.word[place + (i - 1) * group]
        out[d] = size


@cuda.jit
def private_rows(docs, group, summed, n_draws, beta, mass, width, first, last, entry, new, like):
    """Topics for documents first to last as if they had been learned without each: a row for each of its words.

    summed (V, width) is a sum over draws, of which z is the last; the rows of document d start at entry[d] -
    entry[first], and the words of the new documents become the tokens' rows.
    """
    d = first + cuda.grid(1)
    if d < last:
        place, n_topics = docs.base[d // group] + d % group, len(mass)
        new_place = new.base[(d - first) // group] + (d - first) % group
        row, i = entry[d] - entry[first], 0
        while i < docs.length[d]:
            w, here = docs.word[place + i * group], row * width
            for k in range(width):
                like[here + k] = summed[w * width + k] / n_draws if k < n_topics else 0.0
            while i < docs.length[d] and docs.word[place + i * group] == w:
                like[here + docs.z[place + i * group]] -= 1.0
                new.word[new_place + i * group] = row
                i += 1
            for k in range(n_topics):
                rest = max(mass[k] - docs.n[d * width + k], beta)
                like[here + k] = (max(like[here + k], 0.0) + beta) / rest
            row += 1


@cuda.jit
def augment(kind, c, own, log_own, target, omega, number, key, lam, kappa):
    """Draw lam of every document and column, and compute kappa; target is y, weight and offset."""
    i = cuda.grid(1)
    n_columns = lam.shape[1]
    if i < lam.size:
        d, r = i // n_columns, i % n_columns
        y, weight = target[0][d, r], target[1][d, r]
        lam[d, r] = draw_lam(kind, c, own[r], log_own[r], y, weight, omega[d, r], derive(derive(key[0], number[d]), r))
        slope = kappa_slope(kind, own[r], log_own[r], y) - target[2][d, r]
        kappa[d, r] = kappa_constant(kind, c, own[r], y, weight) + slope * lam[d, r]


@cuda.jit
def omegas(n, width, inverse, n_topics, covariates, offset, eta, omega):
    """omega of every document, given eta (R, K + P) and the documents' counts."""
    i = cuda.grid(1)
    if i < omega.size:
        d, r = i // omega.shape[1], i % omega.shape[1]
        value = 0.0
        for k in range(n_topics):
            value += eta[r, k] * n[d * width + k]
        value *= inverse[d]
        for p in range(covariates.shape[1]):
            value += eta[r, n_topics + p] * covariates[d, p]
        omega[d, r] = value + offset[d, r]


@cuda.jit
def drawn_omegas(counts, apart, n_counts, width, inverse, eta, omega):
    """omega (pairs, documents, R) of pairs of a draw of counts and one of eta (m, R, K), each used in turn."""
    i = cuda.grid(1)
    n_docs, n_columns = omega.shape[1], omega.shape[2]
    if i < omega.size:
        pair, d, r = i // (n_docs * n_columns), i // n_columns % n_docs, i % n_columns
        place, draw, value = pair % n_counts * apart + d * width, pair % len(eta), 0.0
        for k in range(eta.shape[2]):
            value += eta[draw, r, k] * counts[place + k]
        omega[pair, d, r] = value * inverse[d]


@cuda.jit
def likelihoods(kind, own, log_own, target, omega, out):
    """The weighted log density of each document and column."""
    i = cuda.grid(1)
    if i < omega.size:
        d, r = i // omega.shape[1], i % omega.shape[1]
        out[d, r] = target[1][d, r] * log_density(kind, own[r], log_own[r], target[0][d, r], omega[d, r])


@cuda.jit
def residuals(target, omega, out):
    """The weights, then the weighted squares of y - omega."""
    i = cuda.grid(1)
    n_columns = omega.shape[1]
    if i < omega.size:
        d, r = i // n_columns, i % n_columns
        error = target[0][d, r] - omega[d, r]
        out[d, r], out[d, n_columns + r] = target[1][d, r], target[1][d, r] * error * error


@cuda.jit
def log_documents(docs, width, alpha, concentration, out):
    """log p(z | alpha) of each document."""
    d = cuda.grid(1)
    if d < len(docs.length):
        value = 0.0
        if docs.whole[d] > 0:
            value = math.lgamma(concentration) - math.lgamma(concentration + docs.whole[d])
            for k in range(len(alpha)):
                if docs.n[d * width + k] > 0.0:
                    value += math.lgamma(alpha[k] + docs.n[d * width + k]) - math.lgamma(alpha[k])
        out[d, 0] = value


@cuda.jit
def alpha_sums(docs, width, alpha, concentration, out):
    """Differences of digammas, for each topic and for the length."""
    i = cuda.grid(1)
    d, k = i // (len(alpha) + 1), i % (len(alpha) + 1)
    if d < len(docs.length):
        n, a = docs.whole[d], concentration
        if k < len(alpha):
            n, a = (int(docs.n[d * width + k]) if docs.whole[d] > 0 else 0), alpha[k]
        value = 0.0
        for j in range(n):
            value += 1.0 / (a + j)
        out[d, k] = value


@cuda.jit
def log_words(count, width, n_topics, beta, out):
    """The part of each word in log p(w | z, beta), but for what depends on the topics' masses."""
    w = cuda.grid(1)
    if w < len(out):
        value, empty = 0.0, math.lgamma(beta)
        for k in range(n_topics):
            n = count[w * width + k]
            if n > 0:
                value += math.lgamma(beta + n) - empty
        out[w, 0] = value


@cuda.jit
def add_up(values, out):
    """The sums of the columns of values (n, C), in SUMS parts."""
    i = cuda.grid(1)
    n_columns = values.shape[1]
    if i < SUMS * n_columns:
        part, c = i // n_columns, i % n_columns
        size = (len(values) + SUMS - 1) // SUMS
        total = 0.0
        for d in range(part * size, min((part + 1) * size, len(values))):
            total += values[d, c]
        out[part, c] = total
