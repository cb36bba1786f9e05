"""Model files of versions 0.1 and 0.2, turned into what `model_file` reads.

Version 0.2 had weights in the units of y, classes with topics of their own side by side in one table, and other names.
Version 0.1 reported the weights that predict, and held no document out. Its classifiers had no intercept, a document
without words had the shares of all tokens, and words had no weights.
"""

from typing import Any

import numpy as np

from supertopic.model.state import Statistics
from supertopic.model.terms import expect

Tensors = dict[str, np.ndarray]
WEIGHTS = {"eta": "training", "weights": "prediction", "shown": "reported"}
KEYS = {"factor": "shrinkage", "nothing": "p_no_effect"}  # of what is known from held-out documents
GRIDS = {"alone": "topics alone", "beside": "topics beside words"}


def modern_parameters(parameters: dict[str, Any], fitted: dict[str, Any]) -> dict[str, Any]:
    """The parameters of an estimator of version 0.2 or 0.1 by their present names."""
    found = dict(parameters)
    if found.get("c") == "auto":  # as version 0.1 had it
        found["c"] = fitted.get("c_")
    if "hidden" in found:
        found["held_out"] = found.pop("hidden")
    strength, weights = found.pop("seed_strength", 1.0), found.pop("seed_weights", "auto")
    if found.get("seeds") is not None:
        found["seeds"] = {"seeds": {"words": found["seeds"], "strength": strength, "weights": weights}}
    for name in (
        "discount",
        "prior_weights",
        "prior",
        "n_jobs",
        "device",
        "engine",
    ):  # a file does not say where to run
        found.pop(name, None)
    return found


def modern_posterior(fitted: dict[str, Any], old: Tensors, burn_in: int) -> tuple[dict[str, Any], Tensors]:
    """Facts and arrays as `model_file` has them."""
    counts, eta = old["word_topic"], old["eta"]
    expect(counts.ndim == 3 and eta.ndim == 4 and counts.size and eta.size + (eta.shape[2] == 0), "the sizes")
    supervised = eta.shape[2] > 0
    n_sets, n_chains = fitted.get("n_blocks_", 1), len(counts)
    expect(n_sets == 1 or (n_sets == eta.shape[2] and counts.shape[2] % n_sets == 0), "n_blocks_")
    held_out = {KEYS.get(name, name): value for name, value in fitted.get("hidden_", {"documents": 0}).items()}
    facts: dict[str, Any] = {
        "n_draws": eta.shape[1], "best_chain": fitted["best_chain_"], "sampler": fitted["sampler_"],
        "seed": fitted["seed_"], "n_batches": fitted.get("n_batches_", 1),
        "topic_names": fitted.get("topic_names_", {}), "held_out": held_out, "timings": fitted.get("timings_", {}),
        "n_sets": n_sets, "terms": [], "penalties": {}, "response": {},
    }  # fmt: skip
    n_topics = counts.shape[2] // n_sets
    tensors: Tensors = {"scale": old["scale"], "training_scale": old["scale"]}
    trace = old.get("trace_", np.zeros((n_chains, eta.shape[1], 2)))
    tensors |= {"traces.kept": trace, "traces.log_joint": old["log_joint_"]}
    tensors["traces.iterations"] = old["log_joint_iterations_"]
    tensors |= {"traces.burn_in": np.full(n_chains, burn_in), "traces.settled": np.zeros(n_chains, bool)}
    names = [name for name in ("vocabulary_", "feature_names_in_") if name in old]
    if names:
        tensors["vocabulary"] = old[names[0]].astype(object)
    unit = old.get("unit_", np.ones(eta.shape[2]))
    shown = eta
    if supervised:
        facts["terms"], terms, shown = modern_terms(fitted, old, unit, n_sets, n_topics)
        tensors |= terms | modern_scales(old, unit)
        tensors |= modern_response(fitted, old, facts)
    pseudo = old.get("learned.imagined", np.zeros((n_sets * n_chains, n_topics)))
    expect(pseudo.shape == (n_sets * n_chains, n_topics), "the pseudo-counts")
    for i in range(n_sets):
        own, columns = slice(i * n_topics, (i + 1) * n_topics), slice(i, i + 1) if n_sets > 1 else slice(None)
        prefix = f"topics.{i}."
        tensors[prefix + "word_topic"], tensors[prefix + "alpha"] = counts[:, :, own], old["alpha_"][:, own]
        tensors[prefix + "beta"] = old["beta_"]
        tensors[prefix + "pseudo_tokens"] = pseudo[i * n_chains : (i + 1) * n_chains]
        for name, array in (("training", eta), ("reported", shown)):
            tensors[prefix + name] = part_of(array / unit[:, None], columns, own, counts.shape[2])
    return facts, tensors | modern_carryover(old, n_sets, n_chains, eta.shape[2], facts)


def part_of(eta: np.ndarray, columns: slice, topics: slice, n_topics: int) -> np.ndarray:
    """The weights of a set of topics and of covariates for its columns."""
    own = eta[:, :, columns]
    return np.concatenate([own[..., topics], own[..., n_topics:]], axis=3)


