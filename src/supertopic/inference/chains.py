"""The chains of a fit: run by threads, a device or a cluster, with checkpoints, a progress bar and Ctrl-C."""

import importlib.util
import math
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Generic, NamedTuple, TypeVar

import numpy as np
from joblib import effective_n_jobs

from supertopic.corpus.source import Arrays, Corpus, Described, Outline, Target
from supertopic.inference.calibration import Calibrated, Unseen, calibrate, own_weights
from supertopic.inference.checkpoint import Checkpoint, temporary_folder
from supertopic.inference.memory import chains_on_device, check_memory, return_freed
from supertopic.inference.predict import Settings
from supertopic.inference.progress import progress
from supertopic.inference.settling import drift, has_settled, longest_burn_in, may_stop
from supertopic.inference.start import FittedStart, Start
from supertopic.model.priors import ChainPrior
from supertopic.model.state import Priors
from supertopic.sampling.chain import Chain, ChainDraws
from supertopic.sampling.engine import Engine, EnginePool
from supertopic.sampling.plan import Plan
from supertopic.sampling.pool import each, interruptible, one_blas_thread
from supertopic.sampling.threads import ThreadEnginePool

INITS = ("nmf", "random")
ON_DEVICE = 4  # largest number of chains at a time on a GPU: more wait for each other's turn of the interpreter
COLLAPSED_UP_TO = 1_000_000  # tokens; beyond, "auto" takes the sampler that runs on several threads
D = TypeVar("D", bound=Described, covariant=True)


@dataclass(frozen=True)
class Config:
    """How a model is fitted: the parameters of an estimator."""

    n_words: int
    n_topics: int
    priors: Priors
    learn_priors: bool = False
    init: str = "nmf"
    burn_in: int | str = "auto"
    max_seconds: float | None = None
    n_draws: int = 20
    n_chains: int = 4
    sampler: str = "auto"
    predict_sweeps: int = 40
    calibrate: bool = True
    topics_first: bool = False  # linear terms explain only what topics leave
    held_out: float | str = "auto"
    by_group: bool = False  # whole groups are held out
    n_jobs: int | None = None
    device: str = "cpu"
    engine: str = "threads"
    verbose: bool = False
    title: str = "fit"
    identity: dict[str, object] = field(default_factory=dict)  # by which a checkpoint is known to be of the same fit

    def longest(self, n_tokens: int) -> int:
        """The iterations before the first draw: as given, or at most for these documents."""
        return longest_burn_in(n_tokens) if isinstance(self.burn_in, str) else int(self.burn_in)

    @property
    def nu2(self) -> float:
        """The prior variance of training weights, without that of groups."""
        return float(np.min(self.priors.nu2))

    @property
    def n_kept(self) -> int:
        """The sweeps over a new document that are used."""
        return self.predict_sweeps - self.predict_sweeps // 2

    @property
    def n_threads(self) -> int:
        return effective_n_jobs(self.n_jobs)

    @property
    def settings(self) -> Settings:
        """How predictions are made while the model is fitted."""
        return Settings(self.predict_sweeps, self.n_threads, self.device)

    def choose_sampler(self, n_tokens: int) -> str:
        if self.sampler != "auto":
            return self.sampler
        if self.device == "cuda":
            return "delayed"
        return "collapsed" if n_tokens <= COLLAPSED_UP_TO else "delayed"


