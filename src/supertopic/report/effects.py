"""The result of `topic_effects`: tables and plots of the shares of topics, with intervals."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from typing import Any

import numpy as np
from scipy.stats import chi2

from supertopic.corpus.frames import rows_of
from supertopic.corpus.made_frames import PANDAS, frame_of_rows, frames_of, wanted_library
from supertopic.model.responses.averages import draw_interval
from supertopic.report.design import Design
from supertopic.report.displays import PrevalenceDisplay
from supertopic.report.plots import DifferenceDisplay
from supertopic.report.regression import Regression

MOST_SHOWN = 12  # differences that are printed
MOST_LINES = 6  # topics of a plot over a number


@dataclass(frozen=True, eq=False, repr=False)
class TopicEffects:
    """The expected share of each topic, by group or along a number: see `topic_effects`.

    Attributes
    ----------
    design : Design
        The variables, and the columns of the regression.
    regression : Regression
        The regression of shares on these columns, with its robust covariance.
    fits, errors : ndarray of shape (n_draws, n_coefficients, n_topics)
        Coefficients of drawn shares, and draws of their sampling errors; the sum of both is a draw of the coefficients.
    tails : ndarray of shape (n_draws,)
        Uniform numbers, which make the errors of few documents or few clusters those of a t distribution.
    names, labels : ndarray and list of str
        The names of the topics, "" for those that have none, and what a plot shows for each.
    level : float
        The probability inside the intervals.
    """

    design: Design
    regression: Regression
    fits: np.ndarray
    errors: np.ndarray
    tails: np.ndarray
    names: np.ndarray
    labels: list[str]
    level: float
    library: str = field(default_factory=wanted_library, kw_only=True)  # the library of the frames

    def frame(self, variable: str | None = None, at: Mapping[str, Any] | None = None) -> Any:
        """A data frame of expected shares: variable, topic, name, value, share, sd, lower, upper.

        Parameters
        ----------
        variable : str, optional
            The variable whose groups or values are compared; all of them by default, one after the other.
        at : dict, optional
            Values of other variables. Those that are not given keep the values of the documents, over which the result
            is a mean: without interactions these are the means of numbers and the proportions of groups.

        Returns
        -------
        DataFrame
            A row for each topic and group, or for each topic and up to 30 values of a number. Shares of a straight line
            or a spline may leave the interval from 0 to 1 at its ends.
        """
        fixed = self._fixed(at)
        facts, rows = [], []
        for name in self._chosen(variable):
            points = self.design.variables[name].points
            facts += [{"variable": name, "value": point} for point in points]
            rows += [self.design.row(fixed | {name: point}) for point in points]
        return self._table(np.array(rows), facts, "share")

    def differences(
        self, reference: Any = None, variable: str | None = None, at: Mapping[str, Any] | None = None
    ) -> Any:
        """A data frame of differences between expected shares: of all groups, or of the highest number.

        Parameters
        ----------
        reference : str, bool or number, optional
            What others are compared with: by default the first group, or the lowest number.
        variable : str, optional
            The variable; all of them by default. A reference belongs to one variable.
        at : dict, optional
            Values of other variables, as for `frame`.

        Returns
        -------
        DataFrame
            variable, topic, name, value, reference, difference, sd, lower, upper, and p_direction, the probability that
            the difference has the sign that is shown.
        """
        fixed, chosen = self._fixed(at), self._chosen(variable)
        if reference is not None and len(chosen) > 1:
            raise ValueError(
                f"A reference belongs to one variable: pass variable= as well, one of {', '.join(chosen)}."
            )
        facts, rows = [], []
        for name in chosen:
            own = self.design.variables[name]
            first = own.points[0] if reference is None else own.find(reference, name)
            others = own.points[-1:] if own.levels is None else own.points
            base = self.design.row(fixed | {name: first})
            for point in (point for point in others if point != first):
                facts.append({"variable": name, "value": point, "reference": first})
                rows.append(self.design.row(fixed | {name: point}) - base)
        return self._table(np.array(rows), facts, "difference", direction=True)

    def coefficients(self) -> Any:
        """A data frame of the coefficients: coefficient, topic, name, mean, sd, lower, upper, p_direction."""
        facts = [{"coefficient": name} for name in self.design.names]
        return self._table(np.eye(len(facts)), facts, "mean", direction=True)

    def plot(
        self, variable: str | None = None, topics: Sequence[int] | None = None, *, reference: Any = None, ax: Any = None
    ) -> DifferenceDisplay | PrevalenceDisplay:
        """Draw the differences between groups with their intervals, or shares over a number with bands.

        Parameters
        ----------
        variable : str, optional
            The variable; by default the first one.
        topics : sequence of int, optional
            The topics: by default all for groups, and for a number the six that change most.
        reference : str or bool, optional
            The group that others are compared with; by default the first one.
        ax : matplotlib axes, optional
            Where to draw; new ones by default.

        Returns
        -------
        DifferenceDisplay or PrevalenceDisplay
            With `ax_` and `figure_`, as scikit-learn's displays.
        """
        name = self._chosen(variable)[0]
        groups = self.design.variables[name].levels is not None
        own = replace(self, library=PANDAS)
        table = own.differences(reference, name) if groups else own.frame(name)
        column = "difference" if groups else "share"
        if topics is None:
            sides = table.groupby("topic")[column].agg(["min", "max"])
            size = sides.abs().max(axis=1) if groups else sides["max"] - sides["min"]
            topics = size.sort_values(ascending=False).index.tolist()[: None if groups else MOST_LINES]
        wrong = [topic for topic in topics if topic not in range(len(self.labels))]
        if wrong:
            raise ValueError(f"topics must be from 0 to {len(self.labels) - 1}, got {wrong[0]!r}.")
        parts = [table[table.topic == topic] for topic in topics]
        values = parts[0]["value"].tolist()
        numbers = (np.array([part[c].to_numpy() for part in parts]) for c in (column, "lower", "upper"))
        labels = [self.labels[topic] for topic in topics]
        if groups:
            return DifferenceDisplay(labels, values, str(parts[0]["reference"].iloc[0]), *numbers).plot(ax=ax)
        return PrevalenceDisplay(name, labels, np.array(values, float), *numbers).plot(ax=ax)

    def _fixed(self, at: Mapping[str, Any] | None) -> dict[str, Any]:
        """The values of variables that are held, checked."""
        return {
            self._chosen(name)[0]: self.design.variables[name].find(value, name) for name, value in (at or {}).items()
        }

    def _chosen(self, variable: str | None) -> list[str]:
        """The variables that a table is about."""
        if variable is not None and variable not in self.design.variables:
            raise ValueError(f"There is no variable {variable!r}; there are {', '.join(self.design.variables)}.")
        return list(self.design.variables) if variable is None else [variable]

    def _draws(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Draws of rows (q, p) times coefficients, (n, q, K), with t tails, and their standard deviations, (q, K)."""
        fits, errors = (np.einsum("qp,npk->nqk", rows, draws) for draws in (self.fits, self.errors))
        degrees = np.array([self.regression.degrees(row) for row in rows])
        known = np.where(np.isinf(degrees), 1e9, degrees)
        tails = np.sqrt(known / chi2.ppf(self.tails[:, None], known))  # (n, q); NaN where the error is unknown
        sd = (fits + errors).std(axis=0, ddof=1)
        return fits + tails[:, :, None] * errors, np.where(np.isnan(degrees)[:, None], np.nan, sd)

    def _table(self, rows: np.ndarray, facts: list[dict[str, Any]], value: str, direction: bool = False) -> Any:
        """A data frame of rows (q, p) times coefficients, for each topic."""
        draws, sd = self._draws(rows)
        mean, (lower, upper) = rows @ self.fits.mean(axis=0), draw_interval(draws, self.level)
        numbers = {value: mean, "sd": sd, "lower": lower, "upper": upper}  # (q, K) each
        if direction:
            p = (draws * np.sign(mean) > 0).mean(axis=0)
            numbers["p_direction"] = np.where(np.isnan(sd), np.nan, p)
        heads = list(facts[0]) if facts else []
        lines = [
            {heads[0]: fact[heads[0]], "topic": k, "name": self.names[k]}
            | {head: fact[head] for head in heads[1:]}
            | {name: values[i, k] for name, values in numbers.items()}
            for first in dict.fromkeys(fact[heads[0]] for fact in facts)
            for k in range(len(self.names))
            for i, fact in enumerate(facts)
            if fact[heads[0]] == first
        ]
        with frames_of(self.library):
            return frame_of_rows(lines)

    def _shown(self) -> tuple[str, list[tuple[str, str, str]], int]:
        """What is printed: a heading, the largest differences as texts, and how many more there are."""
        n_docs, (n_draws, _, n_topics) = len(self.regression.design), self.fits.shape
        heading = f"Shares of {n_topics} topics by {', '.join(self.design.variables)}: {n_docs:,} documents, "
        heading += f"{self.regression.n_clusters:,} clusters, " if self.regression.clustered else ""
        heading += f"{n_draws} draws, {self.level:.0%} intervals"
        table = rows_of(self.differences())
        order = np.argsort([-abs(row["difference"]) for row in table], kind="stable")[:MOST_SHOWN]
        lines = [
            (
                f"{row['difference']:+.3f} ({row['lower']:+.3f} .. {row['upper']:+.3f})",
                self.labels[row["topic"]],
                f"{row['variable']}: {row['value']} against {row['reference']}",
            )
            for row in (table[i] for i in order)
        ]
        return heading, lines, len(table) - len(lines)

    def __repr__(self) -> str:
        heading, lines, left = self._shown()
        more = [f"  and {left} more differences"] if left else []
        return "\n".join([heading, *(f"  {numbers}  {label}, {what}" for numbers, label, what in lines), *more])

    def _repr_html_(self) -> str:
        heading, lines, left = self._shown()
        rows = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in line)}</tr>" for line in lines)
        head = "<tr><th>difference</th><th>topic</th><th>groups</th></tr>"
        more = f"<p>and {left} more differences</p>" if left else ""
        return f"<p>{escape(heading)}</p><table><thead>{head}</thead><tbody>{rows}</tbody></table>{more}"
