"""A posterior as arrays and facts for a file, and back. Whatever is read is checked before it is used."""

import itertools
from dataclasses import replace
from typing import Any

import numpy as np

from supertopic.model.held_out import MOST, HeldOutPredictions
from supertopic.model.history import MOST as MOST_BATCHES
from supertopic.model.history import Batch
from supertopic.model.linear import LinearWeights
from supertopic.model.new_words import OWN_WORDS, TOPIC_WORDS
from supertopic.model.posterior import (
    Carryover,
    LinearCarryover,
    Phrases,
    Posterior,
    TopicSet,
    Traces,
    Usage,
    match_topics,
)
from supertopic.model.reference import Reference
from supertopic.model.responses.base import Response
from supertopic.model.state import Statistics, WeightPriors
from supertopic.model.terms import TERMS, Intercept, Shape, Term, TopicWeights, expect
from supertopic.storage.text import MOST_NAMES, Tensors

FACTS: dict[str, type] = {
    "n_draws": int, "best_chain": int, "sampler": str, "seed": int, "n_batches": int,
    "topic_names": dict, "held_out": dict, "timings": dict, "n_sets": int, "terms": list, "penalties": dict,
}  # fmt: skip
OF_TOPICS = ("word_topic", "alpha", "beta", "pseudo_tokens", "training")
REPORTED = ("reported", "reported_covariates", "reported_groups")
OF_PHRASES = ("first", "second", "share")
OF_TRACES = ("kept", "log_joint", "iterations", "burn_in", "settled")
MOST_SETS, MOST_DRAWS = 2**16, 10**6


def write_posterior(posterior: Posterior) -> tuple[dict[str, Any], Tensors]:
    """Facts and arrays; no training document is among them."""
    facts: dict[str, Any] = {
        "n_draws": posterior.n_draws, "best_chain": posterior.best_chain, "sampler": posterior.sampler,
        "seed": posterior.seed, "n_batches": posterior.n_batches,
        "history": [entry.row() for entry in posterior.history], "topic_names": posterior.topic_names,
        "held_out": posterior.held_out, "timings": posterior.traces.timings,
        "n_sets": len(posterior.topics), "terms": [term.name for term in posterior.terms],
        "penalties": {name: known.penalty for name, known in posterior.carryover.linear.items()}, "response": {},
    }  # fmt: skip
    tensors: Tensors = {"scale": posterior.scale, "training_scale": posterior.training_scale, "order": posterior.order}
    tensors |= {name: getattr(posterior, name) for name in REPORTED}
    tensors |= {f"traces.{name}": getattr(posterior.traces, name) for name in OF_TRACES}
    for i, part in enumerate(posterior.topics):
        tensors |= {f"topics.{i}.{name}": getattr(part, name) for name in OF_TOPICS}
    for term in posterior.terms:
        tensors |= {f"terms.{term.name}.{name}": array for name, array in term.tensors().items()}
    if posterior.vocabulary is not None:
        tensors["vocabulary"] = posterior.vocabulary
    if posterior.word_names is not None:
        tensors["word_names"] = posterior.word_names
    if posterior.phrases is not None:
        tensors |= {f"phrases.{name}": getattr(posterior.phrases, name) for name in OF_PHRASES}
    for name in posterior.response.learned:
        value = getattr(posterior.response, name)
        if isinstance(value, np.ndarray):
            tensors[f"response.{name}"] = value
        else:
            facts["response"][name] = value
    if posterior.held_out_predictions is not None:
        arrays = posterior.held_out_predictions._asdict()
        tensors |= {f"held_out_predictions.{name}": array for name, array in arrays.items()}
    if posterior.reference is not None:
        tensors |= {f"reference.{name}": array for name, array in posterior.reference._asdict().items()}
    tensors |= write_carryover(posterior.carryover)
    for term in posterior.terms:  # most have one mean, which is stored once
        place = f"carryover.{term.name}.theta"
        if isinstance(term, LinearWeights) and np.array_equal(tensors.get(place, ()), term.theta[0]):
            del tensors[place]
    check_finite(tensors)  # a file that cannot be read must not replace one that can
    return facts, tensors