class Split(NamedTuple, Generic[D]):
    """The documents that chains use, and those that are held out."""

    seen: D
    held_out: Arrays | None
    some: np.ndarray | None  # a mask of the held-out documents for which draws of omega are kept
    mask: np.ndarray  # (n_docs,): which are held out
    fold: np.ndarray  # (n_docs,): the chain that does not see a document's response; -1 for none

    def column(self, r: int) -> "Split[D]":
        """The same documents with one response column."""
        return self._replace(seen=self.seen.column(r), held_out=self.held_out.column(r) if self.held_out else None)

    def by_columns(self, columns: Sequence[slice]) -> list[D]:
        """The documents of each set of topics, which has some columns of the response."""
        return [self.seen.column(part.start) for part in columns] if len(columns) > 1 else [self.seen]

    def without_words(self) -> "Split[Outline]":
        """The same after the chains have ended: the words of their documents are not read again."""
        outline = Outline(self.seen.doc_start, self.seen.target)
        return Split(outline, self.held_out, self.some, self.mask, self.fold)

    def fold_docs(self, chain: int) -> tuple[np.ndarray, np.ndarray]:
        """Which of the seen and of the held-out documents are in a chain's fold."""
        own = self.fold == chain
        return own[~self.mask], own[self.mask]

    def fold_rows(self, chain: int) -> np.ndarray:
        """The same documents by their numbers, the seen ones first."""
        own = self.fold == chain
        return np.concatenate([np.flatnonzero(own & ~self.mask), np.flatnonzero(own & self.mask)])

    def target(self) -> Target:
        """The target of all documents."""
        if self.held_out is None:
            return self.seen.target
        order = np.argsort(np.concatenate([np.flatnonzero(~self.mask), np.flatnonzero(self.mask)]))
        return Target(
            *(np.concatenate(arrays)[order] for arrays in zip(self.seen.target, self.held_out.target, strict=True))
        )

    def unseen_by(self, chain: int) -> Unseen:
        seen, held_out = self.fold_docs(chain)
        return Unseen(self.seen.target.weight, seen, self.held_out, held_out, self.some)


def seen_by(split: Split[Corpus], chain: int | None) -> Corpus:
    """The documents without the responses of the chain's fold, or without any for None; their words stay."""
    own, target = (split.fold[~split.mask] == chain) | (chain is None), split.seen.target
    if not own.any():
        return split.seen
    return split.seen.with_target(target._replace(weight=np.where(own[:, None], 0.0, target.weight)))


class ChainRun(NamedTuple):
    """What one chain has found."""

    draws: ChainDraws
    weights: Calibrated


