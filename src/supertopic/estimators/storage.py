"""Model files: what a fitted model is, in a file of data, and back. Whatever is read is checked before it is used."""

import inspect
import json
import os
from typing import Any

import numpy as np
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from supertopic.estimators import base, classifiers, regressors
from supertopic.estimators.base import TopicModel
from supertopic.estimators.beliefs import KEPT
from supertopic.estimators.classifiers import TopicClassifier
from supertopic.estimators.regressors import TopicRegressor
from supertopic.estimators.supervised import SupervisedTopicModel
from supertopic.estimators.trusting import NO_THETA, NO_WORDS
from supertopic.inference.words import Dictionary
from supertopic.storage.container import read_file, write_file

FORMAT = 2
KINDS: dict[str, type[TopicModel]] = {  # every estimator of these files
    name: kind
    for module in (base, classifiers, regressors)
    for name, kind in vars(module).items()
    if isinstance(kind, type) and issubclass(kind, TopicModel) and hasattr(kind, "fit") and not inspect.isabstract(kind)
}
ELSEWHERE = ("device", "engine", "prior")  # parameters that a file does not know: it may be read anywhere, by itself
LEARNED = "learned."  # what `partial_fit` goes on with
FACTS = {  # plain JSON values
    "seed_": int, "sampler_": str, "best_chain_": int, "n_features_in_": int, "timings_": dict, "multilabel_": bool,
    "multioutput_": bool, "n_covariates_": int, "exposed_": bool,
    "hidden_": dict, "n_blocks_": int, "topic_names_": dict, "n_batches_": int,
}  # fmt: skip
ARRAYS = (
    "alpha_", "beta_", "trace_", "log_joint_", "log_joint_iterations_", "classes_", "feature_names_in_", "vocabulary_",
    "intercept_", "calibrated_intercept_", "empty_documents_",
    "empty_intercept_", "unit_", "covariate_mean_", "covariate_names_", "covariate_scale_", "response_names_",
)  # fmt: skip
GONE = ("c_", "c_path_")  # facts of version 0.1
MAX_JOBS = 4096


def save(obj: TopicModel | Pipeline, path: str | os.PathLike[str]) -> None:
    """Write a fitted estimator, or a Pipeline of a CountVectorizer and an estimator, to one file.

    The file holds parameters, topics, weights and the vocabulary; no training documents. It is written beside its
    final place and renamed, so that a reader never sees half a file, and ends with its own SHA-256 in the header.
    """
    vectorizer, model, names = _parts(obj)
    check_is_fitted(model, "_word_topic")
    tensors: dict[str, np.ndarray] = {"word_topic": model._word_topic, "eta": model._eta, "scale": model._scale}
    if isinstance(model, SupervisedTopicModel):
        tensors["calibrated_eta"], tensors["calibrated_scale"] = model._calibrated
        tensors["shown_eta"], tensors["standard_theta"] = model._shown, model._theta
        tensors["dictionary"], tensors["idf"] = model._dictionary
    tensors |= {LEARNED + name: array for name, array in model._learned.items()}
    header: dict[str, Any] = {"format": FORMAT, "library": _version(), "kind": type(model).__name__, "steps": names}
    header["parameters"] = {
        name: _plain(value, name) for name, value in model.get_params(deep=False).items() if name not in ELSEWHERE
    }
    header["fitted"] = {name: getattr(model, name) for name in FACTS if hasattr(model, name)}
    for name in ARRAYS:
        if hasattr(model, name) and not (name == "vocabulary_" and vectorizer is not None):  # which has it
            _put(tensors, header, name, getattr(model, name))
    if vectorizer is not None:
        check_is_fitted(vectorizer, "vocabulary_")
        parameters = vectorizer.get_params()
        parameters["dtype"] = np.dtype(parameters["dtype"]).name
        parameters["vocabulary"] = None  # vocabulary_ says it all
        header["vectorizer"] = {name: _plain(value, name) for name, value in parameters.items()}
        header["fixed_vocabulary"] = bool(vectorizer.fixed_vocabulary_)
        _put(tensors, header, "vocabulary", vectorizer.get_feature_names_out())
    write_file(path, header, tensors)


