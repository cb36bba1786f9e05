"""The command `diagnose`: whether the chains have settled, and how much they differ."""

import json
import math
import warnings
from typing import Any

from rich.markup import escape
from sklearn.exceptions import ConvergenceWarning

from supertopic.command import options as opt
from supertopic.command.kinds import Asked
from supertopic.command.models import read_beside
from supertopic.command.rows import known_y
from supertopic.command.steps import Table, load, out
from supertopic.estimators.supervised import Supervised

RHAT = (
    "rhat compares the chains. Chains of a topic model find different topics, so that it is hardly ever 1; predictions "
    "average over the chains."
)


def diagnose(
    model: opt.Model, data: opt.OptionalData = None, text: opt.OptionalText = None, label: opt.KnownLabel = None,
    event: opt.Event = None, gold: opt.Gold = None, separator: opt.Separator = ";", exposure: opt.Exposure = None,
    covariate: opt.KnownCovariate = None, groups: opt.Groups = None, as_json: opt.AsJson = False,
) -> None:  # fmt: skip
    """Show whether the chains have settled, how much they differ, and what to do about it.

    Test documents add the score of each chain: supertopic diagnose tickets.model test.csv --text body --label queue
    """
    estimator, arguments, beside = load(model), list[Any](), dict[str, Any]()
    if (data is None) != (text is None):
        raise ValueError("diagnose takes both a table and --text, its column with the text, or neither.")
    if data is not None and text is not None:
        table = Table(data)
        arguments = [table.texts(text)]
        if isinstance(estimator, Supervised):
            beside = read_beside(estimator, model, table, exposure, covariate, None, groups)
            if label:
                arguments.append(known_y(estimator, table, Asked(label, separator, event=event, gold=gold)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the advice says the same
        found = estimator.diagnose(*arguments, **beside)
    if as_json:
        finite = {name: {k: v if math.isfinite(v) else None for k, v in row.items()} for name, row in found.items()}
        print(json.dumps({"figures": finite, "advice": found.advice}))
        return
    width = max(map(len, found), default=0)
    for name, row in found.items():
        figures = ", ".join(f"{key.replace('_', ' ')} {value:.4g}" for key, value in row.items())
        out.print(f"[bold]{escape(name.ljust(width))}[/bold]  {escape(figures)}", highlight=False)
    if any("rhat" in row for row in found.values()):
        out.print(RHAT, highlight=False)
    for sentence in found.advice or ["No problem found."]:
        out.print(f"- {escape(sentence)}", highlight=False)
