"""One chain of a fit: its iterations, and what is kept of them."""

from typing import NamedTuple

import numpy as np

from supertopic.corpus import Tokens, cut, take
from supertopic.draws import make_key
from supertopic.engines import Threads
from supertopic.gibbs import Draw, Priors, begin, iterate, learn_priors, log_joint, start
from supertopic.lanes import padded
from supertopic.responses import Response, Target
from supertopic.shard import Shard

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
        self.log_joint: list[tuple[int, float]] = []  # iteration, value
        self.doc_topic = np.zeros((0, 0))  # (n_docs, K): the mean zbar over the kept draws, once finished
        self.z = np.zeros(0, np.uint16)  # (n_tokens,): the last state, once finished
        self.seconds = np.zeros(3)  # in eta, z, lambda
        begin(self.engine, make_key(job.seed, index))
        self.state = start(self.engine, job.n_words, self.priors, job.response)

    def step(self, last: int = 0) -> None:
        """One iteration; what comes after the burn-in is kept."""
        self.iteration += 1
        if self.iteration == self.job.burn_in + 1:
            self.engine.map(lambda shard: shard.keep(padded(self.n_topics)))
        key = make_key(self.job.seed, self.index, self.iteration)
        eta, self.state = iterate(self.engine, self.state, self.priors, self.job.sampler, key)
        self.seconds += self.state.total.seconds
        word_topic = self.state.word_topic[:, : self.n_topics]
        if self.iteration % LOG_JOINT_EVERY == 0 or self.iteration == last:
            value = log_joint(self.engine, Draw(eta, self.state.response, word_topic), self.priors)
            self.log_joint.append((self.iteration, value))
        if self.iteration > self.job.burn_in:
            self.eta.append(eta)
            self.scale.append(self.state.response.scale)
            if len(self.eta) * len(self.job.tokens.word) >= 2**31:
                self.word_topic = self.word_topic.astype(np.int64, copy=False)
            self.word_topic += word_topic
        elif self.job.learn and self.iteration > self.job.burn_in // 4:  # the first topics are as good as random
            self.priors, self.state = learn_priors(self.engine, self.state, self.priors)

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
