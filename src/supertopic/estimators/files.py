"""Model files: `save` and `load` of estimators and of pipelines with a CountVectorizer."""

import os
from dataclasses import replace
from typing import Any

from sklearn.feature_extraction.text import CountVectorizer
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from supertopic.estimators.base import TopicModel
from supertopic.estimators.classifiers import MedLDAClassifier, SLDAClassifier
from supertopic.estimators.crowd import SLDACrowdClassifier, SLDACrowdRegressor
from supertopic.estimators.lda import LDA
from supertopic.estimators.ordinal import SLDAOrdinalClassifier
from supertopic.estimators.parameter_files import from_plain, read_vectorizer, to_plain, write_vectorizer
from supertopic.estimators.regressors import SLDACountRegressor, SLDARegressor
from supertopic.estimators.survival import SLDASurvivalRegressor
from supertopic.model.terms import expect
from supertopic.storage.container import read_file, write_file
from supertopic.storage.model_file import read_posterior, write_posterior
from supertopic.storage.old_files import modern_parameters, modern_posterior
from supertopic.storage.text import Tensors, pack_text, unpack_text

FORMAT, OLD_FORMAT = 3, 2
KINDS: dict[str, type[TopicModel]] = {
    kind.__name__: kind
    for kind in (
        LDA,
        SLDAClassifier,
        SLDAOrdinalClassifier,
        MedLDAClassifier,
        SLDARegressor,
        SLDACountRegressor,
        SLDACrowdClassifier,
        SLDACrowdRegressor,
        SLDASurvivalRegressor,
    )
}
OF_TEXTS = ("vectorizer_", "word_vectorizer_")  # of a model that was fitted to texts
ELSEWHERE = (
    "device",
    "engine",
    "n_jobs",
    "prior",
)  # parameters that are not kept: a file may be read anywhere, by itself


def register(kind: type[TopicModel]) -> type[TopicModel]:
    """Register an estimator of your own, so that `save` and `load` accept it; may be used as a decorator.

    A parameter that its base class does not have must be in the class's `stored`, the names of what a file may hold.
    """
    KINDS[kind.__name__] = kind
    return kind


def save(obj: TopicModel | Pipeline, path: str | os.PathLike[str]) -> None:
    """Write a fitted estimator, or a Pipeline of a CountVectorizer and an estimator, to one file.

    The file holds parameters, topics, weights and the vocabulary; no training documents. It is written beside its
    final place and renamed, so that a reader never sees half a file, and its header contains its own SHA-256.

    Parameters
    ----------
    obj : estimator or Pipeline
        A fitted estimator, or a fitted Pipeline of a CountVectorizer and one.
    path : path
        The file.

    Examples
    --------
    >>> import supertopic
    >>> texts = ["goal match team", "team match win", "vote law senate", "law vote party"] * 5
    >>> model = supertopic.LDA(n_topics=2, random_state=0).fit(texts)
    >>> supertopic.save(model, "texts.model")  # doctest: +SKIP
    >>> model = supertopic.load("texts.model")  # doctest: +SKIP
    """
    vectorizer, model, steps = _parts(obj)
    check_is_fitted(model, "posterior_")
    facts, tensors = write_posterior(model.posterior_)
    header: dict[str, Any] = {"format": FORMAT, "library": _version(), "kind": type(model).__name__, "steps": steps}
    header |= {"posterior": facts, "n_features_in_": model.n_features_in_}
    header["parameters"] = _parameters(model)
    if hasattr(model, "feature_names_in_"):
        tensors["feature_names_in_"] = model.feature_names_in_
    if vectorizer is not None:
        header |= {"vectorizer": write_vectorizer(vectorizer), "fixed_vocabulary": bool(vectorizer.fixed_vocabulary_)}
        tensors["vocabulary"] = vectorizer.get_feature_names_out()
    for name in OF_TEXTS:
        if hasattr(model, name):  # its vocabulary is that of the posterior
            header[name] = write_vectorizer(getattr(model, name))
    packed = pack_text(header, tensors)
    write_file(path, header, packed)


