"""A response owns all that differs between responses: from y to columns, augmentation, density, predictions, losses.

After augmentation each response is exp(kappa omega - lam omega**2 / 2), one per document and column, and that is all
that the sampler sees. omega is in standard units: ratings are centred and scaled, everything else is as it is. A
missing response has weight 0, so that kappa = lam = 0 and its document contributes its words only.
"""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, NamedTuple, Protocol, Self

import numpy as np
from scipy.special import ndtri
from scipy.stats import rankdata

from supertopic.corpus.source import Target
from supertopic.model.responses.columns import LaterBatches
from supertopic.model.responses.display import Display
from supertopic.model.state import Quadratic

LEAST_SCALE, MOST_SCALE = 1e-8, 1e8  # the range of sigma2 and r
GOLDEN, TINY = 0.5 * (5.0**0.5 - 1.0), 1e-300


class ScalarForm(NamedTuple):
    """A response as the kernels of a device know it: which formulas, and its own parameter, one number per column."""

    kind: int
    own: np.ndarray | float = 0.0


class Sums(Protocol):
    """Sums over all documents, which a draw of a response's own parameter needs."""

    def own_sums(self, responses: Sequence["Response"], key: np.uint64) -> np.ndarray:
        """The sum over all documents of what `Response.own_sums` returns for each of n responses, (n, m)."""

    def residuals(self) -> np.ndarray:
        """The sum of the weights, and that of the weighted squares of y - omega: (2, R)."""

    def log_likelihoods(self, responses: list["Response"]) -> np.ndarray:
        """The log-likelihood under each of some responses, (n, R)."""


class Encoded(NamedTuple):
    """y in the form that the sampler reads."""

    response: "Response"  # fitted: it knows its classes, names and units
    target: Target
    sums: np.ndarray | None  # sums over earlier batches (see `inference.level`), moved to the response's units


