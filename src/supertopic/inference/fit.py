"""A posterior from documents and responses: hold out, run chains, calibrate, shrink, learn linear terms, assemble."""

import logging
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from numbers import Real
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array

from supertopic.corpus.source import Corpus
from supertopic.inference.beside import NO_INPUTS, LinearInputs
from supertopic.inference.chains import ChainRun, Config, Split, run_chains, seen_by
from supertopic.inference.checkpoint import Checkpoint, identify, stored_seed
from supertopic.inference.completion import make_reference
from supertopic.inference.held_out import choose_folds, choose_held_out, group_numbers
from supertopic.inference.ingredients import Ingredients, Learner
from supertopic.inference.level import find_base_rate
from supertopic.inference.predict import mean_topic_shares
from supertopic.inference.reported import with_reported
from supertopic.inference.shrinkage import every_few
from supertopic.inference.start import FittedStart, Start
from supertopic.inference.weights import PredictionTerms, calibrated_terms, uncalibrated_terms
from supertopic.kernels.draws import make_key
from supertopic.model.held_out import HeldOutPredictions
from supertopic.model.history import Batch, appended
from supertopic.model.posterior import TINY, Posterior, TopicSet, Traces, match_topics
from supertopic.model.priors import ChainPrior, Earlier, Prior, chain_priors, match_words
from supertopic.model.responses.base import Encoded, Response
from supertopic.model.seeds import Seeding, Seeds
from supertopic.model.terms import CovariateColumns
from supertopic.sampling.chain import TRACE_EVERY
from supertopic.sampling.plan import Plan, make_plan
from supertopic.sampling.pool import one_blas_thread

logger = logging.getLogger("supertopic")


class Checkpointing(NamedTuple):
    """Where the state of the chains is written, every how many seconds, and whether it goes with the fit."""

    path: str | os.PathLike[str] | None = None
    every: float = 60.0
    temporary: bool = False


NO_CHECKPOINT = Checkpointing()
AT_ONCE = 8192  # documents whose shares are computed at a time: less memory than all of them


@dataclass(frozen=True)
class Known:
    """What is known before the documents are seen."""

    vocabulary: np.ndarray | None = None  # (V,)
    word_names: np.ndarray | None = None  # (W,): of words with weights of their own, if these are others
    seeds: Seeds | None = None
    prior: Prior | None = None
    previous: Posterior | None = None  # the posterior of earlier batches
    discount: float = 1.0  # the weight of an earlier document
    unknown: np.ndarray | None = None  # see `model.reference`
    entry: Batch | None = None  # how well these documents were predicted by the model before them

    @property
    def begins(self) -> bool:
        """Whether `previous` has no documents: its topics are where the chains start, and nothing else."""
        return self.previous is not None and not self.previous.n_batches

    def earlier(self, n_words: int, covariates: CovariateColumns) -> Earlier | None:
        """The posterior whose documents came before, if there is one."""
        if self.begins:
            return None
        if self.previous:
            return Earlier(self.previous, np.arange(n_words), self.discount, True, True)
        if self.prior is None:
            return None
        theirs = self.prior.posterior
        place = match_words(self.prior.vocabulary, self.vocabulary, theirs.n_words, n_words)
        discount, weights = float(self.prior.discount), bool(self.prior.weights)
        return Earlier(theirs, place, discount, weights, False, covariates)


