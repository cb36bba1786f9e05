"""Words and features beside topics: their rows, what is learned of their weights, and how much they contribute."""

from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np

from supertopic.corpus.source import Target, select_target
from supertopic.inference.beside import (
    LinearFit,
    LinearInputs,
    Part,
    Past,
    Seen,
    carry,
    discounted_past,
    learn_beside,
)
from supertopic.inference.held_out import deal
from supertopic.inference.ingredients import BESIDE, Evidence, Ingredients, discounted
from supertopic.inference.shrinkage import USUAL_SPREAD, HeldOutDraws, Shrinkage, estimate_shrinkage, estimate_spread
from supertopic.model.linear import (
    Dictionary,
    FeatureWeights,
    LinearWeights,
    WordWeights,
    count_documents,
    make_dictionary,
)
from supertopic.model.posterior import LinearCarryover
from supertopic.model.responses.base import Response
from supertopic.sampling.pool import Pool


@dataclass(frozen=True)
class Linear:
    """Words and features beside topics, as they were learned."""

    names: list[str]
    fit: LinearFit
    shrinkage: Shrinkage | None  # shrinkage of topics and of these terms together; None where topics come first
    dictionary: Dictionary | None
    documents: np.ndarray | None  # (W + 1,): that have each word, and all
    inputs: LinearInputs

    def terms(self, factor: np.ndarray) -> list[LinearWeights]:
        """The terms, with their factor (chain, draw, R)."""
        found: list[LinearWeights] = []
        for name, theta, variance in zip(self.names, self.fit.theta, self.fit.variance, strict=True):
            weights = theta[None].astype(np.float32), variance.astype(np.float32), factor
            if name == WordWeights.name and self.dictionary is not None:
                found.append(WordWeights(*weights, self.dictionary))
            elif self.inputs.columns is not None:
                found.append(FeatureWeights(*weights, self.inputs.columns))
        return found

    def carryover(self) -> dict[str, LinearCarryover]:
        found = {}
        for name, past in zip(self.names, self.fit.past, strict=True):
            documents = self.documents if name == WordWeights.name else None
            arrays = past.theta.astype(np.float32), past.precision.astype(np.float32)
            found[name] = LinearCarryover(*arrays, past.penalty, documents)
        return found


def linear_parts(made: Ingredients, n_columns: int) -> tuple[dict[str, Part], Dictionary | None, np.ndarray | None]:
    """Rows of words and features with the information of earlier batches about their weights."""
    inputs, previous, parts = made.inputs, made.previous, dict[str, Part]()
    dictionary = documents = None

    def past_of(name: str) -> Past | None:
        known = made.past.linear.get(name)
        if known is None:
            return None
        term = next((term for term in previous.terms if term.name == name), None) if previous else None
        spread = term.variance if isinstance(term, LinearWeights) and len(term.variance) else None
        return discounted_past(Past(known.theta.astype(float), known.precision, known.penalty, spread), made.discount)

    if inputs.words is not None:
        documents, known = count_documents(inputs.words), made.past.linear.get(WordWeights.name)
        if known is not None and known.documents is not None:
            documents = documents + made.discount * known.documents
        dictionary, past = make_dictionary(documents, n_columns), past_of(WordWeights.name)
        if past is not None and previous and previous.words:
            past = carry(past, previous.words.dictionary, dictionary)
        if len(dictionary.word):
            parts[WordWeights.name] = Part(dictionary.rows(inputs.words), past)
    if inputs.features is not None and inputs.columns is not None:
        parts[FeatureWeights.name] = Part(inputs.columns.rows(inputs.features), past_of(FeatureWeights.name))
    return parts, dictionary, documents


