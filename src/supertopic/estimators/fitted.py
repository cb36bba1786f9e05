"""Attributes of a fitted model, which read its posterior."""

from collections.abc import Callable
from typing import Any, Generic, Protocol, Self, TypeVar, overload

from sklearn.utils.validation import check_is_fitted

from supertopic.corpus.made_frames import frames_of
from supertopic.model.posterior import Posterior

T = TypeVar("T")


class HasPosterior(Protocol):
    posterior_: Posterior


class Fitted(Generic[T]):
    """An attribute of a fitted model, which reads its posterior."""

    def __init__(self, read: Callable[[Posterior], T]):
        self.read = read

    @overload
    def __get__(self, model: None, owner: type) -> Self: ...

    @overload
    def __get__(self, model: HasPosterior, owner: type) -> T: ...

    def __get__(self, model: HasPosterior | None, owner: type) -> Self | T:
        if model is None:
            return self
        check_is_fitted(model, "posterior_")
        return self.read(model.posterior_)


class FittedFrame(Fitted[Any]):
    """A data frame, of the library that the user works with."""

    def __get__(self, model: Any, owner: type) -> Any:
        if model is None:
            return self
        with frames_of(model.own_library(())):
            return super().__get__(model, owner)


def known(value: T | None, otherwise: str) -> T:
    """A value that not every posterior has."""
    if value is None:
        raise AttributeError(otherwise)
    return value
