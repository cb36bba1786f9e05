"""The headline of a page: a sentence about what was found, and four key figures."""

from typing import Any, NamedTuple

import numpy as np

from supertopic.model.posterior import Posterior
from supertopic.report.page_evaluation import f1, f_score
from supertopic.report.page_numbers import PERCENT, percent, plural, quoted, span

SEEN = "The model has learned from these documents, so this figure is too good."
PERHAPS_SEEN = "It is not known whether the model has learned from these documents; if it has, this figure is too good."
LEAST_DOCUMENTS = 5  # of a class that may be the worst one


class Dot(NamedTuple):
    """A mark on a line from 0 to 1."""

    name: str
    text: str
    at: float  # percent
    low: float | None = None
    high: float | None = None
    kind: str = ""


class Tile(NamedTuple):
    title: str
    value: str
    text: str
    dots: tuple[Dot, ...] = ()


def weakest_sentence(worst: Tile) -> str:
    """What the headline says of the class or label that is predicted worst."""
    return f"The {worst.title.lower()} is “{worst.value}”."


def headline(
    posterior: Posterior, topics: list[dict[str, Any]], targets: list[str], evaluation: dict[str, Any] | None,
    what: str, n_docs: int,
) -> dict[str, Any]:  # fmt: skip
    """The sentence and the tiles."""
    n_clear, sentences = sum(topic["pull"] is not None for topic in topics), []
    called = quoted(what, posterior.response.kind)
    if evaluation is not None:
        sentences.append(score_sentence(evaluation, called))
        if not evaluation["test"]:
            sentences += [SEEN if evaluation["learned"] else PERHAPS_SEEN, *held_out_sentence(posterior)]
    elif posterior.supervised:
        sentences.append(f"A model that predicts {called} of a text from {plural(len(topics), 'topic')}.")
    else:
        sentences.append(f"{plural(len(topics), 'topic')} of {plural(n_docs, 'document')}.")
    if posterior.supervised and not posterior.held_out.get("relation", True):
        sentences.append(f"Found no relation between the texts and {called} when the model was fitted.")
    elif targets and "effect" in topics[0] and topics[0]["effect"][0] != topics[0]["effect"][1]:
        sentences.append(
            f"{n_clear} of {plural(len(topics), 'topic')} {'have' if n_clear != 1 else 'has'} a clear effect."
        )
    worst = worst_of(evaluation)
    if worst is not None:
        sentences.append(weakest_sentence(worst))
    found = [score_tile(evaluation), calibration_tile(evaluation), stable_tile(posterior, topics), worst]
    if evaluation is None:
        found = [Tile("Topics", str(len(topics)), f"{posterior.n_words:,} words"),
                 Tile("Documents", f"{n_docs:,}", "on this page"), stable_tile(posterior, topics), None]  # fmt: skip
    return {"sentence": " ".join(sentences), "tiles": [tile for tile in found if tile is not None]}


def held_out_sentence(posterior: Posterior) -> list[str]:
    """How good predictions of the documents are that the fit has held out, where that is known."""
    found = posterior.held_out.get("contributions") or {}
    value, kind = found.get("value"), posterior.response.kind
    if value is None:
        return []
    right = f"{percent(value)} of {'single labels' if kind == 'labels' else 'predictions'} are right"
    explained = f"it explains {percent(max(value, 0.0))} of the variance"
    what = {"accuracy": right, "R2": explained}.get(found["score"])
    return [f"On {plural(posterior.held_out['documents'], 'document')} that the fit held out, {what}."] if what else []


def score_sentence(evaluation: dict[str, Any], called: str) -> str:
    """How good predictions are, beside the base rate and the rival."""
    rival, kind = evaluation["rival"] or {}, evaluation["kind"]
    sample = f" (a sample of {evaluation['of']:,})" * (evaluation["of"] > evaluation["documents"])
    unseen = sample + " that were not in the fit" * evaluation["test"]
    n, score = plural(evaluation["documents"], "document"), evaluation["score"]
    if kind == "classes":
        beside = [f"the largest class: {percent(evaluation['base'])}"]
        if rival.get("accuracy") is not None:
            beside.append(f"{rival_name(rival)}: {percent(rival['accuracy'])}")
        return f"Predicts {called} correctly for {percent(score)} of {n}{unseen} ({'; '.join(beside)})."
    if kind == "labels":
        of_rival = f"; {rival_name(rival)}: {rival['micro_f1']:.3f}" if rival.get("micro_f1") is not None else ""
        return (
            f"Predicts {len(evaluation['labels'])} labels of {n}{unseen} with a micro F1 of {score:.3f} (always the "
            f"most frequent labels: {evaluation['base']:.3f}{of_rival}) and a macro F1 of {evaluation['macro']:.3f}; "
            f"all labels are right for {percent(evaluation['all_right'])}."
        )
    if kind == "times":
        return (
            f"Predicts which of two documents has the event first, correctly in {percent(score)} of the pairs (chance: "
            f"{percent(0.5)}), on {n}{unseen}."
        )
    if len(evaluation["columns"]) > 1:
        several = f"{len(evaluation['columns'])} numbers, on average, on {n}{unseen}"
        return f"Explains {percent(max(score, 0.0))} of the variance of {several}."
    column = evaluation["columns"][0]
    others, figures = [f"always the mean: {column['base_error']:.3g}"], column.get("rival") or {}
    if figures.get("mean_error") is not None:
        others.append(f"{rival_name(rival)}: {figures['mean_error']:.3g}")
    return (
        f"Explains {percent(max(score, 0.0))} of the variance of {called} of {n}{unseen}: the mean error is "
        f"{column['mean_error']:.3g} ({'; '.join(others)})."
    )