@dataclass(frozen=True, eq=False)
class Response(LaterBatches, Display):
    """The part of the model that differs from response to response.

    A subclass of `ClassResponse` or `NumberResponse` says how lam is drawn, what kappa is, and its `log_density`.
    """

    c: float
    paper_start: bool = field(default=False, kw_only=True)

    learned: ClassVar[tuple[str, ...]] = ()  # fields that `encode` fills in, which a model file keeps
    score_name: ClassVar[str] = ""  # what `score` returns
    has_probabilities: ClassVar[bool] = False
    has_sets: ClassVar[bool] = False  # whether sets of answers can be predicted
    several_raters: ClassVar[bool] = False  # whether a row of y has answers of several raters, some of them unknown
    title: ClassVar[str] = "supervised latent Dirichlet allocation"  # the name of the model in a paper
    references: ClassVar[tuple[str, ...]] = ()  # publications of the model, as keys of `report.references`

    # y and its columns

    @property
    def kind(self) -> str:
        """What y holds: "class", "grade", "labels", "rating", "count" or "time"."""
        return ""

    @abstractmethod
    def encode(
        self, y: Any, weight: np.ndarray, exposure: np.ndarray | None = None, classes: Any = None,
        sums: np.ndarray | None = None,
    ) -> Encoded:  # fmt: skip
        """y as columns of numbers, with weight 0 where it is unknown.

        A response that is fitted already keeps its classes, names and units. `sums` are those of earlier batches,
        discounted; exposure (n_docs, 1) is a logarithm.
        """

    @property
    def labels(self) -> list[Any] | None:
        """The classes or labels; None if the response holds numbers."""
        return None

    def like(self, fitted: "Response") -> Self:
        """This response with the classes, names and units of a fitted one."""
        return replace(self, **{name: getattr(fitted, name) for name in self.learned})

    def may_hold_out(self, target: Target) -> np.ndarray:
        """Documents that may be held out from the chains, (n_docs,)."""
        return np.any(target.weight > 0, axis=1)

    def wholly_known(self, target: Target) -> np.ndarray:
        """Documents whose response is known in all of its columns, (n_docs,)."""
        return np.all(target.weight > 0, axis=1)

    def strata(self, target: Target) -> np.ndarray:
        """Numbers (n_docs, n) in whose order documents are held out evenly, so that all kinds are there."""
        return target.y

    def column_parts(self, n_columns: int) -> list[slice]:
        """The columns of each set of topics: one set for all columns, or one for each."""
        return [slice(0, n_columns)]

    def start_columns(self, target: Target) -> np.ndarray:
        """Known responses as numbers from 0 to 1, beside which words are factorised at the start: (n_docs, n).

        Each column of y gives two, how far up and how far down it is in the order of its values; unknown ones are 0.
        """
        known, found = target.weight > 0, np.zeros((2, *target.y.shape))
        for r, own in enumerate(known.T):
            rank = rankdata(target.y[own, r], method="dense") - 1.0
            found[0, own, r] = rank / max(rank.max(initial=0.0), 1.0)
            found[1, own, r] = 1.0 - found[0, own, r]
        return np.concatenate(found, axis=1)

    def seed_means(self, weights: Any, topics: list[str], n_topics: int, n_columns: int) -> np.ndarray | None:
        """Prior means of training and prediction weights, (2, R, K), from seeds that pull somewhere, if any do."""
        return None

    def seed_support(self, target: Target, means: np.ndarray) -> np.ndarray:
        """Known documents, with which prior means (R, K) of each seeded topic fade, (K,); those of numbers do not."""
        return np.zeros(means.shape[1])

    seed_spread: ClassVar[float] = 0.5  # the standard deviation of a seeded prediction weight, relative to its mean

    # augmentation: a quadratic in omega for each document and column

    @abstractmethod
    def draw(self, target: Target, omega: np.ndarray, key: np.uint64, first_doc: int) -> Quadratic:
        """Draw the quadratic given omega; a document's draw depends on its number first_doc + d only.

        Its omega is without the known offset, which is moved into kappa.
        """

    @abstractmethod
    def start(self, target: Target) -> Quadratic:
        """The quadratic before the first iteration: its mean where nothing is known of eta."""

    @property
    def scalar_form(self) -> ScalarForm | None:
        """The formulas of this response on a device; None: the processor draws its quadratics."""
        return None

    # likelihood

    @abstractmethod
    def log_density(self, y: np.ndarray, omega: np.ndarray) -> np.ndarray:
        """The log-likelihood of each y, lam integrated out; psi is its exponential to the power c."""

    def log_likelihood(self, target: Target, omega: np.ndarray) -> np.ndarray:
        """log psi, summed over the documents: (R,)."""
        return self.c * np.sum(target.weight * self.log_density(target.y, omega), axis=0)

    @abstractmethod
    def gradient(self, target: Target, omega: np.ndarray) -> np.ndarray:
        """The derivative of log psi in omega, (n_docs, R)."""

    @abstractmethod
    def information(self, target: Target, omega: np.ndarray) -> np.ndarray:
        """The negative second derivative of log psi in omega, (n_docs, R), or an upper bound."""

    def cost(self, target: Target, omega: np.ndarray) -> tuple[float, np.ndarray]:
        """The negative log-likelihood of all documents for c = 1, and its slope in omega (n_docs, R)."""
        plain = replace(self, c=1.0)
        return -float(plain.log_likelihood(target, omega).sum()), -plain.gradient(target, omega)

    def curvature(self, target: Target, omega: np.ndarray) -> np.ndarray:
        """The second derivative of `cost` in each omega, (n_docs, R)."""
        return replace(self, c=1.0).information(target, omega)

    def plain(self) -> "Response":
        """The response as an ordinary likelihood, c = 1: that of the regressions after a chain."""
        return replace(self, c=1.0)

    def reported(self) -> "Response":
        """The response of the regression whose weights are reported, with intervals of the right coverage."""
        return self.plain()

    level_follows: ClassVar[bool] = False  # whether `cost` adds to omega the constant that fits best
    needs_newton: ClassVar[bool] = False  # given lam, draws of eta hardly move: regressions need Newton steps

    # the response's own parameter, S numbers

    burn_in: ClassVar[int] = 10  # iterations of a regression with fixed shares before its first draw

    @property
    def drawn(self) -> bool:
        """Whether the response has a parameter of its own that is drawn between z and lam."""
        return False

    @property
    def scale(self) -> np.ndarray:
        """The response's own parameter, (S,): one number per column, none, or as many as the response needs."""
        return np.zeros(0)

    @property
    def rescaled(self) -> bool:
        """Whether held-out documents decide on a factor of the own parameter, as they do for a variance."""
        return self.drawn

    def with_scale(self, scale: np.ndarray) -> "Response":
        """The same response with another value of its own parameter."""
        return self

    def rescale(self, scale: np.ndarray, factor: np.ndarray) -> np.ndarray:
        """Draws of the own parameter (..., S) with that part multiplied that held-out documents decide on."""
        return scale * factor

    def base_scale(self, scale: np.ndarray) -> np.ndarray:
        """The own parameter (S,) where the base rate alone is predicted, but for the factor of `rescale`."""
        return scale

    def draw_scale(self, sums: Sums, key: np.uint64) -> "Response":
        """The same response with its own parameter drawn, lam integrated out."""
        return self

    def own_sums(self, target: Target, omega: np.ndarray, key: np.uint64, first_doc: int) -> np.ndarray:
        """The sums over these documents that `draw_scale` needs, (m,); what is drawn depends on key and number."""
        return np.zeros(0)

    def match_scale(self, target: Target, omega: np.ndarray, scale: np.ndarray, n_past: float) -> np.ndarray:
        """What to add to the own parameter (S,), so that predictions are right on average in each of its parts.

        omega (n_copies, n_docs, R) are predictions for training documents with the mean parameter `scale`; n_past
        documents of earlier batches are predicted right by it.
        """
        return np.zeros(len(scale))

    @property
    def excess(self) -> float:
        """A constant in all weights of topics, since one threshold is fixed; reported weights do not contain it."""
        return 0.0

    def check_scale(self, draws: np.ndarray, n_columns: int) -> None:
        """Raise a ValueError if draws (chain, draw, S) of the own parameter in a file cannot be right."""
        if draws.shape[2] not in (0, n_columns) or not (draws > 0).all():
            raise ValueError("The response's parameter cannot be right.")

    def log_prior(self) -> float:
        """The log prior density of the response's own parameter, as far as it is drawn."""
        return 0.0

    def with_carried_scale(self, draws: np.ndarray, n_docs: np.ndarray, discount: float) -> "Response":
        """The same response, with a prior of its own parameter from draws (n, R) of n_docs (R,) earlier documents."""
        return self

    # level: the mean of y and omega

    calibrates_mean: ClassVar[bool] = False  # whether `mean` is E y, so that predictions must be right on average

    @property
    def has_level(self) -> bool:
        """Whether predictions have a constant, which takes the place of one that the weights of all topics share."""
        return self.calibrates_mean

    def level_y(self, target: Target) -> np.ndarray:
        """The numbers (n_docs, R) whose mean is that of predictions."""
        return target.y

    def mean(self, omega: np.ndarray) -> np.ndarray:
        """E y given omega in a prediction, (n_docs, R), in standard units."""
        return omega

    def mean_of_draws(self, omegas: np.ndarray) -> np.ndarray:
        """E y of each document, (n_docs, R), given draws of its omega (n, n_docs, R)."""
        return self.mean(omegas).mean(axis=0)

    def link(self, mean: np.ndarray) -> np.ndarray:
        """The offset of a regression that stands for a mean of y, (R,)."""
        return mean

    def base_mean(self, sums: np.ndarray, half: np.ndarray) -> np.ndarray:
        """The mean of y, (R,), never at an end of its range; `sums` begin with those of y and exposures, weighted.

        Where all of y is the same, half a document of each kind stands for those that there might be.
        """
        ends = (sums[0] <= 0) | (sums[0] >= sums[1])
        return np.where(ends, sums[0] + half, sums[0]) / np.where(ends, sums[1] + 2.0 * half, sums[1])

    def base_rate(self, offset: np.ndarray) -> np.ndarray:
        """The mean of y that the offset of a prediction stands for, (R,)."""
        return self.mean(offset)

    def predictive_offset(self, offset: np.ndarray) -> np.ndarray:
        """The offset that predictions need where regressions have this one; most need the same."""
        return offset

    def mean_quantile(self, q: np.ndarray, mean: np.ndarray, n_docs: np.ndarray) -> np.ndarray:
        """Quantiles of the mean of y given the mean of n_docs documents; y has a variance of about 1."""
        return mean + ndtri(q) / np.sqrt(n_docs)

    def draw_offsets(self, offset: np.ndarray, n_docs: np.ndarray, n_draws: int) -> np.ndarray:
        """n draws of an offset, (n, R), that n_docs documents support (0: no spread); they keep the mean of y."""
        # multiples of the golden ratio are spread evenly whatever their number is, and columns have others
        place = np.arange(1, n_draws + 1)[:, None] * GOLDEN + np.arange(len(offset)) * GOLDEN**2
        q = (np.argsort(np.argsort(place % 1.0, axis=0), axis=0) + 0.5) / n_draws
        with np.errstate(all="ignore"):  # a file may hold any number
            mean = self.base_rate(offset)
            draws = self.mean_quantile(q, mean, np.maximum(n_docs, 1.0))
            away = draws - mean
            sides = np.array([np.maximum(away, 0.0).mean(axis=0), np.maximum(-away, 0.0).mean(axis=0)])
            less = sides.min(axis=0) / np.maximum(sides, TINY)  # so that both sides weigh the same
            found = self.predictive_offset(self.link(mean + np.where(away > 0, less[0], less[1]) * away))
        return np.where((n_docs > 0) & np.isfinite(found), found, offset)

    # predictions; omegas are (n_draws, n_docs, R), scales (n_draws, S)

    @abstractmethod
    def expected(self, omega: np.ndarray, scales: np.ndarray | None = None) -> np.ndarray:
        """What is predicted given omega (..., R), in the user's units: (..., n_answers).

        Without scales the own parameter is that of the response; with them omega has a first axis of draws, too.
        """

    @abstractmethod
    def interval(self, omegas: np.ndarray, scales: np.ndarray, level: Any) -> tuple[np.ndarray, np.ndarray]:
        """The interval of a prediction: lower and upper ends, (n_docs, n_answers)."""

    @abstractmethod
    def predictions(self, omegas: np.ndarray, scales: np.ndarray) -> dict[str, np.ndarray]:
        """Predictions as columns (n_docs,) of a table: "prediction", and numbers that say how sure each is."""

    def log_predictive(self, y: np.ndarray, omegas: np.ndarray, scales: np.ndarray) -> np.ndarray:
        """The log of the mean density of each y over the draws: (n_docs, R), or (n_docs, 1) for exclusive columns."""
        logs = [self.with_scale(scale).log_density(y, omega) for omega, scale in zip(omegas, scales, strict=True)]
        return np.logaddexp.reduce(logs, axis=0) - np.log(len(logs))

    def log_score(self, y: np.ndarray, omegas: np.ndarray, scales: np.ndarray) -> np.ndarray:
        """How well the predicted mean fits each y, whatever the spread around it."""
        return self.log_predictive(y, omegas, scales)

    def explained(self) -> tuple[list[str], np.ndarray]:
        """The columns of an explanation, and each as a sum of columns of omega: (n_shown, R)."""
        return self.column_names, np.eye(len(self.column_names))

    # comparing predictions with known responses

    @abstractmethod
    def truth(self, y: Any, n_docs: int) -> np.ndarray:
        """y, checked, in the form that the methods below compare with predictions; NaN where it is unknown."""

    def encoded_truth(self, y: np.ndarray) -> np.ndarray:
        """`truth` from columns (n_docs, R) of a target."""
        return y

    @abstractmethod
    def draw_losses(self, truth: np.ndarray, omegas: np.ndarray, scales: np.ndarray) -> np.ndarray:
        """The loss of each document in each draw, (n_docs, n_draws)."""

    @abstractmethod
    def loss(self, truth: np.ndarray, omegas: np.ndarray, scales: np.ndarray) -> np.ndarray:
        """The loss of each document's prediction, (n_docs,), by which numbers of topics are compared."""

    @abstractmethod
    def score(self, truth: np.ndarray, expected: np.ndarray) -> float:
        """How good predictions (n_docs, n_answers) are: see `score_name`."""

    def figures(self, truth: np.ndarray, expected: np.ndarray) -> dict[str, float]:
        """Measures of predictions (n_docs, n_answers) by name, the score first."""
        return {self.score_name: self.score(truth, expected)}

    @abstractmethod
    def surprise(self, truth: np.ndarray, omegas: np.ndarray, scales: np.ndarray) -> np.ndarray:
        """How far each known response is from its prediction, (n_docs,); NaN where it is unknown."""

    @abstractmethod
    def doubt(self, omegas: np.ndarray, scales: np.ndarray) -> np.ndarray:
        """How unsure each prediction is, (n_docs,): the larger, the less sure."""

    def uncertainty(self, omegas: np.ndarray, scales: np.ndarray) -> np.ndarray:
        """How unsure each prediction is, (n_docs,), from 0 on: draws differ by the weights alone."""
        raise NotImplementedError

    def interval_level(self, truth: np.ndarray, omegas: np.ndarray, scales: np.ndarray) -> np.ndarray:
        """The smallest level whose `interval` contains each number, (n_docs, R); without columns if there is none."""
        return np.zeros((len(truth), 0))

    def in_units(self, weights: np.ndarray) -> np.ndarray:
        """Weights (..., R, n) in the units of y."""
        return weights

    @property
    def unit(self) -> np.ndarray | float:
        """The unit of y in which omega is modelled, (R,) or 1."""
        return 1.0

    def check_fitted(self, n_columns: int) -> None:
        """Raise a ValueError if what a file says of a fitted response cannot be right."""