def load(path: str | os.PathLike[str]) -> TopicModel | Pipeline:
    """Read what `save` wrote; predictions are the same, bit for bit. A file that is not whole and sound is refused."""
    header, tensors = read_file(path, "supertopic model")
    if header.get("format") != FORMAT:
        raise ValueError(
            f"{path} has format {header.get('format')!r}, written by supertopic {header.get('library')}; "
            f"this is supertopic {_version()}, which reads format {FORMAT}."
        )
    if not isinstance(header.get("kind"), str) or header["kind"] not in KINDS:
        raise ValueError(f"{path} holds a {header.get('kind')!r}, which supertopic {_version()} does not know.")
    try:
        model = _model(header, tensors)
        return model if header["steps"] is None else _pipeline(model, header, tensors)
    except Exception as error:
        raise ValueError(f"{path} is not a sound supertopic model: {error or repr(error)}") from error


def _model(header: dict[str, Any], tensors: dict[str, np.ndarray]) -> TopicModel:
    """The model of a file whose contents may be anything."""
    parameters = {name: _unplain(value) for name, value in header["parameters"].items()}
    chosen, _ = (header["fitted"].pop(name, None) for name in GONE)
    if parameters.get("c") == "auto":  # as version 0.1 had it
        parameters["c"] = chosen
    model = KINDS[header["kind"]](**parameters)
    model._check_parameters()
    _expect(model.n_jobs is None or abs(int(model.n_jobs)) <= MAX_JOBS, f"n_jobs = {model.n_jobs}")
    for name, value in header["fitted"].items():
        wanted = FACTS[name]
        _expect(isinstance(value, wanted) or (wanted is float and isinstance(value, int)), f"{name} = {value!r}")
        setattr(model, name, value)
    model.n_blocks_ = header["fitted"].get("n_blocks_", 1)  # version 0.1 had no others
    model.topic_names_ = header["fitted"].get("topic_names_", {})
    model.n_batches_ = header["fitted"].get("n_batches_", 1)
    model._learned = {name.removeprefix(LEARNED): tensors[name] for name in tensors if name.startswith(LEARNED)}
    for name in ARRAYS:
        if name in tensors:
            setattr(model, name, _get(tensors, header, name))
    if isinstance(model, SupervisedTopicModel):
        _fill_up(model, tensors)
    _check_arrays(model, tensors)
    draws = tensors["eta"], tensors["scale"]
    calibrated, shown = draws, tensors["eta"]
    if isinstance(model, SupervisedTopicModel):
        calibrated, shown = (tensors["calibrated_eta"], tensors["calibrated_scale"]), tensors["shown_eta"]
        model._theta, model._dictionary = tensors["standard_theta"], Dictionary(tensors["dictionary"], tensors["idf"])
    model._set_draws(tensors["word_topic"], *draws, *calibrated, shown)
    return model


def _fill_up(model: SupervisedTopicModel, tensors: dict[str, np.ndarray]) -> None:
    """What a file of an older version does not have.

    Version 0.2 predicted with the intercept that stands for the base rate, and had sigma2 and words' weights in y's
    units. Version 0.1 showed the weights that predict, and hid no document. Its classifiers had no intercept, a
    document without words had the shares of all tokens, and words had no weights.
    """
    eta, unit = tensors["calibrated_eta"], getattr(model, "unit_", np.ones(1))
    if "standard_theta" not in tensors and hasattr(model, "unit_"):
        _expect(unit.ndim == 1 and tensors["scale"].shape[2:] == unit.shape, "unit_'s shape")
        for name in ("scale", "calibrated_scale"):
            tensors[name] = tensors[name] / unit / unit
    if "theta" in tensors:
        _expect(tensors["theta"].ndim == 3 and len(unit) in (1, eta.shape[2]), "theta's shape")
        tensors["standard_theta"] = tensors.pop("theta") / np.reshape(unit, (-1, 1))  # float64: the same to the bit
    elif "standard_theta" not in tensors:
        tensors["standard_theta"], (tensors["dictionary"], tensors["idf"]) = NO_THETA, NO_WORDS
    if "sums" in model._learned and len(model._learned["sums"]) == 4:
        model._learned["sums"] = np.concatenate([model._learned["sums"], model._learned["sums"][1:2]])
    if not hasattr(model, "calibrated_intercept_") and hasattr(model, "empty_intercept_"):
        model.calibrated_intercept_, model.empty_documents_ = model.intercept_, 0.0 * model.intercept_
    if "shown_eta" in tensors or eta.ndim != 4 or tensors["word_topic"].ndim != 3:
        return
    tensors["shown_eta"], model.hidden_ = eta, {"documents": 0}
    tokens = tensors["word_topic"].sum(axis=1, dtype=float)
    shares = tokens / np.maximum(tokens.sum(axis=1, keepdims=True), 1.0)
    of_empty = np.einsum("cdrk,ck->r", eta[..., : shares.shape[1]], shares) / (eta.shape[0] * eta.shape[1])
    if not hasattr(model, "intercept_"):
        model.intercept_ = np.zeros(eta.shape[2])
    model.calibrated_intercept_, model.empty_intercept_ = model.intercept_, model.intercept_ + of_empty
    model.empty_documents_ = 0.0 * model.intercept_