class Asked(NamedTuple):
    """Held-out documents whose words and features are known."""

    rows: np.ndarray  # their numbers among the rows of the inputs
    target: Target
    draws: list[HeldOutDraws]  # the draws of each chain; the topics' part is relative to the usual mixture of topics
    scales: np.ndarray  # (n_draws, R or 0)

    @property
    def parts(self) -> tuple[np.ndarray, np.ndarray]:
        """Draws of what topics and covariates add, (n_draws, n, R); no draws where there are no covariates."""
        topics, covariates = (np.concatenate(side) for side in zip(*self.draws, strict=True))
        return topics, covariates

    def seen(self, a: np.ndarray | float) -> Seen:
        """The same documents to learn from, with the means of covariates and of a times the topics as known."""
        topics, covariates = self.parts
        known = self.target.offset + a * topics.mean(axis=0) + (covariates.mean(axis=0) if len(covariates) else 0.0)
        return Seen(self.rows, self.target._replace(offset=np.broadcast_to(known, self.target.weight.shape)))

    def losses(self, response: Response, a: np.ndarray | float, added: np.ndarray) -> np.ndarray:
        """The loss of each document if linear terms add so much to a times the topics, (n,)."""
        topics, covariates = self.parts
        omega = self.target.offset + a * topics + added + (covariates if len(covariates) else 0.0)
        logs = response.log_score(self.target.y, omega, self.scales)
        weight = self.target.weight if logs.shape[1] > 1 else self.target.weight.max(axis=1, keepdims=True)
        return -(weight * logs).sum(axis=1)


def share_of_batch(made: Ingredients) -> float:
    """The part of the weight of all documents so far that this batch has."""
    weight, total = made.split.seen.target.weight.sum(), made.rate.sums[4].sum()
    if made.split.held_out is not None:
        weight += made.split.held_out.target.weight.sum()
    return float(weight / total) if 0 < weight < total else 1.0


def ask(evidence: Evidence, places: np.ndarray, centre: np.ndarray) -> Asked:
    """Held-out documents; places are the rows of all documents in the inputs."""
    return Asked(places[evidence.asked], evidence.target, evidence.relative(centre), evidence.scales)


def fit_linear(
    made: Ingredients, evidence: Evidence | None, alone: Shrinkage | None, response: Response, seen: Target,
    topics: np.ndarray, centre: np.ndarray,
) -> Linear | None:  # fmt: skip
    """Learn the weights of words and features, and the factors of topics and of these; None if there are none.

    `seen` is the target of the training documents, and topics (n_docs, R) what topics add to them. Where topics come
    first, they keep the factor that they have alone, and linear terms are learned from what they leave.
    """
    parts, dictionary, documents = linear_parts(made, seen.weight.shape[1])
    if not parts:
        return None
    config, places = made.config, made.inputs.places(len(made.split.mask))
    rows = places[~made.split.mask]
    there, a, judge = rows >= 0, np.zeros(seen.weight.shape[1]), None
    if config.topics_first:
        a = a + (alone.factors[0] if alone else 1.0)
        seen = seen._replace(offset=seen.offset + a * topics)
    asked = ask(evidence, places, centre) if evidence else None
    if asked and dictionary is not None and WordWeights.name in parts:
        assert made.inputs.words is not None and documents is not None
        new = dictionary.without_one(documents).rows(made.inputs.words[asked.rows])
        parts[WordWeights.name] = parts[WordWeights.name]._replace(new=new)
    none = Seen(np.zeros(0, int), Target(*(array[:0] for array in seen)))
    if config.topics_first and asked:
        judge = partial(asked.losses, response, a)
    pool = Pool(config.n_threads)
    try:
        fit = learn_beside(
            list(parts.values()), Seen(rows[there], select_target(seen, there)), asked.seen(a) if asked else none,
            response, pool, judge, config.device if config.engine == "threads" else "cpu", share_of_batch(made),
            deal(made.response.wholly_known(asked.target), made.rng(7)) if asked else None,
        )  # fmt: skip
    finally:
        pool.close()
    added, shrinkage = np.full((2, *seen.weight.shape), np.nan), None
    added[:, there] = fit.added, fit.grown
    fit, spread = fit._replace(added=added[0], grown=added[1]), USUAL_SPREAD
    if asked:
        of_linear, given = (
            np.sum(fit.held_out, axis=0),
            (made.response.plain(), asked.target, asked.draws, asked.scales),
        )
        if not config.topics_first:
            shrinkage = estimate_shrinkage(*given, of_linear, discounted(made, BESIDE))
        known = shrinkage or alone
        if known and len(asked.rows):
            spread = estimate_spread(*given, known, of_linear, np.sqrt(fit.held_out_variance))
    return Linear(list(parts), fit.with_spread(spread), shrinkage, dictionary, documents, made.inputs)