def check_finite(tensors: Tensors) -> None:
    """Refuse arrays with numbers that are not finite, or of a type that no model has."""
    for name, array in tensors.items():
        known = array
        if name == "traces.log_joint" and array.dtype.kind == "f":
            known = array[~np.isnan(array)]  # NaN after the end of a chain
        finite = array.dtype.kind in "iubO" or (array.dtype.kind == "f" and np.isfinite(known).all())
        expect(finite or array.dtype.kind == "U", f"{name}'s numbers")


def write_carryover(carryover: Carryover) -> Tensors:
    tensors: Tensors = {"carryover.sums": carryover.sums, "carryover.scale": carryover.scale}
    if len(carryover.scale_shift):
        tensors["carryover.scale_shift"] = carryover.scale_shift
    for name in ("level", "level_shift"):
        if getattr(carryover, name) is not None:
            tensors[f"carryover.{name}"] = getattr(carryover, name)
    for i, chains in enumerate(carryover.weights):
        for kind in WeightPriors._fields:
            for part in Statistics._fields:
                values = [getattr(getattr(known, kind), part) for known in chains]
                tensors[f"carryover.weights.{i}.{kind}.{part}"] = np.array(
                    values
                )  # float64: rounded, it may be singular
    for term, known in carryover.linear.items():
        arrays = {"documents": known.documents, "theta": known.theta, "precision": known.precision}
        tensors |= {f"carryover.{term}.{name}": array for name, array in arrays.items() if array is not None}
    for name, usage in carryover.usage.items():
        tensors |= {f"carryover.usage.{name}": usage.documents, f"carryover.first.{name}": np.array([usage.first])}
    for name, grids in carryover.grids.items():
        tensors |= {f"carryover.grids.{name}.{i}": grid for i, grid in enumerate(grids)}
    return tensors


def read_posterior(facts: dict[str, Any], tensors: Tensors, response: Response) -> Posterior:
    """The posterior of a file whose contents may be anything; `response` has its parameters, but is not fitted."""
    expect(facts.keys() <= {*FACTS, "response", "history"}, f"the facts {sorted(facts)}")
    for name, kind in FACTS.items():
        value = facts[name]
        expect(isinstance(value, kind) or (kind is float and isinstance(value, int)), f"{name} = {value!r}")
    expect(0 < facts["n_sets"] <= MOST_SETS and 0 < facts["n_draws"] <= MOST_DRAWS, "the number of topics or draws")
    expect(0 <= facts["seed"] < 2**63 and facts["n_batches"] > 0, "seed or n_batches")
    topics = tuple(read_topics(tensors, f"topics.{i}.", facts["n_draws"]) for i in range(facts["n_sets"]))
    first = topics[0]
    for part in topics:
        expect(part.word_topic.shape == first.word_topic.shape, "the sizes of topics")
    n_columns = sum(part.training.shape[2] for part in topics)
    learned: dict[str, Any] = {
        name: tensors[f"response.{name}"] for name in response.learned if f"response.{name}" in tensors
    }
    learned |= {name: value for name, value in facts["response"].items() if name in response.learned}
    expect(set(learned) == set(response.learned), "the response")
    for name in facts["response"].keys() & learned.keys():
        usual = getattr(response, name)
        expect(usual is None or isinstance(learned[name], type(usual)), f"the response's {name}")
    response = replace(response, **learned)
    response.check_fitted(n_columns)
    columns = response.column_parts(n_columns)
    expect(len(columns) == len(topics), "the number of sets of topics")
    n_chains, n_words, _ = first.word_topic.shape
    expect(0 <= facts["best_chain"] < n_chains, "best_chain")
    word_names = tensors.get("word_names")
    expect(word_names is None or word_names.ndim == 1, "the names of words")
    n_direct = n_words if word_names is None else len(word_names)
    n_topics = tuple(part.n_topics for part in topics)
    shape = Shape(n_chains, facts["n_draws"], n_columns, n_words, n_direct, n_topics, columns)
    for name in ("scale", "training_scale"):
        array = tensors[name]
        expect(array.ndim == 3 and array.shape[:2] == (n_chains, facts["n_draws"]), f"{name}'s shape")
        response.check_scale(array, n_columns)
    terms = read_terms(facts["terms"], tensors, response.with_scale(tensors["scale"].mean(axis=(0, 1))), shape)
    vocabulary = tensors.get("vocabulary")
    expect(vocabulary is None or vocabulary.shape == (n_words,), "the vocabulary")
    traces = Traces(**{name: tensors[f"traces.{name}"] for name in OF_TRACES}, timings=facts["timings"])
    check_traces(traces, n_chains, facts["n_draws"])
    order = read_order(tensors, topics, facts["best_chain"])
    linear = [term for term in terms if isinstance(term, LinearWeights)]
    carryover = read_carryover(tensors, facts["penalties"], topics, n_columns, n_direct, linear)
    check_finite(tensors)
    posterior = Posterior(
        response, topics, tuple(terms), tensors["scale"], traces, facts["best_chain"], order, facts["sampler"],
        facts["seed"], facts["n_batches"], vocabulary, word_names, facts["topic_names"],
        read_phrases(tensors, n_words), facts["held_out"], training_scale=tensors["training_scale"],
        carryover=carryover, held_out_predictions=read_held_out(tensors, response, n_columns),
        reference=read_reference(tensors, sum(n_topics)), history=read_history(facts.get("history", [])),
    )  # fmt: skip
    return read_reported(posterior, tensors)