def _check_arrays(model: TopicModel, tensors: dict[str, np.ndarray]) -> None:
    """The shapes and values that the code relies on: its kernels check no bounds."""
    counts, eta, scale = tensors["word_topic"], tensors["eta"], tensors["scale"]
    _expect(counts.ndim == 3 and counts.dtype.kind in "iu" and counts.size > 0, "word_topic's shape or type")
    n_chains, n_words, n_topics = counts.shape
    _expect(counts.min() >= 0 and n_topics < 2**16 and n_words == model.n_features_in_, "word_topic's values")
    _expect(0 <= model.best_chain_ < n_chains and 0 <= model.seed_ < 2**63, "best_chain_ or seed_")
    n_covariates = getattr(model, "n_covariates_", 0)
    _expect(eta.ndim == 4 and eta.shape[0] == n_chains and eta.shape[1] > 0, "eta's shape")
    _expect(eta.shape[3] == n_topics + n_covariates and n_covariates >= 0, "eta's width")
    _expect(scale.ndim == 3 and scale.shape[:2] == eta.shape[:2], "scale's shape")
    blocks = model.n_blocks_
    _expect(blocks == 1 or (blocks == eta.shape[2] and n_topics % blocks == 0), "n_blocks_")
    n_columns, shapes = eta.shape[2], {"alpha_": (n_chains, n_topics), "beta_": (n_chains,)}
    if isinstance(model, SupervisedTopicModel):
        _expect(tensors["calibrated_eta"].shape == eta.shape, "the calibrated eta's shape")
        _expect(tensors["calibrated_scale"].shape == scale.shape, "the calibrated scale's shape")
        shown = tensors["shown_eta"].shape
        _expect(len(shown) == 4 and shown[1] > 0 and shown[::2] == eta.shape[::2], "the shown eta's shape")
        _expect(shown[3] == eta.shape[3], "the shown eta's width")
        theta, (word, idf) = tensors["standard_theta"], (tensors["dictionary"], tensors["idf"])
        _expect(word.ndim == 1 and word.dtype.kind in "iu" and idf.shape == word.shape, "the words with weights")
        _expect((np.diff(word) > 0).all() and (word >= 0).all() and (word < n_words).all(), "which words have weights")
        _expect(theta.ndim == 3 and (not theta.size or theta.shape[1:] == (n_columns, len(word))), "theta's shape")
        shapes |= dict.fromkeys(
            ("intercept_", "calibrated_intercept_", "empty_intercept_", "empty_documents_"), (n_columns,)
        )
        shapes |= dict.fromkeys(("covariate_mean_", "covariate_scale_", "covariate_names_"), (n_covariates,))
    if isinstance(model, TopicRegressor):
        _expect(scale.shape[2] in (0, n_columns), "the response's parameter")
        _expect((tensors["calibrated_scale"] > 0).all(), "the response's parameter")
        _expect(model.multioutput_ or n_columns == 1, "multioutput_")
    if isinstance(model, TopicClassifier):
        n_classes = len(model.classes_)
        columns = {n_classes} if model.multilabel_ else {n_classes, n_classes - 1} if n_classes > 2 else {1}
        _expect(model.classes_.ndim == 1 and n_columns in columns and n_classes > 0, "the number of classes")
    if hasattr(model, "vocabulary_"):
        shapes["vocabulary_"] = (n_words,)
    for name, shape in shapes.items():
        _expect(getattr(model, name).shape == shape, f"{name}'s shape")
    _check_learned(model, counts.shape, eta.shape, len(tensors["dictionary"]) if "dictionary" in tensors else 0)
    for name, array in tensors.items():
        _expect(
            array.dtype.kind in "iub" or (array.dtype.kind == "f" and np.isfinite(array).all()), f"{name}'s numbers"
        )
    _expect((model.alpha_ > 0).all() and (model.beta_ > 0).all(), "alpha_ or beta_")


