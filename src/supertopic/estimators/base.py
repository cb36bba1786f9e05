"""What all topic models have in common: parameters, chains, topics, `transform`. And the plain one, LDA."""

import logging
import os
import threading
import time
from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import ArrayLike
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from supertopic.corpus import Tokens, check_counts, make_tokens
from supertopic.estimators.docs import documented
from supertopic.estimators.progress import progress
from supertopic.estimators.validation import (
    LEAST,
    MOST,
    check_device,
    check_number,
    free_memory,
    refuse_text,
    warn_of_many_topics,
)
from supertopic.files.checkpoint import Checkpoint, identify
from supertopic.kernels.draws import make_key
from supertopic.report.summary import Summary
from supertopic.sampling.chain import Chain, Result, join
from supertopic.sampling.crew import each, interruptible, one_blas_thread
from supertopic.sampling.inference import PREDICT, freeze, infer_shares
from supertopic.sampling.plan import SAMPLERS, Arrays, Plan, make_plan
from supertopic.sampling.responses import Logistic, Response
from supertopic.sampling.state import Priors, Target, make_target, mean_topics
from supertopic.sampling.trust import enough

logger = logging.getLogger("supertopic")
freezing = threading.Lock()  # topics for predictions are made once, whoever asks first

EACH = 0.1  # alpha=None: the prior of each topic
COLLAPSED_UP_TO = 1_000_000  # tokens; beyond, "auto" takes the sampler that runs on several threads