def rival_name(rival: dict[str, Any]) -> str:
    """A name inside a sentence."""
    name = str(rival.get("name") or "another model")
    return name[0].lower() + name[1:] if name[1:2].islower() else name


def score_tile(evaluation: dict[str, Any] | None) -> Tile | None:
    """The score against the base rate and the rival, on one line."""
    if evaluation is None:
        return None
    rival, kind, score = evaluation["rival"] or {}, evaluation["kind"], evaluation["score"]
    shares = kind in ("classes", "times")

    def show(value: float) -> str:
        return percent(value) if shares else f"{value:z.3f}".replace("-", "\N{MINUS SIGN}")

    name = {"classes": "Right", "labels": "Micro F1", "numbers": "R²", "times": "Concordance"}[kind]
    interval, of_rival = (
        evaluation.get("interval"),
        rival.get({"classes": "accuracy", "labels": "micro_f1"}.get(kind, "")),
    )
    if kind == "numbers":
        column = evaluation["columns"][0]
        interval = column["interval"] if len(evaluation["columns"]) == 1 else None
        scores: list[Any] = [(column.get("rival") or {}).get("score") for column in evaluation["columns"]]
        of_rival = None if None in scores else float(np.mean(scores))
    ends: tuple[float | None, float | None] = (None, None)
    text = ""
    if interval:
        low, high = interval
        ends, text = (
            (place(low), place(high)),
            f"90{PERCENT} interval {span(low, high) if shares else f'{show(low)} to {show(high)}'}",
        )
    dots = [Dot("this model", show(score), place(score), *ends, "own")]
    name_of_base = {"classes": "always the largest class", "labels": "always the most frequent labels",
                    "numbers": "always the mean", "times": "chance"}[kind]  # fmt: skip
    bases = [column["base_score"] for column in evaluation["columns"]] if kind == "numbers" else [evaluation["base"]]
    dots.append(Dot(name_of_base, show(float(np.mean(bases))), place(float(np.mean(bases))), kind="base"))
    if of_rival is not None:
        dots.append(Dot(str(rival.get("name") or "another model"), show(of_rival), place(of_rival), kind="rival"))
    return Tile(name, show(score), text, tuple(dots))


def place(value: float) -> float:
    return round(100 * float(np.clip(value, 0.0, 1.0)), 2)


def calibration_tile(evaluation: dict[str, Any] | None) -> Tile | None:
    """Whether probabilities, or intervals, are right on average."""
    if evaluation is None:
        return None
    if evaluation.get("calibration"):
        sentence = evaluation["calibration"]["sentence"].partition(": ")[2]
        return Tile("Calibration", evaluation["calibration"]["finding"], sentence[0].upper() + sentence[1:])
    if evaluation["kind"] == "labels":
        own = [
            label["calibration"]["finding"] == "Calibrated" for label in evaluation["labels"] if "calibration" in label
        ]
        return (
            Tile("Calibration", f"{sum(own)} of {len(own)}", "labels have probabilities that agree with frequencies.")
            if own
            else None
        )
    if evaluation["kind"] == "numbers":
        inside = float(np.mean([column["coverage"] for column in evaluation["columns"]]))
        return Tile("Intervals", percent(inside), f"of the documents are inside their 90{PERCENT} interval.")
    return None


def stable_tile(posterior: Posterior, topics: list[dict[str, Any]]) -> Tile:
    """How many topics most chains have."""
    if posterior.n_chains == 1:
        return Tile("Stable topics", "unknown", "There is one chain: fit several to see which topics are stable.")
    n = sum(2 * topic["chains"] > posterior.n_chains for topic in topics)
    return Tile("Stable topics", f"{n} of {len(topics)}", f"are in more than half of the {posterior.n_chains} chains.")


def worst_of(evaluation: dict[str, Any] | None) -> Tile | None:
    """The class or label with the lowest F1."""
    if evaluation is None or evaluation["kind"] not in ("classes", "labels"):
        return None
    if evaluation["kind"] == "labels":
        rows = [(label["name"], f_score(label), label["has"], *label["at"])
                for label in evaluation["labels"]]  # fmt: skip
    else:
        truth, said = np.array(evaluation["truth"]), np.array(evaluation["said"])
        rows = []
        for i, name in enumerate(evaluation["names"]):
            good, called, has = int(((truth == i) & (said == i)).sum()), int((said == i).sum()), int((truth == i).sum())
            rows.append((name, f1(good, called, has), has, good, called - good))
    rows = [row for row in rows if row[2] >= LEAST_DOCUMENTS] or [row for row in rows if row[2]]
    if len(rows) < 2:
        return None
    name, least, has, good, bad = min(rows, key=lambda row: row[1])
    if least == 1.0:
        return None
    kind = "label" if evaluation["kind"] == "labels" else "class"
    return Tile(
        f"Weakest {kind}",
        name,
        f"F1 {least:.2f}; {good:,} of {has:,} are found, and it is predicted for {bad:,} others.",
    )