def fit(
    corpus: Corpus, encoded: Encoded, covariates: CovariateColumns, config: Config, seed: int | None, known: Known,
    counts: csr_array | None = None, checkpointing: Checkpointing = NO_CHECKPOINT, learners: Sequence[Learner] = (),
    inputs: LinearInputs = NO_INPUTS,
) -> Posterior:  # fmt: skip
    """The posterior of a model.

    Parameters
    ----------
    corpus : Corpus
        The documents, with the target of `encoded` and standardised covariates.
    encoded : Encoded
        The response, y as a target, and sums of earlier batches.
    covariates, config : CovariateColumns, Config
        How the covariates were standardised, and how the model is fitted.
    seed : int or None
        The seed; None takes that of the checkpoint, or fresh entropy. Further batches keep the first one's.
    known : Known
        Vocabulary, seeds, another model, earlier batches.
    counts : csr_array, optional
        Word counts of the same documents, for further terms.
    checkpointing, learners : Checkpointing, sequence of callables
        Where to save the state of the chains; further terms, learned after all others (`model.terms.Residual`).
    inputs : LinearInputs
        Words and features, whose weights are learned beside topics.
    """
    began, previous = time.perf_counter(), known.previous
    seed = previous.seed if previous else choose_seed(seed, checkpointing)
    batch = [previous.n_batches] if previous and previous.n_batches else []
    response, empty = encoded.response, np.diff(corpus.doc_start) == 0
    if previous and previous.carryover.scale.size:
        n_docs = known.discount * previous.carryover.sums[4]
        response = response.with_carried_scale(previous.carryover.scale, n_docs, known.discount)
    rate = find_base_rate(response, corpus.target, empty, encoded.sums)
    corpus = corpus.with_target(corpus.target._replace(offset=rate.offset))
    columns = response.column_parts(corpus.target.weight.shape[1])
    n_groups = len(covariates.groups)
    whole = plan_of(corpus, response, config, seed, n_groups)
    split = split_corpus(corpus, response, config, [seed, 1, *batch], n_groups)
    earlier = known.earlier(config.n_words, covariates)
    start, seeding = find_start(split, response, config, known, first=earlier is None)
    priors = chain_priors(
        corpus, split.seen.target, response, config.n_words, config.n_topics, config.n_chains, config.nu2, seed,
        seeding, earlier, rate.link, whole.matrix_free,
    )  # fmt: skip
    others = [config.n_topics, config.n_words] if known.begins else batch  # these chains are not those before them
    chain_seed = int(make_key(seed, *others)) >> 1 if others else seed
    plans = [plan_of(part, response, config, chain_seed, n_groups) for part in split.by_columns(columns)]

    def open_checkpoint(folder: str | None) -> Checkpoint | None:
        """The user's checkpoint, or else one in a temporary folder."""
        found = Checkpointing(folder, checkpointing.every, True) if checkpointing.path is None else checkpointing
        return None if found.path is None else start_checkpoint(found, whole, corpus, priors, config, batch)

    runs = run_chains(config, plans, split, priors, columns, open_checkpoint, corpus, start)
    outline = split.without_words()
    del split, start  # the tokens, which take much memory
    with one_blas_thread:
        made = Ingredients(
            config, response, outline, [runs[i : i + config.n_chains] for i in range(0, len(runs), config.n_chains)],
            topic_sets(runs, priors, config), rate, covariates, counts, previous, known.discount, [seed, *batch],
            learners, inputs,
        )  # fmt: skip
        posterior = assemble(made, plans, known, seeding)
    logger.info("%s: %d tokens in %.1f s", config.title, corpus.doc_start[-1], time.perf_counter() - began)
    return posterior


def choose_seed(seed: int | None, checkpointing: Checkpointing) -> int:
    """The given seed, that of a checkpoint, or fresh entropy."""
    if seed is None and checkpointing.path is not None:
        seed = stored_seed(checkpointing.path)
    return int(np.random.SeedSequence().generate_state(1, np.uint64)[0] >> np.uint64(1)) if seed is None else seed


def plan_of(corpus: Corpus, response: Response, config: Config, seed: int, n_groups: int) -> Plan:
    n_tokens = int(corpus.doc_start[-1])
    sampler, burn_in = config.choose_sampler(n_tokens), config.longest(n_tokens)
    return make_plan(
        corpus, config.n_words, response, config.priors, config.learn_priors, sampler, seed, burn_in, config.device,
        n_groups,
    )  # fmt: skip


def split_corpus(corpus: Corpus, response: Response, config: Config, seed: list[int], n_groups: int) -> Split[Corpus]:
    """Hold out some documents with a known response from all chains, and the responses of a fold from each chain."""
    mask = np.zeros(len(corpus.doc_start) - 1, bool)
    one_group = group_numbers(corpus.target.covariates, n_groups) if config.by_group else None
    if config.calibrate and corpus.target.weight.shape[1]:
        mask = choose_held_out(response, corpus.target, config.held_out, seed, one_group)
    fold = choose_folds(response, corpus.target, mask, config.n_chains, seed, one_group)
    if not mask.any():
        return Split(corpus.select(~mask), None, None, mask, fold)
    held_out = corpus.select(mask).load()
    some = every_few(held_out.target, config.n_draws, config.n_kept)
    return Split(corpus.select(~mask), held_out, some, mask, fold)


