"""Time until an event: SLDASurvivalRegressor."""

import os
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import RegressorMixin

from supertopic.estimators.docs import documented, documented_fit
from supertopic.estimators.fitted import Fitted
from supertopic.estimators.from_files import fit_from_files
from supertopic.estimators.supervised import Supervised
from supertopic.estimators.validation import check_level
from supertopic.inference.fit import Checkpointing
from supertopic.model.posterior import Posterior
from supertopic.model.responses import PeriodHazards, SharedHazards
from supertopic.model.responses.censoring import brier_scores
from supertopic.model.responses.survival import TimeResponse
from supertopic.model.responses.times import Times, check_periods, with_events
from supertopic.report.evaluate import Evaluation, known_responses

EFFECTS: dict[str, type[SharedHazards] | type[PeriodHazards]] = {"shared": SharedHazards, "by_period": PeriodHazards}


def time_response(posterior: Posterior) -> TimeResponse:
    """The response of the regressor."""
    assert isinstance(posterior.response, TimeResponse)
    return posterior.response


@documented
class SLDASurvivalRegressor(RegressorMixin, Supervised):
    """Supervised LDA with the time until something happens: churn, relapse, the resolution of a ticket.

    Documents whose event has not happened yet are "censored": it is only known how long it has not.
    Time is cut into periods, and the model is one of the hazard, the probability that the event happens in a period,
    given that it has not happened before: its log-odds are omega less a threshold of the period.

    Parameters
    ----------
    n_topics : int, default=20
        Number of topics K.
    c : float, default=8.0
        Weight of the response against the words while topics are learned.
    periods : "auto", int or sequence of float, default="auto"
        The periods, their number, or their edges. By default they are quantiles of the times of events, at most 20 of
        them (8 with effects="by_period"), with 10 events or more in each. Predictions end at the last edge: what
        happens later counts as surviving it. An event at an edge is in the period that ends there.
    effects : {"shared", "by_period"}, default="shared"
        Whether a topic has one weight for all periods (proportional odds), or one for each period, for effects that
        start late or fade. The latter needs many more events.
    ...

    Attributes
    ----------
    times_ : ndarray of shape (n_periods,)
        The ends of the periods, at which survival is predicted.
    life_table_ : ndarray of shape (2, n_periods)
        How many documents of the first batch were at risk in each period, and how many events came in it, weighted.
    coef_ : ndarray of shape (1, n_topics) or (n_periods, n_topics)
        Posterior mean of the reported weights. More of a topic with a positive weight makes the event come sooner.
    ...

    Notes
    -----
    A document that is censored inside a period counts as at risk in this period, and as surviving it, if it lived
    through half of it or more, and as not at risk otherwise. An event at time 0 is in the first period. Nothing depends
    on the unit of time.

    Examples
    --------
    >>> from sklearn.feature_extraction.text import CountVectorizer
    >>> from supertopic import SLDASurvivalRegressor
    >>> texts = ["crash error lost", "slow menu colour", "thanks great easy"] * 12
    >>> X = CountVectorizer().fit_transform(texts)
    >>> days, left = [2, 9, 30, 3, 8, 30] * 6, [1, 1, 0] * 12  # the third kind stays for all 30 days
    >>> model = SLDASurvivalRegressor(n_topics=3, periods=[2, 5, 10, 30], random_state=0).fit(X, days, event=left)
    >>> risk = model.predict_risk(X[:3])
    >>> bool(risk[0] > risk[2])
    True
    """

    periods: Any
    effects: str
    stored = (*Supervised.stored, "effects", "periods")

    def __init__(
        self, n_topics: int = 20, *, c: float = 8.0, periods: Any = "auto", effects: str = "shared",
        calibrate: bool = True, words: Any = True, priority: str = "prediction", held_out: float | str = "auto",
        held_out_by: str = "document", alpha: ArrayLike | None = None,
        beta: float = 0.01, optimize_priors: bool = False, nu2: float = 1.0, seeds: Any = None, prior: Any = None,
        vectorizer: Any = None, formula: Any = None,
        init: str = "nmf", burn_in: int | str = "auto", max_seconds: float | None = None, n_draws: int = 20,
        n_chains: int = 4, sampler: str = "auto", predict_sweeps: int = 40,
        n_jobs: int | None = None, device: str = "cpu", engine: str = "threads", random_state: Any = None,
        verbose: bool = False,
    ) -> None:  # fmt: skip
        self._store(locals())

    def check_parameters(self) -> None:
        super().check_parameters()
        check_periods(self.periods)
        if not isinstance(self.effects, str) or self.effects not in EFFECTS:
            raise ValueError(f"effects must be 'shared' or 'by_period', got {self.effects!r}.")

    def make_response(self) -> TimeResponse:
        return EFFECTS[self.effects](float(self.c), periods=self.periods)

    def _join(self, y: Any, more: dict[str, Any]) -> Any:
        return with_events(super()._join(y, more), more.pop("event", None))

    @documented_fit
    def fit(
        self, X: ArrayLike, y: Any = None, sample_weight: ArrayLike | None = None, *, event: ArrayLike | None = None,
        covariates: ArrayLike | None = None, features: ArrayLike | None = None, groups: ArrayLike | None = None,
        feature_names: ArrayLike | None = None, checkpoint: str | os.PathLike[str] | None = None,
        checkpoint_every: float = 60,
    ) -> Self:  # fmt: skip
        """Learn topics and weights from texts or word counts, and from the time of the event of each document.

        Parameters
        ----------
        y : array-like of shape (n_docs,) or (n_docs, 2), or structured array
            The time of each event, or the time at which a document without one was last seen, from 0 on. With two
            columns, or as a structured array of a boolean and a number (as scikit-survival has it), it has the events,
            too. Other methods with y accept the same forms. NaN means unknown: the model learns from the words of such
            a document only.
        event : array-like of shape (n_docs,), optional
            1 or True if the event happened, 0 or False if the document is censored. By default all events happened.
        ...
        """
        more: dict[str, Any] = {
            "sample_weight": sample_weight, "covariates": covariates, "features": features, "groups": groups,
            "event": event,
        }  # fmt: skip
        return self._fit(X, y, feature_names, checkpointing=Checkpointing(checkpoint, checkpoint_every), **more)

    @documented_fit
    def partial_fit(
        self, X: ArrayLike, y: Any = None, sample_weight: ArrayLike | None = None, *, event: ArrayLike | None = None,
        discount: float = 1.0, new_words: bool = True, covariates: ArrayLike | None = None,
        features: ArrayLike | None = None, groups: ArrayLike | None = None, feature_names: ArrayLike | None = None,
        checkpoint: str | os.PathLike[str] | None = None, checkpoint_every: float = 60,
    ) -> Self:  # fmt: skip
        """Learn from another batch of documents; the model so far is the prior. The periods stay those of the first.

        Parameters
        ----------
        y, event : array-like, optional
            As in `fit`. After the first call you may leave them out, or they may be unknown for all documents.
        ...
        """
        more: dict[str, Any] = {
            "sample_weight": sample_weight, "covariates": covariates, "features": features, "groups": groups,
            "event": event,
        }  # fmt: skip
        more["checkpointing"] = Checkpointing(checkpoint, checkpoint_every)
        return self._update(X, y, feature_names, discount, new_words, **more)

    @documented_fit
    def fit_files(
        self, files: Any, *, text: str = "text", label: str | None = None, event: str | None = None,
        weight: str | None = None, exposure: str | None = None, covariates: Sequence[str] = (),
        groups: str | None = None, vectorizer: Any = None, folder: str | os.PathLike[str] | None = None,
        features: ArrayLike | None = None, checkpoint: str | os.PathLike[str] | None = None,
        checkpoint_every: float = 60,
    ) -> Self:  # fmt: skip
        """Learn from the documents of files, as other models do.

        Parameters
        ----------
        event : str, optional
            The column that has 1 if the event happened and 0 if the document is censored.
        covariates : sequence of str
            The columns that enter the prediction beside the topics; by default those of `formula`, if there is one.
        groups : str, optional
            The column with the group of each document.
        checkpoint, checkpoint_every : path and seconds, optional
            As in `fit`.
        ...
        """
        self.check_parameters()
        columns = {"label": label, "event": event, "sample_weight": weight, "exposure": exposure, "groups": groups}
        checkpointing = Checkpointing(checkpoint, checkpoint_every)
        fit_from_files(self, files, text, columns, covariates, vectorizer, folder, checkpointing, features)
        return self

    times_ = Fitted(lambda posterior: time_response(posterior).edges)
    life_table_ = Fitted(lambda posterior: time_response(posterior).life)

    def predict(
        self, X: ArrayLike, *, covariates: ArrayLike | None = None, features: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> np.ndarray:  # fmt: skip
        """The median time until the event of each document, (n_docs,).

        It is infinite if survival at the last of `times_` is above a half.
        """
        documents = self._new(X, covariates, features=features, groups=groups)
        return time_response(documents.posterior).time_at(documents.expected(), 0.5)

    def predict_survival_function(
        self, X: ArrayLike, *, covariates: ArrayLike | None = None, features: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> np.ndarray:  # fmt: skip
        """The probability that the event happens after each of `times_`, (n_docs, n_periods): a mean over all draws."""
        return self._new(X, covariates, features=features, groups=groups).expected()

    def predict_survival_interval(
        self, X: ArrayLike, level: float = 0.9, *, covariates: ArrayLike | None = None,
        features: ArrayLike | None = None, groups: ArrayLike | None = None,
    ) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
        """The central posterior interval of each of these probabilities: lower and upper ends."""
        check_level(level)
        return self._new(X, covariates, features=features, groups=groups).interval(level)

    def predict_interval(
        self, X: ArrayLike, level: float = 0.9, *, covariates: ArrayLike | None = None,
        features: ArrayLike | None = None, groups: ArrayLike | None = None,
    ) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
        """The times between which the event happens with the given probability: lower and upper, (n_docs,) each.

        The upper end, or both, are infinite if survival at the last of `times_` is too large.
        """
        check_level(level)
        documents = self._new(X, covariates, features=features, groups=groups)
        curve, response = documents.expected(), time_response(documents.posterior)
        return response.time_at(curve, (1 + level) / 2), response.time_at(curve, (1 - level) / 2)

    def predict_risk(
        self, X: ArrayLike, *, covariates: ArrayLike | None = None, features: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> np.ndarray:  # fmt: skip
        """A number from 0 to 1, larger if the event is expected sooner: (n_docs,).

        It is the mean over `times_` of the probability that the event has happened by then.
        """
        documents = self._new(X, covariates, features=features, groups=groups)
        return time_response(documents.posterior).risk(documents.expected())

    def log_predictive(
        self, X: ArrayLike, y: Any, *, event: ArrayLike | None = None, covariates: ArrayLike | None = None,
        features: ArrayLike | None = None, groups: ArrayLike | None = None,
    ) -> np.ndarray:  # fmt: skip
        """The log-probability of what was seen of each document in the periods, under the mean over all draws."""
        documents = self._new(X, covariates, features=features, groups=groups)
        truth = documents.posterior.response.truth(with_events(y, event), documents.counts.shape[0])
        return -documents.losses(truth)[0]

    def score(
        self, X: ArrayLike, y: Any, sample_weight: ArrayLike | None = None, *, event: ArrayLike | None = None,
        covariates: ArrayLike | None = None, features: ArrayLike | None = None, groups: ArrayLike | None = None,
    ) -> float:  # fmt: skip
        """Harrell's concordance index: among the pairs of documents whose order is known, the share in the right order.

        Documents of weight 0 in `sample_weight` are left out; other weights have no effect.
        """
        documents = self._new(X, covariates, features=features, groups=groups)
        response = documents.posterior.response
        truth = response.truth(with_events(y, event), documents.counts.shape[0])
        if sample_weight is not None:
            truth = np.where(np.asarray(sample_weight)[:, None] > 0, truth, np.nan)
        known = known_responses(truth)
        return response.score(truth[known], documents.part(known).expected())

    def evaluate(
        self, X: ArrayLike, y: Any = None, *, event: ArrayLike | None = None, **beside: Any
    ) -> Evaluation:  # fmt: skip
        """How well times are predicted.

        Returns
        -------
        Evaluation
            losses, (n_docs,): the negative log-probability of what was seen of each document in the periods. The score
            is Harrell's concordance index. figures also has that of Uno, the integrated Brier score, and the Brier
            score at three of `times_`; these three weigh documents by how likely the training documents were to be
            censored (inverse probability of censoring weights). Times beyond which all but a twentieth of the training
            documents would be censored are left out.
        """
        return super().evaluate(X, with_events(y, event), **beside)

    def brier_score(
        self, X: ArrayLike, y: Any, *, event: ArrayLike | None = None, covariates: ArrayLike | None = None,
        features: ArrayLike | None = None, groups: ArrayLike | None = None,
    ) -> np.ndarray:  # fmt: skip
        """The Brier score at each of `times_`, (n_periods,): 0 is best, and 0.25 is a coin; NaN as in `evaluate`."""
        documents = self._new(X, covariates, features=features, groups=groups)
        response = time_response(documents.posterior)
        truth = response.truth(with_events(y, event), documents.counts.shape[0])
        known = known_responses(truth)
        curve = documents.part(known).expected()
        return brier_scores(Times(*truth[known].T), curve, response.edges, response.censoring)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = True
        tags.regressor_tags.poor_score = True
        return tags
