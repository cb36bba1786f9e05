"""The counts of all documents on a GPU, with the methods of `Counts`."""

import numpy as np
from scipy.special import gammaln

from supertopic.kernels.cuda import counts as kernels
from supertopic.kernels.cuda.device import (
    BLOCK,
    SUMS,
    Buffers,
    DeviceArray,
    Graph,
    clear,
    empty,
    get,
    launch,
    put,
    put_into,
    stream,
    zeros,
)
from supertopic.kernels.cuda.layout import MOST_DENSE, TopicTables, make_shape, row_width
from supertopic.model.state import Priors, SummedCounts
from supertopic.sampling.cuda import CudaShard, Tally
from supertopic.sampling.cuda_documents import fill_smooth, smooth_tables, wide
from supertopic.sampling.exchange import Changes, apply, of_counts
from supertopic.sampling.plan import ACCEPTED, DENSE, Plan
from supertopic.sampling.pool import Pool


class CudaCounts:
    """word_topic on the device, which the kernels of a sweep update, and its sum over the draws."""

    def __init__(self, plan: Plan, shards: list[CudaShard], pool: Pool, pseudo_counts: np.ndarray | None):
        self.plan, self.pseudo_counts, self.width = plan, pseudo_counts, row_width(plan.n_topics)
        size = plan.n_words * self.width
        self.count: DeviceArray = zeros(size, np.int32)
        self.pseudo: DeviceArray | None = None  # the pseudo-counts on the device
        if pseudo_counts is not None:
            self.pseudo = put(wide(pseudo_counts, self.width))
            launch(kernels.add_counts, size, self.pseudo, self.count)
        for shard in shards:
            shard.add_tokens(self.count)
        self.drawn, self.table = plan.sampler == "drawn", empty(size, np.float32)
        self.sum: DeviceArray | None = None  # over the draws
        self.n_draws, self.buffers, self.graph = 0, Buffers(), Graph()
        self.n_blocks = -(-plan.n_words // kernels.WORDS)
        self.topic_tokens = zeros(plan.n_topics, np.int64)
        self.priors: Priors | None = None
        inverse, inverse_own = (put(wide(np.ones((1, plan.n_topics), np.float32), self.width)) for _ in range(2))
        prior, alpha = (self.buffers.empty(name, (n,), np.float32) for name, n in (("prior", 2), ("alpha", self.width)))
        self.sparse, self.may_be_dense = make_shape(plan.n_topics, plan.n_columns).sparse, plan.n_topics <= MOST_DENSE
        # as in `Counts`: sweeps that will still compute the whole conditional
        self.dense = DENSE if self.sparse and self.may_be_dense and plan.n_columns else 0
        known = self.table, prior, inverse, inverse_own, alpha, self.count
        self.tables = TopicTables(*known, *smooth_tables(0, 0))
        self.sparse_tables = TopicTables(*known, *smooth_tables(plan.n_words * self.sparse, self.width))
        self.add_columns()
        self.n_tokens = int(self.tokens.sum())
        self.shared: np.ndarray | None = None  # the counts on which all machines agree, (V, width)

    def add_columns(self) -> None:
        """Count the tokens of each topic."""
        clear(self.topic_tokens)
        kernels.add_columns[self.n_blocks, BLOCK, stream()](
            self.count, self.width, self.plan.n_topics, self.topic_tokens
        )

    @property
    def tokens(self) -> np.ndarray:
        return get(self.topic_tokens)

    @property
    def word_topic(self) -> np.ndarray:
        return get(self.count).reshape(-1, self.width)[:, : self.plan.n_topics]

    @property
    def summed(self) -> np.ndarray:
        if self.sum is None:
            return np.zeros((self.plan.n_words, self.plan.n_topics), np.int32)
        return get(self.sum).reshape(-1, self.width)[:, : self.plan.n_topics]

    def topics(self, priors: Priors, key: np.uint64) -> TopicTables:
        """The topics that the documents read in the next sweep."""
        if priors is not self.priors:
            self.priors = priors
            self.buffers.put("prior", np.array([0.0 if self.drawn else priors.beta, not self.drawn], np.float32))
            self.buffers.put("alpha", wide(priors.alpha.astype(np.float32)[None], self.width))
            self.prepare()
        if self.drawn:
            self.draw_phi(priors.beta, key)
        if not self.sparse or self.dense:
            return self.tables
        self.graph.run("smooth", lambda: fill_smooth(self.sparse_tables))
        return self.sparse_tables

    def prepare(self) -> None:
        """Count the tokens of each topic, and copy the counts to the table that the next sweep reads."""
        whole = self.plan.n_words * self.priors.beta if self.priors else 0.0
        self.graph.run(("prepare", whole), lambda: self.copy(whole))

    def copy(self, whole: float) -> None:
        """Launch the kernels of `prepare`; `whole` is V beta."""
        self.add_columns()
        if not self.drawn:
            launch(kernels.copy_counts, len(self.count), self.count, self.table)
            inverses = self.tables.inverse, self.tables.inverse_own
            launch(kernels.invert, self.plan.n_topics, self.topic_tokens, whole, *inverses)

    def draw_phi(self, beta: float, key: np.uint64) -> None:
        """phi_k ~ Dirichlet(word_topic_k + beta), as log-gammas that are normalised in the log."""
        n_topics, place = self.plan.n_topics, self.buffers.put("key", np.array([key], np.uint64))
        largest, total = (self.buffers.empty(x, (self.n_blocks, n_topics), np.float64) for x in ("largest", "total"))
        log_sum = self.buffers.empty("sums", (n_topics,), np.float64)

        def draw() -> None:
            size, width = len(self.table), self.width
            launch(kernels.draw_log_gammas, size, self.count, beta, place, width, n_topics, self.table)
            kernels.add_exponentials[self.n_blocks, BLOCK, stream()](self.table, width, n_topics, largest, total)
            launch(kernels.log_sums, n_topics, largest, total, log_sum)
            launch(kernels.normalise, size, self.table, width, log_sum)

        self.graph.run(("phi", beta), draw)

    def follow(self, moves: list[Tally], keep: bool) -> None:
        """Prepare the tables after a sweep; `keep` adds the counts to the sum over the draws."""
        choose = self.sparse and self.may_be_dense and not keep  # else nobody needs to wait for the tallies
        self.settle(np.sum([tally.taken for tally in moves], axis=0) if choose else np.zeros(2, np.int64), keep)

    def settle(self, taken: np.ndarray, keep: bool) -> None:
        """End a sweep: which sampler is next, and with `keep` the counts are added to the sum over the draws."""
        self.prepare()
        if keep:
            self.keep()
        elif self.sparse and self.may_be_dense:
            proposed, accepted = taken
            self.dense = DENSE if accepted < ACCEPTED * proposed else max(self.dense - 1, 0)

    def changes(self, moves: list[Tally], n_parts: int) -> list[Changes]:
        """The changes of the counts since the last exchange for other machines, by parts of the vocabulary."""
        change = get(self.count).reshape(-1, self.width) - self.shared
        return [of_counts(change, part, n_parts) for part in range(n_parts)]

    def all_changes(self, n_parts: int) -> list[Changes]:
        """The counts of the tokens of these shards for other machines, by parts of the vocabulary."""
        self.shared = np.zeros((self.plan.n_words, self.width), np.int32)
        if self.pseudo_counts is not None:
            self.shared[:, : self.plan.n_topics] = self.pseudo_counts
        return self.changes([], n_parts)

    def receive(self, changes: list[Changes]) -> None:
        """Add the changes of all machines, by parts of the vocabulary, to the counts on which they agreed before."""
        assert self.shared is not None
        for part, change in enumerate(changes):
            apply(change, part, len(changes), self.shared, self.plan.n_topics)
        put_into(self.count, self.shared.reshape(-1))
        self.add_columns()
        self.n_tokens = int(self.tokens.sum())

    def keep(self) -> None:
        """Add the current counts to the sum over the draws."""
        self.n_draws += 1
        if self.sum is None:
            self.sum = zeros(len(self.count), np.int32)
        if self.sum.dtype == np.int32 and self.n_draws * self.n_tokens >= 2**31:
            self.sum, self.graph = put(get(self.sum).astype(np.int64)), Graph()
        self.graph.run("keep", lambda: launch(kernels.add_counts, len(self.count), self.count, self.sum))

    def summed_counts(self) -> SummedCounts:
        """The sum over the draws."""
        summed = self.summed
        return SummedCounts(summed, summed.sum(axis=0, dtype=np.int64), self.n_draws)

    def restore(self, summed: np.ndarray, n_draws: int, dense: int) -> None:
        """Set the sum over the draws."""
        self.sum, self.n_draws, self.graph = put(wide(summed, self.width)), n_draws, Graph()
        self.dense = dense if self.may_be_dense else 0

    def log_words(self, beta: float) -> float:
        """log p(w | z, beta), the topics integrated out; pseudo-counts are given."""
        value = self.log_counts("words", self.count, self.tokens, beta)
        if self.pseudo_counts is not None:
            tokens = self.pseudo_counts.sum(axis=0, dtype=np.int64)
            value -= self.log_counts("pseudo", self.pseudo, tokens, beta)
        return value

    def log_counts(self, name: str, count: DeviceArray, tokens: np.ndarray, beta: float) -> float:
        n_words, n_topics, whole = self.plan.n_words, self.plan.n_topics, self.plan.n_words * beta
        values = self.buffers.empty("values", (n_words, 1), np.float64)
        parts = self.buffers.empty("parts", (SUMS, 1), np.float64)

        def add() -> None:
            launch(kernels.log_words, n_words, count, self.width, n_topics, beta, values)
            launch(kernels.add_up, parts.size, values, parts)

        self.graph.run((name, beta), add)
        sums = get(parts).sum() + n_topics * gammaln(whole) - gammaln(whole + tokens).sum()
        return float(sums)

    def sizes(self) -> np.ndarray:
        """How many (word, topic) have 0, 1, 2, ... tokens."""
        return np.bincount(self.word_topic.reshape(-1))
