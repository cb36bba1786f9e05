"""Classes as several raters see them: each rater has a confusion matrix, and the true class is drawn.

Of each document the answers of some raters are known, P(answer a of rater r | true class t) = confusion_r[t, a] (Dawid
and Skene, 1979), and the true class depends on the topics as a known class does. Given the true classes the response is
the logistic one, and given everything else a true class has the probability P(t | omega) times that of the answers. A
gold class is a true class that is known.
"""

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from scipy.special import gammaln, log_expit, log_softmax, logsumexp, softmax

from supertopic.corpus.source import Target, make_target
from supertopic.kernels.crowd import answer_logs, count_answers, dirichlet_logs, draw_classes
from supertopic.kernels.draws import make_key
from supertopic.kernels.responses import LOGISTIC, draw_lams
from supertopic.model.responses.answers import Answers, is_answers, read_answers
from supertopic.model.responses.augmentation import mean_polya_gamma
from supertopic.model.responses.base import Encoded, ScalarForm, Sums
from supertopic.model.responses.logistic import Logistic
from supertopic.model.responses.values import plain_value
from supertopic.model.state import Quadratic

RIGHT, WRONG = 2.0, 1.0  # the prior of a row of a confusion matrix: pseudo-answers that are right, and all others
LEAST_SHARE = 1e-9  # smallest probability of an answer
ROUNDS, CLOSE = 200, 1e-6  # rounds of expectation maximisation at most; change that ends it
MOST_COPIES = 1000.0  # largest number of copies of a document
MOST_NUMBERS = 500_000  # largest number of entries of all confusion matrices
TRUTH, CONFUSION = 1 << 40, 1 << 41  # paths of random numbers that nothing else takes
LEAST_CURVATURE = 0.05  # of that of a known class


class Observed(NamedTuple):
    """What is known of documents, as the columns of a target's y."""

    gold: np.ndarray  # (n_docs,): the number of the class, -1 where it is unknown
    share: np.ndarray  # (n_docs, L): the probability of each class, from the answers alone
    answers: np.ndarray  # (n_docs, most answers about one): rater * L + class; -1 after the last one


