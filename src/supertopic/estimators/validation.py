"""Whatever a user can pass is checked here before any kernel sees it: what was given, what was expected, what to do."""

from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array, issparse
from sklearn.utils.validation import check_array, validate_data

from supertopic.corpus.frames import NUMBER, Frame, is_missing, read_frame, unnamed_frame
from supertopic.corpus.tokens import check_counts
from supertopic.model.design import INTERCEPT, Design, SourceColumn, make_design
from supertopic.model.formula import Formula, Parsed
from supertopic.model.linear import FeatureColumns, FeatureWeights, Matrix, sparse_or_dense
from supertopic.model.posterior import Posterior
from supertopic.model.responses.values import LEAST, MOST, plain_value
from supertopic.model.terms import CovariateColumns, no_covariates
from supertopic.warn import warn

MOST_COVARIATE = 1e100  # their squares are added up
MOST_FEATURES = 100_000  # columns
MOST_GROUPS = 2000
OF_PREDICTIONS = "covariates", "exposure", "features", "groups"  # arguments with a row for each document
TOKENS_A_TOPIC, FEW_TOPICS = 5, 10  # with fewer tokens a topic most topics are noise; a few topics do no harm


def check_number(name: str, value: Any, words: tuple[str, ...] = (), least: float = LEAST, most: float = MOST) -> None:
    """Refuse what is neither a positive number that the sampler can hold nor one of some words."""
    if isinstance(value, str) and value in words:
        return
    if not isinstance(value, Real) or isinstance(value, bool) or not least <= float(value) <= most:
        names = "".join(f"{word!r} or " for word in words)
        raise ValueError(f"{name} must be {names}a number from {least:g} to {most:g}, got {plain_value(value)!r}.")


def check_engine(engine: Any) -> None:
    """Refuse an unknown engine."""
    if (
        not isinstance(engine, str)
        or engine.partition(":")[0] not in ("threads", "ray")
        or engine.startswith("threads:")
        or engine.endswith(":")
    ):
        raise ValueError(f"engine must be 'threads', 'ray' or 'ray:ADDRESS', got {engine!r}.")


def check_device(device: Any, n_topics: int, sampler: str, engine: str) -> None:
    """Refuse an unknown device, and what a GPU cannot do."""
    if not isinstance(device, str) or device not in ("cpu", "cuda"):
        raise ValueError(f"device must be 'cpu' or 'cuda', got {device!r}.")
    if device == "cpu":
        return
    if sampler == "collapsed":
        raise ValueError("device='cuda' has the samplers 'delayed' and 'drawn', got sampler='collapsed'.")
    try:
        from supertopic.kernels.cuda.device import find_device
        from supertopic.kernels.cuda.layout import MOST_TOPICS

        if engine == "threads":  # else the GPUs are elsewhere
            find_device()
    except (ImportError, AttributeError) as error:  # the latter where NumPy is newer than numba-cuda knows
        raise ImportError(
            f"device='cuda' needs numba-cuda, and a NumPy that it supports ({error}); pip install \"supertopic[gpu]\" "
            f"has "
            "both, or use device='cpu'."
        ) from error
    except RuntimeError as error:
        raise RuntimeError(
            f"device='cuda', but {error}. Use device='cpu', which gives an equally good model."
        ) from error
    if n_topics > MOST_TOPICS:
        raise ValueError(
            f"device='cuda' takes at most {MOST_TOPICS:,} topics, got n_topics={n_topics:,}; device='cpu' takes more."
        )


def check_level(level: float) -> None:
    if not isinstance(level, Real) or not 0 < level < 1:
        raise ValueError(f"level must be between 0 and 1, got {level!r}.")


def refuse_text(X: Any) -> None:
    """Say what to do with text that is no sequence of texts, of which scikit-learn would say that it is no number."""
    if not isinstance(X, str | list | tuple | np.ndarray) and not hasattr(X, "iloc"):
        return
    cells = [X] if isinstance(X, str) else np.asarray(X[:1], dtype=object).ravel()
    text = next((cell for cell in cells if isinstance(cell, str)), None)
    if text is not None:
        raise TypeError(
            f"X must be a list or column of texts, or word counts, got text such as {text[:40]!r} in a "
            f"{type(X).__name__}. Fit and predict with texts, model.fit(texts, y), or with counts of one vectorizer."
        )


