"""The response in a posterior: weights, effects, and words that topics miss."""

from typing import Any

import numpy as np

from supertopic.corpus.made_frames import make_frame
from supertopic.model.posterior import Posterior
from supertopic.model.responses.averages import draw_interval
from supertopic.report.targets import POINTS, Targets
from supertopic.report.topics import top_words, topic_name, topic_names
from supertopic.report.words import suggest_names

CLEAR = 1.645  # standard errors between the losses of predictions and of the base rate


def coef_draws(posterior: Posterior) -> np.ndarray:
    """Reported weights in the units of y, (n, R, K); without a response R is 0."""
    if not posterior.supervised:
        return np.zeros((posterior.n_chains * posterior.n_draws, 0, posterior.n_topics))
    return posterior.response.in_units(posterior.reported)


def covariate_draws(posterior: Posterior) -> np.ndarray:
    """Reported weights of covariates, (n, R, P), for a unit of each, in the units of y."""
    term = posterior.covariates
    draws = posterior.response.in_units(posterior.reported_covariates)
    return draws if term is None else draws / term.columns.scale


def covariate_names(posterior: Posterior) -> np.ndarray:
    """The names of the covariates, (P,)."""
    return np.zeros(0, object) if posterior.covariates is None else posterior.covariates.columns.names


def covariate_reference(posterior: Posterior) -> dict[str, str]:
    """The level that the others are compared with, for each column of categories that has one."""
    design = posterior.covariates.columns.design if posterior.covariates else None
    return design.reference if design else {}


def word_coef(posterior: Posterior) -> np.ndarray:
    """The mean direct weights of words, (R, W), in the units of y; an AttributeError if words have none."""
    if posterior.words is None:
        raise AttributeError("Words have no weights: the model was fitted with words=False, or without calibration.")
    return posterior.response.in_units(posterior.words.word_coef(posterior.n_direct))


def effect_draws(posterior: Posterior, points: float) -> tuple[np.ndarray, np.ndarray]:
    """What is predicted before, (C,), and draws of what more of each topic changes in it, (n, K, C).

    The usual mixture of topics stands for the base rate, which is known better than any topic's weight.
    """
    if not posterior.supervised:
        raise AttributeError("The model has no response that topics could have an effect on.")
    if not 0 < points <= 1:
        raise ValueError(f"points must be a share from 0 to 1, got {points!r}.")
    draws = posterior.reported  # (n, R, K)
    usual = draws @ (posterior.mean_shares * len(posterior.topics))  # shares of every set sum to 1
    return changes(posterior, points * (draws - usual[..., None]) * posterior.own)  # a constant of all topics cancels


def covariate_effect_draws(posterior: Posterior) -> tuple[np.ndarray, np.ndarray]:
    """The same for one unit more of each covariate, (n, P, C)."""
    term, draws = posterior.covariates, posterior.reported_covariates  # (n, R, P)
    return changes(posterior, draws if term is None else draws / term.columns.scale)