def open_pool(config: Config, corpus: Corpus, n_sets: int, tables: int) -> EnginePool:
    """Who runs the chains, and how many at a time."""
    n_chains = n_sets * config.n_chains
    if config.engine != "threads":
        if importlib.util.find_spec("ray") is None:
            raise ImportError("engine='ray' needs Ray; pip install \"supertopic[ray]\", or use engine='threads'.")
        from supertopic.sampling.ray import RayEnginePool

        return RayEnginePool(config.engine.partition(":")[2], config.n_jobs, config.device, n_chains)
    n_threads = config.n_threads
    at_once = min(n_threads, n_chains)
    if config.device == "cuda":  # a thread for each chain only waits
        at_once = min(n_chains, ON_DEVICE, chains_on_device(corpus, config.n_words, config.n_topics))
    drawn = at_once if config.sampler == "drawn" else 0
    check_memory(
        corpus, config.n_words, config.n_topics, config.n_draws, config.n_chains, n_sets, at_once, tables + drawn,
        config.device,
    )  # fmt: skip
    return ThreadEnginePool(at_once, n_threads // at_once)


def run_chains(
    config: Config, plans: list[Plan], split: Split[Corpus], priors: list[ChainPrior], columns: list[slice],
    open_checkpoint: Callable[[str | None], Checkpoint | None], every_corpus: Corpus, start: Start | FittedStart | None,
) -> list[ChainRun]:  # fmt: skip
    """Run the chains of every set of topics, set after set. `plans` has one for each set."""
    n = len(plans) * config.n_chains
    tables = sum(prior.pseudo_counts is not None for prior in priors)
    with ExitStack() as inside:
        stop = inside.enter_context(interruptible())
        pool = inside.enter_context(open_pool(config, every_corpus, len(plans), tables))
        folder = inside.enter_context(temporary_folder()) if pool.loses_workers else None
        checkpoint = open_checkpoint(folder)
        if checkpoint is not None:
            inside.callback(checkpoint.close)
        inside.enter_context(one_blas_thread)
        title = f"{config.title}, {plans[0].sampler}{pool.title}"
        advance = inside.enter_context(progress(n * (plans[0].burn_in + config.n_draws), title, config.verbose))
        rounds = math.ceil(n / pool.at_once)  # of chains, one after the other
        seconds = None if config.max_seconds is None else config.max_seconds / rounds

        def run(index: int) -> ChainRun:
            place, chain = divmod(index, config.n_chains)
            own = split.column(columns[place].start) if len(plans) > 1 else split
            plan = plans[place]
            if priors[index].weights is not None:  # what is known of all pairs
                plan = plan._replace(quicker_without=False)
            job = ChainJob(config, plan, index, priors[index], own, checkpoint, advance, stop, start, seconds)
            found = pool.run(plan, seen_by(own, chain), priors[index].pseudo_counts, job.run)
            return_freed()
            return found

        return each(run, n, pool.at_once, stop)


class ChainJob:
    """One chain from its start, or from a checkpoint, to its weights. After a loss of workers it runs again."""

    def __init__(
        self, config: Config, plan: Plan, index: int, prior: ChainPrior, split: Split[Corpus],
        checkpoint: Checkpoint | None, advance: Callable[..., None], stop: threading.Event,
        start: Start | FittedStart | None, seconds: float | None,
    ):  # fmt: skip
        self.config, self.plan, self.index, self.prior, self.split = config, plan, index, prior, split
        self.checkpoint, self.advance, self.stop = checkpoint, advance, stop
        self.start, self.seconds = start, seconds
        self.began, self.first, self.steps = time.monotonic(), 0.0, 0  # when it began and made its first step; steps
        self.name, self.furthest = f"chain-{index}", 0
        self.chain = index % config.n_chains

    def run(self, engine: Engine) -> ChainRun:
        known = self.checkpoint is not None and self.checkpoint.holds(self.name)
        place = self.index // self.config.n_chains
        phi = None if known or self.start is None else self.start.phi(place, self.chain)
        with Chain(self.plan, self.index, engine, self.prior.weights, phi) as chain:
            if self.checkpoint:
                self.checkpoint.restore(chain, self.name, self.config.n_draws)
            while not self.done(chain):
                self.show(note_of(chain, self.index, self.config.burn_in == "auto"), chain.iteration)
                chain.step()
                self.watch(chain)
                if self.checkpoint:
                    self.checkpoint.keep(chain, self.name, self.done(chain) or self.stop.is_set())
                if not self.done(chain):
                    self.check()
            self.show(f"chain {self.index}: calibration", self.plan.burn_in + self.config.n_draws)
            if not self.config.calibrate or not self.plan.n_columns:
                return ChainRun(chain.draws(), own_weights(chain))
            return_freed()  # what sweeps have used
            weights = calibrate(chain, self.config.predict_sweeps, self.split.unseen_by(self.chain), self.check)
            return ChainRun(chain.draws(), weights)

    def done(self, chain: Chain) -> bool:
        return len(chain.eta) >= self.config.n_draws

    def watch(self, chain: Chain) -> None:
        """End the burn-in where the chain has settled, or where the draws would not be in time otherwise."""
        now, self.steps = time.monotonic(), self.steps + 1
        self.first = self.first or now  # the first step may compile, and says nothing of the others
        if chain.iteration > chain.burn_in:
            return
        last = chain.iteration == chain.burn_in
        if last or (self.config.burn_in == "auto" and may_stop(chain.iteration)):
            settled = has_settled(*np.array(chain.history).reshape(-1, 2).T)
            if last or settled:
                return chain.end_burn_in(settled)
        if self.seconds is not None and self.steps > 1:
            of_draws = self.config.n_draws * (now - self.first) / (self.steps - 1)
            if now - self.began + of_draws > self.seconds:
                chain.end_burn_in(False)

    def show(self, note: str, iteration: int) -> None:
        """Move the progress bar to the state of the chain; the work of a lost worker is not counted twice."""
        self.advance(note, max(iteration - self.furthest, 0))
        self.furthest = max(iteration, self.furthest)

    def check(self) -> None:
        """Stop if the user has asked for it."""
        if self.stop.is_set():
            where = ""
            if self.checkpoint and not self.checkpoint.temporary:
                where = f"; the same call resumes from the checkpoint {self.checkpoint.path}"
            raise KeyboardInterrupt(f"stopped{where}")


def note_of(chain: Chain, index: int, auto: bool) -> str:
    """Where a chain is, and what it waits for, for a progress bar."""
    if not chain.iteration:
        return f"chain {index}: starts (the very first fit compiles)"
    if not chain.history:
        return f"chain {index}: burn-in"
    value = f"log joint {chain.history[-1][0]:,.0f}"
    if chain.iteration >= chain.burn_in:
        return f"chain {index}: draws, {value}"
    change = drift(np.array(chain.history)[:, 0])[0]
    waits = f", changed by {change:+,.0f}" if np.isfinite(change) else ""
    return f"chain {index}: burn-in{' until it settles' if auto else ''}, {value}{waits}"