@dataclass(frozen=True, eq=False)
class CrowdLogistic(Logistic):
    """psi is the sum over true classes t of psi(t | omega) times the probability of the document's answers given t."""

    raters: np.ndarray = field(default_factory=lambda: np.zeros(0, object), kw_only=True)  # (n_raters,): names
    n_answers: np.ndarray = field(default_factory=lambda: np.zeros(0), kw_only=True)  # (n_raters,): in all batches
    base: np.ndarray = field(default_factory=lambda: np.zeros((0, 0, 0)), kw_only=True)  # from the first answers alone
    confusion: np.ndarray = field(default_factory=lambda: np.zeros(0), kw_only=True)  # (n_raters L L,)
    carried: np.ndarray | None = field(default=None, kw_only=True)  # (n_raters, L, L): pseudo-answers, earlier ones'
    drawn: bool = field(default=True, kw_only=True)

    learned: ClassVar[tuple[str, ...]] = ("classes", "multilabel", "raters", "n_answers", "base")
    title: ClassVar[str] = "supervised latent Dirichlet allocation with a logistic response and several raters"
    references: ClassVar[tuple[str, ...]] = ("zhu2013", "polson2013", "dawid1979", "rodrigues2017")
    grows: ClassVar[bool] = False
    has_sets: ClassVar[bool] = False  # nobody knows the true classes
    several_raters: ClassVar[bool] = True
    burn_in: ClassVar[int] = 40  # weights and true classes settle together
    rescaled: ClassVar[bool] = False

    @property
    def kind(self) -> str:
        return "class of several raters"

    @property
    def n_classes(self) -> int:
        return len(self.classes)

    @cached_property
    def log_confusion(self) -> np.ndarray:
        """(n_raters, L, L)."""
        return np.log(self.confusion).reshape(-1, self.n_classes, self.n_classes)

    @property
    def prior(self) -> np.ndarray:
        """The Dirichlet prior of the confusion matrices, (n_raters, L, L) or (L, L)."""
        if self.carried is not None:
            return self.carried
        n = self.n_classes
        return np.where(np.eye(n) > 0, RIGHT, WRONG / (n - 1))

    # y and its columns

    def encode(
        self, y: Any, weight: np.ndarray, exposure: Any = None, classes: Any = None, sums: np.ndarray | None = None
    ) -> Encoded:
        fitted, n_docs = len(self.classes) > 0, len(weight)
        answers = read_answers(y, n_docs, self.raters, self.missing_label)
        if fitted and classes is not None and not np.array_equal(np.unique(classes), self.classes):
            raise ValueError(f"classes are {list(self.classes)} since the first batch, got {list(classes)}.")
        response = self if fitted else replace(self, classes=find_classes(answers, classes), raters=answers.raters)
        n, place = response.n_classes, {value: i for i, value in enumerate(response.classes.tolist())}
        if len(answers.raters) * n * n > MOST_NUMBERS:
            raise ValueError(
                f"{len(answers.raters):,} raters have confusion matrices of {n} times {n} numbers, {MOST_NUMBERS:,} of "
                "which are possible in all: leave out raters with few answers, or join them to one rater."
            )
        known = np.array([value is not None for value in answers.gold.tolist()])
        said = response.numbers_of(answers.value, place)
        gold = np.full(n_docs, -1)
        gold[known] = response.numbers_of(answers.gold[known], place)
        codes = np.nan_to_num(answers.rows(answers.rater * n + said), nan=-1.0)
        weight = weight * ((codes[:, 0] >= 0) | known)
        if not fitted and not (weight > 0).any():
            raise ValueError("y has no answers (or weights of 0 only); some are needed.")
        if weight.max(initial=0.0) * self.c > MOST_COPIES:
            raise ValueError(f"Weights times c must be at most {MOST_COPIES:g}, got {weight.max() * self.c:g}.")
        response = replace(response, n_answers=answers.counts(weight) + (response.n_answers if fitted else 0))
        share, base = response.from_answers(codes, gold, weight)
        response = replace(response, base=response.base if fitted else base)
        response = replace(response, confusion=(response.base if fitted else base).ravel())
        if self.class_weight is not None:
            weight = weight * response.balance(share, weight)
        columns = np.column_stack([gold, share, codes])
        return Encoded(response, make_target(columns, np.repeat(weight[:, None], response.n_columns, axis=1)), sums)

    def numbers_of(self, values: np.ndarray, place: dict[Any, int]) -> np.ndarray:
        """The number of each class; a class that is not there is refused."""
        found = [place.get(value, -1) for value in values.tolist()]
        if -1 in found:
            shown = ", ".join(map(repr, self.classes[:8].tolist()))
            raise ValueError(f"y has the class {values.tolist()[found.index(-1)]!r}; the classes are {shown}.")
        return np.array(found, int)

    def balance(self, share: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """A factor for each document, (n_docs,): the mean of the weights of its probable classes."""
        size = (weight[:, None] * share).sum(axis=0)
        if isinstance(self.class_weight, str):
            factor = size.sum() / (np.count_nonzero(size) * np.maximum(size, 1e-12))
        else:
            factor = np.array([self.class_weight.get(plain_value(value), 1.0) for value in self.classes])
        return share @ factor

    def from_answers(self, codes: np.ndarray, gold: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The probability of each class (n_docs, L), and confusion matrices, from the answers alone."""
        n, n_raters = self.n_classes, len(self.raters)
        prior = np.broadcast_to(self.prior, (n_raters, n, n))
        if len(self.base):
            confusion = self.base
        else:  # the first guess: the class that most raters say
            votes = np.array([np.bincount((row[row >= 0] % n).astype(int), minlength=n) for row in codes]) + 0.1
            share = votes / votes.sum(axis=1, keepdims=True)
            share = np.where(gold[:, None] >= 0, gold[:, None] == np.arange(n), share)
            confusion = normalised(prior + count_answers(codes, share * (weight > 0)[:, None], n_raters))
        rate = np.full(n, 1.0 / n)
        for _ in range(ROUNDS):
            share = softmax(answer_logs(codes, gold, np.log(confusion)) + np.log(rate), axis=1)
            rate = normalised(1.0 + (share * (weight > 0)[:, None]).sum(axis=0))
            new = normalised(prior + count_answers(codes, share * (weight > 0)[:, None], n_raters))
            moved, confusion = np.abs(new - confusion).max(initial=0.0), new
            if moved < CLOSE:
                break
        return share, confusion.clip(LEAST_SHARE)

    def seen(self, y: np.ndarray) -> Observed:
        n = self.n_classes
        return Observed(*(np.ascontiguousarray(part) for part in (y[:, 0], y[:, 1 : n + 1], y[:, n + 1 :])))

    def wholly_known(self, target: Target) -> np.ndarray:
        return np.any(target.weight > 0, axis=1)

    def may_hold_out(self, target: Target) -> np.ndarray:
        return np.any(target.weight > 0, axis=1)

    def strata(self, target: Target) -> np.ndarray:
        return self.seen(target.y).share

    def start_columns(self, target: Target) -> np.ndarray:
        return self.seen(target.y).share * (target.weight[:, :1] > 0)

    def level_y(self, target: Target) -> np.ndarray:
        share = self.seen(target.y).share
        return share[:, 1:] if self.binary else share

    def seed_support(self, target: Target, means: np.ndarray) -> np.ndarray:
        return super().seed_support(target._replace(y=np.round(self.level_y(target))), means)

    def encoded_truth(self, y: np.ndarray) -> np.ndarray:
        share = self.seen(y).share
        return (share.argmax(axis=1)[:, None] == np.arange(self.n_classes)).astype(float)

    def truth(self, y: Any, n_docs: int) -> np.ndarray:
        """True classes as columns of 0 and 1; those of answers are the ones that the answers alone make most likely."""
        if is_answers(y):
            target = self.encode(y, np.ones(n_docs)).target
            return np.where(target.weight[:, :1] > 0, self.encoded_truth(target.y), np.nan)
        return super().truth(y, n_docs)

    # augmentation

    def scores(self, omega: np.ndarray) -> np.ndarray:
        """log psi(t | omega) of each class but for what all have in common, (..., L)."""
        return np.concatenate([np.zeros_like(omega), omega], axis=-1) if self.binary else omega

    def class_logs(self, target: Target, omega: np.ndarray) -> np.ndarray:
        """The log probability of each true class given omega and the answers, up to a constant: (n_docs, L)."""
        seen = self.seen(target.y)
        return self.scores(omega) + answer_logs(seen.answers, seen.gold, self.log_confusion)

    def quadratic_of(self, target: Target, classes: np.ndarray, lam: np.ndarray) -> Quadratic:
        """The quadratic given how often each class is the true one, (n_docs, L), which sums to c times the weight."""
        yes = classes[:, 1:] if self.binary else classes
        return Quadratic(yes - 0.5 * self.c * target.weight - lam * target.offset, lam)

    def draw(self, target: Target, omega: np.ndarray, key: np.uint64, first_doc: int) -> Quadratic:
        weight = target.weight
        drawn = draw_classes(self.class_logs(target, omega), self.mass(target), make_key(key, TRUTH), first_doc)
        lam = draw_lams(LOGISTIC, self.c, np.zeros(weight.shape[1]), weight, weight, omega, key, first_doc)
        return self.quadratic_of(target, drawn, lam)

    def start(self, target: Target) -> Quadratic:
        lam = mean_polya_gamma(self.c * target.weight, np.broadcast_to(target.offset, target.weight.shape))
        return self.quadratic_of(target, self.mass(target)[:, None] * self.seen(target.y).share, lam)

    def mass(self, target: Target) -> np.ndarray:
        return np.ascontiguousarray(self.c * target.weight[:, 0])

    @property
    def scalar_form(self) -> ScalarForm | None:
        return None

    # likelihood

    def marginal(self, target: Target, omega: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The mass of each document, the copies that it is (see `draw_classes`), and the logs of its classes."""
        mass = self.mass(target)
        copies = np.maximum(np.ceil(mass), 1.0)
        each = np.where(mass > 0, mass / copies, 1.0)
        common = log_expit(-omega).sum(axis=1, keepdims=True)
        return mass, copies, each[:, None] * (self.class_logs(target, omega) + common)

    def log_likelihood(self, target: Target, omega: np.ndarray) -> np.ndarray:
        """log psi, summed over the documents; each column has an equal part of it."""
        mass, copies, logs = self.marginal(target, omega)
        total = float(np.sum(np.where(mass > 0, copies * logsumexp(logs, axis=1), 0.0)))
        return np.full(omega.shape[1], total / omega.shape[1])

    def log_density(self, y: np.ndarray, omega: np.ndarray) -> np.ndarray:
        n = omega.shape[1]
        _, _, logs = replace(self, c=1.0).marginal(make_target(y, np.ones(omega.shape)), omega)
        return np.repeat(logsumexp(logs, axis=1)[:, None] / n, n, axis=1)

    def gradient(self, target: Target, omega: np.ndarray) -> np.ndarray:
        classes = softmax(self.marginal(target, omega)[2], axis=1)
        yes = classes[:, 1:] if self.binary else classes
        return self.c * target.weight * (yes - np.exp(log_expit(omega)))

    def information(self, target: Target, omega: np.ndarray) -> np.ndarray:
        """That of known classes, less what is unknown of them; never negative."""
        mass, copies, logs = self.marginal(target, omega)
        yes = softmax(logs, axis=1)
        yes, p = yes[:, 1:] if self.binary else yes, np.exp(log_expit(omega))
        each = (mass / copies)[:, None]
        full = p * (1.0 - p)
        return self.c * target.weight * np.maximum(full - each * yes * (1.0 - yes), LEAST_CURVATURE * full)

    def cost(self, target: Target, omega: np.ndarray) -> tuple[float, np.ndarray]:
        logs, answers = self.normal_logs(target, omega)
        total = logsumexp(logs + answers, axis=1, keepdims=True)
        change = np.exp(logs) - np.exp(logs + answers - total)
        change = change[:, 1:] if self.binary else change
        return -float(np.sum(target.weight[:, 0] * total[:, 0])), target.weight * change

    def curvature(self, target: Target, omega: np.ndarray) -> np.ndarray:
        logs, answers = self.normal_logs(target, omega)
        p, yes = np.exp(logs), softmax(logs + answers, axis=1)
        full = p * (1.0 - p)
        found = np.maximum(full - yes * (1.0 - yes), LEAST_CURVATURE * full)
        return target.weight * (found[:, 1:] if self.binary else found)

    def normal_logs(self, target: Target, omega: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """log P(t | omega), which sums to 1, and the log probability of the answers given t, (n_docs, L) each."""
        seen = self.seen(target.y)
        return log_softmax(self.scores(omega), axis=1), answer_logs(seen.answers, seen.gold, self.log_confusion)

    def log_predictive(self, y: np.ndarray, omegas: np.ndarray, scales: np.ndarray) -> np.ndarray:
        target, found = make_target(y, np.ones(omegas.shape[1:])), []
        for omega, scale in zip(omegas, scales, strict=True):
            found.append(logsumexp(np.add(*self.with_scale(scale).normal_logs(target, omega)), axis=1, keepdims=True))
        return np.logaddexp.reduce(found, axis=0) - np.log(len(found))

    # confusion matrices

    @property
    def scale(self) -> np.ndarray:
        return self.confusion

    def with_scale(self, scale: np.ndarray) -> Self:
        return replace(self, confusion=scale)

    def plain(self) -> Self:
        return replace(self, c=1.0)

    def own_sums(self, target: Target, omega: np.ndarray, key: np.uint64, first_doc: int) -> np.ndarray:
        """How often each rater gave each answer about each true class, which is drawn, flat."""
        drawn = draw_classes(self.class_logs(target, omega), self.mass(target), make_key(key, TRUTH), first_doc)
        return count_answers(self.seen(target.y).answers, drawn, len(self.raters)).ravel()

    def draw_scale(self, sums: Sums, key: np.uint64) -> Self:
        if not self.drawn:
            return self
        n = self.n_classes
        counts = sums.own_sums([self], key)[0].reshape(-1, n, n)
        logs = dirichlet_logs((self.prior + counts).reshape(-1, n), make_key(key, CONFUSION))
        return self.with_scale(np.exp(logs).clip(LEAST_SHARE).ravel())

    def with_carried_scale(self, draws: np.ndarray, n_docs: np.ndarray, discount: float) -> Self:
        n = self.n_classes
        mean, variance = (np.reshape(f(draws, axis=0), (-1, n, n)) for f in (np.mean, np.var))
        # the Dirichlet distribution with these means and, summed over a row, these variances
        size = (mean * (1.0 - mean)).sum(axis=2) / np.maximum(variance.sum(axis=2), 1e-12) - 1.0
        most = RIGHT + WRONG + self.n_answers[:, None]
        prior = mean * (discount * np.clip(size, RIGHT + WRONG, most))[:, :, None]
        return replace(self, carried=np.maximum(prior, LEAST_SHARE), confusion=normalised(mean).ravel())

    def log_prior(self) -> float:
        if not self.drawn:
            return 0.0
        prior = np.broadcast_to(self.prior, self.log_confusion.shape)
        whole = gammaln(prior.sum(axis=2)).sum() - gammaln(prior).sum()
        return float(whole + ((prior - 1.0) * self.log_confusion).sum())

    def check_scale(self, draws: np.ndarray, n_columns: int) -> None:
        n = self.n_classes
        if draws.shape[2] != len(self.raters) * n * n or not (draws > 0).all():
            raise ValueError("The raters' confusion matrices cannot be right.")
        if not np.allclose(draws.reshape(*draws.shape[:2], -1, n).sum(axis=3), 1.0, atol=1e-3):
            raise ValueError("The rows of the raters' confusion matrices do not sum to 1.")

    def check_fitted(self, n_columns: int) -> None:
        super().check_fitted(n_columns)
        n, n_raters = self.n_classes, len(self.raters)
        sound = self.raters.ndim == 1 and self.n_answers.shape == (n_raters,) and self.base.shape == (n_raters, n, n)
        if not sound or self.multilabel or not (self.base > 0).all() or not (self.n_answers >= 0).all():
            raise ValueError("The raters cannot be right.")

    def infer(self, target: Target, omegas: np.ndarray, scales: np.ndarray) -> np.ndarray:
        """The probability of each true class given the texts and the answers, (n_docs, L)."""
        total = np.zeros((len(target.y), self.n_classes))
        for omega, scale in zip(omegas, scales, strict=True):
            total += softmax(np.add(*self.with_scale(scale).normal_logs(target, omega)), axis=1)
        return total / len(omegas)


def normalised(values: np.ndarray) -> np.ndarray:
    """Values whose last axis sums to 1."""
    return values / values.sum(axis=-1, keepdims=True)


def find_classes(answers: Answers, given: Any) -> np.ndarray:
    """All classes that are in the answers, or those given."""
    known = [value for value in answers.gold.tolist() if value is not None]
    values = set(answers.value.tolist()) | set(known) if given is None else set(np.asarray(given).tolist())
    kinds = {isinstance(value, str) for value in values}
    if len(kinds) > 1:
        raise ValueError("y mixes text and numbers; give every answer the same type.")
    if len(values) < 2:
        raise ValueError(f"y has one class only ({next(iter(values), None)}); a classifier needs at least two.")
    return np.array(sorted(values), dtype=object if kinds == {True} else None)