def read_history(rows: Any) -> tuple[Batch, ...]:
    """The history of a model; files of older versions have none."""
    expect(isinstance(rows, list) and len(rows) <= MOST_BATCHES, "the history")
    return tuple(Batch.from_row(row) for row in rows)


def read_reference(tensors: Tensors, n_topics: int) -> Reference | None:
    """What later documents are compared with; files of older versions do not have it."""
    if "reference.shares" not in tensors:
        return None
    found = Reference(*(tensors[f"reference.{name}"] for name in Reference._fields))
    what = "the reference for later documents"
    expect(all(array.dtype.kind == "f" for array in found) and found.shares.ndim == 2, what)
    expect(found.shares.shape[1] == n_topics and found.surprise.ndim == found.unknown.ndim == 1, what)
    expect(bool((found.shares >= 0).all() and ((found.unknown >= 0) & (found.unknown <= 1)).all()), what)
    return found


def read_held_out(tensors: Tensors, response: Response, n_columns: int) -> HeldOutPredictions | None:
    """Predictions for held-out documents; files of models without any, and of older versions, have none."""
    if "held_out_predictions.weight" not in tensors:
        return None
    found = HeldOutPredictions(*(tensors[f"held_out_predictions.{name}"] for name in HeldOutPredictions._fields))
    n, what = len(found.weight), "the predictions for held-out documents"
    expect(all(array.dtype.kind == "f" and len(array) == n for array in found) and n <= MOST, what)
    sizes = (len(response.answers), len(response.labels or ())) if response.has_sets else (0, 0)
    expect((found.expected.shape, found.truth.shape) == ((n, sizes[0]), (n, sizes[1])), what)
    expect(
        found.level.shape in ((n, 0), (n, 0 if sizes[0] else n_columns))
        and found.loss.shape == found.weight.shape == found.rare.shape == (n,),
        what,
    )
    expect(bool((found.weight > 0).all() and (found.rare >= 0).all() and np.isin(found.truth, (0.0, 1.0)).all()), what)
    return found


def read_terms(names: list[Any], tensors: Tensors, response: Response, shape: Shape) -> list[Term]:
    """The terms of omega."""
    terms: list[Term] = []
    for name in names:
        expect(name in TERMS, f"the term {name!r}")
        prefix = f"terms.{name}."
        own = {key.removeprefix(prefix): array for key, array in tensors.items() if key.startswith(prefix)}
        terms.append(TERMS[name].from_tensors(own, response, shape))
    kinds = [type(term) for term in terms]
    expect(len(set(kinds)) == len(kinds), "the terms")
    expect(not shape.n_columns or {TopicWeights, Intercept} <= set(kinds), "the terms")
    return terms


def check_traces(traces: Traces, n_chains: int, n_draws: int) -> None:
    """How the chains ran is shown only; its shapes and types are checked all the same."""
    expect(traces.kept.shape == (n_chains, n_draws, 2) and traces.iterations.ndim == 1, "the traces' shapes")
    expect(traces.log_joint.shape == (n_chains, len(traces.iterations)), "the log joint's shape")
    expect(all(array.dtype.kind in "iuf" for array in (traces.kept, traces.log_joint, traces.iterations)), "the traces")
    expect(traces.burn_in.shape == traces.settled.shape == (n_chains,), "the burn-in of the chains")
    expect(traces.burn_in.dtype.kind in "iu" and traces.settled.dtype == bool, "the burn-in of the chains")
    expect(bool((traces.burn_in >= 0).all()), "the burn-in of the chains")


