"""A shard: some documents, and all the state that is theirs. It never leaves the place where it was made.

Its verbs are the contract between the chain and whoever runs it: data in, data out. Arrays that come in may be
read-only; what goes out are sums over documents. Nobody else knows how documents and topics are laid out.
"""

import time

import numpy as np

from supertopic.corpus.source import Target
from supertopic.corpus.tokens import Tokens
from supertopic.kernels import counts
from supertopic.kernels.draws import content_streams, document_streams, make_key
from supertopic.kernels.lanes import padded
from supertopic.kernels.moments import add_moments, add_row_moments, affine, omegas, row_omegas, sparse_rows, z_omegas
from supertopic.kernels.shard_sweep import pass_dense, pass_sparse
from supertopic.model.responses import Response
from supertopic.model.state import Kept, Moves, Priors, Quadratic, Rows, Statistics, Topics, make_weights, padded_topics
from supertopic.sampling.new_documents import SETTLE, count_topics, settle

UNKEPT = np.zeros(0, np.float32)
BATCH_NUMBERS = 2**18  # of phi that are made at a time for documents that are left out: a megabyte


class Shard:
    """The documents of one slice of the corpus, with their z, kappa and lam."""

    def __init__(self, tokens: Tokens, target: Target, first_doc: int, n_words: int, n_topics: int, response: Response):
        # kernels are compiled for arrays that can be written to; a copy is made of those that cannot
        self.tokens = Tokens(own(tokens.word, np.int32), own(tokens.doc_start, np.int64))
        self.target = Target(*(own(array, np.float64) for array in target))
        self.first_doc, self.n_docs, self.n_words, self.n_topics = first_doc, len(target.y), n_words, n_topics
        self.has_offset = bool(self.target.offset.any())
        self.z = np.zeros(len(tokens.word), np.uint16)
        self.response: Response | None = None  # the one that kappa was made for
        self.omega = np.zeros(target.y.shape)  # (n_docs, R): with offset and covariates
        self.kept = UNKEPT  # (n_docs, K), padded and flat: topic counts of every document, summed over kept draws
        self.rows: Rows | None = None  # the documents' shares as if they were new, while weights are calibrated
        self.seconds = np.zeros(3)  # in eta, z, lambda
        self.restart(response)

    def start(self, key: np.uint64, topics: Topics | None = None) -> None:
        """Draw every z from the uniform distribution or, if something is known of topics, as those of new documents."""
        streams = document_streams(key, self.first_doc, self.n_docs)
        counts.start_z(self.z, self.tokens.doc_start, self.n_topics, streams)
        if topics is not None:
            streams = document_streams(make_key(key, SETTLE), self.first_doc, self.n_docs)
            settle(self.tokens, self.z, topics, streams, SETTLE)

    def restart(self, response: Response) -> None:
        """lam as it is before the first iteration."""
        self.set_lam(response, response.start_lam(self.target))

    def set_lam(self, response: Response, lam: np.ndarray) -> None:
        """Take kappa and lam of omega as those of omega less its known offset."""
        if response is not self.response:
            constant, slope = response.kappa(self.target)
            slope = np.broadcast_to(slope - self.target.offset, lam.shape)
            self.response, self.kappa = response, (own(constant, np.float64), own(slope, np.float64))
        self.quadratic = Quadratic(affine(*self.kappa, lam), lam)

    def sweep(self, eta: np.ndarray, topics: Topics, key: np.uint64, keep: bool, n_parts: int) -> Moves:
        """Sweep z given eta (R, K + P); `keep` adds the topic counts of every document to those that are kept."""
        began = time.perf_counter()
        eta, quadratic = own(eta, np.float64), self.quadratic
        omega = np.zeros(self.target.y.shape)  # (n_docs, R)
        if self.has_offset:
            omega += self.target.offset
        if eta.shape[1] > self.n_topics:
            beside = omegas(self.target.covariates, eta[:, self.n_topics :].copy())
            quadratic, omega = quadratic._replace(kappa=quadratic.kappa - quadratic.lam * beside), omega + beside
        if keep and not len(self.kept):
            self.kept = np.zeros(self.n_docs * len(topics.alpha), np.float32)
        one_pass = pass_sparse if len(topics.smooth) else pass_dense
        moves = one_pass(
            self.tokens, self.z, topics, make_weights(eta[:, : self.n_topics].copy()), quadratic, key, self.first_doc,
            keep, self.kept if keep else UNKEPT, omega, n_parts,
        )  # fmt: skip
        self.omega = omega
        self.seconds[1] += time.perf_counter() - began
        return Moves(*moves)

    def add_tokens(self, word_topic: np.ndarray) -> np.ndarray:
        """Add the shard's tokens to the counts; returns the tokens of each topic, (K,)."""
        return counts.add_tokens(self.tokens.word, self.z, word_topic, self.n_topics)

    def add_shares(self, share: np.ndarray, smooth: np.ndarray) -> None:
        """Add share (K,) of each token's topic to its word in smooth (V,), whole numbers both."""
        counts.add_shares(self.tokens.word, self.z, share, smooth)

    def augment(self, response: Response, key: np.uint64) -> None:
        """Draw lam."""
        began = time.perf_counter()
        self.set_lam(response, response.draw_lam(self.target, self.omega, key, self.first_doc))
        self.seconds[2] += time.perf_counter() - began

    def linearise(self, response: Response) -> None:
        """Let the quadratic be that of the response itself at omega, lam integrated out: Newton's, not a draw's."""
        omega, lam = self.omega, response.information(self.target, self.omega)
        kappa = response.gradient(self.target, omega) + lam * (omega - self.target.offset)
        self.quadratic = Quadratic(own(kappa, np.float64), own(lam, np.float64))

    def add_statistics(self, total: Statistics) -> Statistics:
        """Add to what the next draw of eta needs to know, in place; without a response that is nothing."""
        began = time.perf_counter()
        precision, shift = total
        if not shift.size:
            return total
        if self.rows is not None:
            add_row_moments(self.rows, self.target.covariates, self.quadratic, precision, shift)
        else:
            add_moments(self.tokens.doc_start, self.z, self.target.covariates, self.quadratic, precision, shift)
        self.seconds[0] += time.perf_counter() - began
        return total

    def log_likelihoods(self, responses: list[Response]) -> np.ndarray:
        """The log-likelihood of all documents under each of some responses, (n, R)."""
        return np.array([response.log_likelihood(self.target, self.omega) for response in responses])

    def residuals(self) -> np.ndarray:
        """The sum of the weights, and that of the weighted squares of y - omega: (2, R)."""
        weight = self.target.weight
        return np.array([weight.sum(axis=0), (weight * (self.target.y - self.omega) ** 2).sum(axis=0)])

    def log_documents(self, alpha: np.ndarray) -> float:
        """log p(z | alpha)."""
        return counts.log_documents(self.tokens.doc_start, self.z, own(alpha, np.float64))

    def alpha_sums(self, alpha: np.ndarray) -> np.ndarray:
        """The sums of Minka's fixed point for alpha over the shard's documents: one a topic, then that of lengths."""
        return counts.alpha_sums(self.tokens.doc_start, self.z, own(alpha, np.float64))

    def leave_out(self, kept: Kept, priors: Priors, n_sweeps: int, key: np.uint64) -> None:
        """From here on zbar is what it would be if each document were new, to topics that were learned without it.

        `augment` and `add_statistics` then calibrate. A document without words has no shares.
        """
        width = padded(self.n_topics)
        mass = kept.tokens / kept.n_draws + self.n_words * priors.beta
        starts = self.tokens.doc_start
        counted = np.zeros((self.n_docs, self.n_topics), np.float32)
        streams = content_streams(self.tokens, key)
        first = 0
        while first < self.n_docs:
            last = int(np.searchsorted(starts, starts[first] + BATCH_NUMBERS // width, side="right")) - 1
            last = min(max(last, first + 1), self.n_docs)
            word, phi = counts.private_topics(
                self.tokens, self.z, kept.word_topic, kept.n_draws, priors.beta, mass, width, first, last
            )
            part = Tokens(word, starts[first : last + 1] - starts[first])
            topics = padded_topics(phi, priors.alpha)
            counted[first:last] = count_topics(part, topics, streams[first:last], n_sweeps)
            first = last
        self.set_shares(counted, n_sweeps)

    def meet(self, topics: Topics, n_sweeps: int, key: np.uint64) -> None:
        """From here on zbar is what fixed topics make of the words, for documents that these were learned without."""
        self.set_shares(count_topics(self.tokens, topics, content_streams(self.tokens, key), n_sweeps), n_sweeps)

    def set_shares(self, counted: np.ndarray, n_sweeps: int) -> None:
        """Take the counts of the second half of the sweeps, (n_docs, K), for the topics of the documents."""
        lengths = np.maximum(np.diff(self.tokens.doc_start), 1) * float(n_sweeps - n_sweeps // 2)
        self.rows = Rows(*sparse_rows(counted, self.n_topics, lengths))

    def regress(self, eta: np.ndarray) -> None:
        """omega of the documents, as if they were new once they are left out, given eta (R, K + P)."""
        eta, covariates = own(eta, np.float64), self.target.covariates
        if self.rows is None:
            omega = z_omegas(self.tokens.doc_start, self.z, covariates, eta)
        else:
            omega = row_omegas(self.rows, covariates, eta)
        self.omega = omega + self.target.offset

    def told(self, eta: np.ndarray) -> np.ndarray:
        """What the documents' topics say of the response as if they were new, (n_docs, R), given eta (R, K)."""
        return row_omegas(self.rows, np.zeros((self.n_docs, 0)), own(eta, np.float64))

    def timings(self) -> np.ndarray:
        """Seconds in eta, z and lambda so far."""
        return self.seconds

    def topic_counts(self) -> np.ndarray:
        """The topic counts of every document, summed over the kept draws, (n_docs, K)."""
        return self.kept.reshape(self.n_docs, -1)[:, : self.n_topics]

    def state(self) -> dict[str, np.ndarray]:
        """All that `restore` needs."""
        state = {"z": self.z, "lam": self.quadratic.lam, "seconds": self.seconds}
        if len(self.kept):
            state["kept"] = self.topic_counts()
        return {name: array.copy() for name, array in state.items()}

    def restore(self, state: dict[str, np.ndarray], response: Response, eta: np.ndarray) -> None:
        """Be where a shard with this state was; eta (R, K + P) is the last that was drawn."""
        z, lam = state["z"], state["lam"]
        if z.shape != self.z.shape or (z >= self.n_topics).any() or lam.shape != self.omega.shape:
            raise ValueError("The checkpoint does not fit these documents.")
        self.z, self.seconds = own(z, np.uint16), own(state["seconds"], np.float64)
        if "kept" in state:
            kept = np.zeros((self.n_docs, padded(self.n_topics)), np.float32)
            kept[:, : self.n_topics] = state["kept"]
            self.kept = kept.reshape(-1)
        self.set_lam(response, own(lam, np.float64))
        self.regress(eta)


def own(array: np.ndarray, dtype: type) -> np.ndarray:
    """The array, or a copy of it, of this type, in C's order, and such that it can be written to."""
    return np.require(array, dtype, ["C", "W"])
