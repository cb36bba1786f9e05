"""Whether the chains have settled, and how much they differ.

Chains number their topics as they like, so that only what does not depend on the numbers is compared between them: the
log joint, losses, omega.
"""

from html import escape

import numpy as np
from scipy.sparse import csr_array
from sklearn.exceptions import ConvergenceWarning

from supertopic.inference.predict import NewDocuments, Settings
from supertopic.model.posterior import Posterior, Traces
from supertopic.report.diagnostics import ess, rhat
from supertopic.report.evaluate import known_responses
from supertopic.report.topics import perplexity
from supertopic.warn import warn

APART = 0.05  # the allowed difference of chains' scores
LARGE = 1.1  # R-hat of the log joint above which a note explains it
KEPT = "The R-hat of the log joint may be large: chains keep different topics."


class Diagnosis(dict[str, dict[str, float]]):
    """Figures by their subject, each a dict; shown as a table, with advice below."""

    def __init__(self, figures: dict[str, dict[str, float]], advice: list[str]):
        super().__init__(figures)
        self.advice = advice

    @property
    def note(self) -> str:
        """What a large R-hat of the log joint means; empty if it is not large."""
        if not self.get("log joint", {}).get("rhat", 1.0) > LARGE:
            return ""
        return f"{KEPT} Predictions are made from omega." if "training loss" in self else KEPT

    def rows(self) -> list[list[str]]:
        names = list(dict.fromkeys(name for row in self.values() for name in row))
        cells = [[what, *(f"{row[name]:.4g}" if name in row else "" for name in names)] for what, row in self.items()]
        return [["", *names], *cells]

    def __repr__(self) -> str:
        rows = self.rows()
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = ["  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]
        notes = [self.note] if self.note else []
        return "\n".join([*lines, *notes, *(f"- {text}" for text in self.advice or ["No problem found."])])

    def _repr_html_(self) -> str:
        head, *rows = ("".join(f"<td>{escape(cell)}</td>" for cell in row) for row in self.rows())
        body = "".join(f"<tr>{row}</tr>" for row in rows)
        advice = "".join(f"<li>{escape(text)}</li>" for text in self.advice)
        note = f"<p>{escape(self.note)}</p>" if self.note else ""
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{note}<ul>{advice}</ul>"


def by_chain(draws: np.ndarray, n_chains: int) -> np.ndarray:
    """The means of draws (n_draws, n_docs, ...) of all chains over those of each chain: (n_docs, chain, ...)."""
    return np.moveaxis(draws.reshape(n_chains, -1, *draws.shape[1:]).mean(axis=1), 1, 0)


def losses(documents: NewDocuments, truth: np.ndarray) -> tuple[np.ndarray, list[float]]:
    """The mean loss of each draw, (chain, draw), and the score of each chain."""
    response, n_chains = documents.posterior.response.plain(), documents.posterior.n_chains
    known = known_responses(truth)
    documents, truth = documents.part(known), truth[known]

    def summary(omegas: np.ndarray, scales: np.ndarray, docs: slice) -> tuple[np.ndarray, np.ndarray]:
        return response.draw_losses(truth[docs], omegas, scales), by_chain(response.expected(omegas, scales), n_chains)

    found, expected = documents.summarise(summary)
    scores = [response.score(truth, expected[:, chain]) for chain in range(n_chains)]
    return found.mean(axis=0).reshape(n_chains, -1), scores


def diagnose_topics(posterior: Posterior, counts: csr_array | None, settings: Settings) -> Diagnosis:
    """The diagnosis of a model without a response."""
    figures: dict[str, dict[str, float]] = {}
    if counts is not None:
        values = [perplexity(posterior, counts, settings, chains=[chain]) for chain in range(posterior.n_chains)]
        figures["perplexity"] = {f"chain {i}": value for i, value in enumerate(values)}
    return finish(posterior, figures, {"log joint": posterior.traces.kept[:, :, 0]})


def diagnose_response(
    posterior: Posterior, documents: NewDocuments | None = None, truth: np.ndarray | None = None
) -> Diagnosis:
    """The diagnosis of a supervised model, with some documents and their responses if they are given."""
    figures: dict[str, dict[str, float]] = {}
    kept = posterior.traces.kept
    quantities = {"log joint": kept[:, :, 0], "training loss": kept[:, :, 1]}
    if documents is not None:
        omega = documents.summarise(lambda omegas, *_: np.moveaxis(omegas, 0, -1))
        omega = omega.reshape(-1, posterior.n_chains, omega.shape[-1] // posterior.n_chains)
        figures["omega"] = {
            "rhat": float(np.nanmedian([rhat(values) for values in omega])),
            "ess": float(np.nanmedian([ess(values) for values in omega])),
        }
        if truth is not None:
            quantities["test loss"], scores = losses(documents, truth)
            figures["score"] = {f"chain {i}": float(score) for i, score in enumerate(scores)}
    return finish(posterior, figures, quantities)


def finish(posterior: Posterior, figures: dict[str, dict[str, float]], quantities: dict[str, np.ndarray]) -> Diagnosis:
    """R-hat and effective sample size of some quantities, and advice."""
    figures = figures | {name: {"rhat": rhat(values), "ess": ess(values)} for name, values in quantities.items()}
    if posterior.held_out.get("documents"):
        names = ("documents", "loss", "base_loss", "se")
        figures["held-out documents"] = {name: float(posterior.held_out[name]) for name in names}
    advice = advise(posterior.traces, list(figures.get("score", {"": 0.0}).values()))
    for text in advice:
        warn(text, ConvergenceWarning)
    if not posterior.held_out.get("relation", True):
        advice.append("The fit found no relation between topics and the response. Its weights are noise.")
    return Diagnosis(figures, advice)


def advise(traces: Traces, scores: list[float]) -> list[str]:
    """What should be done, if anything."""
    advice, late = [], traces.burn_in[~traces.settled]
    if len(late):
        advice.append(
            f"{len(late)} of {len(traces.settled)} chains had not settled within {late.max()} iterations of "
            "burn-in. Raise burn_in, and read topics that most chains have."
        )
    if max(scores) - min(scores) > APART:
        advice.append(
            f"The chains' scores are {max(scores) - min(scores):.2f} apart: use more of them (n_chains), and read only "
            "topics that most of them have."
        )
    return advice