def load(path: str | os.PathLike[str], *, mmap: bool = False) -> TopicModel | Pipeline:
    """Read what `save` wrote; predictions are the same, bit for bit. Damaged or invalid files are refused.

    Files of versions 0.1 and 0.2 are read, too.

    Parameters
    ----------
    path : path
        The file.
    mmap : bool, default=False
        Leave the arrays in the file, which is mapped into memory: the processes that load it share one copy. `save`
        replaces a file and does not change it; nothing else may change it while it is mapped.
    """
    header, tensors = read_file(path, "supertopic model", mmap)
    if header.get("format") not in (FORMAT, OLD_FORMAT):
        raise ValueError(
            f"{path} has format {header.get('format')!r}, written by supertopic {header.get('library')}; "
            f"this is supertopic {_version()}, which reads formats {OLD_FORMAT} and {FORMAT}."
        )
    if not isinstance(header.get("kind"), str) or header["kind"] not in KINDS:
        raise ValueError(f"{path} holds a {header.get('kind')!r}, which supertopic {_version()} does not support.")
    try:
        tensors = unpack_text(header, tensors)
        model = _model(header, tensors)
        return model if header["steps"] is None else _pipeline(model, header, tensors)
    except Exception as error:
        raise ValueError(f"{path} is not a valid supertopic model: {error or repr(error)}") from error


def load_for_texts(path: str | os.PathLike[str], mmap: bool = False) -> TopicModel:
    """The model of a file, which takes texts; that of a pipeline takes the vectorizer of it."""
    found = load(path, mmap=mmap)
    if isinstance(found, Pipeline):
        vectorizer, model = found[0], found[-1]
        model.vectorizer_ = vectorizer
        if model.posterior_.vocabulary is None:
            model.posterior_ = replace(model.posterior_, vocabulary=vectorizer.get_feature_names_out())
        return model
    if not hasattr(found, "vectorizer_"):
        raise ValueError(f"{path} holds a model that was fitted to counts; its vectorizer is needed to read texts.")
    return found


def _model(header: dict[str, Any], tensors: Tensors) -> TopicModel:
    """The model of a file whose contents may be anything."""
    parameters, fitted = header["parameters"], header.get("fitted", {})
    if header["format"] == OLD_FORMAT:
        parameters = modern_parameters(parameters, fitted)
    kind = KINDS[header["kind"]]
    strange = [name for name in parameters if name not in kind.stored]
    if strange:
        raise ValueError(f"It sets {strange[0]!r}, which a model file may not set for a {kind.__name__}.")
    model = kind(**{name: from_plain(value) for name, value in parameters.items()})
    model.check_parameters()
    n_words = header.get("n_features_in_", fitted.get("n_features_in_"))
    facts: dict[str, Any] = header.get("posterior", {})
    names = tensors.pop("feature_names_in_", None)
    if header["format"] == OLD_FORMAT:
        if "vocabulary" in tensors:  # that of the vectorizer
            tensors["vocabulary_"] = tensors["vocabulary"]
        if names is not None:
            tensors["feature_names_in_"] = names
        facts, tensors = modern_posterior(fitted, tensors, int(model.burn_in))
    model.posterior_ = read_posterior(facts, tensors, model.make_response())
    expect(model.posterior_.n_words == n_words and isinstance(n_words, int), "the number of words")
    model.n_features_in_ = n_words
    if names is not None:
        expect(names.shape == (n_words,), "the names of columns")
        model.feature_names_in_ = names
    vocabularies = model.posterior_.vocabulary, model.posterior_.word_names
    for name, words in zip(OF_TEXTS, vocabularies, strict=True):
        expect(name in header or name == OF_TEXTS[0] or words is None, "words without their vectorizer")
        if name in header:
            if words is None:
                raise ValueError("There is no vocabulary.")
            setattr(model, name, read_vectorizer(header[name], words.tolist()))
    return model


def _parameters(model: TopicModel) -> dict[str, Any]:
    """The parameters of a model that a file may hold, as JSON."""
    given = {name: value for name, value in model.get_params(deep=False).items() if name not in ELSEWHERE}
    for name in given:
        if name not in model.stored:
            raise TypeError(f"{type(model).__name__}.stored, which names what model files may hold, lacks {name!r}.")
    return {name: to_plain(value, name) for name, value in given.items()}


def _pipeline(model: TopicModel, header: dict[str, Any], tensors: Tensors) -> Pipeline:
    words = tensors["vocabulary"].tolist()
    expect(len(words) == model.n_features_in_, "the number of words")
    vectorizer = read_vectorizer(header["vectorizer"], words)
    vectorizer.fixed_vocabulary_ = bool(header["fixed_vocabulary"])
    return Pipeline(list(zip(header["steps"], (vectorizer, model), strict=True)))


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


def _version() -> str:
    from supertopic import __version__

    return __version__