def read_counts(model: Any, X: Any, reset: bool) -> csr_array:
    """The word counts of documents, checked; `reset` is that of scikit-learn's `validate_data`."""
    refuse_text(X)
    if issparse(X) and X.format == "coo" and X.dtype.kind in "iub":
        X = X.astype(np.int64)  # duplicates are added up on the way to CSR: a sum may be too large for small types
    return check_counts(validate_data(model, X, reset=reset, accept_sparse="csr", dtype="numeric"))


def refuse_counts(posterior: Posterior | None) -> None:
    """Refuse counts for a model whose words are others than those of its topics: only texts have both."""
    if posterior is not None and posterior.word_names is not None and posterior.words is not None:
        raise TypeError(
            "The model was fitted to texts, and has weights for words that are in no topic, such as stop words and "
            "pairs of words: X must be texts, not counts."
        )


def check_features(features: Any, n_docs: int) -> Matrix:
    """Features as a finite matrix of numbers, (n_docs, F)."""
    kind = getattr(features, "dtype", None)
    if kind is not None and np.dtype(kind).kind not in "iufb":
        raise TypeError(f"features must hold numbers, got dtype {kind}.")
    try:
        values = check_array(
            features, accept_sparse="csr", dtype=np.float64, ensure_2d=False, ensure_min_samples=0,
            input_name="features",
        )  # fmt: skip
    except (TypeError, ValueError) as error:
        raise type(error)(f"features must hold finite numbers: {error}") from error
    values = values[:, None] if values.ndim == 1 else values
    if values.shape[0] != n_docs:
        raise ValueError(
            f"X has {n_docs} documents but features has {values.shape[0]} rows; they must be equally many."
        )
    if values.shape[1] > MOST_FEATURES:
        raise ValueError(f"features has {values.shape[1]:,} columns; at most {MOST_FEATURES:,} are possible.")
    largest = abs(values).max() if 0 not in values.shape else 0.0
    if largest > MOST_COVARIATE:
        raise ValueError(f"features must be from {-MOST_COVARIATE:g} to {MOST_COVARIATE:g}, got {largest:g}.")
    return sparse_or_dense(values)


def describe_features(features: Any, n_docs: int) -> tuple[FeatureColumns | None, Matrix | None]:
    """How features are scaled, and their values; sparse ones are not centred."""
    if features is None:
        return None, None
    values = check_features(features, n_docs)
    n = values.shape[1]
    if issparse(values):
        length = np.sqrt(values.multiply(values).sum() / max(n_docs, 1))
        columns = FeatureColumns(np.zeros(n), np.full(n, 1.0 / length if length > 0 else 0.0))
    else:
        mean, sd = values.mean(axis=0) if n_docs else np.zeros(n), values.std(axis=0) if n_docs else np.zeros(n)
        varies = sd > 1e-12 * np.maximum(np.abs(mean), 1e-300)
        scale = np.where(varies, 1.0 / np.where(varies, sd, 1.0), 0.0)
        columns = FeatureColumns(mean, scale / np.sqrt(max(varies.sum(), 1)))
    if not columns.scale.any():
        raise ValueError(f"All {n:,} columns of features are the same for all documents, so they explain nothing.")
    return columns, values


def new_features(term: FeatureWeights | None, features: Any, n_docs: int) -> Matrix:
    """Features of documents for a fitted model, (n_docs, F)."""
    if term is None:
        if features is not None:
            raise ValueError("The model was fitted without features, or did not use them; leave features= out here.")
        return np.zeros((n_docs, 0))
    n = len(term.columns.mean)
    if features is None:
        raise ValueError(f"The model was fitted with {n:,} features; pass features= here, too.")
    values = check_features(features, n_docs)
    if values.shape[1] != n:
        raise ValueError(f"features has {values.shape[1]:,} columns, but the model was fitted with {n:,}.")
    return values