def modern_scales(old: Tensors, unit: np.ndarray) -> Tensors:
    """The response's own parameter in standard units; version 0.2 had sigma2 in those of y."""
    found = {"scale": old["calibrated_scale"], "training_scale": old["scale"]}
    if "standard_theta" not in old and "unit_" in old:
        expect(unit.ndim == 1 and old["scale"].shape[2:] == unit.shape, "unit_'s shape")
        found = {name: array / unit / unit for name, array in found.items()}
    return found


def modern_response(fitted: dict[str, Any], old: Tensors, facts: dict[str, Any]) -> Tensors:
    """What the response has learned."""
    for name in ("multilabel", "multioutput", "exposed"):
        if f"{name}_" in fitted:
            facts["response"][name] = fitted[f"{name}_"]
    tensors: Tensors = {}
    if "classes_" in old:
        return {"response.classes": old["classes_"]}
    n_columns = old["eta"].shape[2]
    names = old.get("response_names_", np.array([str(r) for r in range(n_columns)], dtype=object))
    tensors["response.names"] = names.astype(object)
    facts["response"].setdefault("exposed", False)
    if "unit_" in old:
        tensors |= {"response.centre": old["intercept_"], "response.unit": old["unit_"]}
    return tensors


def modern_terms(
    fitted: dict[str, Any], old: Tensors, unit: np.ndarray, n_sets: int, n_topics: int
) -> tuple[list[str], Tensors, np.ndarray]:
    """The terms of omega, and reported weights in the units of y."""
    eta, whole = old["calibrated_eta"], n_sets * n_topics
    expect(eta.shape == old["eta"].shape and unit.shape == eta.shape[2:3], "the weights' shape")
    shown, names, tensors = old.get("shown_eta", eta), ["topics"], dict[str, np.ndarray]()
    for i in range(n_sets):
        own, columns = slice(i * n_topics, (i + 1) * n_topics), slice(i, i + 1) if n_sets > 1 else slice(None)
        tensors[f"terms.topics.eta.{i}"] = (eta / unit[:, None])[:, :, columns, own]
    if fitted.get("n_covariates_", 0):
        names.append("covariates")
        tensors["terms.covariates.eta"] = eta[..., whole:] / unit[:, None]
        for name in ("names", "mean", "scale"):
            tensors[f"terms.covariates.{name}"] = old[f"covariate_{name}_"]
    names.append("intercept")
    base = old.get("intercept_", np.zeros(eta.shape[2]))
    level, empty = old.get("calibrated_intercept_", base), old.get("empty_intercept_")
    if "shown_eta" not in old:  # version 0.1
        tokens = old["word_topic"].sum(axis=1, dtype=float)
        shares = tokens / np.maximum(tokens.sum(axis=1, keepdims=True), 1.0)
        of_empty = np.einsum("cdrk,ck->r", eta[..., : shares.shape[1]], shares) / (eta.shape[0] * eta.shape[1])
        level, empty = base, base + of_empty
    if empty is None or not level.shape == empty.shape == base.shape == unit.shape:
        raise ValueError("The intercepts are invalid.")
    centre = base if "unit_" in old else 0.0
    for name, value in (("level", level), ("base", base), ("empty", empty)):
        tensors[f"terms.intercept.{name}"] = (value - centre) / unit
    tensors["terms.intercept.empty_documents"] = old.get("empty_documents_", np.zeros(eta.shape[2]))
    theta = old.get("standard_theta")
    if theta is None and "theta" in old and old["theta"].size:  # without words it has no columns
        expect(old["theta"].ndim == 3, "theta's shape")
        theta = old["theta"] / np.reshape(unit, (-1, 1))  # float64: the same to the bit
    if theta is not None and theta.size:
        names.append("words")
        tensors |= {"terms.words.theta": theta, "terms.words.word": old["dictionary"], "terms.words.idf": old["idf"]}
    return names, tensors, shown


def modern_carryover(old: Tensors, n_sets: int, n_chains: int, n_columns: int, facts: dict[str, Any]) -> Tensors:
    """What `partial_fit` needs."""
    learned = {name.removeprefix("learned."): array for name, array in old.items() if name.startswith("learned.")}
    sums = learned.get("sums", np.zeros((5, n_columns)))
    if len(sums) == 4:
        sums = np.concatenate([sums, sums[1:2]])
    tensors: Tensors = {"carryover.sums": sums, "carryover.scale": learned.get("scale", np.zeros((0, 0)))}
    for name in ("level", "level_shift"):
        if name in learned:
            tensors[f"carryover.{name}"] = learned[name]
    for name, kind in WEIGHTS.items():
        for part in Statistics._fields:
            if f"{name}_{part}" in learned and n_columns:
                array = learned[f"{name}_{part}"]
                expect(len(array) == n_sets * n_chains, f"learned.{name}_{part}'s shape")
                for i in range(n_sets):
                    tensors[f"carryover.weights.{i}.{kind}.{part}"] = array[i * n_chains : (i + 1) * n_chains].astype(
                        float
                    )
    if {"documents", "theta", "theta_precision", "penalty"} <= learned.keys():
        tensors["carryover.words.documents"] = learned["documents"]
        tensors |= {"carryover.words.theta": learned["theta"], "carryover.words.precision": learned["theta_precision"]}
        facts["penalties"] = {"words": float(learned["penalty"].item())}
    for name, kind in GRIDS.items():
        tensors |= {f"carryover.grids.{kind}.{i}": learned[f"{name}_{i}"] for i in range(3) if f"{name}_{i}" in learned}
    return tensors