class TopicModel(Summary, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """What LDA and its supervised kin have in common: the chains, the topics, `transform`."""

    _numbers: tuple[str, ...] = ("beta",)  # parameters that are positive numbers

    n_topics: int
    alpha: Any
    beta: float
    optimize_priors: bool
    burn_in: int
    n_draws: int
    n_chains: int
    sampler: str
    predict_sweeps: int
    n_jobs: int | None
    device: str
    random_state: Any
    verbose: bool
    seed_: int
    n_blocks_: int

    def _store(self, parameters: dict[str, Any]) -> None:
        """Keep what __init__ got, as it is: scikit-learn's contract."""
        for name, value in parameters.items():
            if name not in ("self", "__class__"):
                setattr(self, name, value)

    def _fit_chains(
        self, X: csr_array, response: Response, target: Target, path: str | os.PathLike | None, every: float
    ) -> None:
        """Run the chains and set what is fitted; `path` and `every` are those of a checkpoint."""
        began = time.perf_counter()
        self.n_blocks_ = self._count_blocks(target.y.shape[1])
        n_chains = self.n_blocks_ * self.n_chains
        workers = min(effective_n_jobs(self.n_jobs), n_chains)
        if self.device == "cuda":  # a thread for each chain does not work but wait
            workers = min(n_chains, self._room_on_card(X, target))
        self._check_memory(X, target, workers)
        warn_of_many_topics(self.n_topics, X.shape[0], int(X.data.sum()))
        source, aside, asked = Arrays(make_tokens(X), target), None, None
        self.seed_ = self._seed()
        plan = self._plan(source, X.shape[1], response)
        checkpoint = self._open_checkpoint(plan, source, path, every)
        hidden = self._hide(target)
        if hidden.any():
            source, aside = source.pick(~hidden), source.pick(hidden)
            asked = enough(aside.target, self.n_draws, self.predict_sweeps - self.predict_sweeps // 2)
            plan = self._plan(source, X.shape[1], response)
        plan = plan._replace(seed=self.seed_)
        title, last = f"{type(self).__name__}, {plan.sampler}", self.burn_in + self.n_draws

        def run(index: int) -> Result:
            name, seen, unseen, own = f"chain-{index}", source, aside, plan
            if self.n_blocks_ > 1:
                block = index // self.n_chains
                seen, unseen = source.column(block), aside.column(block) if aside else None
                own = self._plan(seen, X.shape[1], response)._replace(seed=self.seed_)
            with Chain(own, seen, index, max(1, effective_n_jobs(self.n_jobs) // workers)) as chain:
                if checkpoint:
                    checkpoint.restore(chain, name, last)
                    advance("", chain.iteration)
                while chain.iteration < last:
                    chain.step()
                    advance(f"log joint {chain.log_joint[-1][1]:,.0f}" if chain.log_joint else "")
                    pause(chain, name, chain.iteration == last, checkpoint, stop)
                if getattr(self, "calibrate", False):
                    for _ in chain.calibrate(self.predict_sweeps, unseen, asked):
                        pause(chain, name, False, None, stop)  # the chain itself is finished, and in the checkpoint
                return chain.finish()

        with (
            one_blas_thread,
            interruptible() as stop,
            progress(n_chains * last, title, bool(self.verbose)) as advance,
        ):
            found = each(run, n_chains, workers, stop)
            chains = [join(found[i :: self.n_chains], plan.n_covariates) for i in range(self.n_chains)]
            plan = plan._replace(priors=chains[0].priors)
            self._set_results(plan, X, source, aside, hidden, chains)
            if stop.is_set():  # while words were learned
                raise KeyboardInterrupt("stopped")
        logger.info("%s: %d tokens in %.1f s", title, int(X.data.sum()), time.perf_counter() - began)

    def _set_results(
        self, plan: Plan, X: csr_array, source: Arrays, aside: Arrays | None, hidden: np.ndarray, chains: list[Result]
    ) -> None:
        """Set what the chains have found. `source` has the documents that they saw, `aside` those of the mask."""
        means = [np.mean([value for i, value in chain.log_joint if i > self.burn_in]) for chain in chains]
        self.best_chain_, self.sampler_ = int(np.argmax(means)), plan.sampler
        self.log_joint_ = np.array([[value for _, value in chain.log_joint] for chain in chains])
        self.log_joint_iterations_ = np.array([iteration for iteration, _ in chains[0].log_joint])
        seconds = np.sum([chain.seconds for chain in chains], axis=0).tolist()
        self.timings_ = dict(zip(("eta", "z", "lambda"), seconds, strict=True))
        self.trace_ = np.array([chain.trace for chain in chains])
        self.alpha_ = np.array([chain.priors.alpha for chain in chains])
        self.beta_ = np.array([chain.priors.beta for chain in chains])
        eta, scale, shown = (np.array([getattr(chain, name) for chain in chains]) for name in ("eta", "scale", "shown"))
        calibrated = self._trusted(plan, X, source, aside, hidden, chains)
        word_topic = np.stack([chain.word_topic for chain in chains])
        shown = self._in_units(shown, scale)[0]
        self._set_draws(word_topic, *self._in_units(eta, scale), *self._in_units(*calibrated), shown)
        lengths = np.diff(source.tokens.doc_start)
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
        self, plan: Plan, X: csr_array, source: Arrays, aside: Arrays | None, hidden: np.ndarray, chains: list[Result]
    ) -> tuple[np.ndarray, np.ndarray]:
        """The chains' weights for predictions, and the response's own parameter."""
        eta, scale = (np.array(draws) for draws in zip(*(chain.calibrated for chain in chains), strict=True))
        return eta, scale

    def _plan(self, source: Arrays, n_words: int, response: Response) -> Plan:
        sampler = self._choose_sampler(len(source.tokens.word))
        learn = bool(self.optimize_priors)
        return make_plan(
            source, n_words, response, self._priors(), learn, sampler, self.seed_, self.burn_in, self.device
        )

    def _room_on_card(self, X: csr_array, target: Target) -> int:
        """How many chains have room on the card at a time; refuses what has none before anything is taken."""
        from supertopic.kernels.gpu import free_bytes
        from supertopic.sampling.gpu import needed_bytes

        (n_docs, n_words), n_tokens = X.shape, int(X.data.sum())
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

    def _check_memory(self, X: csr_array, target: Target, workers: int) -> None:
        """Refuse what cannot fit into memory before any of it is taken; the sum is a lower bound, not an estimate."""
        (n_docs, n_words), n_tokens = X.shape, int(X.data.sum())
        n_columns, beside = target.y.shape[1], target.covariates.shape[1]
        shares = 4 * n_docs * self.n_topics
        state = 4 * n_tokens + 4 * n_words * self.n_topics + 4 * (self.n_topics + beside) ** 2 * n_columns
        kept = 4 * n_words * self.n_topics + shares + 16 * self.n_draws * n_columns * (self.n_topics + beside)
        needed = 4 * n_tokens + workers * state + self.n_blocks_ * (self.n_chains * kept + 2 * shares)
        if self.sampler == "drawn":
            needed += workers * 4 * n_words * self.n_topics
        free = free_memory()
        if needed > free:
            raise MemoryError(
                f"The fit needs at least {needed / 2**30:,.1f} GiB, but {free / 2**30:,.1f} GiB of memory are free: "
                f"{n_tokens:,} tokens, {n_docs:,} documents, {n_words:,} words, n_topics={self.n_topics}, "
                f"n_chains={self.n_chains}. Fewer topics or chains, or a smaller vocabulary (min_df), need less."
            )

    def _open_checkpoint(self, plan: Plan, source: Arrays, path, every: float) -> Checkpoint | None:
        """The checkpoint of this fit; where random_state is None, the seed is the checkpoint's."""
        if path is None:
            return None
        if not isinstance(every, Real) or isinstance(every, bool) or not every >= 0:
            raise ValueError(f"checkpoint_every must be a number of seconds >= 0, got {every!r}.")
        parameters = self.get_params(deep=False)
        for name in ("n_jobs", "verbose", "n_draws", "random_state"):
            del parameters[name]
        parameters |= {"kind": type(self).__name__, "seed": None if self.random_state is None else self.seed_}
        checkpoint = Checkpoint(path, every, identify(plan, source, parameters))
        if "seed" not in checkpoint.facts:
            checkpoint.facts["seed"] = self.seed_
            checkpoint.write_facts()
        self.seed_ = checkpoint.facts["seed"]
        return checkpoint

    def _in_units(self, eta: np.ndarray, scale: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The draws in the units of the user's y."""
        return eta, scale

    def _set_draws(
        self, word_topic: np.ndarray, eta: np.ndarray, scale: np.ndarray, new_eta: np.ndarray, new_scale: np.ndarray,
        shown: np.ndarray,
    ) -> None:  # fmt: skip
        """Set what follows from the draws of all chains.

        word_topic (chain, V, K) is summed over the draws, eta is (chain, draw, R, K + P), scale (chain, draw, R or 0),
        and so are the weights for new documents and those that are shown. From here on nothing but predict_sweeps,
        n_jobs and device is read from the parameters, which may be set anew.
        """
        self._word_topic, self._eta, self._scale = word_topic, eta, scale
        self._calibrated, self._shown = (new_eta, new_scale), shown
        self._n_features_out = word_topic.shape[2]
        tokens = word_topic.sum(axis=1, dtype=float) + 1e-300
        # the share of each topic in all training tokens, (chain, K): what is believed of a document without words
        self._topic_shares = tokens / tokens.sum(axis=1, keepdims=True)
        self._frozen: dict[tuple[int, int, str], Any] = {}

    def __getstate__(self):
        state = super().__getstate__()
        if "_frozen" in state:  # made again when it is needed
            state = state | {"_frozen": {}}
        return state

    @property
    def components_(self) -> np.ndarray:
        """Pseudo-counts (K, V) of the best chain. Made from whole counts on demand: they may be large."""
        check_is_fitted(self, "_word_topic")
        return self._mean_counts(self.best_chain_).T

    @property
    def topic_word_(self) -> np.ndarray:
        """The topics (K, V) of the best chain, rows sum to 1."""
        components = self.components_
        return components / components.sum(axis=1, keepdims=True)

    def _mean_counts(self, chain: int) -> np.ndarray:
        """The mean counts of a chain's draws, plus beta: (V, K)."""
        return self._word_topic[chain] / self._eta.shape[1] + self.beta_[chain]

    def _block(self, block: int) -> slice:
        """The topics of a block."""
        size = self._n_features_out // self.n_blocks_
        return slice(block * size, (block + 1) * size)

    def _topics(self, chain: int, block: int) -> Any:
        """The topics of a chain as the sampler reads them; they are kept, since they take longer than a document."""
        with freezing:
            key, own = (chain, block, self.device), self._block(block)
            if key not in self._frozen:
                priors = Priors(self.alpha_[chain, own], self.beta_[chain], 1.0)
                topics = mean_topics(self._word_topic[chain][:, own], self._eta.shape[1], priors)
                self._frozen[key] = freeze(topics, self.device)
            return self._frozen[key]

    def _key(self, chain: int, block: int) -> np.uint64:
        """Random numbers of a chain for new documents."""
        return make_key(self.seed_, block * len(self._eta) + chain, PREDICT)

    def _infer(self, tokens: Tokens, chains: Sequence[int]) -> np.ndarray:
        """The label-free mean zbar of new documents, (chain, n_docs, K)."""
        n_threads = effective_n_jobs(self.n_jobs)
        shares = np.empty((len(chains), len(tokens.doc_start) - 1, self._n_features_out))
        for index, zbar in zip(chains, shares, strict=True):
            for block in range(self.n_blocks_):
                topics, key = self._topics(index, block), self._key(index, block)
                found = infer_shares(tokens, topics, self.predict_sweeps, key, n_threads)
                zbar[:, self._block(block)] = found / self.n_blocks_
            zbar[np.diff(tokens.doc_start) == 0] = self._topic_shares[index]
        return shares

    def _new_counts(self, X) -> csr_array:
        """The counts of new documents."""
        check_is_fitted(self, "_word_topic")
        self._check_parameters()
        return self._validate_counts(X, reset=False)

    def _phi(self, chain: int) -> np.ndarray:
        """The topics of a chain, (V, K): columns sum to 1."""
        counts = self._mean_counts(chain)
        return counts / counts.sum(axis=0)

    def transform(self, X: ArrayLike) -> np.ndarray:
        """The share of each topic in each document, from its words alone, under the topics of the best chain.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_docs, n_words)
            Word counts.

        Returns
        -------
        ndarray of shape (n_docs, n_topics)
            Rows sum to 1. A document without known words gets the shares of the training corpus.
        """
        check_is_fitted(self, "_word_topic")
        return self._infer(make_tokens(self._new_counts(X)), [self.best_chain_])[0]

    def top_words(self, feature_names: ArrayLike | None = None, n: int = 10) -> list[list[str]]:
        """The n most probable words of each topic, most probable first.

        Parameters
        ----------
        feature_names : array-like of str, optional
            The vocabulary, such as `vectorizer.get_feature_names_out()`. By default the column names seen in `fit`,
            or "x0", "x1", ... where there were none.
        n : int, default=10
            How many words.
        """
        check_is_fitted(self, "_word_topic")
        names = self._feature_names(feature_names)
        return [list(names[np.argsort(-row, kind="stable")[:n]]) for row in self.topic_word_]

    def _feature_names(self, feature_names: ArrayLike | None) -> np.ndarray:
        """The vocabulary: what is given, or what was seen in `fit`."""
        if feature_names is None:
            feature_names = getattr(self, "feature_names_in_", [f"x{i}" for i in range(self.n_features_in_)])
        names = np.asarray(feature_names, dtype=object)
        if names.shape != (self.n_features_in_,):
            raise ValueError(
                f"feature_names has {names.size} names, but the model was fitted on {self.n_features_in_}."
            )
        return names

    def _validate_counts(self, X, reset: bool) -> csr_array:
        refuse_text(X)
        return check_counts(validate_data(self, X, reset=reset, accept_sparse="csr", dtype="numeric"))

    def _check_parameters(self) -> None:
        whole = {"n_topics": 1, "burn_in": 0, "n_draws": 1, "n_chains": 1, "predict_sweeps": 1}
        for name, least in whole.items():
            value = getattr(self, name)
            if not isinstance(value, Integral) or isinstance(value, bool) or value < least:
                raise ValueError(f"{name} must be a whole number >= {least}, got {value!r}.")
        if self.n_topics > 2**16 - 1:
            raise ValueError(f"n_topics must be at most {2**16 - 1:,}, got {self.n_topics:,}.")
        for name in self._numbers:
            check_number(name, getattr(self, name))
        if self.sampler not in ("auto", *SAMPLERS):
            raise ValueError(f"sampler must be one of 'auto', {', '.join(map(repr, SAMPLERS))}, got {self.sampler!r}.")
        self._priors()
        check_device(self.device, self.n_topics, self.sampler)

    def _priors(self) -> Priors:
        alpha = np.asarray(EACH * self.n_topics if self.alpha is None else self.alpha, dtype=float)
        if alpha.shape not in ((), (self.n_topics,)):
            raise ValueError(f"alpha must be a number or have n_topics = {self.n_topics} entries, got {alpha.shape}.")
        if not ((alpha >= LEAST) & (alpha <= MOST)).all():
            raise ValueError(f"alpha must be from {LEAST:g} to {MOST:g}, got {self.alpha!r}.")
        if alpha.ndim == 0:
            alpha = np.full(self.n_topics, alpha / self.n_topics)
        return Priors(alpha, float(self.beta), float(getattr(self, "nu2", 1.0)))

    def _seed(self) -> int:
        if self.random_state is None:
            return int(np.random.SeedSequence().generate_state(1, np.uint64)[0] >> np.uint64(1))
        if isinstance(self.random_state, Integral) and not isinstance(self.random_state, bool):
            if not 0 <= int(self.random_state) < 2**63:
                raise ValueError(f"random_state must be in 0 .. 2**63 - 1, got {self.random_state}.")
            return int(self.random_state)
        return int(check_random_state(self.random_state).randint(2**31 - 1))

    def _choose_sampler(self, n_tokens: int) -> str:
        if self.sampler != "auto":
            return self.sampler
        if self.device == "cuda":
            return "delayed"
        return "collapsed" if n_tokens <= COLLAPSED_UP_TO else "delayed"

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        return tags


def pause(chain: Chain, name: str, finished: bool, checkpoint: Checkpoint | None, stop: threading.Event) -> None:
    """Between two iterations: keep the chain's state if it is time, and stop it if somebody wants that."""
    if checkpoint:
        checkpoint.keep(chain, name, finished or stop.is_set())
    if stop.is_set() and not finished:
        where = f"; the same call goes on from the checkpoint {checkpoint.path}" if checkpoint else ""
        raise KeyboardInterrupt(f"stopped{where}")


@documented
class LDA(TopicModel):
    """Latent Dirichlet allocation by Gibbs sampling: topics from the words alone.

    Parameters
    ----------
    burn_in, n_draws : int, default=100 and 20
        A chain runs burn_in + n_draws iterations; the last n_draws are kept.
    n_chains : int, default=1
        Independent chains; what is shown comes from the one with the highest log joint.
    ...

    Attributes
    ----------
    doc_topic_ : ndarray of shape (n_docs, n_topics)
        The mean zbar of the training documents.
    ...
    """

    def __init__(
        self, n_topics=20, *, alpha=None, beta=0.01, optimize_priors=False, burn_in=100, n_draws=20, n_chains=1,
        sampler="auto", predict_sweeps=40, n_jobs=None, device="cpu", random_state=None, verbose=False,
    ):  # fmt: skip
        self._store(locals())

    def fit(
        self, X: ArrayLike, y: Any = None, *, checkpoint: str | os.PathLike | None = None, checkpoint_every: float = 60
    ) -> "LDA":
        """Learn topics from word counts.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_docs, n_words)
            Word counts.
        y : ignored
        checkpoint, checkpoint_every : path and seconds, optional
            Where the state of the chains is written, and how often. The same call goes on from there after it was
            stopped or killed, and ends in the same model, bit for bit; with a larger n_draws it continues a fit.
        """
        self._check_parameters()
        counts = self._validate_counts(X, reset=True)
        nothing = np.zeros((counts.shape[0], 0))
        self._fit_chains(counts, Logistic(1.0), make_target(nothing, nothing), checkpoint, checkpoint_every)
        return self
