"""One chain of a fit: its iterations, and what is kept of them."""

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from supertopic.corpus import Tokens, cut, take
from supertopic.draws import make_key
from supertopic.engines import Threads
from supertopic.gibbs import Draw, Priors, begin, iterate, learn_priors, log_joint, start
from supertopic.lanes import padded
from supertopic.responses import Response, Target
from supertopic.shard import Shard
from supertopic.sweep import Quadratic

LOG_JOINT_EVERY = 10  # iterations; it takes about a tenth of one
MAX_SHARDS, SHARD_TOKENS, SHARD_BYTES = 64, 50_000, 2**26  # the bytes are those of all shards' statistics


class Job(NamedTuple):
    """All that determines the chains of a fit."""

    tokens: Tokens
    n_words: int
    response: Response
    target: Target
    priors: Priors
    learn: bool  # alpha and beta from the data, during the burn-in
    sampler: str
    seed: int
    burn_in: int


class Run:
    """The index-th chain of a job, and what is kept of it so far."""

    def __init__(self, job: Job, index: int, n_threads: int):
        self.job, self.index, self.priors = job, index, job.priors
        self.n_topics = len(job.priors.alpha)
        self.shards = []
        for docs in cut(job.tokens, n_shards(job)):
            target = Target(*(array[docs] for array in job.target))
            self.shards.append(Shard(take(job.tokens, docs), docs.start, self.n_topics, job.response, target))
        self.engine = Threads(self.shards, n_threads)
        self.iteration = 0
        self.eta: list[np.ndarray] = []  # a draw each: (R, K + P)
        self.scale: list[np.ndarray] = []  # a draw each: (R,), or (0,)
        self.word_topic = np.zeros((job.n_words, self.n_topics), np.int32)  # summed over the draws
        self.last_eta = np.zeros((0, 0))  # (R, K + P)
        self.trace: list[np.ndarray] = []  # a draw each: (2,), log joint and the response's loss
        self.log_joint: list[tuple[int, float]] = []  # iteration, value
        self.doc_topic = np.zeros((0, 0))  # (n_docs, K): the mean zbar over the kept draws, once finished
        self.z = np.zeros(0, np.uint16)  # (n_tokens,): the last state, once finished
        self.seconds = np.zeros(3)  # in eta, z, lambda
        begin(self.engine, make_key(job.seed, index))
        self.state = start(self.engine, job.n_words, self.priors, job.response)

    def step(self, last: int = 0) -> None:
        """One iteration; what comes after the burn-in is kept."""
        self.iteration += 1
        if self.log_joint and self.log_joint[-1][0] % LOG_JOINT_EVERY:
            self.log_joint.pop()  # it was the end of a run that goes on now
        if self.iteration == self.job.burn_in + 1:
            self.engine.map(lambda shard: shard.keep(padded(self.n_topics)))
        key = make_key(self.job.seed, self.index, self.iteration)
        eta, self.state = iterate(self.engine, self.state, self.priors, self.job.sampler, key)
        self.last_eta = eta
        self.seconds += self.state.total.seconds
        word_topic = self.state.word_topic[:, : self.n_topics]
        kept = self.iteration > self.job.burn_in
        if kept or self.iteration % LOG_JOINT_EVERY == 0 or self.iteration == last:
            value = log_joint(self.engine, Draw(eta, self.state.response, word_topic), self.priors)
        if self.iteration % LOG_JOINT_EVERY == 0 or self.iteration == last:
            self.log_joint.append((self.iteration, value))
        if kept:
            plain = replace(self.state.response, c=1.0)
            loss = -np.sum(self.engine.map(lambda shard: shard.log_likelihood(plain).sum()))
            self.trace.append(np.array([value, loss]))
            self.eta.append(eta)
            self.scale.append(self.state.response.scale)
            if len(self.eta) * len(self.job.tokens.word) >= 2**31:
                self.word_topic = self.word_topic.astype(np.int64, copy=False)
            self.word_topic += word_topic
        elif self.job.learn and self.iteration > self.job.burn_in // 4:  # the first topics are as good as random
            self.priors, self.state = learn_priors(self.engine, self.state, self.priors)

    def state_arrays(self) -> dict[str, np.ndarray]:
        """All that `restore` needs to go on bit for bit: what the documents hold, and what is kept so far."""
        quadratics, n_docs = [shard.quadratic for shard in self.shards], len(self.job.tokens.doc_start) - 1
        kept = np.concatenate([shard.kept for shard in self.shards])
        return {
            "iteration": np.array([self.iteration]),
            "z": self.last_z(),
            "kappa": np.concatenate([quadratic.kappa for quadratic in quadratics]),
            "lam": np.concatenate([quadratic.lam for quadratic in quadratics]),
            "kept": kept.reshape(n_docs, -1) if len(kept) else np.zeros((n_docs, 0), np.float32),
            "response": np.array(self.state.response.scale),
            "alpha": self.priors.alpha,
            "beta": np.array([self.priors.beta]),
            "eta": np.array(self.eta),
            "scale": np.array(self.scale),
            "trace": np.array(self.trace),
            "word_topic": self.word_topic.copy(),
            "log_joint": np.array(self.log_joint),
            "seconds": self.seconds.copy(),
        }

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        """Be where a chain with these arrays was."""
        if arrays["z"].shape != self.job.tokens.word.shape or (arrays["z"] >= self.n_topics).any():
            raise ValueError("The checkpoint does not fit these documents.")
        self.iteration, self.seconds = arrays["iteration"].item(), arrays["seconds"].copy()
        self.priors = self.priors._replace(alpha=arrays["alpha"], beta=arrays["beta"].item())
        self.eta, self.scale, self.trace = (list(arrays[name]) for name in ("eta", "scale", "trace"))
        self.word_topic = arrays["word_topic"].copy()
        self.log_joint = [(int(i), float(value)) for i, value in arrays["log_joint"].reshape(-1, 2)]
        first_token = 0
        for shard in self.shards:
            docs = slice(shard.first_doc, shard.first_doc + shard.n_docs)
            shard.z[:] = arrays["z"][first_token : first_token + len(shard.z)]
            shard.quadratic = Quadratic(arrays["kappa"][docs].copy(), arrays["lam"][docs].copy())
            shard.kept = arrays["kept"][docs].reshape(-1).copy()
            first_token += len(shard.z)
        response = self.job.response.with_scale(arrays["response"])
        self.state = start(self.engine, self.job.n_words, self.priors, response)

    def finish(self) -> None:
        """Take from the documents what is kept of them."""
        lengths = np.maximum(np.diff(self.job.tokens.doc_start), 1)[:, None] * len(self.eta)
        counts = np.concatenate([shard.kept for shard in self.shards]).reshape(len(lengths), -1)
        self.doc_topic = counts[:, : self.n_topics] / lengths
        self.z = self.last_z()

    def last_z(self) -> np.ndarray:
        """The topic of every token, (n_tokens,)."""
        return np.concatenate([shard.z for shard in self.shards])

    def close(self) -> None:
        """Give threads and documents back."""
        self.engine.close()
        del self.engine, self.shards, self.state


def n_shards(job: Job) -> int:
    """From the corpus and the model, never from the machine, so that sums are the same everywhere."""
    if job.sampler == "collapsed":
        return 1
    width = len(job.priors.alpha) + job.target.covariates.shape[1]
    room = SHARD_BYTES // (8 * width**2 * max(job.target.y.shape[1], 1))
    return max(1, min(MAX_SHARDS, room, len(job.tokens.word) // SHARD_TOKENS))
