"""The contract of engines: what a chain asks of whoever runs its shards.

Data goes in and data comes out. No function crosses the contract, arrays that come in may be read-only, and nobody
outside of a shard knows how its documents are laid out. Threads (`threads.ThreadEngine`) and a Ray cluster
(`ray_engine.RayEngine`) implement it; whether the shards' arrays live in memory or on a GPU is the plan's `device`.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal, NamedTuple, Protocol, Self, TypeVar

import numpy as np

from supertopic.corpus.source import Corpus
from supertopic.model.responses import Response
from supertopic.model.state import Priors, Statistics, SummedCounts
from supertopic.sampling import gradients
from supertopic.sampling.new_documents import FrozenTopics
from supertopic.sampling.plan import Plan

T = TypeVar("T")


class WorkerLost(RuntimeError):
    """A worker that holds shards has died, or does not answer."""


class ShardFiles(NamedTuple):
    """The files of the states of a chain's shards; each is sealed, so that one of another fit or place is refused."""

    folder: Path
    seal: str  # the fit, the chain and its iteration

    def place(self, first_doc: int) -> Path:
        """The file of the shard with this first document."""
        return self.folder / str(first_doc)

    def seal_of(self, first_doc: int) -> str:
        """What the header of that file says."""
        return f"{self.seal}/{first_doc}"


class CountsLike(Protocol):
    """The counts of all documents and their sum over the draws so far; pseudo-counts are included."""

    @property
    def tokens(self) -> np.ndarray:
        """The tokens of each topic, (K,)."""

    @property
    def word_topic(self) -> np.ndarray:
        """The tokens of each word and topic, (V, K) or wider."""

    @property
    def summed(self) -> np.ndarray:
        """word_topic (V, K), summed over the draws."""

    @property
    def n_draws(self) -> int:
        """The number of draws in `summed`."""

    @property
    def dense(self) -> int:
        """The number of sweeps that will still use the dense sampler."""

    def summed_counts(self) -> SummedCounts:
        """The sum over the draws."""

    def keep(self) -> None:
        """Add the current counts to the sum over the draws."""

    def restore(self, summed: np.ndarray, n_draws: int, dense: int) -> None:
        """Set the sum over the draws, and the state of the sampler."""

    def log_words(self, beta: float) -> float:
        """log p(w | z, beta), the topics integrated out and pseudo-counts given."""

    def sizes(self) -> np.ndarray:
        """How many (word, topic) have 0, 1, 2, ... tokens."""


