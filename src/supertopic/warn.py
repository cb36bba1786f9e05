"""Warnings that point at the line of the caller, however deep in the library they come from."""

import sys
import warnings

BETWEEN = (
    "supertopic",
    "sklearn",
    "joblib",
    "concurrent",
    "threading",
    "multiprocessing",
    "contextlib",
)  # packages between a warning and the caller: a warning points at the first line outside of them


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn of something, at the first line outside of the library and of what stands between it and its caller."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in BETWEEN:
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level + 1)
