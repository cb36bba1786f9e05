"""A shard: consecutive documents with all of their state. It stays in the process that made it.

Engines call its methods. Data goes in and data comes out; arrays that come in may be read-only, and what goes out are
sums over documents. Nobody else knows how documents and topics are laid out.
"""

import time
from collections.abc import Sequence

import numpy as np

from supertopic.corpus.source import Target
from supertopic.corpus.tokens import Tokens
from supertopic.kernels import counts
from supertopic.kernels.draws import content_streams, document_streams, make_key
from supertopic.kernels.lanes import padded
from supertopic.kernels.moments import add_moments, omegas, row_omegas, sparse_rows, z_rows
from supertopic.kernels.rows import add_diagonals, add_noise, add_products, rows_of_shares, rows_of_z
from supertopic.kernels.shard_sweep import sweep_shard
from supertopic.model.responses import Response
from supertopic.model.state import (
    Moves,
    Priors,
    Quadratic,
    ShareRows,
    Statistics,
    SummedCounts,
    Topics,
    make_weights,
    padded_topics,
)
from supertopic.sampling.new_documents import SETTLE, count_topics, settle

NO_SUM = np.zeros(0, np.float32)
NO_ROWS = ShareRows(np.zeros(0, np.int64), np.zeros(0, np.int32), np.zeros(0))
BATCH_NUMBERS = 2**18  # numbers of phi for left-out documents that are in memory at a time: a megabyte


