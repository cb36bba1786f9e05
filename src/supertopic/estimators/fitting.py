"""How a model is fitted: its chains are run, in threads or on a card, and what they have found is set."""

import logging
import os
import threading
import time
from contextlib import ExitStack
from numbers import Real
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from scipy.sparse import csr_array

from supertopic.corpus.source import Arrays, Corpus, Target
from supertopic.estimators.beliefs import Beliefs
from supertopic.estimators.progress import progress
from supertopic.estimators.validation import check_ray, free_memory, warn_of_many_topics
from supertopic.inference.checkpoint import Checkpoint, identify, stored_seed, temporary_folder
from supertopic.inference.shrinkage import enough
from supertopic.kernels.draws import make_key
from supertopic.model.responses import Response
from supertopic.sampling.chain import Chain, Result, join
from supertopic.sampling.plan import Plan, make_plan
from supertopic.sampling.pool import each, interruptible, one_blas_thread
from supertopic.sampling.threads import ThreadEnginePool

logger = logging.getLogger("supertopic")

COLLAPSED_UP_TO = 1_000_000  # tokens; beyond, "auto" takes the sampler that runs on several threads


class Fitting(Beliefs):
    """The part of a topic model that runs its chains."""

    optimize_priors: bool
    burn_in: int
    n_draws: int
    sampler: str
    predict_sweeps: int
    n_jobs: int | None
    device: str
    engine: str
    random_state: Any
    verbose: bool
    topic_names_: dict[str, str]

    def _fit_chains(
        self, source: Corpus, X: csr_array | None, response: Response, path: str | os.PathLike[str] | None,
        every: float, before: tuple[np.ndarray, np.ndarray] = (np.zeros(0), np.ones(0)), going_on: bool = False,
    ) -> None:  # fmt: skip
        """Run the chains and set what is fitted; `path` and `every` are those of a checkpoint.

        X are the counts of the same documents, if they are in memory: the words beside topics are learned from them.
        `before` is for `_believe`.
        """
        began = time.perf_counter()
        target, n_docs, n_tokens = source.target, len(source.doc_start) - 1, int(source.doc_start[-1])
        self.n_blocks_ = self._count_blocks(target.y.shape[1])
        n_chains = self.n_blocks_ * self.n_chains
        aside, asked = None, None
        if not going_on:
            warn_of_many_topics(self.n_topics, n_docs, n_tokens)
            stored = stored_seed(path) if path is not None and self.random_state is None else None
            self.seed_, self.n_batches_ = self._seed() if stored is None else stored, 0
        beliefs, imagined = self._believe(source, before, going_on)
        plan = self._plan(source, response)
        with ExitStack() as inside:
            stop = inside.enter_context(interruptible())
            team = inside.enter_context(self._open_team(source, n_chains))
            if path is None and team.loses_workers:
                path = inside.enter_context(temporary_folder())
            checkpoint = self._open_checkpoint(plan, source, beliefs, path, every)
            hidden = self._hide(target)
            if hidden.any():
                source, aside = source.select(~hidden), source.select(hidden).load()
                asked = enough(aside.target, self.n_draws, self.predict_sweeps - self.predict_sweeps // 2)
                plan = self._plan(source, response)
            seed = int(make_key(self.seed_, *self._round())) >> 1 if self.n_batches_ else self.seed_
            plan = plan._replace(seed=seed)
            title, last = f"{type(self).__name__}, {plan.sampler}", self.burn_in + self.n_draws
            inside.enter_context(one_blas_thread)
            advance = inside.enter_context(progress(n_chains * last, f"{title}{team.title}", bool(self.verbose)))

            def run(index: int) -> Result:
                name, seen, unseen, own = f"chain-{index}", source, aside, plan
                if self.n_blocks_ > 1:
                    block = index // self.n_chains
                    seen, unseen = source.column(block), aside.column(block) if aside else None
                    own = self._plan(seen, response)._replace(seed=seed)
                furthest, (pseudo_counts, known) = 0, beliefs[index] or (None, None)

                def go(engine: Any) -> Result:
                    nonlocal furthest
                    with Chain(own, index, engine, known) as chain:
                        if checkpoint:
                            checkpoint.restore(chain, name, last)
                        while chain.iteration < last:
                            advance(note_of(chain, index), max(chain.iteration - furthest, 0))
                            furthest = max(chain.iteration, furthest)
                            chain.step()
                            pause(chain, name, chain.iteration == last, checkpoint, stop)
                        advance(f"chain {index}: calibration", last - furthest)
                        furthest = last
                        chain.remember()
                        if getattr(self, "calibrate", False):
                            for _ in chain.calibrate(self.predict_sweeps, unseen, asked):
                                # the chain itself is finished, and in the checkpoint
                                pause(chain, name, False, None, stop)
                        return chain.finish()

                return team.run(own, seen, pseudo_counts, go)

            found = each(run, n_chains, team.at_once, stop)
            chains = [join(found[i :: self.n_chains], plan.n_covariates) for i in range(self.n_chains)]
            plan = plan._replace(priors=chains[0].priors)
            self._learned["imagined"] = imagined
            self._keep_learned(found)
            if not going_on:
                self.topic_names_ = self._seed_names()
            self._set_results(plan, X, source, aside, hidden, chains)
            self.n_batches_ += 1
            if stop.is_set():  # while words were learned
                raise KeyboardInterrupt("stopped")
        logger.info("%s: %d tokens in %.1f s", title, n_tokens, time.perf_counter() - began)

    def _open_team(self, source: Corpus, n_chains: int) -> Any:
        """Who runs the chains, and how many at a time."""
        if self.engine != "threads":
            check_ray()
            from supertopic.sampling.ray import RayEnginePool

            return RayEnginePool(self.engine.partition(":")[2], self.n_jobs, self.device, n_chains)
        n_threads = effective_n_jobs(self.n_jobs)
        at_once = min(n_threads, n_chains)
        if self.device == "cuda":  # a thread for each chain does not work but wait
            at_once = min(n_chains, self._room_on_card(source))
        self._check_memory(source, at_once)
        return ThreadEnginePool(at_once, n_threads // at_once)

    def _set_results(
        self,
        plan: Plan,
        X: csr_array | None,
        source: Corpus,
        aside: Arrays | None,
        hidden: np.ndarray,
        chains: list[Result],
    ) -> None:
        """Set what the chains have found. `source` has the documents that they saw, `aside` those of the mask."""
        means = [np.mean([value for i, value in chain.log_joint if i > self.burn_in]) for chain in chains]
        self.best_chain_, self.sampler_ = int(np.argmax(means)), plan.sampler
        self.log_joint_ = np.array([[value for _, value in chain.log_joint] for chain in chains])
        self.log_joint_iterations_ = np.array([iteration for iteration, _ in chains[0].log_joint])
        seconds = np.sum([chain.seconds for chain in chains], axis=0).tolist()
        self.timings_ = dict(zip(("eta", "z", "lambda"), seconds, strict=True))
        if self.engine != "threads":
            traffic = np.sum([chain.traffic for chain in chains], axis=0).tolist()
            self.timings_ |= dict(zip(("exchange", "bytes"), traffic, strict=True))
        self.trace_ = np.array([chain.trace for chain in chains])
        self.alpha_ = np.array([chain.priors.alpha for chain in chains])
        self.beta_ = np.array([chain.priors.beta for chain in chains])
        eta, scale, shown = (np.array([getattr(chain, name) for chain in chains]) for name in ("eta", "scale", "shown"))
        new_eta, new_scale = self._trusted(plan, X, source, aside, hidden, chains)
        word_topic = np.stack([chain.word_topic for chain in chains])
        eta, new_eta, shown = map(self._in_units, (eta, new_eta, shown))
        self._set_draws(word_topic, eta, scale, new_eta, new_scale, shown)
        lengths = np.diff(source.doc_start)
        whole = np.maximum(lengths, 1) * float(eta.shape[1] * self.n_blocks_)
        shares = chains[self.best_chain_].doc_topic / whole[:, None]
        shares[lengths == 0] = self._topic_shares[self.best_chain_]
        self.doc_topic_ = np.empty((len(hidden), plan.n_topics))
        self.doc_topic_[~hidden] = shares
        if aside:
            self.doc_topic_[hidden] = self._infer(aside.tokens, [self.best_chain_])[0]

    def _count_blocks(self, n_columns: int) -> int:
        """How many models with topics of their own there are: one for all columns, or one for each."""
        return 1

    def _hide(self, target: Target) -> np.ndarray:
        """Which documents the chains will not see, (n_docs,)."""
        return np.zeros(len(target.y), bool)

    def _trusted(
        self,
        plan: Plan,
        X: csr_array | None,
        source: Corpus,
        aside: Arrays | None,
        hidden: np.ndarray,
        chains: list[Result],
    ) -> tuple[np.ndarray, np.ndarray]:
        """The chains' weights for predictions, and the response's own parameter."""
        eta, scale = (np.array(draws) for draws in zip(*(chain.calibrated for chain in chains), strict=True))
        return eta, scale

    def _plan(self, source: Corpus, response: Response) -> Plan:
        sampler, n_words = self._choose_sampler(int(source.doc_start[-1])), self.n_features_in_
        learn = bool(self.optimize_priors)
        return make_plan(
            source, n_words, response, self._priors(), learn, sampler, self.seed_, self.burn_in, self.device
        )

    def _room_on_card(self, source: Corpus) -> int:
        """How many chains have room on the card at a time; refuses what has none before anything is taken."""
        from supertopic.kernels.cuda.device import free_bytes
        from supertopic.kernels.cuda.sweep import check_places
        from supertopic.sampling.cuda import needed_bytes

        target, lengths, n_words = source.target, np.diff(source.doc_start), self.n_features_in_
        n_docs, n_tokens = len(lengths), int(lengths.sum())
        check_places(n_words, self.n_topics, n_tokens, int(lengths.max(initial=0)))
        shape = target.y.shape[1], target.covariates.shape[1]
        needed, free = needed_bytes(n_tokens, n_docs, n_words, self.n_topics, *shape), free_bytes()
        logger.info("A chain takes %.2f GiB of the card's memory, %.2f GiB are free", needed / 2**30, free / 2**30)
        if needed > free:
            raise MemoryError(
                f"A chain takes about {needed / 2**30:,.1f} GiB of the card's memory, but {free / 2**30:,.1f} GiB are "
                f"free: {n_tokens:,} tokens, {n_docs:,} documents, {n_words:,} words, n_topics={self.n_topics}. Fewer "
                "topics or a smaller vocabulary (min_df) take less; device='cpu' takes none."
            )
        return free // needed

    def _check_memory(self, source: Corpus, workers: int) -> None:
        """Refuse what cannot fit into memory before any of it is taken; the sum is a lower bound, not an estimate."""
        target, n_docs, n_words = source.target, len(source.doc_start) - 1, self.n_features_in_
        n_tokens = int(source.doc_start[-1])
        n_columns, beside = target.y.shape[1], target.covariates.shape[1]
        shares, width = 4 * n_docs * self.n_topics, self.n_topics + beside
        # packed statistics of all columns, twice while they are added up; a matrix and its factor while eta is drawn
        moments = 8 * width**2 * (n_columns + 2) if n_columns else 0
        state = 4 * n_tokens + 4 * n_words * self.n_topics + moments
        kept = 4 * n_words * self.n_topics + shares + 16 * self.n_draws * n_columns * (self.n_topics + beside)
        needed = 4 * n_tokens + workers * state + self.n_blocks_ * (self.n_chains * kept + 2 * shares)
        if self.seeds is not None or self.prior is not None or self.n_batches_:
            needed += self.n_blocks_ * self.n_chains * 4 * n_words * self.n_topics
        if self.sampler == "drawn":
            needed += workers * 4 * n_words * self.n_topics
        free = free_memory()
        if needed > free:
            raise MemoryError(
                f"The fit needs at least {needed / 2**30:,.1f} GiB, but {free / 2**30:,.1f} GiB of memory are free: "
                f"{n_tokens:,} tokens, {n_docs:,} documents, {n_words:,} words, n_topics={self.n_topics}, "
                f"n_chains={self.n_chains}. Fewer topics or chains, or a smaller vocabulary (min_df), need less."
            )

    def _open_checkpoint(self, plan: Plan, source: Corpus, beliefs, path, every: float) -> Checkpoint | None:
        """The checkpoint of this fit; where random_state is None, the seed is the checkpoint's."""
        if path is None:
            return None
        if not isinstance(every, Real) or isinstance(every, bool) or not every >= 0:
            raise ValueError(f"checkpoint_every must be a number of seconds >= 0, got {every!r}.")
        parameters = self.get_params(deep=False)
        for name in ("n_jobs", "engine", "verbose", "n_draws", "random_state", "prior"):
            del parameters[name]
        parameters |= {"kind": type(self).__name__, "seed": None if self.random_state is None else self.seed_}
        parameters["n_batches"] = self.n_batches_
        pseudo_counts, known = zip(*(belief or (None, None) for belief in beliefs), strict=True)
        checkpoint = Checkpoint(path, every, identify(plan, source, pseudo_counts, known, parameters))
        if "seed" not in checkpoint.facts:
            checkpoint.facts["seed"] = self.seed_
            checkpoint.write_facts()
        self.seed_ = checkpoint.facts["seed"]
        return checkpoint

    def _choose_sampler(self, n_tokens: int) -> str:
        if self.sampler != "auto":
            return self.sampler
        if self.device == "cuda":
            return "delayed"
        return "collapsed" if n_tokens <= COLLAPSED_UP_TO else "delayed"


def note_of(chain: Chain, index: int) -> str:
    """Where a chain is, for a progress bar."""
    if not chain.iteration:
        return f"chain {index}: starts (the very first fit compiles)"
    value = f", log joint {chain.log_joint[-1][1]:,.0f}" if chain.log_joint else ""
    return f"chain {index}: {'burn-in' if chain.iteration < chain.plan.burn_in else 'draws'}{value}"


def pause(chain: Chain, name: str, finished: bool, checkpoint: Checkpoint | None, stop: threading.Event) -> None:
    """Between two iterations: keep the chain's state if it is time, and stop it if somebody wants that."""
    if checkpoint:
        checkpoint.keep(chain, name, finished or stop.is_set())
    if stop.is_set() and not finished:
        where = f"; the same call goes on from the checkpoint {checkpoint.path}" if checkpoint else ""
        raise KeyboardInterrupt(f"stopped{where}")
