"""Designs from formulas, such as "party * bs(year, df=4)"."""

import re
from typing import Any

import numpy as np

from supertopic.model.formula import load_formulaic
from supertopic.report.design import Design, Values, Variable

COLOUR = re.compile("\x1b\\[[0-9;]*m|[\u29da\u29db]")  # how formulaic marks the place of an error


def formula_design(formula: str, variables: dict[str, Variable]) -> Design:
    """The design of a formula; only the variables that it names are part of it."""
    if not isinstance(formula, str):
        raise TypeError(f"formula must be text, such as 'party + bs(year, df=4)', got {formula!r}.")
    formulaic = load_formulaic(formula)
    import pandas  # formulaic needs it

    def as_frame(values: Values) -> Any:
        columns = {}
        for name, column in values.items():
            levels = variables[name].levels
            columns[name] = column if levels is None else pandas.Categorical(column, categories=list(levels))
        return pandas.DataFrame(columns)

    every = {name: variable.values for name, variable in variables.items()}
    try:
        made = formulaic.Formula(formula).get_model_matrix(as_frame(every), na_action="ignore", context={})
    except Exception as error:  # of many kinds: a parser's, an evaluation's, a NameError
        why = COLOUR.sub("", str(error)).strip()
        raise ValueError(
            f"The formula {formula!r} cannot be used: {why} The columns of by are {', '.join(variables)}."
        ) from error
    if not hasattr(made, "model_spec") or not hasattr(made, "columns"):
        raise ValueError(f"The formula {formula!r} has a left side; give what is on the right of ~ only.")
    spec = made.model_spec
    used = {name: variable for name, variable in variables.items() if name in spec.required_variables}
    if not used:
        raise ValueError(f"The formula {formula!r} names no column of by; they are {', '.join(variables)}.")

    def build(values: Values) -> np.ndarray:
        return np.asarray(spec.get_model_matrix(as_frame(values), context={}), float)

    return Design(used, [str(name) for name in made.columns], build)
