"""What a model needs of a document beside its text, and which answers it has."""

from dataclasses import dataclass, field
from typing import Any

from supertopic.estimators.base import TopicModel
from supertopic.model.posterior import Posterior
from supertopic.model.responses.classes import ClassResponse
from supertopic.model.responses.counts import NegativeBinomial


@dataclass(frozen=True)
class Needs:
    """What a request has to give, and what it may ask for."""

    kind: str  # the estimator
    response: str  # "class", "labels", "grade", "rating", "count", "time", or "none"
    answers: tuple[Any, ...]  # names of classes, labels or numbers
    covariates: dict[str, str] = field(default_factory=dict)  # the kind of each
    n_features: int = 0
    has_groups: bool = False
    groups: tuple[str, ...] = ()
    exposed: bool = False  # whether it was fitted with an exposure
    takes_exposure: bool = False
    has_sets: bool = False
    has_intervals: bool = False
    has_conformal: bool = False  # whether intervals can be calibrated on held-out documents

    @property
    def beside(self) -> dict[str, str]:
        """The fields that every document must have, and what each is."""
        found = {}
        if self.covariates:
            names = ", ".join(f"{name} (a {kind})" for name, kind in self.covariates.items())
            found["covariates"] = f"the model was fitted with {names}"
        if self.exposed:
            found["exposure"] = "the model was fitted with an exposure, a number above 0"
        if self.n_features:
            found["features"] = f"the model was fitted with {self.n_features:,} features, a list of numbers"
        if self.has_groups:
            found["group"] = "the model was fitted with groups; any other name is a new group"
        return found


def needs_of(model: TopicModel) -> Needs:
    """What a fitted model needs."""
    posterior: Posterior = model.posterior_
    response = posterior.response
    if not posterior.supervised:
        return Needs(type(model).__name__, "none", ())
    exposed = isinstance(response, NegativeBinomial) and response.exposed
    groups = () if posterior.groups is None else tuple(map(str, posterior.groups.names))
    return Needs(
        type(model).__name__, response.kind, tuple(response.answers),
        {} if posterior.covariates is None else posterior.covariates.columns.kinds,
        0 if posterior.features is None else len(posterior.features.columns.mean),
        bool(groups), groups, exposed=exposed, takes_exposure=isinstance(response, NegativeBinomial),
        has_sets=isinstance(response, ClassResponse) and response.has_sets and has_held_out(posterior),
        has_intervals=True, has_conformal=response.kind in ("rating", "count") and has_held_out(posterior),
    )  # fmt: skip


def has_held_out(posterior: Posterior) -> bool:
    """Whether sets and intervals can be calibrated."""
    known = posterior.held_out_predictions
    return known is not None and len(known.weight) > 0