class Engine(Protocol):
    """All shards of one chain, and the counts of their tokens."""

    plan: Plan
    pseudo_counts: np.ndarray | None  # (V, K) int32: tokens that never move, from seeds or another model
    seconds: np.ndarray  # (3,): that the driver spent on eta, z and lambda, beside the shards

    @property
    def counts(self) -> CountsLike:
        """The counts of all documents."""

    def start(self, key: np.uint64, phi: np.ndarray | None = None) -> None:
        """Draw every z and count: under topics phi (V, K), under those of the pseudo-counts, or uniformly."""

    def sweep(
        self, eta: np.ndarray, priors: Priors, key: np.uint64, keep: bool, response: Response | None = None
    ) -> Statistics | None:
        """Draw every z given eta (R, K + P), and update the counts; `keep` adds them to the sum over the draws.

        With a response, lam is drawn as well, and the statistics that `augment` would return are returned.
        """

    def augment(self, response: Response, key: np.uint64) -> Statistics:
        """Draw kappa and lam, and return the statistics for the next draw of eta."""

    def statistics(self) -> Statistics:
        """The statistics for the next draw of eta."""

    def products(self, v: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """sum_d lam_dr x_d x_d' v_r for some columns r (m,) and vectors v (K + P, m): (K + P, m)."""

    def noise(self, key: np.uint64) -> np.ndarray:
        """sum_d sqrt(lam_dr) e_dr x_d with standard normals e: a draw of N(0, sum_d lam_dr x_d x_d'), (K + P, R)."""

    def solve(
        self, diagonal: np.ndarray, prior: np.ndarray, right: np.ndarray, near: np.ndarray | None = None
    ) -> np.ndarray:
        """The solution x of (prior_r + sum_d lam_dr x_d x_d') x_r = right_r for every column r, (K + P, R).

        `diagonal` (K + P, R) are the diagonals of these matrices, and `near` is a guess.
        """

    def use_matrix(self) -> None:
        """Sum all pairs of weights from now on, unless there are too many: a chain has made its last iteration."""

    def restart(self, response: Response) -> None:
        """Set kappa and lam to their values before the first iteration."""

    def reweigh(self, weight: np.ndarray) -> None:
        """Replace the weights of the responses, (n_docs, R); a `restart` follows."""

    def regress(self, eta: np.ndarray) -> None:
        """Compute omega of every document given eta (R, K + P); after `leave_out`, from the left-out shares."""

    def linearise(self, response: Response) -> None:
        """Replace lam and kappa by the quadratic approximation of the log-likelihood at omega, lam integrated out."""

    def log_likelihoods(self, responses: Sequence[Response]) -> np.ndarray:
        """The log-likelihood of all documents under each of n responses, (n, R)."""

    def own_sums(self, responses: Sequence[Response], key: np.uint64) -> np.ndarray:
        """The sums that the draw of a response's own parameter needs, for each of n responses, (n, m)."""

    def residuals(self) -> np.ndarray:
        """The sum of the weights and the weighted sum of squares of y - omega, (2, R)."""

    def log_documents(self, alpha: np.ndarray) -> float:
        """log p(z | alpha)."""

    def alpha_sums(self, alpha: np.ndarray) -> np.ndarray:
        """The sums of Minka's fixed point for alpha: one for each topic, then the one of the lengths, (K + 1,)."""

    def leave_out(self, priors: Priors, n_sweeps: int, key: np.uint64) -> None:
        """Infer the shares of every document as if it were new, under topics without its own tokens."""

    def infer_shares(self, topics: FrozenTopics, n_sweeps: int, key: np.uint64) -> None:
        """Infer the shares of every document under fixed topics that were learned without it."""

    def left_out_omega(self, eta: np.ndarray) -> np.ndarray:
        """The topics' part of omega, computed from the left-out shares given eta (R, K): (n_docs, R)."""

    def topic_counts(self) -> np.ndarray:
        """The topic counts of every document, summed over the draws, (n_docs, K)."""

    def save_shards(self, files: ShardFiles) -> None:
        """Write the state of every shard to a file of its own; whoever holds a shard writes it."""

    def restore_shards(self, files: ShardFiles, eta: np.ndarray) -> None:
        """Restore every shard from its file, and count; eta (R, K + P) is the last draw."""

    def timings(self) -> np.ndarray:
        """Seconds that all threads spent on eta, z and lambda, (3,)."""

    def traffic(self) -> np.ndarray:
        """Seconds and bytes that machines spent on exchanging their moves, (2,)."""

    def close(self) -> None:
        """Release threads and documents."""


class EnginePool(Protocol):
    """The threads or machines of a fit, which run one engine for each chain."""

    @property
    def title(self) -> str:
        """A description for the progress bar."""

    @property
    def loses_workers(self) -> bool:
        """Whether workers may be lost that can read checkpoints on the disk of this machine."""

    @property
    def at_once(self) -> int:
        """The number of chains that run at the same time."""

    def __enter__(self) -> Self:
        """Start the workers."""

    def __exit__(self, *error: object) -> None:
        """Release the workers."""

    def run(self, plan: Plan, source: Corpus, pseudo_counts: np.ndarray | None, go: Callable[[Engine], T]) -> T:
        """go(engine) for an engine of this plan; where a worker is lost, again with a new engine."""


ShardSum = Literal["log_likelihoods", "own_sums", "residuals", "log_documents", "alpha_sums", "timings"]


class ShardSums(ABC):
    """Sums over all documents with the same bits on every engine: sums of shards, added in the order of the shards."""

    seconds: np.ndarray

    @abstractmethod
    def products(self, v: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """See `Engine`."""

    def solve(
        self, diagonal: np.ndarray, prior: np.ndarray, right: np.ndarray, near: np.ndarray | None = None
    ) -> np.ndarray:
        return gradients.solve(self.products, diagonal, prior, right, near)

    @abstractmethod
    def shard_sums(self, name: ShardSum, *arguments: object) -> list[np.ndarray]:
        """The results of this method of the shards, in their order."""

    def log_likelihoods(self, responses: Sequence[Response]) -> np.ndarray:
        return np.sum(self.shard_sums("log_likelihoods", responses), axis=0)

    def own_sums(self, responses: Sequence[Response], key: np.uint64) -> np.ndarray:
        return np.sum(self.shard_sums("own_sums", responses, key), axis=0)

    def residuals(self) -> np.ndarray:
        return np.sum(self.shard_sums("residuals"), axis=0)

    def log_documents(self, alpha: np.ndarray) -> float:
        return float(np.sum(self.shard_sums("log_documents", alpha)))

    def alpha_sums(self, alpha: np.ndarray) -> np.ndarray:
        return np.sum(self.shard_sums("alpha_sums", alpha), axis=0)

    def timings(self) -> np.ndarray:
        return self.seconds + np.sum(self.shard_sums("timings"), axis=0)
