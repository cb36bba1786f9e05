"""Topics that are fixed before their effects are estimated: a record of them for a pre-registration."""

import hashlib
import json
import os
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from supertopic.corpus.writing import whole_text
from supertopic.model.posterior import Posterior
from supertopic.warn import warn


@dataclass(frozen=True)
class Registration:
    """A record of a model's topics: `str(record)` is the text for a pre-registration.

    The hash changes if any count of a word in a topic, a Dirichlet prior, the order of topics or a word of the
    vocabulary changes. Names of topics, weights and parameters are not part of it.
    """

    date: str  # in UTC, as ISO 8601
    sha256: str  # of the topics
    model: str  # the name of the estimator
    version: str  # version of supertopic
    n_topics: int
    n_chains: int
    n_words: int
    seed: int
    parameters: dict[str, Any]  # as JSON has them

    def check(self, model: Any) -> bool:
        """Whether a model has these topics.

        Parameters
        ----------
        model : estimator
            A fitted one, such as the registered model after `save` and `load`.

        Returns
        -------
        bool
            False if its topics have changed, for example by `partial_fit` or by another `fit`.
        """
        return hash_topics(fitted_posterior(model)) == self.sha256

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> "Registration":
        """The record of a file that `freeze(path)` wrote.

        Parameters
        ----------
        path : path
            The file.
        """
        try:
            return cls(**json.loads(Path(path).read_text(encoding="utf-8")))
        except (TypeError, ValueError) as error:
            raise ValueError(f"{path} is not a record of frozen topics, as freeze(path) writes it: {error}") from error

    def __str__(self) -> str:
        facts = {
            "Registered (UTC)": self.date, "Model": f"{self.model}, supertopic {self.version}",
            "Topics": f"{self.n_topics} over {self.n_words} words, {self.n_chains} chains, seed {self.seed}",
            "SHA-256 of the topics": self.sha256, "Parameters": json.dumps(self.parameters, ensure_ascii=False),
        }  # fmt: skip
        return "\n".join(f"{name}: {value}" for name, value in facts.items())


def freeze(self: Any, path: str | os.PathLike[str] | None = None) -> Registration:
    """Record the topics, so that a pre-registration can name them before their effects are estimated.

    Parameters
    ----------
    path : path, optional
        Where the record is written as JSON; `Registration.read` reads it. Use `save` for the model itself.

    Returns
    -------
    Registration
        The date, a SHA-256 hash of the topics, the parameters and the version. `str` gives a text;
        `record.check(model)` says whether a model still has the same topics.
    """
    posterior = self._fitted()
    now = datetime.now(UTC).isoformat(timespec="seconds")
    record = Registration(
        now, hash_topics(posterior), type(self).__name__, version("supertopic"), posterior.n_topics,
        posterior.n_chains, posterior.n_words, posterior.seed,
        as_plain(self.get_params(deep=False)),
    )  # fmt: skip
    if posterior.vocabulary is None:
        warn(
            "The words of the columns are unknown, so the hash does not depend on them. Fit to texts, or with "
            "feature_names=."
        )
    if path is not None:
        text = json.dumps(asdict(record), indent=2, ensure_ascii=False)
        with whole_text(path) as file:
            file.write(text + "\n")
    return record


def fitted_posterior(model: Any) -> Posterior:
    """The posterior of a fitted estimator, or of the last step of a pipeline."""
    model = model.steps[-1][1] if hasattr(model, "steps") else model
    posterior = getattr(model, "posterior_", None)
    if not isinstance(posterior, Posterior):
        raise TypeError(f"check takes a fitted supertopic estimator, got a {type(model).__name__} that is not one.")
    return posterior


def hash_topics(posterior: Posterior) -> str:
    """SHA-256 of counts, priors, the order of topics and the vocabulary, the same on every kind of processor."""
    found = hashlib.sha256()

    def add(values: np.ndarray, kind: str) -> None:
        found.update(f"{values.shape}{kind}".encode())
        found.update(np.ascontiguousarray(values, dtype=kind).tobytes())

    for part in posterior.topics:
        add(np.array([part.n_draws]), "<i8")
        for counts in part.word_topic:  # one chain at a time: they are large
            add(counts, "<i8")
        add(part.alpha, "<f8")
        add(part.beta, "<f8")
    add(posterior.order, "<i8")
    words = [] if posterior.vocabulary is None else [str(word) for word in posterior.vocabulary]
    found.update(json.dumps(words).encode())
    return found.hexdigest()


def as_plain(value: Any) -> Any:
    """A parameter as JSON has it; what JSON does not know becomes text."""
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, dict):
        return {str(key): as_plain(own) for key, own in value.items()}
    if isinstance(value, list | tuple):
        return [as_plain(own) for own in value]
    if isinstance(value, set | frozenset):
        return sorted((as_plain(own) for own in value), key=str)
    if hasattr(value, "get_params") and not isinstance(value, type):
        return {"kind": type(value).__name__} | as_plain(value.get_params(deep=False))
    return repr(value)