def changes(posterior: Posterior, more: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """What is predicted at the base rate, (C,), and what additions (n, R, m) to its omega change in it: (n, m, C)."""
    base, expected = posterior.intercept.base, posterior.mean_response.expected
    before = expected(base)
    return before, expected(base + more.swapaxes(1, 2)) - before


def effects(posterior: Posterior, points: float, level: float) -> tuple[Any, ...]:
    """The effect of more of a topic on predictions: before (C,), then after, change and its interval, (K, C)."""
    before, change = effect_draws(posterior, points)
    mean = change.mean(axis=0)
    return before, before + mean, mean, *draw_interval(change, level)


def targets_of(posterior: Posterior) -> Targets:
    """What topics have effects on; no target without a response."""
    stable = (posterior.n_chains == 1) | (2 * posterior.consensus.n_having > posterior.n_chains)
    if not posterior.supervised:
        empty = np.zeros((0, posterior.n_topics, 0))
        return Targets([], np.zeros(0), empty, None, "", 1.0, stable)
    response = posterior.response
    before, change = effect_draws(posterior, POINTS)
    names, combine = response.explained()
    weights: np.ndarray | None = combine @ coef_draws(posterior)
    if response.kind == "time":  # a weight is about an event sooner, an effect about survival
        places, names, _ = response.table_answers()
        before, change, weights = before[places], change[..., places], None
    elif change.shape[-1] != len(names):
        before, change = (response.column_effects(values) for values in (before, change))
    if response.effect_on == "probability":
        return Targets(names, before, change, weights, "points", 100.0, stable)
    units = {"expected grade": "grades", "score": "score"}
    return Targets(names, before, change, weights, units.get(response.effect_on, ""), 1.0, stable)


def effect_frame(posterior: Posterior, points: float = 0.1, level: float = 0.9) -> Any:
    """A data frame of the effect of more of a topic on the probability, the rating or the count."""
    before, after, change, lower, upper = effects(posterior, points, level)
    names = posterior.response.answers
    k, c = np.divmod(np.arange(change.size), len(names))
    columns = {"before": np.broadcast_to(before, change.shape), "after": after, "change": change, "lower": lower,
               "upper": upper}  # fmt: skip
    facts = {"topic": k, "name": topic_names(posterior)[k], "column": np.array(names, dtype=object)[c]}
    return make_frame(facts | {name: values[k, c] for name, values in columns.items()})


def coefficient_frame(posterior: Posterior, level: float = 0.9) -> Any:
    """A data frame of the reported weights: column, topic, name, mean, sd, interval, P(positive)."""
    draws = coef_draws(posterior)
    lower, upper = draw_interval(draws, level)
    names, n_topics = posterior.response.column_names, draws.shape[2]
    return make_frame({
        "column": np.repeat(np.array(names, dtype=object), n_topics),
        "topic": np.tile(np.arange(n_topics), len(names)),
        "name": np.tile(topic_names(posterior), len(names)),
        "mean": draws.mean(axis=0).ravel(),
        "sd": draws.std(axis=0, ddof=1).ravel(),
        "lower": lower.ravel(),
        "upper": upper.ravel(),
        "p_positive": (draws > 0).mean(axis=0).ravel(),
    })  # fmt: skip


def group_frame(posterior: Posterior, level: float = 0.9) -> Any:
    """A data frame of the reported intercepts of groups, relative to their mean over the documents."""
    groups = posterior.columns_beside.groups
    draws = posterior.response.in_units(posterior.reported_groups)
    (lower, upper), columns = draw_interval(draws, level), np.array(posterior.response.column_names, dtype=object)
    values = {"mean": draws.mean(axis=0), "sd": draws.std(axis=0, ddof=1), "lower": lower, "upper": upper,
              "p_positive": (draws > 0).mean(axis=0)}  # fmt: skip
    facts = {"column": np.repeat(columns, len(groups)), "group": np.tile(groups, len(columns))}
    return make_frame(facts | {name: value.ravel() for name, value in values.items()})


def group_sd(posterior: Posterior) -> np.ndarray:
    """Draws of the standard deviation between groups, (n, R), in the units of y."""
    if posterior.groups is None:
        raise AttributeError("The model was fitted without groups.")
    variance = np.concatenate(posterior.groups.variance)
    return posterior.response.in_units(np.sqrt(variance)[..., None])[..., 0]


def missed_words(posterior: Posterior, names: np.ndarray, n: int = 10) -> list[dict[str, Any]]:
    """For each column the n words with the largest direct weights, positive and negative; see `word_coef`.

    Where words with weights are others than those of topics, they have their own names.
    """
    rows: list[dict[str, Any]] = []
    names = names if posterior.word_names is None else posterior.word_names
    for column, weight in zip(posterior.response.column_names, word_coef(posterior), strict=True):
        order = np.argsort(-weight, kind="stable")
        towards, away = order[:n], order[::-1][:n]
        towards, away = towards[weight[towards] > 0], away[weight[away] < 0]
        rows.append({"column": column, "towards": names[towards].tolist(), "away": names[away].tolist()})
    return rows


def predicts(posterior: Posterior) -> bool:
    """Whether held-out documents are predicted clearly better than by the base rate; also if there are none."""
    found = posterior.held_out
    return not found["documents"] or found["base_loss"] - found["loss"] > CLEAR * found["se"]


def contribution_sentences(posterior: Posterior) -> list[str]:
    """How much topics, words and other terms contribute to predictions of held-out documents, a sentence each."""
    found = posterior.held_out.get("contributions")
    if not found or not predicts(posterior):
        return []
    points, sentences = found["score"] == "accuracy", []
    for name, own in found["terms"].items():
        share, low, high = (f"{x:z.0%}" for x in (own["share"], *own["share_interval"]))
        if points:
            gain, least, most = (f"{100 * x:z.0f}" for x in (own["gain"], *own["gain_interval"]))
            value = f"{gain} point{'s' * (gain != '1')} of the accuracy ({least} to {most})"
        else:
            gain, least, most = (f"{x:z.2f}" for x in (own["gain"], *own["gain_interval"]))
            value = f"{gain} of {found['score']} ({least} to {most})"
        sentences.append(f"{name}: {share} of the score ({low} to {high}), {value}")
    return sentences


def to_xarray(posterior: Posterior) -> Any:
    """The draws as an xarray Dataset; topic k is the same in all chains that have it."""
    import xarray

    n_chains, n_draws = posterior.n_chains, posterior.n_draws
    data: dict[str, Any] = {"log_joint": (("chain", "draw"), posterior.traces.kept[:, :, 0])}
    dims: dict[str, Any] = {"chain": np.arange(n_chains), "draw": np.arange(n_draws)}
    if posterior.supervised:
        dims |= {"column": posterior.response.column_names, "topic": np.arange(posterior.n_topics)}
        kinds = {
            "coef": posterior.reported.reshape(n_chains, -1, *posterior.reported.shape[1:])[:, :n_draws],
            "prediction": posterior.prediction,
            "training": posterior.training,
        }
        for name, draws in kinds.items():
            data[name] = (("chain", "draw", "column", "topic"), posterior.response.in_units(draws))
        dims["has_topic"] = (("chain", "topic"), posterior.consensus.has)
        data["loss"] = (("chain", "draw"), posterior.traces.kept[:, :, 1])
    return xarray.Dataset(data, coords=dims)


def describe_topics(
    posterior: Posterior, names: np.ndarray, n: int = 10, by: str = "frex", min_chains: int = 1
) -> list[dict[str, Any]]:
    """The topics that some chains have, largest first: share, words, the largest weight, and the class it pulls to."""
    words, shares = top_words(posterior, names, n, by), posterior.mean_shares
    draws, chains = coef_draws(posterior) if posterior.supervised else None, posterior.consensus.n_having
    rows, suggested, targets = [], suggest_names(words), targets_of(posterior)
    pulls, effect = targets.pulls(), targets.effects.mean(axis=0) if targets.names else None
    for k in np.argsort(-shares):
        if chains[k] < min_chains:
            continue
        row: dict[str, Any] = {"topic": int(k), "name": topic_name(posterior, k), "share": float(shares[k])}
        row |= {"label": row["name"] or suggested[k], "chains": int(chains[k]), "of_chains": posterior.n_chains}
        row["words"] = words[k]
        if draws is not None and effect is not None:
            pull = pulls[k]
            row |= describe_pull(posterior, draws, int(k), pull, pull is not None and bool(effect[k, pull] > 0))
        rows.append(row)
    return rows


def describe_pull(posterior: Posterior, draws: np.ndarray, k: int, pull: int | None, rises: bool) -> dict[str, Any]:
    """The largest weight of a topic among those of its own columns, its interval, and the class that it pulls to.

    `pull` is the target of its largest clear effect, as `Targets.pulls` returns it, and `rises` says whether the effect
    is positive. A topic that only makes classes less likely pulls to none; "away_from" is then one of them.
    """
    own = np.flatnonzero(posterior.own[:, k])
    coef, one = draws.mean(axis=0), draws.shape[1] == 1
    r = int(own[coef[own, k].argmax()])
    weight = float(coef[r, k])
    row: dict[str, Any] = {"weight": weight}
    if len(draws) > 1:
        row["interval"] = [float(side) for side in draw_interval(draws[:, r, k], 0.9)]
    labels = posterior.response.labels
    if labels is not None:
        row["largest"] = labels[-int(weight > 0) if one else r]
        row["class"] = None
        if pull is not None and (one or rises):
            row["class"] = labels[-int(rises) if one else pull]
        elif pull is not None:
            row["away_from"] = labels[pull]
    return row


def describe_weights(posterior: Posterior, names: np.ndarray, n: int = 10, by: str = "frex") -> list[dict[str, Any]]:
    """Every weight of every topic, a row each: the topic, its share and words, the class or column, the interval."""
    words, shares = top_words(posterior, names, n, by), posterior.mean_shares
    rows: list[dict[str, Any]] = [
        {
            "topic": k,
            "name": topic_name(posterior, k),
            "share": float(share),
            "chains": int(posterior.consensus.n_having[k]),
            "words": ", ".join(words[k]),
        }
        for k, share in enumerate(shares)
    ]
    if not posterior.supervised:
        return rows
    draws = coef_draws(posterior)
    coef, (lower, upper) = draws.mean(axis=0), draw_interval(draws, 0.9)
    columns = posterior.response.column_names
    return [
        row | {"column": columns[r], "weight": float(coef[r, k]), "lower": lower[r, k], "upper": upper[r, k]}
        for k, row in enumerate(rows)
        for r in range(len(coef))
    ]


def describe_covariates(posterior: Posterior) -> list[dict[str, Any]]:
    """The weight of each covariate on each column of the response, with its interval."""
    term, rows = posterior.covariates, []
    if term is None:
        return []
    draws = covariate_draws(posterior)
    labels, design = posterior.response.labels, term.columns.design
    for p, name in enumerate(term.columns.names):
        levels = design.references[p].items() if design else ()
        for r in range(draws.shape[1]):
            row: dict[str, Any] = {"covariate": str(name), "weight": float(draws[:, r, p].mean())}
            if levels:
                row["compared_with"] = ", ".join(f"{column}[{level}]" for column, level in levels)
            if labels is not None:
                row["class"] = labels[-1 if draws.shape[1] == 1 else r]
            if len(draws) > 1:
                row["interval"] = [float(side) for side in draw_interval(draws[:, r, p], 0.9)]
            rows.append(row)
    return rows
