"""The counts of all documents, as one address space keeps them, and the topics that its shards see."""

import itertools

import numpy as np
from scipy.special import gammaln

from supertopic.kernels import counts
from supertopic.kernels.lanes import pad, padded
from supertopic.model.state import NO_PHI, NO_SMOOTH, Kept, Moves, Priors, Topics
from supertopic.sampling.plan import ACCEPTED, DENSE, Plan
from supertopic.sampling.pool import Crew
from supertopic.sampling.shard import Shard

PHI_WORDS = 2048  # words that are drawn at a time
ONE = 2**31  # the largest share of a topic, as a whole number: 2**31 tokens of it still fit


class Counts:
    """word_topic, which follows the shards' moves, and its sum over the draws that are kept.

    Pseudo-counts are in it from the start, and stay. Where others have other shards, one adds them for all.
    """

    def __init__(self, plan: Plan, shards: list[Shard], crew: Crew):
        self.plan, self.shards, self.crew = plan, shards, crew
        self.word_topic = np.zeros((plan.n_words, padded(plan.n_topics)), np.int32)
        self.believed = np.zeros(plan.n_topics, np.int64)  # pseudo-counts of each topic
        if plan.belief:
            self.believed = plan.belief.word_topic.sum(axis=0, dtype=np.int64)
        tokens = [shard.add_tokens(self.word_topic) for shard in shards]
        if plan.belief and shards[0].first_doc == 0:
            self.word_topic[:, : plan.n_topics] += plan.belief.word_topic
            tokens.append(self.believed)
        self.tokens = np.sum(tokens, axis=0)  # (K,): of each topic
        self.kept = np.zeros((plan.n_words, plan.n_topics), np.int32)
        self.n_draws = 0
        # sweeps for which topics are drawn by all of their conditional, even if they are many: proposals that do not
        # look at a loud response are rejected, the more so while the topics know nothing of it
        self.dense = DENSE if plan.n_columns else 0

    def topics(self, priors: Priors, key: np.uint64) -> Topics:
        """What the documents see of the topics in the next sweep."""
        mass, alpha = self.tokens + self.plan.n_words * priors.beta, pad(priors.alpha.astype(np.float32))
        phi, smooth, inverse = NO_PHI, NO_SMOOTH, pad((1.0 / mass).astype(np.float32))
        if self.plan.sampler == "drawn":
            phi, inverse = self.draw_phi(priors.beta, key), np.ones_like(inverse)
        if self.plan.sparse and not self.dense:
            smooth = self.smooth_phi(phi, alpha) if len(phi) else self.smooth_counts(priors, mass)
        live = self.plan.sampler == "collapsed"
        return Topics(self.word_topic.reshape(-1), mass, inverse, phi, smooth, alpha, priors.beta, live)

    def follow(self, moves: list[Moves], keep: bool) -> None:
        """Bring the counts up to date with what a sweep did to the shards; `keep` adds them to the kept ones."""
        self.tokens = np.sum([self.believed, *(move.tokens for move in moves)], axis=0)
        if not keep:  # from then on the sampler may not depend on where the chain has been
            proposed, accepted = np.sum([move.taken for move in moves], axis=0)
            self.dense = DENSE if accepted < ACCEPTED * proposed else max(self.dense - 1, 0)
        if self.plan.sampler != "collapsed":  # else they are live
            parts = range(len(moves[0].starts) - 1)
            self.crew.over(parts, lambda part: add_part(moves, part, self.word_topic))
            self.add([move for move in moves if move.change.size])
        if keep:
            self.keep()

    def add(self, told: list[Moves]) -> None:
        """Add changes of the counts."""

        def add(part: tuple[int, int]) -> None:
            for move in told:
                self.word_topic[slice(*part)] += move.change[slice(*part)]

        self.crew.over(self.parts() if told else [], add)

    def pack(self, moves: list[Moves]) -> list[Moves]:
        """The same for those who have other shards, in fewer bytes if that can be."""
        if sum(move.moves.nbytes for move in moves) <= self.word_topic.nbytes:
            return moves
        change = np.zeros_like(self.word_topic)
        self.crew.over(range(len(moves[0].starts) - 1), lambda part: add_part(moves, part, change))
        tokens, taken = (np.sum([getattr(move, name) for move in moves], axis=0) for name in ("tokens", "taken"))
        return [Moves(tokens, moves[0].moves[:0], np.zeros_like(moves[0].starts), tuple(taken.tolist()), change)]

    def all(self) -> list[Moves]:
        """All that is counted, for those who have other shards."""
        return [Moves(self.tokens, np.zeros(0, np.uint64), np.zeros(1, np.int64), (0, 0), self.word_topic)]

    def join(self, told: list[Moves]) -> None:
        """Count what others have counted, too."""
        self.tokens = np.sum([self.tokens, *(move.tokens for move in told)], axis=0)
        self.add(told)

    def keep(self) -> None:
        """Add the counts of this draw to those that are kept."""
        self.n_draws += 1
        if self.n_draws * int(self.tokens.sum()) >= 2**31:
            self.kept = self.kept.astype(np.int64, copy=False)
        n_topics = self.plan.n_topics

        def add(part: tuple[int, int]) -> None:
            self.kept[slice(*part)] += self.word_topic[slice(*part), :n_topics]

        self.crew.over(self.parts(), add)

    def draws(self) -> Kept:
        """The sum over the draws that were kept."""
        return Kept(self.kept, self.kept.sum(axis=0, dtype=np.int64), self.n_draws)

    def restore(self, kept: np.ndarray, n_draws: int, dense: int) -> None:
        """Take over what was kept."""
        self.kept, self.n_draws, self.dense = kept.copy(), n_draws, dense

    def log_words(self, beta: float) -> float:
        """log p(w | z, beta), the topics integrated out; pseudo-counts are given."""
        value = self.log_counts(self.word_topic, self.tokens, beta)
        if self.plan.belief:
            value -= self.log_counts(self.plan.belief.word_topic, self.believed, beta)
        return value

    def log_counts(self, word_topic: np.ndarray, tokens: np.ndarray, beta: float) -> float:
        n_topics, whole = self.plan.n_topics, self.plan.n_words * beta
        sums = self.crew.over(self.parts(), lambda part: counts.log_words(word_topic, n_topics, beta, *part))
        return float(np.sum(sums) + n_topics * gammaln(whole) - gammaln(whole + tokens).sum())

    def sizes(self) -> np.ndarray:
        """How many (word, topic) have 0, 1, 2, ... tokens."""
        return counts.count_sizes(self.word_topic, self.plan.n_topics)

    def parts(self) -> list[tuple[int, int]]:
        """Parts of the words that do not depend on the number of threads."""
        n_words = len(self.word_topic)
        return list(itertools.pairwise([*range(0, n_words, PHI_WORDS), n_words]))

    def draw_phi(self, beta: float, key: np.uint64) -> np.ndarray:
        """phi_k ~ Dirichlet(word_topic_k + beta), flat and padded, as log-gammas that are normalised in the log."""
        phi, n_topics, width = np.zeros(self.word_topic.size, np.float32), self.plan.n_topics, self.word_topic.shape[1]
        sums = self.crew.over(
            self.parts(), lambda part: counts.draw_log_gammas(self.word_topic, n_topics, beta, key, phi, *part)
        )
        log_sum = np.logaddexp.reduce(sums, axis=0)
        self.crew.over(self.parts(), lambda part: counts.normalise(phi, width, log_sum, *part))
        return phi

    def smooth_phi(self, phi: np.ndarray, alpha: np.ndarray) -> np.ndarray:
        """sum_k alpha_k phi_wk, (V,)."""
        smooth = np.empty(self.plan.n_words, np.float32)
        self.crew.over(self.parts(), lambda part: counts.add_smooth(phi, alpha, smooth, *part))
        return smooth

    def smooth_counts(self, priors: Priors, mass: np.ndarray) -> np.ndarray:
        """The same with phi_wk = (word_topic_wk + beta) / mass_k, from the tokens: their number is less than V K.

        A topic's share alpha_k / mass_k is a whole number of parts of the largest, so that the threads' sums do not
        depend on who added what.
        """
        share = priors.alpha / mass
        unit = share.max() / ONE
        whole, n_threads = np.rint(share / unit).astype(np.int64), self.crew.n_threads

        def add(first: int) -> np.ndarray:
            smooth = np.zeros(self.plan.n_words, np.int64)
            for shard in self.shards[first::n_threads]:
                shard.add_shares(whole, smooth)
            return smooth

        if len(self.shards) == len(self.plan.slices) and not self.plan.belief:
            smooth = np.sum(self.crew.over(range(n_threads), add), axis=0)
        else:  # tokens are elsewhere, or nowhere; the sum is the same
            rows = self.crew.over(self.parts(), lambda part: counts.count_shares(self.word_topic, whole, *part))
            smooth = np.concatenate(rows)
        return (smooth * unit + priors.beta * share.sum()).astype(np.float32)


def add_part(moves: list[Moves], part: int, word_topic: np.ndarray) -> None:
    """Bring one part of the words up to date with all moves."""
    addresses = np.array([move.moves.__array_interface__["data"][0] for move in moves], np.uint64)
    counts.add_moves(addresses, np.array([move.starts for move in moves]), part, word_topic)
