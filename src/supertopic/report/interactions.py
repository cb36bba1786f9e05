"""Effects of topics on documents that came after the fit, and weights of topics that differ between groups."""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from supertopic.corpus.made_frames import PANDAS, make_frame, wanted_library
from supertopic.inference.effects import NewWeights
from supertopic.model.posterior import Posterior
from supertopic.model.responses.averages import draw_interval
from supertopic.model.responses.base import Response
from supertopic.model.terms import CovariateColumns, CovariateWeights, Intercept
from supertopic.report import summary
from supertopic.report.formats import Block, Layout, as_html, as_text, plain, rounded
from supertopic.report.plots import InteractionDisplay
from supertopic.report.tables import COVARIATE, TOPIC, Effect, SummaryTable, effect_cells, summary_table
from supertopic.report.topics import top_words, topic_name, vocabulary_of
from supertopic.report.words import suggest_names

SHOWN = 6  # topics that a plot and a text have


def labels_of(posterior: Posterior) -> np.ndarray:
    """The name of each topic, or what its words suggest, (K,)."""
    suggested = suggest_names(top_words(posterior, vocabulary_of(posterior)))
    return np.array([topic_name(posterior, k) or words for k, words in enumerate(suggested)], dtype=object)


def direction(draws: np.ndarray) -> np.ndarray:
    """The posterior probability of the sign of some numbers, whose draws are along the first axis."""
    return np.maximum((draws > 0).mean(axis=0), (draws < 0).mean(axis=0))


@dataclass(frozen=True, eq=False, repr=False)
class Effects:
    """Weights of a model's topics, estimated on documents that it was not fitted to. `print(effects)` shows a table."""

    posterior: Posterior  # the model, with the weights of this regression as its reported ones
    n_documents: int  # with a known response
    points: float  # how much more of a topic an effect is of
    level: float  # of intervals
    library: str = field(default_factory=wanted_library, kw_only=True)  # of the frames

    @property
    def coef_draws(self) -> np.ndarray:
        """Draws of the topics' weights, (n, n_columns, n_topics), in the units of y."""
        return summary.coef_draws(self.posterior)

    @property
    def covariate_draws(self) -> np.ndarray:
        """Draws of the covariates' weights, (n, n_columns, n_covariates), for a unit of each, in the units of y."""
        return summary.covariate_draws(self.posterior)

    def frame(self) -> Any:
        """The weights as a data frame, a row for each topic or covariate and each column of the response.

        Columns: kind, topic, name, column, weight, sd, lower, upper and p_direction, the posterior probability of the
        sign of the weight. Covariates have no topic.
        """
        parts = []
        names = {TOPIC: labels_of(self.posterior), COVARIATE: summary.covariate_names(self.posterior)}
        for kind, draws in ((TOPIC, self.coef_draws), (COVARIATE, self.covariate_draws)):
            own = self.posterior.own.T if kind == TOPIC else np.ones(draws.shape[:0:-1], bool)
            place, column = np.nonzero(own)  # topics that a column has no weights for are left out
            lower, upper = draw_interval(draws, self.level)
            columns = {
                "weight": draws.mean(axis=0), "sd": draws.std(axis=0, ddof=1), "lower": lower, "upper": upper,
                "p_direction": direction(draws),
            }  # fmt: skip
            facts = {
                "kind": np.full(len(place), kind, dtype=object),
                "topic": np.array(place.tolist() if kind == TOPIC else [None] * len(place), dtype=object),
                "name": names[kind][place],
                "column": np.array(self.posterior.response.column_names, dtype=object)[column],
            }  # fmt: skip
            parts.append(facts | {name: values[column, place] for name, values in columns.items()})
        frame = make_frame({name: np.concatenate([part[name] for part in parts]) for name in parts[0]}, self.library)
        return frame.astype({"topic": "Int64"}) if self.library == PANDAS else frame

    def table(self, n_words: int = 5, min_chains: int = 1) -> SummaryTable:
        """A table for a paper, as `summary_table` gives it, with the effects of this regression.

        Parameters
        ----------
        n_words : int, default=5
            The number of top words of each topic.
        min_chains : int, default=1
            Leave out topics that fewer chains have.

        Returns
        -------
        SummaryTable
            Effects are changes from the base rate of these documents.
        """
        table = summary_table(
            self.posterior, vocabulary_of(self.posterior), self.points, self.level, n_words, min_chains
        )
        return replace(table, facts=(("Documents after the fit", f"{self.n_documents:,}"), *table.facts[1:]))

    def __repr__(self) -> str:
        return repr(self.table())

    def _repr_html_(self) -> str:
        return self.table().to_html()


def make_effects(
    posterior: Posterior, response: Response, base: np.ndarray, columns: CovariateColumns, weights: NewWeights,
    n_documents: int, points: float, level: float,
) -> Effects:  # fmt: skip
    """Effects from draws of weights; base (R,) is omega of the base rate of the new documents."""
    size = posterior.n_chains, posterior.n_draws, *weights.covariates.shape[1:]
    terms = [
        replace(term, base=base, response=response) if isinstance(term, Intercept) else term
        for term in posterior.terms
        if not isinstance(term, CovariateWeights)
    ]
    if len(columns.names):  # nothing is predicted with them
        terms.append(CovariateWeights(columns, np.zeros(size)))
    estimated = replace(
        posterior, response=response, terms=tuple(terms), reported=weights.topics, held_out={"documents": 0},
        reported_covariates=weights.covariates, doc_topic=None, cross_fitted=None,
    )  # fmt: skip
    return Effects(estimated, n_documents, points, level)


