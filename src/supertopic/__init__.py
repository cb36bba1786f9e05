"""Supervised topic models: topics learned from documents together with what is known about each."""

from supertopic.estimators import LDA, SLDAClassifier

__all__ = ["LDA", "SLDAClassifier"]