def find_start(
    split: Split[Corpus], response: Response, config: Config, known: Known, first: bool
) -> tuple[Start | FittedStart | None, Seeding | None]:
    """Where chains start if their documents are the first ones, and how far each seed word belongs to its topic."""
    seeds, previous = known.seeds, known.previous
    places = [] if seeds is None else seeds.places(known.vocabulary, config.n_words)
    start: Start | FittedStart | None = None
    if previous and known.begins:
        start = FittedStart(previous)
    elif config.init == "nmf" and first:
        start = Start(cache(partial(seen_by, split)), response, config.n_words, config.n_topics, places)
    if seeds is None:
        return start, None
    factors, share = start.factors(None) if isinstance(start, Start) else None, None
    if factors:
        share = factors.share
    elif previous:
        share = previous.topics[0].word_shares()
    return start, Seeding(seeds, places, share)


def start_checkpoint(
    given: Checkpointing, plan: Plan, corpus: Corpus, priors: list[ChainPrior], config: Config, batch: list[int]
) -> Checkpoint:
    """A checkpoint for this fit, whose seed is that of the plan; `batch` is the number of earlier batches, if any."""
    every = given.every
    if not isinstance(every, Real) or isinstance(every, bool) or not every >= 0:
        raise ValueError(f"checkpoint_every must be a number of seconds >= 0, got {every!r}.")
    parameters = config.identity | {"n_batches": sum(batch)}
    pseudo, weights = [prior.pseudo_counts for prior in priors], [prior.weights for prior in priors]
    identity = identify(plan, corpus, pseudo, weights, parameters)
    checkpoint = Checkpoint(given.path or "", every, identity, given.temporary)
    if "seed" not in checkpoint.facts:
        checkpoint.facts["seed"] = plan.seed
        checkpoint.write_facts()
    return checkpoint


def topic_sets(runs: list[ChainRun], priors: list[ChainPrior], config: Config) -> tuple[TopicSet, ...]:
    """The topics of each set, and the chains' weights for them."""
    found = []
    for first in range(0, len(runs), config.n_chains):
        own = slice(first, first + config.n_chains)
        draws = [run.draws for run in runs[own]]
        found.append(TopicSet(
            draws[0].word_topic[None] if len(draws) == 1 else np.stack([draw.word_topic for draw in draws]),
            config.n_draws,
            np.array([draw.priors.alpha for draw in draws]), np.array([draw.priors.beta for draw in draws]),
            np.array([prior.pseudo_tokens for prior in priors[own]]),
            np.array([draw.eta for draw in draws]),
        ))  # fmt: skip
    return tuple(found)


def assemble(made: Ingredients, plans: list[Plan], known: Known, seeding: Seeding | None) -> Posterior:
    """The posterior from the chains."""
    config, previous, response, plan = made.config, made.previous, made.response, plans[0]
    traces = trace_of(made)
    best = int(traces.kept[:, :, 0].mean(axis=1).argmax())
    places = seeding.places if seeding else []
    n_seeded = next((k for k, words in enumerate(places) if not words), len(places))  # free ones may be anywhere
    # a chain of a later batch starts from its own topics, which stay in their places
    order = previous.order if previous else match_topics(made.topics, best, n_seeded)
    found = PredictionTerms((), np.zeros((config.n_chains, config.n_draws, 0)), None, made.past)
    if plan.n_columns:
        found = calibrated_terms(made) if config.calibrate else uncalibrated_terms(made)
    names = {} if known.seeds is None else known.seeds.names(config.n_topics, len(made.topics))
    posterior = Posterior(
        response, made.topics, found.terms, found.scale, traces, best, order, plan.sampler, made.seed[0],
        n_batches=previous.n_batches + 1 if previous else 1,
        vocabulary=known.vocabulary,
        word_names=known.word_names,
        topic_names=previous.topic_names if previous else names,
        phrases=previous.phrases if previous else None,
        held_out=found.held_out if found.held_out is not None else previous.held_out if previous else {"documents": 0},
        training_scale=np.concatenate([[[run.draws.scale for run in runs]] for runs in made.runs], axis=-1)[0],
        carryover=found.carryover,
        held_out_predictions=all_held_out(found.held_out_predictions, previous, made.discount),
    )  # fmt: skip
    if plan.n_columns:
        posterior = with_reported(posterior, made, plans)
    shares = training_shares(made, posterior)
    reference = previous.reference if previous else None
    if made.split.held_out:
        mask, tokens = made.split.mask, made.split.held_out.tokens
        reference = make_reference(posterior, tokens, shares[mask], config.settings, known.unknown, reference)
    first = Batch(1, len(made.split.mask), found.figures, mean_or_none(known.unknown))
    history = previous.history if previous and not known.begins else (first,)
    history = appended(history, known.entry) if known.entry else history
    docs = np.flatnonzero(made.split.mask)
    return replace(posterior, doc_topic=shares, reference=reference, history=history, held_out_docs=docs)