def read_order(tensors: Tensors, topics: tuple[TopicSet, ...], best_chain: int) -> np.ndarray:
    """The topics of each chain in the common order; a file of an older version does not have it."""
    if "order" not in tensors:
        return match_topics(topics, best_chain)
    order, ends = tensors["order"], np.cumsum([0, *(part.n_topics for part in topics)])
    shape = len(topics[0].word_topic), ends[-1]
    expect(order.shape == shape and order.dtype.kind in "iu", "the order of topics")
    for first, last in itertools.pairwise(ends):
        own = np.sort(order[:, first:last], axis=1)
        expect(np.array_equal(own, np.broadcast_to(np.arange(first, last), own.shape)), "the order of topics")
    return order


def read_phrases(tensors: Tensors, n_words: int) -> Phrases | None:
    """Pairs of words, if there are any."""
    if "phrases.first" not in tensors:
        return None
    found = Phrases(*(tensors[f"phrases.{name}"] for name in OF_PHRASES))
    n = len(found)
    expect(found.first.shape == found.second.shape == (n,) and found.share.shape == (n, 2), "the phrases")
    expect(found.share.dtype.kind == "f" and bool(((found.share >= 0) & (found.share <= 1)).all()), "the phrases")
    for places in (found.first, found.second):
        expect(places.dtype.kind in "iu" and bool(((places >= 0) & (places < n_words)).all()), "the phrases")
    return found


def read_topics(tensors: Tensors, prefix: str, n_draws: int) -> TopicSet:
    """One set of topics; kernels check no bounds, so that shapes and values are checked here."""
    counts, alpha, beta, pseudo, training = (tensors[prefix + name] for name in OF_TOPICS)
    expect(counts.ndim == 3 and counts.dtype.kind in "iu" and counts.size > 0, "word_topic's shape or type")
    n_chains, _, n_topics = counts.shape
    expect(counts.min() >= 0 and n_topics < 2**16, "word_topic's values")
    expect(alpha.shape == pseudo.shape == (n_chains, n_topics) and beta.shape == (n_chains,), "the priors' shapes")
    expect((alpha > 0).all() and (beta > 0).all(), "alpha or beta")
    expect(training.ndim == 4 and training.shape[:2] == (n_chains, n_draws), "the training weights' shape")
    expect(training.shape[3] >= n_topics, "the training weights' width")
    return TopicSet(counts, n_draws, alpha, beta, pseudo, training)


def read_reported(posterior: Posterior, tensors: Tensors) -> Posterior:
    """The posterior with its reported weights; those of an older version are of each chain's own topics."""
    if not posterior.supervised:
        return posterior
    width, columns = posterior.topics[0].training.shape[3] - posterior.topics[0].n_topics, posterior.columns_beside
    expect(width == columns.width, "the number of covariates")
    if REPORTED[0] not in tensors:
        parts = [tensors[f"topics.{i}.reported"] for i in range(len(posterior.topics))]
        for weights, topics in zip(parts, posterior.topics, strict=True):
            n_chains, _, *sizes = topics.training.shape
            expect(weights.ndim == 4 and len(weights) == n_chains and weights.shape[1], "the reported weights' shape")
            expect(list(weights.shape[2:]) == sizes, "the reported weights' width")
        draws = posterior.consensus.pool(posterior.side_by_side(parts))
        beside = np.concatenate([np.concatenate(part[..., part.shape[3] - width :]) for part in parts], axis=1)
        of_groups = beside[..., width:]  # an older version has none
    else:
        draws, beside, of_groups = (tensors[name] for name in REPORTED)
    n, expected = len(draws), posterior.own.shape
    expect(draws.shape == (n, *expected) and n and n % posterior.n_chains == 0, "the reported weights' shape")
    expect(beside.shape == (n, expected[0], len(columns.names)), "the covariates' reported weights")
    expect(of_groups.shape == (n, expected[0], len(columns.groups)), "the groups' reported weights")
    return replace(posterior, reported=draws, reported_covariates=beside, reported_groups=of_groups)