def warn_of_many_topics(n_topics: int, n_docs: int, n_tokens: int) -> None:
    """Warn that K is larger than the corpus supports."""
    if n_topics > max(min(n_docs, n_tokens // TOKENS_A_TOPIC), FEW_TOPICS):
        warn(
            f"n_topics={n_topics:,} is too many for {n_docs:,} documents with {n_tokens:,} words: "
            "most topics will be noise, and the fit will take long. Use fewer topics.",
        )


def check_covariates(covariates: ArrayLike, n_docs: int) -> np.ndarray:
    """Covariates as a finite (n_docs, P) float array."""
    Z = check_array(covariates, dtype=np.float64, ensure_2d=False, ensure_min_samples=0, input_name="covariates")
    Z = check_sizes_of(Z[:, None] if Z.ndim == 1 else Z)
    if len(Z) != n_docs:
        raise ValueError(f"X has {n_docs} documents but covariates has {len(Z)} rows; they must be equally many.")
    return Z


def check_sizes_of(Z: np.ndarray) -> np.ndarray:
    """Covariates as they are, if none is too large."""
    if Z.size and not np.abs(Z).max() <= MOST_COVARIATE:  # NaN is a product of too large ones
        raise ValueError(
            f"covariates must be from {-MOST_COVARIATE:g} to {MOST_COVARIATE:g}, got {Z.flat[np.abs(Z).argmax()]:g}."
        )
    return Z


def log_exposure(exposure: ArrayLike | None, n_docs: int) -> np.ndarray:
    """The log of the exposure as a column, or 0."""
    if exposure is None:
        return np.zeros((n_docs, 1))
    values = check_array(exposure, dtype=np.float64, ensure_2d=False, ensure_min_samples=0, input_name="exposure")
    values = np.ravel(values)
    if len(values) != n_docs:
        raise ValueError(f"X has {n_docs} documents but exposure has {len(values)}; they must be equally many.")
    wrong = values[(values < LEAST) | (values > MOST)]
    if len(wrong):
        raise ValueError(f"exposure must be from {LEAST:g} to {MOST:g}, got {wrong[0]:g}.")
    return np.log(values)[:, None]


def check_vocabulary(
    feature_names: ArrayLike | None, n_words: int, known: np.ndarray | None, fixed: bool
) -> np.ndarray | None:
    """The words of the columns: as given, or as known; those of earlier batches are fixed."""
    if feature_names is None:
        return known
    names = np.asarray(feature_names, dtype=object)
    if names.shape != (n_words,):
        raise ValueError(f"feature_names has {names.size} names, but X has {n_words} columns.")
    if len(set(names)) < len(names):
        raise ValueError("feature_names contains a word twice.")
    if fixed and known is not None and not np.array_equal(known, names):
        raise ValueError("feature_names differ from those of earlier batches; columns must stay as they are.")
    return names


def frame_of(covariates: Any, n_docs: int) -> Frame | None:
    """Covariates as a frame with as many rows as documents; None for an array of numbers."""
    frame = read_frame(covariates)
    if frame is not None and len(frame) != n_docs:
        raise ValueError(f"X has {n_docs} documents but covariates has {len(frame)} rows; they must be equally many.")
    return frame


def design_of(frame: Frame, formula: Formula | None) -> tuple[Design, np.ndarray]:
    """The design of a frame and its covariates, (n_docs, P): all columns, or what a formula says."""
    if not frame.names:
        raise ValueError("covariates has no columns; give some, or leave it out.")
    parsed = Parsed(None, (INTERCEPT, *((name,) for name in frame.names)))
    parsed = parsed if formula is None else formula.parse(frame.names)
    read = [frame.column(frame.place(name)) for name in parsed.columns]
    design = make_design(read, parsed.terms, "error" if formula is None else formula.new_levels, frame.named)
    return design, check_sizes_of(design.encode(read))


def describe_covariates(
    covariates: Any, n_docs: int, formula: Formula | None = None
) -> tuple[CovariateColumns, np.ndarray]:
    """How covariates are made from columns and standardised, and their values, (n_docs, P)."""
    frame = None if covariates is None else frame_of(covariates, n_docs)
    if formula is not None and (frame is None or not frame.named):
        given = "no covariates" if covariates is None else f"a {type(covariates).__name__} whose columns have no names"
        raise ValueError(f"formula={formula.text!r} needs covariates=, a data frame with its columns, got {given}.")
    if covariates is None:
        return no_covariates(), np.zeros((n_docs, 0))
    design: Design | None = None
    if frame is None:
        Z = check_covariates(covariates, n_docs)
        names = [str(i) for i in range(Z.shape[1])]
    else:
        design, Z = design_of(frame, formula)
        names = design.names
    sd = Z.std(axis=0)
    columns = CovariateColumns(np.array(names, dtype=object), Z.mean(axis=0), np.where(sd > 0, sd, 1.0), design)
    for name in columns.names[sd == 0]:
        warn(
            f"The covariate {name!r} is the same for all documents: its weight stays at its prior. The model already "
            f"has an intercept; leave the covariate out."
        )
    return columns, Z


def new_covariates(columns: CovariateColumns, covariates: Any, n_docs: int) -> np.ndarray:
    """Covariates of documents for a fitted model, (n_docs, P)."""
    n, design = len(columns.names), columns.design
    if covariates is None and n == 0:
        return np.zeros((n_docs, 0))
    if covariates is None:
        fitted = f"{n} covariates" if design is None else f"the covariates {design.shown_columns()}"
        raise ValueError(f"The model was fitted with {fitted}; pass covariates= here, too.")
    frame = frame_of(covariates, n_docs)
    if design is None and frame is None:
        Z = check_covariates(covariates, n_docs)
        if Z.shape[1] != n:
            raise ValueError(f"covariates has {Z.shape[1]} columns, but the model was fitted with {n}.")
        return Z
    if frame is None:
        frame = unnamed_frame(check_covariates(covariates, n_docs))
    if design is None:  # that of an array: its columns have places in the place of names
        own = [SourceColumn(str(name), NUMBER) for name in columns.names]
        design = Design(tuple(own), tuple((column.name,) for column in own), named=False)
    return check_sizes_of(design.read(frame))


def read_groups(groups: Any, n_docs: int) -> list[str]:
    """The group of each document as text."""
    values = groups.to_list() if hasattr(groups, "to_list") else np.asarray(groups, dtype=object).tolist()
    if not isinstance(values, list) or any(isinstance(value, list | tuple | np.ndarray) for value in values):
        raise ValueError("groups must be one column: the group of each document, such as its author.")
    if len(values) != n_docs:
        raise ValueError(f"X has {n_docs} documents but groups has {len(values)}; they must be equally many.")
    missing = sum(map(is_missing, values))
    if missing:
        raise ValueError(f"groups has {missing:,} missing values; give such documents a group of their own.")
    return [str(value) for value in values]


def group_names(groups: Any, n_docs: int) -> np.ndarray:
    """The names of the groups, (G,)."""
    if groups is None:
        return np.zeros(0, object)
    names = sorted(set(read_groups(groups, n_docs)))
    if not 1 < len(names) <= MOST_GROUPS:
        raise ValueError(f"groups has {len(names):,} different values; from 2 to {MOST_GROUPS:,} are possible.")
    return np.array(names, dtype=object)


def group_columns(names: np.ndarray, groups: Any, n_docs: int) -> np.ndarray:
    """A column for each known group, (n_docs, G): 1 for its documents. One of an unknown group has 0 everywhere."""
    columns = np.zeros((n_docs, len(names)))
    if groups is None:
        return columns
    values = read_groups(groups, n_docs)
    if not len(names):
        raise ValueError("The model was fitted without groups; leave groups= out here.")
    places = {name: i for i, name in enumerate(names)}
    for row, value in zip(columns, values, strict=True):
        if value in places:
            row[places[value]] = 1.0
    return columns
