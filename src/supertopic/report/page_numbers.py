"""Numbers of a page: few digits in its data, and percentages that read well."""

from typing import Any

import numpy as np


def few(values: Any, digits: int = 3) -> Any:
    """A number or an array as plain numbers with few digits, which make a small file; None for what is no number."""
    if isinstance(values, np.ndarray | list):
        return [few(value, digits) for value in values]
    value = float(values)
    if not np.isfinite(value):
        return None
    short = float(f"{value:.{digits}g}")
    return int(short) if short == int(short) and abs(short) < 1e15 else short


PERCENT = "\N{NO-BREAK SPACE}%"


def percent(share: float) -> str:
    """A share in percent; what would be rounded to 0 or 100 % is not."""
    if 0 < share < 0.001:
        return f"<0.1{PERCENT}"
    if 0.999 < share < 1:
        return f">99.9{PERCENT}"
    return f"{100 * share:.{0 if share in (0, 1) else 1}f}{PERCENT}"


def span(lower: float, upper: float) -> str:
    """An interval of shares; ends that would be printed alike stand once."""
    low, high = percent(lower), percent(upper)
    if low == high:
        return low if low[0] in "<>" else f"about {low}"
    return f"{low.removesuffix(PERCENT)} to {high}"


def quoted(name: str, kind: str) -> str:
    """The name of a response in a sentence; a response without a name is called by its kind."""
    return f"the {name}" if name == kind else f"the “{name}”"


def short(text: str, most: int) -> str:
    """A text that is cut after `most` letters."""
    return text if len(text) <= most else text[: most - 1] + "…"


def plural(n: int, what: str, many: str | None = None) -> str:
    return f"{n:,} {what}" if n == 1 else f"{n:,} {many or what + 's'}"