@dataclass(frozen=True, eq=False, repr=False)
class Interactions:
    """Weights of topics in groups of documents. `print(interactions)` shows the topics that differ most clearly.

    Weights of a group are relative to the usual mixture of topics in this group, so a group with higher responses can
    have the same weights.
    """

    draws: np.ndarray  # (n, n_columns, n_groups, n_topics): weights in the units of y
    groups: tuple[str, ...]  # the first one is the reference, unless groups are pooled
    sizes: tuple[int, ...]  # documents of each group
    columns: tuple[str, ...]  # the columns of the response
    names: tuple[str, ...]  # the names of the topics
    own: np.ndarray  # (n_columns, n_topics): which topics each column has weights for
    pooled: bool  # whether groups are compared with their mean
    level: float  # of intervals
    library: str = field(default_factory=wanted_library, kw_only=True)  # of the frames

    @property
    def n_documents(self) -> int:
        """The number of documents with a known response."""
        return sum(self.sizes)

    @property
    def difference_draws(self) -> np.ndarray:
        """Draws of the differences from the reference, or from the mean of all groups, with the shape of `draws`."""
        return self.draws - (self.draws.mean(axis=2, keepdims=True) if self.pooled else self.draws[:, :, :1])

    def frame(self) -> Any:
        """The weights as a data frame, a row for each topic, group and column of the response.

        Columns: topic, name, group, column, weight, lower, upper, difference, difference_lower, difference_upper, and
        p_direction, the posterior probability of the sign of the difference. Differences are those from the reference,
        which has none, or from the mean of all groups.
        """
        table, column, group, topic = self._numbers(), *np.nonzero(self._rows())
        order = np.lexsort([group, topic, column])
        column, group, topic = column[order], group[order], topic[order]
        facts = {
            "topic": topic, "name": np.array(self.names, dtype=object)[topic],
            "group": np.array(self.groups, dtype=object)[group],
            "column": np.array(self.columns, dtype=object)[column],
        }  # fmt: skip
        numbers = {name: values[column, group, topic] for name, values in table.items()}
        return make_frame(facts | numbers, self.library)

    def plot(self, n_topics: int = SHOWN, *, column: int | str = 0, ax: Any = None) -> InteractionDisplay:
        """The weights of some topics in each group, with their intervals. Needs matplotlib.

        Parameters
        ----------
        n_topics : int, default=6
            How many topics; those that differ most clearly between groups come first.
        column : int or str, default=0
            The number or the name of a class, label or response.
        ax : sequence of matplotlib axes, optional
            As many as topics; new ones by default.

        Returns
        -------
        InteractionDisplay
        """
        if isinstance(column, str) and column not in self.columns:
            raise ValueError(f"There is no column {column!r}; they are {', '.join(self.columns)}.")
        place = self.columns.index(column) if isinstance(column, str) else column
        table, topics = self._numbers(), self.clearest(place)[:n_topics]
        titles = [plain(f"{k} {self.names[k]}") for k in topics]
        weight, lower, upper = (table[name][place][:, topics].T for name in ("weight", "lower", "upper"))
        display = InteractionDisplay(titles, list(map(plain, self.groups)), weight, lower, upper)
        return display.plot(ax=ax, title=self.columns[place])

    def clearest(self, column: int) -> list[int]:
        """The topics of a column, those first whose difference is largest beside its standard deviation."""
        draws = self.difference_draws[:, column]  # (n, G, K)
        spread = draws.std(axis=0)
        size = np.abs(draws.mean(axis=0)) / np.where(spread > 0, spread, np.inf)
        order = np.argsort(-size.max(axis=0), kind="stable")
        return [int(k) for k in order if self.own[column, k]]

    def __repr__(self) -> str:
        return as_text(self._layout())

    def _repr_html_(self) -> str:
        return as_html(self._layout())

    def _rows(self) -> np.ndarray:
        """The rows of the frame, (n_columns, n_groups, n_topics)."""
        return np.broadcast_to(self.own[:, None], self.draws.shape[1:])

    def _numbers(self) -> dict[str, np.ndarray]:
        """The columns of the frame, (n_columns, n_groups, n_topics) each; the reference has no differences."""
        differences = self.difference_draws
        lower, upper = draw_interval(self.draws, self.level)
        low, high = draw_interval(differences, self.level)
        compared = {
            "difference": differences.mean(axis=0), "difference_lower": low, "difference_upper": high,
            "p_direction": direction(differences),
        }  # fmt: skip
        for values in compared.values():
            if not self.pooled:
                values[:, 0] = np.nan
        return {"weight": self.draws.mean(axis=0), "lower": lower, "upper": upper} | compared

    def _layout(self) -> Layout:
        """The clearest topics of each column, a row for each group."""
        table, blocks, interval = self._numbers(), [], f"{100 * self.level:g} % interval"
        for r, column in enumerate(self.columns):
            rows = []
            for k in self.clearest(r)[:SHOWN]:
                for g, group in enumerate(self.groups):
                    numbers = [float(values[r, g, k]) for values in table.values()]
                    weight = rounded(numbers[0], numbers[2] - numbers[1])
                    compared = ("", "", "") if np.isnan(numbers[3]) else effect_cells(Effect(*numbers[3:]))
                    name = plain(f"{k} {self.names[k]}") if g == 0 else ""
                    rows.append([name, plain(group), f"{self.sizes[g]:,}", weight, *compared])
            blocks.append(Block(f"Weights for {plain(column)}", rows))
        other = "the mean of all groups" if self.pooled else f"the group {plain(self.groups[0])}"
        caption = f"Weights of topics in each group, and their difference from {other}: the {SHOWN} clearest topics."
        heads = ["Topic", "Group", "Documents", "Weight", "Difference", interval, "P(sign)"]
        return Layout(caption, heads, 2, blocks, [f"Documents: {self.n_documents:,}", f"Groups: {len(self.groups)}"])
