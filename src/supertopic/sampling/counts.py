"""The counts of all documents in one address space, and the topics that its shards read."""

import itertools

import numpy as np
from scipy.special import gammaln

from supertopic.kernels import counts
from supertopic.kernels.counts import BLOCK
from supertopic.kernels.lanes import pad, padded
from supertopic.model.state import NO_PHI, NO_SMOOTH, Moves, Priors, SummedCounts, Topics
from supertopic.sampling.exchange import Changes, apply, of_counts, of_moves
from supertopic.sampling.plan import ACCEPTED, DENSE, Plan
from supertopic.sampling.pool import Pool
from supertopic.sampling.shard import Shard

PHI_WORDS = 2048  # words that are drawn at a time
ONE = 2**31  # the largest share of a topic, as a whole number: 2**31 tokens of it still fit


class Counts:
    """word_topic, which follows the moves of the shards, and its sum over the draws.

    Pseudo-counts (V, K) are part of it and never change.
    """

    def __init__(self, plan: Plan, shards: list[Shard], pool: Pool, pseudo_counts: np.ndarray | None):
        self.plan, self.shards, self.pool, self.pseudo_counts = plan, shards, pool, pseudo_counts
        self.word_topic = np.zeros((plan.n_words, padded(plan.n_topics)), np.int32)
        self.pseudo_tokens = np.zeros(plan.n_topics, np.int64)  # pseudo-counts of each topic
        if pseudo_counts is not None:
            self.pseudo_tokens = pseudo_counts.sum(axis=0, dtype=np.int64)
            self.word_topic[:, : plan.n_topics] = pseudo_counts
        tokens = [shard.add_tokens(self.word_topic) for shard in shards]
        self.tokens = np.sum([self.pseudo_tokens, *tokens], axis=0)  # (K,): of each topic
        self.summed = np.zeros((plan.n_words, plan.n_topics), np.int32)
        self.n_draws = 0
        # Sweeps that compute the whole conditional, even for many topics: proposals that ignore the response are often
        # rejected where it matters much, and more so while the topics do not explain it yet.
        self.dense = DENSE if plan.n_columns else 0

    def topics(self, priors: Priors, key: np.uint64) -> Topics:
        """The topics that the documents read in the next sweep."""
        mass, alpha = self.tokens + self.plan.n_words * priors.beta, pad(priors.alpha.astype(np.float32))
        phi, smooth, inverse = NO_PHI, NO_SMOOTH, pad((1.0 / mass).astype(np.float32))
        if self.plan.sampler == "drawn":
            phi, inverse = self.draw_phi(priors.beta, key), np.ones_like(inverse)
        if self.plan.sparse and not self.dense:
            smooth = self.smooth_phi(phi, alpha) if len(phi) else self.smooth_counts(priors, mass)
        live = self.plan.sampler == "collapsed"
        return Topics(self.word_topic.reshape(-1), mass, inverse, phi, smooth, alpha, priors.beta, live)

    def follow(self, moves: list[Moves], keep: bool) -> None:
        """Update the counts after a sweep with the moves of the shards; `keep` adds them to the sum over the draws."""
        self.tokens = np.sum([self.pseudo_tokens, *(move.tokens for move in moves)], axis=0)
        if self.plan.sampler != "collapsed":  # else they are live
            n_parts = len(moves[0].starts) - 1
            listed = all(move.listed for move in moves)
            self.pool.map(
                lambda part: add_part(moves, part, self.word_topic) if listed else self.recount(part, n_parts),
                range(n_parts),
            )
        self.settle(np.sum([move.taken for move in moves], axis=0), keep)

    def recount(self, part: int, n_parts: int) -> None:
        """Count all tokens of one part of the vocabulary."""
        for first in range(part * BLOCK, self.plan.n_words, n_parts * BLOCK):
            words = slice(first, first + BLOCK)
            self.word_topic[words] = 0
            if self.pseudo_counts is not None:
                self.word_topic[words, : self.plan.n_topics] = self.pseudo_counts[words]
        for shard in self.shards:
            shard.add_part(part, n_parts, self.word_topic)

    def settle(self, taken: np.ndarray, keep: bool) -> None:
        """End a sweep: which sampler is next, and with `keep` the counts are added to the sum over the draws."""
        if keep:
            self.keep()
            return
        proposed, accepted = taken  # after the burn-in the sampler may not depend on the history of the chain
        self.dense = DENSE if accepted < ACCEPTED * proposed else max(self.dense - 1, 0)

    def changes(self, moves: list[Moves], n_parts: int) -> list[Changes]:
        """The net changes of a sweep for other machines, by parts of the vocabulary."""
        n_words, n_topics = self.plan.n_words, self.plan.n_topics
        return self.pool.map(lambda part: of_moves(moves, part, n_parts, n_words, n_topics), range(n_parts))

    def all_changes(self, n_parts: int) -> list[Changes]:
        """The counts of the tokens of these shards for other machines, by parts; they are taken out here."""
        n_topics = self.plan.n_topics
        if self.pseudo_counts is not None:
            self.word_topic[:, :n_topics] -= self.pseudo_counts
        changes = self.pool.map(lambda part: of_counts(self.word_topic, part, n_parts), range(n_parts))
        self.word_topic[:] = 0
        if self.pseudo_counts is not None:
            self.word_topic[:, :n_topics] = self.pseudo_counts
        self.tokens = self.pseudo_tokens
        return changes

    def receive(self, changes: list[Changes]) -> None:
        """Add the changes of all machines, by parts of the vocabulary."""
        n_topics, n_parts = self.plan.n_topics, len(changes)
        tokens = self.pool.map(
            lambda part: apply(changes[part], part, n_parts, self.word_topic, n_topics), range(n_parts)
        )
        self.tokens = np.sum([self.tokens, *tokens], axis=0)

    def keep(self) -> None:
        """Add the current counts to the sum over the draws."""
        self.n_draws += 1
        if self.n_draws * int(self.tokens.sum()) >= 2**31:
            self.summed = self.summed.astype(np.int64, copy=False)
        n_topics = self.plan.n_topics

        def add(part: tuple[int, int]) -> None:
            self.summed[slice(*part)] += self.word_topic[slice(*part), :n_topics]

        self.pool.map(add, self.parts())

    def summed_counts(self) -> SummedCounts:
        """The sum over the draws."""
        return SummedCounts(self.summed, self.summed.sum(axis=0, dtype=np.int64), self.n_draws)

    def restore(self, summed: np.ndarray, n_draws: int, dense: int) -> None:
        """Set the sum over the draws, and the state of the sampler."""
        self.summed, self.n_draws, self.dense = summed.copy(), n_draws, dense

    def log_words(self, beta: float) -> float:
        """log p(w | z, beta), the topics integrated out; pseudo-counts are given."""
        value = self.log_counts(self.word_topic, self.tokens, beta)
        if self.pseudo_counts is not None:
            value -= self.log_counts(self.pseudo_counts, self.pseudo_tokens, beta)
        return value

    def log_counts(self, word_topic: np.ndarray, tokens: np.ndarray, beta: float) -> float:
        n_topics, whole = self.plan.n_topics, self.plan.n_words * beta
        sums = self.pool.map(lambda part: counts.log_words(word_topic, n_topics, beta, *part), self.parts())
        return float(np.sum(sums) + n_topics * gammaln(whole) - gammaln(whole + tokens).sum())

    def sizes(self) -> np.ndarray:
        """How many (word, topic) have 0, 1, 2, ... tokens."""
        return counts.count_sizes(self.word_topic, self.plan.n_topics)

    def parts(self) -> list[tuple[int, int]]:
        """Parts of the vocabulary, which do not depend on the number of threads."""
        n_words = len(self.word_topic)
        return list(itertools.pairwise([*range(0, n_words, PHI_WORDS), n_words]))

    def draw_phi(self, beta: float, key: np.uint64) -> np.ndarray:
        """phi_k ~ Dirichlet(word_topic_k + beta), flat and padded, as log-gammas that are normalised in the log."""
        phi, n_topics, width = np.zeros(self.word_topic.size, np.float32), self.plan.n_topics, self.word_topic.shape[1]
        sums = self.pool.map(
            lambda part: counts.draw_log_gammas(self.word_topic, n_topics, beta, key, phi, *part), self.parts()
        )
        log_sum = np.logaddexp.reduce(sums, axis=0)
        self.pool.map(lambda part: counts.normalise(phi, width, log_sum, *part), self.parts())
        return phi

    def smooth_phi(self, phi: np.ndarray, alpha: np.ndarray) -> np.ndarray:
        """sum_k alpha_k phi_wk, (V,)."""
        smooth = np.empty(self.plan.n_words, np.float32)
        self.pool.map(lambda part: counts.add_smooth(phi, alpha, smooth, *part), self.parts())
        return smooth

    def smooth_counts(self, priors: Priors, mass: np.ndarray) -> np.ndarray:
        """sum_k alpha_k (word_topic_wk + beta) / mass_k, (V,), from the tokens: their number is less than V K.

        A topic's share alpha_k / mass_k is a whole number of parts of the largest, so that the threads' sums do not
        depend on their order.
        """
        share = priors.alpha / mass
        unit = share.max() / ONE
        whole, n_threads = np.rint(share / unit).astype(np.int64), self.pool.n_threads

        def add(first: int) -> np.ndarray:
            smooth = np.zeros(self.plan.n_words, np.int64)
            for shard in self.shards[first::n_threads]:
                shard.add_shares(whole, smooth)
            return smooth

        if len(self.shards) == len(self.plan.slices) and self.pseudo_counts is None:
            smooth = np.sum(self.pool.map(add, range(n_threads)), axis=0)
        else:  # other machines have some tokens, or some are pseudo-counts; the sum is the same
            rows = self.pool.map(lambda part: counts.count_shares(self.word_topic, whole, *part), self.parts())
            smooth = np.concatenate(rows)
        return (smooth * unit + priors.beta * share.sum()).astype(np.float32)


def add_part(moves: list[Moves], part: int, word_topic: np.ndarray) -> None:
    """Update the counts of one part of the vocabulary with all moves."""
    addresses = np.array([move.moves.__array_interface__["data"][0] for move in moves], np.uint64)
    counts.add_moves(addresses, np.array([move.starts for move in moves]), part, word_topic)