def mean_or_none(values: np.ndarray | None) -> float | None:
    """The mean, if there are any values."""
    return None if values is None or not len(values) else float(np.mean(values))


def all_held_out(
    now: HeldOutPredictions | None, previous: Posterior | None, discount: float
) -> HeldOutPredictions | None:
    """Predictions for held-out documents of this batch and of earlier ones, which were made before it."""
    earlier = previous.held_out_predictions if previous else None
    return earlier if now is None else now.joined(earlier, discount)


def trace_of(made: Ingredients) -> Traces:
    """The traces of the chains; those of several sets of topics are added, and one that has ended keeps its value."""
    chains = list(zip(*([run.draws for run in runs] for runs in made.runs), strict=True))  # (chain, set)
    n = max(len(draws.history) for sets in chains for draws in sets)
    log_joint = np.full((len(chains), n), np.nan)
    for row, sets in zip(log_joint, chains, strict=True):
        if not all(len(draws.history) for draws in sets):
            continue
        longest = max(len(draws.history) for draws in sets)
        ends = [np.minimum(np.arange(longest), len(draws.history) - 1) for draws in sets]
        row[:longest] = np.sum([draws.history[end, 0] for draws, end in zip(sets, ends, strict=True)], axis=0)
    seconds = np.sum([draws.seconds for sets in chains for draws in sets], axis=0).tolist()
    timings = dict(zip(("eta", "z", "lambda"), seconds, strict=True))
    if made.config.engine != "threads":
        traffic = np.sum([draws.traffic for sets in chains for draws in sets], axis=0).tolist()
        timings |= dict(zip(("exchange", "bytes"), traffic, strict=True))
    kept = np.array([np.sum([draws.trace for draws in sets], axis=0) for sets in chains])
    burn_in = np.array([max(draws.burn_in for draws in sets) for sets in chains])
    settled = np.array([all(draws.settled for draws in sets) for sets in chains])
    return Traces(kept, log_joint, TRACE_EVERY * np.arange(1, n + 1), burn_in, settled, timings)


def training_shares(made: Ingredients, posterior: Posterior) -> np.ndarray:
    """The shares of topics in all training documents, (n_docs, K), in the chains that have each topic.

    Those of held-out documents are inferred.
    """
    split, config, consensus = made.split, made.config, posterior.consensus
    empty, seen = np.diff(split.seen.doc_start) == 0, np.flatnonzero(~split.mask)
    found = np.empty((len(split.mask), posterior.n_topics))
    for first in range(0, len(seen), AT_ONCE):
        some = slice(first, first + AT_ONCE)
        for runs, places in zip(made.runs, posterior.places, strict=True):
            shares = np.zeros((len(seen[some]), places.stop - places.start))
            for run, order, has in zip(runs, posterior.order[:, places], consensus.has[:, places], strict=True):
                shares += run.draws.doc_topic[some][:, order - places.start] * has
            shares /= consensus.n_having[places]
            found[seen[some], places] = shares / np.maximum(shares.sum(axis=1, keepdims=True), TINY) / len(made.runs)
    found[seen[empty]] = posterior.mean_shares
    if split.held_out:
        found[split.mask] = mean_topic_shares(posterior, split.held_out.tokens, config.settings)
    return found
