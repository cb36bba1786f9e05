"""The table of a paper: topics with their effects, covariates below, and how good the fit is at the foot."""

from dataclasses import dataclass, field
from importlib.metadata import version
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np

from supertopic.corpus.made_frames import LIBRARIES, PANDAS, make_frame, wanted_library
from supertopic.model.posterior import Posterior
from supertopic.model.responses.averages import draw_interval
from supertopic.report.formats import Block, Layout, as_html, as_latex, as_markdown, as_text, plain, rounded
from supertopic.report.summary import covariate_effect_draws, effect_draws
from supertopic.report.topics import top_words, topic_name
from supertopic.report.words import suggest_names

TOPIC, COVARIATE = "topic", "covariate"
SURE = 0.995  # a probability that would be rounded to 1


class Effect(NamedTuple):
    """The change of one answer: its mean, its interval, and the probability of its sign."""

    change: float
    lower: float
    upper: float
    p_direction: float


class TableRow(NamedTuple):
    """A topic or a covariate; what a covariate does not have is None."""

    kind: str
    topic: int | None
    name: str
    words: tuple[str, ...]
    share: float | None
    chains: int | None
    effects: tuple[Effect | None, ...]  # on each answer; None where the model has no weight for it


@dataclass(frozen=True)
class SummaryTable:
    """Topics, covariates and measures of fit, ready for a paper. `print(table)` shows it.

    `frame()` has the numbers in full. The other formats round them to two significant digits of the width of their
    interval, and cut names at 80 letters.
    """

    rows: tuple[TableRow, ...]  # topics, the largest first, then covariates
    answers: tuple[str, ...]  # what each effect is a change of
    unit: str  # the unit of the effects
    points: float  # how much more of a topic
    level: float  # the level of the intervals
    n_chains: int  # in all
    facts: tuple[tuple[str, str], ...]  # measures of fit, by their names
    library: str = field(default_factory=wanted_library, kw_only=True)  # the library of the frames

    def frame(self, kind: str | None = None) -> Any:
        """The numbers as a data frame, a row for each topic or covariate and each answer.

        Parameters
        ----------
        kind : {"pandas", "polars", "pyarrow"}, optional
            The library of the frame, which has to be installed; by default that of the data of the fit.

        Returns
        -------
        DataFrame
            Columns: kind, topic, name, words, share, chains and, if the model has a response, column, change, lower,
            upper, p_direction and unit. What a covariate does not have is missing.
        """
        kind = self.library if kind is None else kind
        if kind not in LIBRARIES:
            raise ValueError(f"kind must be 'pandas', 'polars' or 'pyarrow', got {kind!r}.")
        frame = make_frame(self._columns(), kind)
        if kind != PANDAS:
            return frame
        return frame.astype({"topic": "Int64", "chains": "Int64", "share": float})

    def to_latex(self) -> str:
        """A LaTeX table with the rules of booktabs, in which every special character of a name is escaped.

        It needs `\\usepackage{booktabs}` and `\\usepackage[T1]{fontenc}`. pdfLaTeX prints Latin, Greek and Cyrillic
        letters at most; for emoji and other scripts use LuaLaTeX or XeLaTeX.
        """
        return as_latex(self._layout())

    def to_markdown(self) -> str:
        """A Markdown table, as GitHub and Pandoc read it."""
        return as_markdown(self._layout())

    def to_html(self) -> str:
        """An HTML table."""
        return as_html(self._layout())

    def __repr__(self) -> str:
        return as_text(self._layout())

    def _repr_html_(self) -> str:
        return self.to_html()

    def _columns(self) -> dict[str, list[Any]]:
        """The columns of the frame."""
        found: dict[str, list[Any]] = {name: [] for name in ("kind", "topic", "name", "words", "share", "chains")}
        if self.answers:
            found |= {name: [] for name in ("column", *Effect._fields, "unit")}
        for row in self.rows:
            own = [row.kind, row.topic, row.name, ", ".join(row.words), row.share, row.chains]
            for answer, effect in zip(self.answers, row.effects, strict=True):
                numbers = effect or (float("nan"),) * len(Effect._fields)
                for column, value in zip(found.values(), [*own, answer, *numbers, self.unit], strict=True):
                    column.append(value)
            if not self.answers:
                for column, value in zip(found.values(), own, strict=True):
                    column.append(value)
        return found

    def _layout(self) -> Layout:
        """The cells: one block for each answer, with topics first."""
        columns = ["Topic", "Words", "Share (%)", "Chains"]
        caption = "Topics with their words, their share of all tokens, and how many of the chains have them."
        if not self.answers:
            return Layout(caption, columns, 2, [Block("", [self._cells(row) for row in self.rows])], self._foot())
        columns += ["Change", f"{100 * self.level:g} % interval", "P(sign)"]
        more = f"{100 * self.points:g} percentage points more of a topic in place of the usual mixture of topics"
        more += ", or with one unit more of a covariate" if self.rows and self.rows[-1].kind == COVARIATE else ""
        caption += f" Change: with {more}. P(sign): the posterior probability of the sign of the change."
        blocks = [
            Block(self._title(answer), [self._cells(row, r) for row in self.rows])
            for r, answer in enumerate(self.answers)
        ]
        return Layout(caption, columns, 2, blocks, self._foot())

    def _title(self, answer: str) -> str:
        """What stands above the block of an answer."""
        if self.unit == "percentage points":
            return f"Change of the probability of {plain(answer)}, in percentage points"
        return f"Change of {plain(answer)}, in {plain(self.unit)}"

    def _cells(self, row: TableRow, answer: int | None = None) -> list[str]:
        name = plain(row.name) if row.topic is None else plain(f"{row.topic} {row.name}")
        cells = [name, plain(", ".join(row.words)), "", ""]
        if row.share is not None:
            cells[2:] = f"{100 * row.share:.1f}", f"{row.chains}/{self.n_chains}"
        if answer is None:
            return cells
        effect = row.effects[answer]
        return [*cells, *(("", "", "") if effect is None else effect_cells(effect))]

    def _foot(self) -> list[str]:
        return [f"{name}: {plain(value)}" for name, value in self.facts]