def read_carryover(
    tensors: Tensors, penalties: dict[str, Any], topics: tuple[TopicSet, ...], n_columns: int, n_direct: int,
    terms: list[LinearWeights],
) -> Carryover:  # fmt: skip
    """What `partial_fit` needs; a file of an old version has little of it. `terms` are the linear ones."""
    n_chains = len(topics[0].word_topic)
    shapes: dict[str, tuple[int, ...]] = {"sums": (5, n_columns), "level": (n_columns,), "level_shift": (3, n_columns)}
    shapes["words.documents"] = (n_direct + 1,)
    for name, n in ((TOPIC_WORDS, topics[0].word_topic.shape[1]), (OWN_WORDS, n_direct)):
        shapes |= {f"usage.{name}": (n,), f"first.{name}": (1,)}
    for term in terms:
        shapes |= dict.fromkeys((f"{term.name}.theta", f"{term.name}.precision"), term.theta.shape[1:])
    weights = []
    for i, part in enumerate(topics):
        columns, width = part.training.shape[2:]
        known = tensors.get(f"carryover.weights.{i}.{WeightPriors._fields[0]}.precision")
        diagonal = known is not None and known.shape[1:2] == (width,)  # of very many weights
        size = width if diagonal else width * (width + 1) // 2
        of_sums = {"precision": (n_chains, size, columns), "shift": (n_chains, width, columns)}
        places = {(kind, name): f"weights.{i}.{kind}.{name}" for kind in WeightPriors._fields for name in of_sums}
        shapes |= {place: of_sums[name] for (_, name), place in places.items()}
        if all(f"carryover.{place}" in tensors for place in places.values()):
            weights.append(tuple(
                WeightPriors(*(
                    Statistics(*(tensors[f"carryover.{places[kind, name]}"][chain] for name in Statistics._fields))
                    for kind in WeightPriors._fields
                ))
                for chain in range(n_chains)
            ))  # fmt: skip
    grids: dict[str, dict[int, np.ndarray]] = {}
    for key, array in tensors.items():
        name = key.removeprefix("carryover.")
        if name == key:
            continue
        if name.startswith("grids."):
            _, kind, place = name.split(".")
            expect(array.ndim == 2, key)
            grids.setdefault(kind, {})[int(place)] = array
        elif name in ("scale", "scale_shift"):
            n_own = tensors["scale"].shape[2]
            expect(array.ndim == (2 if name == "scale" else 1) and array.shape[-1] in (0, n_own), key)
        else:
            expect(name in shapes and array.shape == shapes[name], f"{key}'s shape")
    expect(all(set(parts) == {0, 1, 2} for parts in grids.values()), "the shrinkage")
    linear = {}
    for term in terms:
        place = f"carryover.{term.name}."
        if f"{place}precision" in tensors:
            penalty, precision = penalties[term.name], tensors[f"{place}precision"]
            expect(isinstance(penalty, int | float) and 0 <= penalty < float("inf"), f"the penalty of {term.name}")
            expect((precision >= 0).all(), f"the precision of {term.name}")
            theta, documents = tensors.get(f"{place}theta", term.theta[0]), tensors.get(f"{place}documents")
            linear[term.name] = LinearCarryover(theta, precision, float(penalty), documents)
    return Carryover(
        tuple(weights) if len(weights) == len(topics) else (), tensors["carryover.sums"],
        tensors.get("carryover.level"), tensors.get("carryover.level_shift"), tensors["carryover.scale"],
        tensors.get("carryover.scale_shift", np.zeros(0)), linear,
        {kind: [parts[i] for i in range(3)] for kind, parts in grids.items()}, read_usage(tensors),
    )  # fmt: skip


def read_usage(tensors: Tensors) -> dict[str, Usage]:
    """How often words come, of vocabularies that have grown; their shapes are right."""
    found = {}
    for name in (TOPIC_WORDS, OWN_WORDS):
        if f"carryover.usage.{name}" in tensors:
            documents, first = tensors[f"carryover.usage.{name}"], tensors[f"carryover.first.{name}"]
            expect(documents.dtype.kind == "f" and (documents >= 0).all(), "how often words come")
            expect(first.dtype.kind in "iu" and 0 < first[0] <= MOST_NAMES, "the size of the first vocabulary")
            found[name] = Usage(documents, int(first[0]))
    return found