def _check_learned(model: TopicModel, counts: tuple[int, ...], eta: tuple[int, ...], n_weights: int) -> None:
    """What `partial_fit` will go on with; a file of an older version has nothing of it."""
    learned, (n_chains, n_words, n_topics) = model._learned, counts
    n, width = n_chains * model.n_blocks_, (n_topics // model.n_blocks_) + eta[3] - n_topics
    n_columns = eta[2] if model.n_blocks_ == 1 else 1
    learned.setdefault("imagined", np.zeros((n, n_topics // model.n_blocks_)))
    shapes: dict[str, tuple[int, ...]] = {"imagined": (n, n_topics // model.n_blocks_), "documents": (n_words + 1,)}
    shapes |= {f"{name}_precision": (n, width * (width + 1) // 2, n_columns) for name in KEPT}
    shapes |= {f"{name}_shift": (n, width, n_columns) for name in KEPT}
    shapes |= dict.fromkeys(("theta", "theta_precision"), (n_weights, eta[2])) | {"penalty": (1,), "sums": (5, eta[2])}
    shapes |= {"level": (eta[2],), "level_shift": (3, eta[2])}
    for name, array in learned.items():
        if name in shapes:
            _expect(array.shape == shapes[name], f"{LEARNED}{name}'s shape")
        else:
            _expect(name.partition("_")[0] in ("alone", "beside", "scale") and array.ndim == 2, f"{LEARNED}{name}")
    if isinstance(model, SupervisedTopicModel) and "eta_shift" not in learned:
        learned |= {"sums": np.zeros((5, eta[2])), "scale": np.zeros((0, 0))}


def _pipeline(model: TopicModel, header: dict[str, Any], tensors: dict[str, np.ndarray]) -> Pipeline:
    parameters = {name: _unplain(value) for name, value in header["vectorizer"].items()}
    dtype = np.dtype(parameters.pop("dtype"))
    _expect(dtype.kind in "iuf", "the vectorizer's dtype")
    vectorizer = CountVectorizer(dtype=dtype.type, **parameters)
    words = _get(tensors, header, "vocabulary").tolist()
    _expect(len(set(words)) == len(words) == model.n_features_in_, "the number of words")
    vectorizer.vocabulary_ = {word: i for i, word in enumerate(words)}
    model.vocabulary_ = np.array(words, dtype=object)
    vectorizer.fixed_vocabulary_ = bool(header["fixed_vocabulary"])
    vectorizer._validate_params()  # as scikit-learn does in fit, which is not called here
    vectorizer._validate_ngram_range()
    vectorizer.build_analyzer()
    return Pipeline(list(zip(header["steps"], (vectorizer, model), strict=True)))


def _expect(sound: Any, what: str) -> None:
    if not sound:
        raise ValueError(f"{what} cannot be right.")


def _parts(obj: Any) -> tuple[CountVectorizer | None, TopicModel, list[str] | None]:
    if isinstance(obj, TopicModel) and KINDS.get(type(obj).__name__) is type(obj):
        return None, obj, None
    if isinstance(obj, Pipeline):
        names, steps = zip(*obj.steps, strict=True)
        if len(steps) == 2 and type(steps[0]) is CountVectorizer and isinstance(steps[1], TopicModel):
            return steps[0], steps[1], list(names)
        kinds = ", ".join(type(step).__name__ for step in steps)
        raise TypeError(f"A pipeline to save must be a CountVectorizer and a supertopic estimator, got {kinds}.")
    raise TypeError(f"Can save a supertopic estimator or a Pipeline with one, got {type(obj).__name__}.")


def _put(tensors: dict[str, np.ndarray], header: dict[str, Any], name: str, array: Any) -> None:
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


def _get(tensors: dict[str, np.ndarray], header: dict[str, Any], name: str) -> np.ndarray:
    kind = header.get("json", {}).get(name)
    if kind is None:
        return tensors[name]
    values = json.loads(tensors[name].tobytes())
    return np.array(values, dtype=object if kind == "O" else None)


def _plain(value: Any, name: str) -> Any:
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
    if isinstance(value, dict):
        return {"dict": [[key, _plain(item, name)] for key, item in value.items()]}
    if isinstance(value, list):
        return [_plain(item, name) for item in value]
    if value is None or isinstance(value, str | int | float | bool):
        return value
    raise TypeError(f"{name}={value!r} cannot be kept in a model file.")


def _unplain(value: Any) -> Any:
    if isinstance(value, dict):
        ((kind, content),) = value.items()
        kinds: dict[str, Any] = {"set": frozenset, "tuple": tuple, "array": np.array}
        if kind == "dict":
            return {key: _unplain(item) for key, item in content}
        return kinds[kind](content)
    return [_unplain(item) for item in value] if isinstance(value, list) else value


def _version() -> str:
    from supertopic import __version__

    return __version__
