"""Several raters for each document: what their answers say of the true class, and draws of it.

An answer is a whole number, rater * L + class; a document has a row of them, -1 where there is no further one. The gold
class of a document is -1 where it is unknown. log_confusion (n_raters, L, L) has log P(answer | rater, true class).
"""

import numpy as np

from supertopic.kernels.compiled import kernel
from supertopic.kernels.draws import derive, log_gamma, uniform

NEVER = -1e30  # the log probability of a class other than the gold one


@kernel
def answer_logs(answers, gold, log_confusion):
    """The log probability of all answers about each document, given each true class: (n_docs, L)."""
    n_classes = log_confusion.shape[1]
    found = np.zeros((len(answers), n_classes))
    for d in range(len(answers)):
        for i in range(answers.shape[1]):
            if answers[d, i] < 0.0:
                break
            rater, said = divmod(int(answers[d, i]), n_classes)
            for t in range(n_classes):
                found[d, t] += log_confusion[rater, t, said]
        if gold[d] >= 0.0:
            for t in range(n_classes):
                if t != int(gold[d]):
                    found[d, t] = NEVER
    return found


@kernel
def draw_classes(logs, mass, key, first_doc):
    """Draw how often each class is the true one of each document, (n_docs, L), so that a row sums to its mass.

    The likelihood to a power h is that of m = ceil(h) copies, each to the power h / m, and each with a true class of
    its own. logs (n_docs, L) are the log probabilities of the classes up to a constant.
    """
    n_docs, n_classes = logs.shape
    found, cumulated = np.zeros((n_docs, n_classes)), np.empty(n_classes)
    for d in range(n_docs):
        if mass[d] <= 0.0:
            continue
        n_copies = np.ceil(mass[d])
        each, most, total = mass[d] / n_copies, logs[d].max(), 0.0
        for t in range(n_classes):
            total += np.exp(each * (logs[d, t] - most))
            cumulated[t] = total
        stream = derive(key, first_doc + d)
        for i in range(int(n_copies)):
            place, t = uniform(stream, i) * total, 0
            while t < n_classes - 1 and cumulated[t] <= place:
                t += 1
            found[d, t] += each
    return found


@kernel
def count_answers(answers, classes, n_raters):
    """How often each rater gave each answer about each true class, (n_raters, L, L); classes may be shares."""
    n_classes = classes.shape[1]
    found = np.zeros((n_raters, n_classes, n_classes))
    for d in range(len(answers)):
        for i in range(answers.shape[1]):
            if answers[d, i] < 0.0:
                break
            rater, said = divmod(int(answers[d, i]), n_classes)
            for t in range(n_classes):
                found[rater, t, said] += classes[d, t]
    return found


@kernel
def dirichlet_logs(alpha, key):
    """The logarithm of a draw from the Dirichlet distribution of each row of alpha, (n, L)."""
    found = np.empty(alpha.shape)
    for i in range(len(alpha)):
        stream, most = derive(key, i), -np.inf
        for j in range(alpha.shape[1]):
            found[i, j] = log_gamma(alpha[i, j], derive(stream, j))
            most = max(most, found[i, j])
        total = 0.0
        for j in range(alpha.shape[1]):
            total += np.exp(found[i, j] - most)
        for j in range(alpha.shape[1]):
            found[i, j] -= most + np.log(total)
    return found