class Shard:
    """The documents of one slice of the corpus, with their z, kappa and lam."""

    def __init__(self, tokens: Tokens, target: Target, first_doc: int, n_words: int, n_topics: int, response: Response):
        # kernels are compiled for writable arrays; read-only ones are copied
        self.tokens = Tokens(own(tokens.word, np.int32), own(tokens.doc_start, np.int64))
        self.target = Target(*(own(array, np.float64) for array in target))
        self.first_doc, self.n_docs, self.n_words, self.n_topics = first_doc, len(target.weight), n_words, n_topics
        self.has_offset = bool(self.target.offset.any())
        self.z = np.zeros(len(tokens.word), np.uint16)
        self.omega = np.zeros(target.weight.shape)  # (n_docs, R): with offset and covariates
        self.doc_topic_sum = NO_SUM  # (n_docs, K), padded and flat: topic counts, summed over the draws
        self.shares: ShareRows | None = None  # left-out shares, while weights are calibrated
        self.x: ShareRows | None = None  # see `x_rows`; None where z has changed since
        self.seconds = np.zeros(3)  # in eta, z, lambda
        self.restart(response)

    def start(self, key: np.uint64, topics: Topics | None = None) -> None:
        """Draw every z from the uniform distribution or, given topics, as the z of new documents."""
        self.x, streams = None, document_streams(key, self.first_doc, self.n_docs)
        counts.start_z(self.z, self.tokens.doc_start, self.n_topics, streams)
        if topics is not None:
            streams = document_streams(make_key(key, SETTLE), self.first_doc, self.n_docs)
            settle(self.tokens, self.z, topics, streams, SETTLE)

    def restart(self, response: Response) -> None:
        """Set kappa and lam to their values before the first iteration."""
        self.set_quadratic(response.start(self.target))

    @property
    def docs(self) -> slice:
        """Its documents among those of the corpus."""
        return slice(self.first_doc, self.first_doc + self.n_docs)

    def reweigh(self, weight: np.ndarray) -> None:
        """Replace the weights of the responses; a `restart` follows."""
        self.target = self.target._replace(weight=own(weight, np.float64))

    def set_quadratic(self, quadratic: Quadratic) -> None:
        """Set kappa and lam."""
        self.quadratic = Quadratic(*(own(array, np.float64) for array in quadratic))

    def sweep(self, eta: np.ndarray, topics: Topics, key: np.uint64, keep: bool, n_parts: int) -> Moves:
        """Draw every z given eta (R, K + P); `keep` adds the topic counts to their sum over the draws."""
        began, self.x = time.perf_counter(), None
        eta, quadratic = own(eta, np.float64), self.quadratic
        omega = np.zeros(self.target.weight.shape)  # (n_docs, R)
        if self.has_offset:
            omega += self.target.offset
        if eta.shape[1] > self.n_topics:
            beside = omegas(self.target.covariates, eta[:, self.n_topics :].copy())
            quadratic, omega = quadratic._replace(kappa=quadratic.kappa - quadratic.lam * beside), omega + beside
        if keep and not len(self.doc_topic_sum):
            self.doc_topic_sum = np.zeros(self.n_docs * len(topics.alpha), np.float32)
        moves = sweep_shard(
            self.tokens, self.z, topics, make_weights(eta[:, : self.n_topics].copy()), quadratic, key, self.first_doc,
            keep, self.doc_topic_sum if keep else NO_SUM, omega, n_parts,
        )  # fmt: skip
        self.omega = omega
        self.seconds[1] += time.perf_counter() - began
        return Moves(*moves)

    def add_tokens(self, word_topic: np.ndarray) -> np.ndarray:
        """Add the shard's tokens to the counts; returns the tokens of each topic, (K,)."""
        return counts.add_tokens(self.tokens.word, self.z, word_topic, self.n_topics)

    def add_part(self, part: int, n_parts: int, word_topic: np.ndarray) -> None:
        """Add the shard's tokens to the counts of one part of the vocabulary."""
        counts.count_part(self.tokens.word, self.z, part, n_parts, word_topic)

    def add_shares(self, share: np.ndarray, smooth: np.ndarray) -> None:
        """Add share (K,) of each token's topic to its word in smooth (V,), whole numbers both."""
        counts.add_shares(self.tokens.word, self.z, share, smooth)

    def augment(self, response: Response, key: np.uint64) -> None:
        """Draw kappa and lam."""
        began = time.perf_counter()
        self.set_quadratic(response.draw(self.target, self.omega, key, self.first_doc))
        self.seconds[2] += time.perf_counter() - began

    def linearise(self, response: Response) -> None:
        """Replace lam and kappa by the quadratic approximation of the log-likelihood at omega, lam integrated out."""
        omega, lam = self.omega, response.information(self.target, self.omega)
        kappa = response.gradient(self.target, omega) + lam * (omega - self.target.offset)
        self.set_quadratic(Quadratic(kappa, lam))

    def add_statistics(self, total: Statistics) -> Statistics:
        """Add the shard to the statistics for the next draw of eta, in place; without a response they are empty."""
        began = time.perf_counter()
        precision, shift = total
        if not shift.size:
            return total
        if total.is_diagonal:
            add_diagonals(self.x_rows(), self.quadratic, precision, shift)
        else:
            rows, covariates = NO_ROWS if self.shares is None else self.shares, self.target.covariates
            add_moments(self.tokens.doc_start, self.z, rows, covariates, self.quadratic, precision, shift)
        self.seconds[0] += time.perf_counter() - began
        return total

    def x_rows(self) -> ShareRows:
        """x of every document: shares and covariates that are not 0. They are kept until z or shares change."""
        if self.x is None:
            covariates = self.target.covariates
            if self.shares is None:
                rows = rows_of_z(self.tokens.doc_start, self.z, covariates, self.n_topics)
            else:
                rows = rows_of_shares(self.shares, covariates, self.n_topics)
            self.x = ShareRows(*rows)
        return self.x

    def add_products(self, v: np.ndarray, columns: np.ndarray, total: np.ndarray) -> None:
        """Add sum_d lam_dr x_d x_d' v_r to total (K + P, m), for some columns r (m,) and vectors v (K + P, m)."""
        v, columns = own(v, np.float64), own(columns, np.intp)
        add_products(self.x_rows(), self.quadratic.lam, columns, v, total)

    def add_noise(self, key: np.uint64, total: np.ndarray) -> None:
        """Add sum_d sqrt(lam_dr) e_dr x_d to total (K + P, R), with standard normals e."""
        add_noise(self.x_rows(), self.quadratic.lam, key, self.first_doc, total)

    def log_likelihoods(self, responses: Sequence[Response]) -> np.ndarray:
        """The log-likelihood of all documents under each of n responses, (n, R)."""
        return np.array([response.log_likelihood(self.target, self.omega) for response in responses])

    def own_sums(self, responses: Sequence[Response], key: np.uint64) -> np.ndarray:
        """The sums that the draw of a response's own parameter needs, for each of n responses, (n, m)."""
        return np.array([response.own_sums(self.target, self.omega, key, self.first_doc) for response in responses])

    def residuals(self) -> np.ndarray:
        """The sum of the weights and the weighted sum of squares of y - omega, (2, R)."""
        weight = self.target.weight
        return np.array([weight.sum(axis=0), (weight * (self.target.y - self.omega) ** 2).sum(axis=0)])

    def log_documents(self, alpha: np.ndarray) -> float:
        """log p(z | alpha)."""
        return counts.log_documents(self.tokens.doc_start, self.z, own(alpha, np.float64))

    def alpha_sums(self, alpha: np.ndarray) -> np.ndarray:
        """The sums of Minka's fixed point for alpha: one for each topic, then the one of the lengths, (K + 1,)."""
        return counts.alpha_sums(self.tokens.doc_start, self.z, own(alpha, np.float64))

    def leave_out(self, summed: SummedCounts, priors: Priors, n_sweeps: int, key: np.uint64) -> None:
        """Infer the shares of each document as if it were new, under topics without its own tokens.

        From then on `regress` and `add_statistics` use these shares, which calibrates the weights. A document without
        words has no shares.
        """
        width = padded(self.n_topics)
        mass = summed.tokens / summed.n_draws + self.n_words * priors.beta
        starts = self.tokens.doc_start
        counted = np.zeros((self.n_docs, self.n_topics), np.float32)
        streams = content_streams(self.tokens, key)
        first = 0
        while first < self.n_docs:
            last = int(np.searchsorted(starts, starts[first] + BATCH_NUMBERS // width, side="right")) - 1
            last = min(max(last, first + 1), self.n_docs)
            word, phi = counts.private_topics(
                self.tokens, self.z, summed.word_topic, summed.n_draws, priors.beta, mass, width, first, last
            )
            part = Tokens(word, starts[first : last + 1] - starts[first])
            topics = padded_topics(phi, priors.alpha)
            counted[first:last] = count_topics(part, topics, streams[first:last], n_sweeps)
            first = last
        self.set_shares(counted, n_sweeps)

    def infer_shares(self, topics: Topics, n_sweeps: int, key: np.uint64) -> None:
        """Infer the shares of each document under fixed topics that were learned without it."""
        self.set_shares(count_topics(self.tokens, topics, content_streams(self.tokens, key), n_sweeps), n_sweeps)

    def set_shares(self, counted: np.ndarray, n_sweeps: int) -> None:
        """Take the shares from counts (n_docs, K) of the second half of the sweeps."""
        lengths = np.maximum(np.diff(self.tokens.doc_start), 1) * float(n_sweeps - n_sweeps // 2)
        self.x, self.shares = None, ShareRows(*sparse_rows(counted, self.n_topics, lengths))

    def use_shares(self, shares: np.ndarray) -> None:
        """Set the shares (n_docs, K) of every document."""
        self.x, lengths = None, np.ones(self.n_docs)
        self.shares = ShareRows(*sparse_rows(own(shares, np.float32), self.n_topics, lengths))

    def regress(self, eta: np.ndarray) -> None:
        """Compute omega of every document given eta (R, K + P); after `leave_out`, from the left-out shares."""
        rows = self.shares
        if rows is None:
            rows = ShareRows(*z_rows(self.tokens.doc_start, self.z, self.n_topics))
        self.omega = row_omegas(rows, self.target.covariates, own(eta, np.float64)) + self.target.offset

    def left_out_omega(self, eta: np.ndarray) -> np.ndarray:
        """The topics' part of omega, computed from the left-out shares given eta (R, K): (n_docs, R)."""
        return row_omegas(self.shares, np.zeros((self.n_docs, 0)), own(eta, np.float64))

    def timings(self) -> np.ndarray:
        """Seconds spent on eta, z and lambda so far, (3,)."""
        return self.seconds

    def topic_counts(self) -> np.ndarray:
        """The topic counts of every document, summed over the draws, (n_docs, K)."""
        return self.doc_topic_sum.reshape(self.n_docs, -1)[:, : self.n_topics]

    def state(self) -> dict[str, np.ndarray]:
        """The arrays that `restore` needs."""
        state = {"z": self.z, **self.quadratic._asdict(), "seconds": self.seconds}
        if len(self.doc_topic_sum):
            state["doc_topic"] = self.topic_counts()
        return {name: array.copy() for name, array in state.items()}

    def restore(self, state: dict[str, np.ndarray], eta: np.ndarray) -> None:
        """Set z, kappa and lam to those of a saved state; eta (R, K + P) is the last draw."""
        z, quadratic = state["z"], Quadratic(state["kappa"], state["lam"])
        fits = z.shape == self.z.shape and all(array.shape == self.omega.shape for array in quadratic)
        if not fits or (z >= self.n_topics).any():
            raise ValueError("The checkpoint does not fit these documents.")
        self.z, self.seconds, self.x = own(z, np.uint16), own(state["seconds"], np.float64), None
        if "doc_topic" in state:
            summed = np.zeros((self.n_docs, padded(self.n_topics)), np.float32)
            summed[:, : self.n_topics] = state["doc_topic"]
            self.doc_topic_sum = summed.reshape(-1)
        self.set_quadratic(quadratic)
        self.regress(eta)


def own(array: np.ndarray, dtype: type) -> np.ndarray:
    """The array, or a copy of it, with this type, in C order, and writable."""
    return np.require(array, dtype, ["C", "W"])
