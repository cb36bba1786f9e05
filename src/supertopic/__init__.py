"""Supervised topic models: topics learned from documents together with what is known about each."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from supertopic.estimators.choose import Choice, choose_topics
    from supertopic.estimators.classifiers import MedLDAClassifier, SLDAClassifier
    from supertopic.estimators.crowd import SLDACrowdClassifier, SLDACrowdRegressor
    from supertopic.estimators.files import load, save
    from supertopic.estimators.lda import LDA
    from supertopic.estimators.ordinal import SLDAOrdinalClassifier
    from supertopic.estimators.registration import Registration
    from supertopic.estimators.regressors import SLDACountRegressor, SLDARegressor
    from supertopic.estimators.survival import SLDASurvivalRegressor
    from supertopic.model.formula import Formula
    from supertopic.model.priors import Prior
    from supertopic.model.seeds import Seeds
    from supertopic.report.displays import EffectDisplay, ExplanationDisplay, PrevalenceDisplay
    from supertopic.report.explain import explain
    from supertopic.report.maps import ConfusionDisplay, HeatmapDisplay, SimilarityDisplay
    from supertopic.report.plots import (
        ChoiceDisplay,
        CoefficientDisplay,
        ReliabilityDisplay,
        TopicDisplay,
        TraceDisplay,
    )

    __version__: str

__all__ = [
    "LDA",
    "Choice",
    "ChoiceDisplay",
    "CoefficientDisplay",
    "ConfusionDisplay",
    "EffectDisplay",
    "ExplanationDisplay",
    "Formula",
    "HeatmapDisplay",
    "MedLDAClassifier",
    "PrevalenceDisplay",
    "Prior",
    "Registration",
    "ReliabilityDisplay",
    "SLDAClassifier",
    "SLDACountRegressor",
    "SLDACrowdClassifier",
    "SLDACrowdRegressor",
    "SLDAOrdinalClassifier",
    "SLDARegressor",
    "SLDASurvivalRegressor",
    "Seeds",
    "SimilarityDisplay",
    "TopicDisplay",
    "TraceDisplay",
    "choose_topics",
    "explain",
    "load",
    "save",
]
_HOMES = {
    "LDA": "estimators.lda",
    "SLDAClassifier": "estimators.classifiers",
    "SLDAOrdinalClassifier": "estimators.ordinal",
    "SLDACrowdClassifier": "estimators.crowd",
    "SLDACrowdRegressor": "estimators.crowd",
    "MedLDAClassifier": "estimators.classifiers",
    "SLDARegressor": "estimators.regressors",
    "SLDACountRegressor": "estimators.regressors",
    "SLDASurvivalRegressor": "estimators.survival",
    "Registration": "estimators.registration",
    "Choice": "estimators.choose",
    "choose_topics": "estimators.choose",
    "Formula": "model.formula",
    "Prior": "model.priors",
    "Seeds": "model.seeds",
    "explain": "report.explain",
    "ChoiceDisplay": "report.plots",
    "CoefficientDisplay": "report.plots",
    "ConfusionDisplay": "report.maps",
    "EffectDisplay": "report.displays",
    "ExplanationDisplay": "report.displays",
    "HeatmapDisplay": "report.maps",
    "PrevalenceDisplay": "report.displays",
    "ReliabilityDisplay": "report.plots",
    "SimilarityDisplay": "report.maps",
    "TopicDisplay": "report.plots",
    "TraceDisplay": "report.plots",
    "load": "estimators.files",
    "save": "estimators.files",
}


def __getattr__(name: str) -> Any:
    """Import what is asked for when it is asked for: scikit-learn and Numba take a second."""
    if name == "__version__":
        return import_module("importlib.metadata").version("supertopic")
    if name not in _HOMES:
        raise AttributeError(f"module 'supertopic' has no attribute {name!r}")
    return getattr(import_module(f"supertopic.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
