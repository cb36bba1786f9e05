"""Model files: one safetensors file with a JSON header. Nothing in it is ever executed."""

import json
import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save as to_bytes
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from supertopic.classifiers import MedLDAClassifier, SLDAClassifier
from supertopic.model import LDA, TopicModel
from supertopic.regressors import SLDACountRegressor, SLDARegressor
from supertopic.supervised import SupervisedTopicModel

FORMAT = 1
KINDS: dict[str, type[TopicModel]] = {
    kind.__name__: kind for kind in (LDA, SLDAClassifier, MedLDAClassifier, SLDARegressor, SLDACountRegressor)
}
FACTS = (  # plain JSON values
    "seed_", "sampler_", "best_chain_", "n_features_in_", "timings_", "multilabel_", "multioutput_",
    "n_covariates_", "c_", "c_path_",
)  # fmt: skip
ARRAYS = (
    "alpha_", "beta_", "log_joint_", "log_joint_iterations_", "classes_", "feature_names_in_", "intercept_",
    "unit_", "covariate_mean_", "covariate_names_",
    "covariate_scale_",
)  # fmt: skip


def save(obj: TopicModel | Pipeline, path: str | os.PathLike) -> None:
    """Write a fitted estimator, or a Pipeline of a CountVectorizer and an estimator, to one file.

    The file holds parameters, topics, weights and the vocabulary; no training documents. It is written beside its
    final place and renamed, so that a reader never sees half a file.
    """
    vectorizer, model, names = _parts(obj)
    check_is_fitted(model, "_word_topic")
    tensors: dict[str, np.ndarray] = {"word_topic": model._word_topic, "eta": model._eta, "scale": model._scale}
    if hasattr(model, "_calibrated"):
        tensors["calibrated_eta"], tensors["calibrated_scale"] = model._calibrated
    header: dict[str, Any] = {"format": FORMAT, "library": _version(), "kind": type(model).__name__, "steps": names}
    header["parameters"] = {name: _plain(value, name) for name, value in model.get_params().items()}
    header["fitted"] = {name: getattr(model, name) for name in FACTS if hasattr(model, name)}
    for name in ARRAYS:
        if hasattr(model, name):
            _put(tensors, header, name, getattr(model, name))
    if vectorizer is not None:
        check_is_fitted(vectorizer, "vocabulary_")
        parameters = vectorizer.get_params()
        parameters["dtype"] = np.dtype(parameters["dtype"]).name
        parameters["vocabulary"] = None  # vocabulary_ says it all
        header["vectorizer"] = {name: _plain(value, name) for name, value in parameters.items()}
        header["fixed_vocabulary"] = bool(vectorizer.fixed_vocabulary_)
        _put(tensors, header, "vocabulary", vectorizer.get_feature_names_out())
    tensors = {name: np.ascontiguousarray(array) for name, array in tensors.items()}
    _write(to_bytes(tensors, metadata={"supertopic": json.dumps(header)}), Path(path))


def load(path: str | os.PathLike) -> TopicModel | Pipeline:
    """Read what `save` wrote; predictions are the same, bit for bit."""
    try:
        with safe_open(os.fspath(path), framework="numpy") as file:
            header = json.loads((file.metadata() or {}).get("supertopic", "null"))
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, json.JSONDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is not a supertopic model: {error}") from error
    if not isinstance(header, dict):
        raise ValueError(f"{path} is a safetensors file, but not a supertopic model.")
    if header.get("format") != FORMAT:
        raise ValueError(
            f"{path} has format {header.get('format')!r}, written by supertopic {header.get('library')}; "
            f"this is supertopic {_version()}, which reads format {FORMAT}."
        )
    if header["kind"] not in KINDS:
        raise ValueError(f"{path} holds a {header['kind']!r}, which supertopic {_version()} does not know.")
    model = KINDS[header["kind"]](**{name: _unplain(value) for name, value in header["parameters"].items()})
    for name, value in header["fitted"].items():
        setattr(model, name, value)
    for name in ARRAYS:
        if name in tensors:
            setattr(model, name, _get(tensors, header, name))
    model._set_draws(tensors["word_topic"], tensors["eta"], tensors["scale"])
    if isinstance(model, SupervisedTopicModel):
        model._calibrated = tensors["calibrated_eta"], tensors["calibrated_scale"]
    if header["steps"] is None:
        return model
    parameters = {name: _unplain(value) for name, value in header["vectorizer"].items()}
    parameters["dtype"] = np.dtype(parameters["dtype"]).type
    vectorizer = CountVectorizer(**parameters)
    words = _get(tensors, header, "vocabulary")
    vectorizer.vocabulary_ = {word: i for i, word in enumerate(words)}
    vectorizer.fixed_vocabulary_ = header["fixed_vocabulary"]
    return Pipeline(list(zip(header["steps"], (vectorizer, model), strict=True)))


def _parts(obj) -> tuple[CountVectorizer | None, TopicModel, list[str] | None]:
    if isinstance(obj, TopicModel) and type(obj).__name__ in KINDS:
        return None, obj, None
    if isinstance(obj, Pipeline):
        names, steps = zip(*obj.steps, strict=True)
        if len(steps) == 2 and type(steps[0]) is CountVectorizer and isinstance(steps[1], TopicModel):
            return steps[0], steps[1], list(names)
        kinds = ", ".join(type(step).__name__ for step in steps)
        raise TypeError(f"A pipeline to save must be a CountVectorizer and a supertopic estimator, got {kinds}.")
    raise TypeError(f"Can save a supertopic estimator or a Pipeline with one, got {type(obj).__name__}.")


def _put(tensors, header, name, array) -> None:
    """Numbers as they are; names and other labels as JSON in a byte tensor."""
    array = np.asarray(array)
    if array.dtype.kind in "iufb":
        tensors[name] = array
        return
    values = array.tolist()
    if not all(isinstance(value, str | int | float | bool) for value in values):
        raise TypeError(f"{name} holds {type(values[0]).__name__} values, which a model file cannot keep.")
    tensors[name] = np.frombuffer(json.dumps(values).encode(), np.uint8)
    header.setdefault("json", {})[name] = array.dtype.kind


def _get(tensors, header, name) -> np.ndarray:
    kind = header.get("json", {}).get(name)
    if kind is None:
        return tensors[name]
    values = json.loads(tensors[name].tobytes())
    return np.array(values, dtype=object if kind == "O" else None)


def _plain(value, name):
    """A parameter as JSON; what JSON has no word for is wrapped, what cannot be written is refused."""
    if isinstance(value, np.generic):
        value = value.item()
    if callable(value):
        raise TypeError(f"{name}={value!r} is a callable; a model file holds no code. Use a parameter that is data.")
    if isinstance(value, np.random.RandomState | np.random.Generator):
        return None  # seed_ keeps what was drawn from it
    if isinstance(value, set | frozenset):
        return {"set": sorted(value)}
    if isinstance(value, tuple):
        return {"tuple": list(value)}
    if isinstance(value, np.ndarray):
        return {"array": value.tolist()}
    if value is None or isinstance(value, str | int | float | bool | list):
        return value
    raise TypeError(f"{name}={value!r} cannot be kept in a model file.")


def _unplain(value):
    if isinstance(value, dict):
        ((kind, content),) = value.items()
        kinds: dict[str, Any] = {"set": frozenset, "tuple": tuple, "array": np.array}
        return kinds[kind](content)
    return value


def _write(data: bytes, path: Path) -> None:
    """All or nothing: a temporary file in the same folder, synced, then renamed."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def _version() -> str:
    from supertopic import __version__

    return __version__
