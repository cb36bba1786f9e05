"""Formulas: which columns of a data frame are covariates, and which of their products."""

import re
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from sklearn.base import BaseEstimator

from supertopic.model.design import INTERCEPT, MOST_FACTORS, NEW_LEVELS, Term

TOPICS = "topics"  # no column may have this name in a formula
POWER = re.compile(r"(?:\*\*|\^)\s*(\d+)")
AVAILABLE = "__formulaic_variables_available__"  # where formulaic's parser looks for the columns of "."


class Formula(BaseEstimator):
    """Which columns of a data frame are covariates, and which of their products.

    Parameters
    ----------
    text : str
        "critic + year + critic:year", or shorter "critic * year": columns, and products of columns. "." are all
        columns, and `` `name with spaces` `` is a column. With a left side, "rating ~ critic", the response is a column
        of the frame, too. Transform a column before the fit: a formula has no functions. Reading it needs formulaic,
        `pip install "supertopic[formula]"`; a fitted model does not.
    new_levels : {"error", "mean"}, default="error"
        What a level of a category gives that the fit did not have: an error that names it, or the prediction with the
        mean of the training documents' contrasts.
    """

    def __init__(self, text: Any, *, new_levels: str = "error") -> None:
        self.text, self.new_levels = text, new_levels

    def check(self) -> None:
        """Refuse what cannot be a formula; it is not read here, so that a loaded model works without formulaic."""
        if not isinstance(self.text, str) or not self.text.strip():
            raise ValueError(f"formula must be a text such as 'critic + year', got {self.text!r}.")
        if self.new_levels not in NEW_LEVELS:
            raise ValueError(f"Formula: new_levels must be 'error' or 'mean', got {self.new_levels!r}.")

    def has_sides(self) -> bool:
        """Whether there may be a left side."""
        self.check()
        return "~" in self.text

    def parse(self, names: Sequence[str] | None = None) -> "Parsed":
        """The terms of the formula; `names` are the columns that "." stands for."""
        self.check()
        left, right = split_sides(self.text, names)
        if len(left) > 1 or any(len(term) != 1 for term in left):
            raise ValueError(f"The left side of formula={self.text!r} must be the name of one column.")
        response = left[0][0] if left else None
        if any(response in term for term in right):
            raise ValueError(f"{response!r} is on both sides of formula={self.text!r}.")
        if any(TOPICS in term for term in right):
            raise ValueError(
                f"formula={self.text!r} has {TOPICS!r}, which is not allowed as the name of a column. "
                "model.interactions(...) shows how the weights of topics depend on a covariate."
            )
        if not any(right):
            raise ValueError(f"formula={self.text!r} has no covariates; name at least one column, or leave it out.")
        return Parsed(response, tuple(sorted(right, key=len)))


class Parsed(NamedTuple):
    """A formula that was read."""

    response: str | None
    terms: tuple[Term, ...]  # () is the intercept; the shorter ones first

    @property
    def columns(self) -> list[str]:
        """The columns that covariates are made of."""
        return list(dict.fromkeys(name for term in self.terms for name in term))


def as_formula(value: Any) -> Formula | None:
    """What a user gives as a formula: a text alone refuses new levels."""
    return value if value is None or isinstance(value, Formula) else Formula(value)


def load_formulaic(text: str) -> Any:
    """The package that reads formulas. Only this function imports it, when there is a formula to read."""
    try:
        import formulaic.errors
        import formulaic.parser
    except ImportError as error:
        raise ImportError(f'formula={text!r} needs formulaic: pip install "supertopic[formula]".') from error
    return formulaic


def split_sides(text: str, names: Sequence[str] | None) -> tuple[list[Term], list[Term]]:
    """The terms of the left and of the right side, read by formulaic's parser."""
    formulaic = load_formulaic(text)
    if any(int(power) > MOST_FACTORS for power in POWER.findall(text)):
        raise ValueError(f"formula={text!r} has a power above {MOST_FACTORS}; write the products out.")
    try:
        context = {} if names is None else {AVAILABLE: list(names)}
        found = formulaic.parser.DefaultFormulaParser(feature_flags={"twosided"}).get_terms(text, context=context)
    except (formulaic.errors.FormulaicError, SyntaxError, ValueError, RecursionError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise ValueError(f"formula={text!r} cannot be read: {reason}") from error
    if hasattr(found, "rhs"):
        return as_terms(text, found.lhs if hasattr(found, "lhs") else ()), as_terms(text, found.rhs)
    return [], as_terms(text, found.root)


def as_terms(text: str, found: Iterable[Any]) -> list[Term]:
    """Terms of formulaic as tuples of names; anything but names is refused."""
    terms = []
    for term in found:
        factors = [factor for factor in term.factors if (factor.eval_method.value, factor.expr) != ("literal", "1")]
        strange = next((factor.expr for factor in factors if factor.eval_method.value != "lookup"), None)
        if strange is not None:
            raise ValueError(
                f"formula={text!r} has {strange!r}, which is not the name of a column. Formulas have columns and their "
                "products only: transform the column in the data frame first, and name the new one."
            )
        terms.append(tuple(factor.expr for factor in factors) or INTERCEPT)
    return list(dict.fromkeys(terms))