def effect_cells(effect: Effect) -> tuple[str, str, str]:
    """The change, its interval and the probability of its sign, rounded."""
    width = effect.upper - effect.lower
    change, lower, upper = (rounded(value, width) for value in effect[:3])
    sure = f">{SURE - 0.005:.2f}" if effect.p_direction > SURE else f"{effect.p_direction:.2f}"
    return change, f"[{lower}, {upper}]", sure


def summary_table(
    posterior: Posterior, names: np.ndarray, points: float = 0.1, level: float = 0.9, n_words: int = 5,
    min_chains: int = 1,
) -> SummaryTable:  # fmt: skip
    """The table of a posterior; names (V,) are the words."""
    for name, value, most in (("n_words", n_words, posterior.n_words), ("min_chains", min_chains, posterior.n_chains)):
        if not isinstance(value, Integral) or isinstance(value, bool) or not 1 <= value <= most:
            raise ValueError(f"{name} must be a whole number from 1 to {most:,}, got {value!r}.")
    words, shares, chains = top_words(posterior, names, n_words), posterior.mean_shares, posterior.consensus.n_having
    labels = suggest_names(words)
    order = [int(k) for k in np.argsort(-shares, kind="stable") if chains[k] >= min_chains]
    answers: list[str] = []
    of_topics: list[tuple[Effect | None, ...]] = [()] * posterior.n_topics
    unit, covariates = "", []
    if posterior.supervised:
        _, answers, unit = posterior.response.table_answers()
        of_topics = describe_effects(posterior, effect_draws(posterior, points)[1], level)
        if posterior.covariates is not None:
            of_covariates = describe_effects(posterior, covariate_effect_draws(posterior)[1], level)
            covariates = list(zip(posterior.covariates.columns.names, of_covariates, strict=True))
    rows = [
        TableRow(TOPIC, k, topic_name(posterior, k) or labels[k], tuple(words[k]), float(shares[k]), int(chains[k]),
                 of_topics[k])
        for k in order
    ]  # fmt: skip
    rows += [TableRow(COVARIATE, None, str(name), (), None, None, effects) for name, effects in covariates]
    return SummaryTable(
        tuple(rows), tuple(answers), unit, float(points), float(level), posterior.n_chains, tuple(measures(posterior))
    )


def describe_effects(posterior: Posterior, draws: np.ndarray, level: float) -> list[tuple[Effect | None, ...]]:
    """Effects from draws (n, m, C) of changes, for each of m topics or covariates those on the answers shown."""
    places, _, unit = posterior.response.table_answers()
    draws = draws[:, :, places] * (100.0 if unit == "percentage points" else 1.0)
    lower, upper = draw_interval(draws, level)
    mean, sure = draws.mean(axis=0), np.maximum((draws > 0).mean(axis=0), (draws < 0).mean(axis=0))
    table = np.stack([mean, lower, upper, sure], axis=-1)  # (m, answers, 4)
    return [
        tuple(Effect(*numbers) if numbers[3] > 0 else None for numbers in row)  # labels may have topics of their own
        for row in table.tolist()
    ]


class Score(NamedTuple):
    """How good predictions of held-out documents are."""

    name: str  # "accuracy" or "R2"
    value: float
    of_base: float  # the figure of the base rate


def held_out_score(posterior: Posterior) -> Score | None:
    """The score on held-out documents, if there are any."""
    found = posterior.held_out.get("contributions") or {}
    return Score(found["score"], found["value"], found["base_value"]) if found else None


def measures(posterior: Posterior) -> list[tuple[str, str]]:
    """How good the fit is on held-out documents, and what was fitted."""
    found, held_out, response = [], posterior.held_out, posterior.response
    if posterior.supervised:
        n, crossed = held_out.get("documents", 0), held_out.get("cross_fitted", 0)
        found = [("Documents that were cross-fitted", f"{crossed:,}") if crossed else ("Held-out documents", f"{n:,}")]
        base = "base rate and covariates" if posterior.covariates else "base rate"
        if "loss" in held_out:
            of_base = f"{base}: {held_out['base_loss']:.3g}; standard error of the difference: {held_out['se']:.2g}"
            found.append(("Held-out loss", f"{held_out['loss']:.3g} ({of_base})"))
        score = held_out_score(posterior)
        if score:
            found.append((f"Held-out {score.name}", f"{score.value:.3f} (base rate: {score.of_base:.3f})"))
        found.append(("Weight of the response", f"c = {response.c:g}"))
    n_sets, n_topics = len(posterior.topics), posterior.topics[0].n_topics
    each = f" for each of {n_sets} {'labels' if response.kind == 'labels' else 'classes'}" if n_sets > 1 else ""
    return [
        *found, ("Topics", f"K = {n_topics}{each}"), ("Words", f"{posterior.n_words:,}"),
        ("Chains", f"{posterior.n_chains}, {posterior.n_draws} draws each"), ("Seed", str(posterior.seed)),
        ("Software", f"supertopic {version('supertopic')}"),
    ]  # fmt: skip
