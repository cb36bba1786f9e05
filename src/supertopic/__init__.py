"""Supervised topic models: topics learned from documents together with what is known about each."""

from importlib.metadata import version

from supertopic.estimators import LDA, SLDAClassifier
from supertopic.storage import load, save

__all__ = ["LDA", "SLDAClassifier", "load", "save"]
__version__ = version("supertopic")
