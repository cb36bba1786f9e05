"""Whatever a user can pass is checked here before any kernel sees it: what was given, what was expected, what to do."""

import importlib.util
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_array

from supertopic.warn import warn

LEAST, MOST = 1e-10, 1e10  # what c, alpha, beta and nu2 may be: the sampler's own numbers are float32
MOST_COVARIATE = 1e100  # their squares are added up
TOKENS_A_TOPIC, FEW_TOPICS = 5, 10  # with fewer tokens a topic most topics are noise; a few topics do no harm


def check_number(name: str, value: Any, words: tuple[str, ...] = (), least: float = LEAST, most: float = MOST) -> None:
    """Refuse what is neither a positive number that the sampler can hold nor one of some words."""
    if isinstance(value, str) and value in words:
        return
    if not isinstance(value, Real) or isinstance(value, bool) or not least <= float(value) <= most:
        names = "".join(f"{word!r} or " for word in words)
        raise ValueError(f"{name} must be {names}a number from {least:g} to {most:g}, got {value!r}.")


def check_engine(engine: Any) -> None:
    """Refuse an engine that there is not."""
    if (
        not isinstance(engine, str)
        or engine.partition(":")[0] not in ("threads", "ray")
        or engine.startswith("threads:")
        or engine.endswith(":")
    ):
        raise ValueError(f"engine must be 'threads', 'ray' or 'ray:ADDRESS', got {engine!r}.")


def check_ray() -> None:
    """Refuse to fit on a cluster without Ray. Predictions are made by threads, wherever the model was fitted."""
    if importlib.util.find_spec("ray") is None:
        raise ImportError("engine='ray' needs Ray; pip install \"supertopic[ray]\", or use engine='threads'.")


def check_device(device: Any, n_topics: int, sampler: str, engine: str) -> None:
    """Refuse a device that there is not, and what a card cannot do."""
    if not isinstance(device, str) or device not in ("cpu", "cuda"):
        raise ValueError(f"device must be 'cpu' or 'cuda', got {device!r}.")
    if device == "cpu":
        return
    if sampler == "collapsed":
        raise ValueError("device='cuda' has the samplers 'delayed' and 'drawn', got sampler='collapsed'.")
    try:
        from supertopic.kernels.cuda.device import find_device
        from supertopic.kernels.cuda.sweep import MOST_TOPICS

        if engine == "threads":  # else the cards are elsewhere
            find_device()
    except (ImportError, AttributeError) as error:  # the latter where NumPy is newer than numba-cuda knows
        raise ImportError(
            f"device='cuda' needs numba-cuda, and a NumPy that it knows ({error}); pip install \"supertopic[gpu]\" has "
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
    """Say what to do with raw text, of which scikit-learn would say that it is no number."""
    if not isinstance(X, str | list | tuple | np.ndarray) and not hasattr(X, "iloc"):
        return
    cells = [X] if isinstance(X, str) else np.asarray(X[:1], dtype=object).ravel()
    text = next((cell for cell in cells if isinstance(cell, str)), None)
    if text is not None:
        raise TypeError(
            f"X must hold word counts, got text such as {text[:40]!r}. Turn text into counts first, in a pipeline: "
            "make_pipeline(CountVectorizer(), model)."
        )


def warn_of_many_topics(n_topics: int, n_docs: int, n_tokens: int) -> None:
    """Tell that K is beyond what the corpus can tell apart."""
    if n_topics > max(min(n_docs, n_tokens // TOKENS_A_TOPIC), FEW_TOPICS):
        warn(
            f"n_topics={n_topics:,} is more than {n_docs:,} documents with {n_tokens:,} words in all can tell apart: "
            "most topics will be noise, and the fit will take long. Use fewer topics.",
        )


def check_covariates(covariates: ArrayLike, n_docs: int) -> np.ndarray:
    """Covariates as a finite (n_docs, P) float array."""
    Z = check_array(covariates, dtype=np.float64, ensure_2d=False, ensure_min_samples=0, input_name="covariates")
    Z = Z[:, None] if Z.ndim == 1 else Z
    if Z.size and np.abs(Z).max() > MOST_COVARIATE:
        raise ValueError(
            f"covariates must be from {-MOST_COVARIATE:g} to {MOST_COVARIATE:g}, got {Z.flat[np.abs(Z).argmax()]:g}."
        )
    if len(Z) != n_docs:
        raise ValueError(f"X has {n_docs} documents but covariates has {len(Z)} rows; they must be equally many.")
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


def without_na(y: Any) -> Any:
    """y, or where it is of a pandas type of its own that may hold NA, an array of objects with None there."""
    types = list(getattr(y, "dtypes", [])) if getattr(y, "ndim", 0) == 2 else [getattr(y, "dtype", None)]
    if not hasattr(y, "isna") or all(isinstance(kind, np.dtype) for kind in types):
        return y
    values, missing = y.to_numpy(dtype=object, copy=True), np.asarray(y.isna())
    values[missing] = None
    return values


def is_unknown(y: np.ndarray, missing_label: Any) -> np.ndarray:
    """Where y is NaN, None or the value that means missing."""
    unknown = y != y if y.dtype.kind in "fO" else np.zeros(y.shape, bool)
    if y.dtype == object:
        unknown = unknown | (y == None)  # noqa: E711
    if missing_label is not None:
        unknown = unknown | (y == missing_label)
    return unknown.astype(bool)


def plain(value: Any) -> Any:
    """A number or a text as Python has it: NumPy's say their type when they are shown."""
    return value.item() if isinstance(value, np.generic) else value


def free_memory() -> float:
    """Bytes that a program can still take, as Linux tells it; infinite elsewhere, where nothing is refused for it."""
    try:
        with open("/proc/meminfo", encoding="ascii") as file:
            rows = dict(line.split(":", 1) for line in file)
        return 1024.0 * (int(rows["MemAvailable"].split()[0]) + int(rows["SwapFree"].split()[0]))
    except (OSError, ValueError, KeyError):
        return float("inf")
