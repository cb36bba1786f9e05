"""A shard whose arrays live on a GPU, with the methods of `Shard`.

In each iteration only eta goes in, and the statistics for the next eta come out.
"""

from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np

from supertopic.corpus.source import Target
from supertopic.corpus.tokens import Tokens
from supertopic.kernels.cuda import counts as kernels
from supertopic.kernels.cuda.device import (
    SUMS,
    WARP,
    Buffers,
    DeviceArray,
    Graph,
    Staging,
    Timer,
    clear,
    empty,
    get,
    launch,
    put,
    zeros,
)
from supertopic.kernels.cuda.layout import ResponseTables, TopicTables, make_shape
from supertopic.kernels.cuda.lists import Lists
from supertopic.kernels.draws import make_key
from supertopic.kernels.responses import logarithm
from supertopic.model.responses.base import Response, ScalarForm
from supertopic.model.state import Priors, Quadratic, Statistics, SummedCounts, Topics
from supertopic.sampling.cuda_documents import (
    MOVING,
    NUMBERS,
    STARTING,
    DeviceTopics,
    DocumentRows,
    count_new,
    fixed_tables,
    freeze,
    inverses,
    no_response,
    put_key,
    wide,
)
from supertopic.sampling.cuda_lists import ListSums, make_lists
from supertopic.sampling.cuda_moments import Moments
from supertopic.sampling.new_documents import SETTLE
from supertopic.sampling.plan import is_matrix_free

ETA, Z, LAMBDA = range(3)  # kinds of work
NO_KEY = np.uint64(0)


class Tally(NamedTuple):
    """What a sweep returns: the moves themselves are in the counts already."""

    on_device: DeviceArray  # (2,) int64

    @property
    def taken(self) -> np.ndarray:
        """Proposals that were made without the response, and those of them that were accepted."""
        return get(self.on_device)

    def without_long_list(self) -> "Tally":
        """Itself: it has no list."""
        return self


class CudaShard:
    """Documents on the device, with their z, kappa and lam."""

    def __init__(
        self, tokens: Tokens, target: Target, first_doc: int, n_words: int, n_topics: int, response: Response,
        whole: bool = False,
    ):  # fmt: skip
        """`whole` documents are not cut into parts, so that the sampler is exact."""
        self.target, self.first_doc, self.n_docs = target, first_doc, len(target.weight)
        self.n_words, self.n_topics, self.n_columns = n_words, n_topics, target.weight.shape[1]
        self.rows = DocumentRows(tokens, make_shape(n_topics, self.n_columns), whole)
        self.rows.number(first_doc)
        shape = (self.n_docs, self.n_columns)
        y = np.zeros(shape) if response.scalar_form is None else target.y  # else the processor reads it
        known = (y, target.weight, np.broadcast_to(target.offset, shape))
        self.known = tuple(self.rows.put(array.astype(np.float64)) for array in known)  # y, weight, offset
        self.covariates = self.rows.put(target.covariates.astype(np.float64))
        self.lam, self.kappa, self.omega = (zeros((self.rows.n_rows, self.n_columns), np.float64) for _ in range(3))
        self.set_shares(self.rows.docs.n, 1)
        self.doc_topic_sum: DeviceArray | None = None  # (rows, width), flat: topic counts, summed over the draws
        self.doc_topic: np.ndarray | None = None  # the same after the last sweep, not on the device: (n_docs, K)
        self.timer, self.buffers, self.graph, self.seconds_before = Timer(3), Buffers(), Graph(), np.zeros(3)
        self.swept: TopicTables | None = None  # the tables of the captured sweeps
        self.sweeps = Graph()
        self.no_response, self.tally = no_response(), zeros(2, np.int64)
        of_columns = (self.n_columns,), np.float64
        self.for_augment = Staging(key=((1,), np.uint64), own=of_columns, log_own=of_columns)
        of_shape, width = self.rows.shape, n_topics + target.covariates.shape[1]
        by_topic, by_lane = map(len, of_shape.arrange(np.zeros((self.n_columns, n_topics))))
        self.for_sweep = Staging(
            key=((1,), np.uint64), eta=((self.n_columns, width), np.float64), by_topic=((by_topic,), np.float32),
            by_lane=((by_lane,), np.float32),
        )  # fmt: skip
        self.restart(response)

    def set_shares(self, n: DeviceArray, n_draws: int) -> None:
        """Take the shares of the documents from counts, summed over some draws."""
        self.shares = n, put(inverses(self.rows, n_draws))
        self.moments: Moments | None = None
        self.list_sums: ListSums | None = None
        self.sorted = self.listed = False  # whether `list_sums` and the lists of topics are those of z

    def squares(self) -> Moments:
        """The sums of all pairs."""
        if self.moments is None:
            x = *self.shares, self.n_topics, self.covariates
            self.moments = Moments(x, self.rows.shape.width, self.lam, self.kappa)
        return self.moments

    def sums(self) -> ListSums:
        """The sums over the topics that each document has."""
        if not self.listed and self.shares[0] is self.rows.docs.n:
            self.rows.count()  # after a dense sweep
        if self.list_sums is None:
            about = self.n_topics, self.covariates, self.lam, self.kappa, self.rows.docs.number
            self.list_sums = ListSums(self.lists(), *about)
        elif not self.sorted:
            self.list_sums.sort()
        self.sorted = self.listed = True
        return self.list_sums

    def lists(self) -> Lists:
        """The topics that each document has: those of its z, which a sweep updates, or of its left-out shares."""
        docs, (n, inverse) = self.rows.docs, self.shares
        if n is not docs.n:
            return make_lists(n, self.rows.shape.width, self.n_topics, inverse)
        return Lists(put(self.rows.place), self.rows.shape.group, docs.size, docs.topic, docs.tokens, inverse)

    def start(self, key: np.uint64, topics: Topics | None = None) -> None:
        """Draw every z from the uniform distribution or, given topics, as the z of new documents."""
        self.sorted = self.listed = False
        self.rows.begin(key)
        if topics is not None:
            rows = self.rows.without_response()
            tables, moving = freeze(topics).tables, put_key(make_key(key, MOVING))
            rows.sweep(tables, self.no_response, moving, SETTLE, SETTLE, exchange=SETTLE)

    def restart(self, response: Response) -> None:
        """Set kappa and lam to their values before the first iteration."""
        self.set_quadratic(response.start(self.target))

    @property
    def docs(self) -> slice:
        """Its documents among those of the corpus."""
        return slice(self.first_doc, self.first_doc + self.n_docs)

    def reweigh(self, weight: np.ndarray) -> None:
        """Replace the weights of the responses; a `restart` follows."""
        self.target = self.target._replace(weight=weight)
        self.rows.put_into(self.known[1], weight)

    def set_quadratic(self, quadratic: Quadratic) -> None:
        """Set kappa and lam, (n_docs, R)."""
        self.rows.put_into(self.kappa, quadratic.kappa)
        self.rows.put_into(self.lam, quadratic.lam)

    def sweep(self, eta: np.ndarray, topics: TopicTables, key: np.uint64, keep: bool, n_parts: int) -> Tally:
        """Draw every z given eta (R, K + P); `keep` adds the topic counts to their sum over the draws."""
        if keep and self.doc_topic is not None:
            self.put_sum(self.doc_topic)
        elif keep and self.doc_topic_sum is None:
            self.doc_topic_sum = zeros(self.rows.n_rows * self.rows.shape.width, np.float32)
        by_topic, by_lane = self.rows.shape.arrange(eta[:, : self.n_topics])
        self.for_sweep.send(key=key, eta=eta, by_topic=by_topic, by_lane=by_lane)
        if topics is not self.swept:
            self.swept, self.sweeps = topics, Graph()
        self.sorted, self.listed = False, len(topics.smooth) > 0
        with self.timer.over(Z):
            self.sweeps.run(keep, lambda: self.launch_sweep(topics, keep))
        return Tally(self.tally)

    def launch_sweep(self, topics: TopicTables, keep: bool) -> None:
        """Launch the kernel of a sweep; eta is on the device already."""
        clear(self.tally)
        sent, response = self.for_sweep.on_device, self.no_response
        if self.n_columns:
            tables = sent["eta"], sent["by_topic"], sent["by_lane"]
            response = ResponseTables(*tables, self.kappa, self.lam, self.known[2], self.covariates, self.omega)
        burn_in = 0 if keep else 1
        self.rows.sweep(topics, response, sent["key"], 1, burn_in, self.doc_topic_sum, tally=self.tally)

    def add_tokens(self, count: DeviceArray) -> None:
        """Add the shard's tokens to the counts."""
        launch(
            kernels.count_words, self.rows.n_rows, self.rows.docs, self.rows.shape.group, self.rows.shape.width,
            count,
        )  # fmt: skip

    def augment(self, response: Response, key: np.uint64) -> None:
        """Draw kappa and lam; where the response has no scalar form, on the CPU."""
        form = response.scalar_form
        if form is None:
            omega = self.rows.get(self.omega)
            self.set_quadratic(response.draw(self.target, omega, key, self.first_doc))
            return
        sent = self.send_own(form, key)
        with self.timer.over(LAMBDA):
            self.graph.run(
                ("augment", form.kind, response.c),
                lambda: launch(
                    kernels.augment, self.lam.size, form.kind, response.c, sent["own"], sent["log_own"], self.known,
                    self.omega, self.rows.docs.number, sent["key"], self.lam, self.kappa,
                ),
            )  # fmt: skip

    def linearise(self, response: Response) -> None:
        """Replace lam and kappa by the quadratic approximation of the log-likelihood at omega, lam integrated out."""
        omega = self.rows.get(self.omega)
        lam = response.information(self.target, omega)
        kappa = response.gradient(self.target, omega) + lam * (omega - self.target.offset)
        self.set_quadratic(Quadratic(kappa, lam))

    def send_own(self, form: ScalarForm, key: np.uint64 = NO_KEY) -> dict[str, DeviceArray]:
        """Copy the response's own parameter, and a key, to the device."""
        own = np.broadcast_to(np.asarray(form.own, dtype=np.float64), (self.n_columns,))
        self.for_augment.send(key=key, own=own, log_own=logarithm(form.kind, own))
        return self.for_augment.on_device

    def add_statistics(self, total: Statistics) -> Statistics:
        """Add the shard to the statistics for the next draw of eta, in place; without a response they are empty."""
        if not self.n_columns:
            return total
        with self.timer.over(ETA):
            precision, shift = (self.sums() if total.is_diagonal else self.squares()).statistics()
        total.precision[:] += precision
        total.shift[:] += shift
        return total

    def add_products(self, v: np.ndarray, columns: np.ndarray, total: np.ndarray) -> None:
        """Add sum_d lam_dr x_d x_d' v_r to total (K + P, m), for some columns r (m,) and vectors v (K + P, m)."""
        total += self.sums().products(v, columns)

    def add_noise(self, key: np.uint64, total: np.ndarray) -> None:
        """Add sum_d sqrt(lam_dr) e_dr x_d to total (K + P, R), with standard normals e."""
        total += self.sums().noise(key)

    def solve(self, diagonal: np.ndarray, prior: np.ndarray, right: np.ndarray, near: np.ndarray | None) -> np.ndarray:
        """What `gradients.solve` finds."""
        return self.sums().solve(diagonal, prior, right, near)

    def sum_up(self, name: Hashable, kernel: Any, size: int, n_columns: int, *arguments: Any) -> np.ndarray:
        """The sum over all rows of the values of a kernel, (n_columns,); `name` is the name of its graph."""
        values = self.buffers.empty("values", (self.rows.n_rows, n_columns), np.float64)
        parts = self.buffers.empty("parts", (SUMS, n_columns), np.float64)

        def add() -> None:
            launch(kernel, size, *arguments, values)
            launch(kernels.add_up, parts.size, values, parts)

        self.graph.run(name, add)
        return get(parts).sum(axis=0)

    def log_likelihoods(self, responses: Sequence[Response]) -> np.ndarray:
        """The log-likelihood of all documents under each of n responses, (n, R)."""
        found = np.zeros((len(responses), self.n_columns))
        if not self.n_columns:
            return found
        for i, response in enumerate(responses):
            form = response.scalar_form
            if form is None:
                found[i] = response.log_likelihood(self.target, self.rows.get(self.omega))
                continue
            name, columns = ("likelihoods", form.kind), self.n_columns
            sent = self.send_own(form)
            about = form.kind, sent["own"], sent["log_own"], self.known, self.omega
            found[i] = response.c * self.sum_up(name, kernels.likelihoods, self.omega.size, columns, *about)
        return found

    def own_sums(self, responses: Sequence[Response], key: np.uint64) -> np.ndarray:
        """The sums that the draw of a response's own parameter needs, for each of n responses, (n, m)."""
        omega = self.rows.get(self.omega)
        return np.array([response.own_sums(self.target, omega, key, self.first_doc) for response in responses])

    def residuals(self) -> np.ndarray:
        """The sum of the weights and the weighted sum of squares of y - omega, (2, R)."""
        size, columns = self.omega.size, 2 * self.n_columns
        sums = self.sum_up("residuals", kernels.residuals, size, columns, self.known, self.omega)
        return sums.reshape(2, -1)

    def log_documents(self, alpha: np.ndarray) -> float:
        """log p(z | alpha)."""
        about = self.rows.docs, self.rows.shape.width, self.buffers.put("alpha", alpha), alpha.sum()
        name = "documents", alpha.sum()
        return float(self.sum_up(name, kernels.log_documents, self.rows.n_rows, 1, *about)[0])

    def alpha_sums(self, alpha: np.ndarray) -> np.ndarray:
        """The sums of Minka's fixed point for alpha: one for each topic, then the one of the lengths, (K + 1,)."""
        about = self.rows.docs, self.rows.shape.width, self.buffers.put("alpha", alpha), alpha.sum()
        name, n = ("alpha", alpha.sum()), len(alpha) + 1
        return self.sum_up(name, kernels.alpha_sums, self.rows.n_rows * n, n, *about)

    def leave_out(self, summed: SummedCounts, priors: Priors, n_sweeps: int, key: np.uint64) -> None:
        """Infer the shares of each document as if it were new, under topics without its own tokens."""
        self.take_sum()
        rows = self.rows.uncut()  # all parts would need the same private topics at a time
        docs, width, group = rows.docs, rows.shape.width, rows.shape.group
        mass = put(summed.tokens / summed.n_draws + self.n_words * priors.beta)
        word_topic, moving = put(wide(summed.word_topic.astype(np.int64), width)), put_key(make_key(key, MOVING))
        sizes, number = empty(rows.n_rows, np.int64), empty(rows.n_rows, np.uint64)
        launch(kernels.count_distinct, rows.n_rows, docs, group, sizes)
        rows.hash(key, number)
        ends = np.concatenate([[0], np.cumsum(get(sizes))])
        entry, counted, first = put(ends), zeros(rows.n_rows * width, np.float32), 0
        while first < rows.n_rows:  # as many documents at a time as there is room for their private topics
            last = int(np.searchsorted(ends, ends[first] + NUMBERS // width, side="right")) - 1
            last = min(max(last // WARP * WARP, first + WARP), rows.n_rows)
            like, new = empty(max(int(ends[last] - ends[first]), 1) * width, np.float32), rows.part(first, last, number)
            launch(
                kernels.private_rows, last - first, docs, group, word_topic, summed.n_draws, priors.beta, mass, width,
                first, last, entry, new.docs, like,
            )  # fmt: skip
            new.begin(make_key(key, STARTING))
            summed_here = counted[first * width : last * width]
            new.sweep(fixed_tables(like, priors.alpha), self.no_response, moving, n_sweeps, n_sweeps // 2, summed_here)
            first = last
        self.set_shares(self.rows.counts_of(rows, counted), n_sweeps - n_sweeps // 2)

    def take_sum(self) -> None:
        """Take the sum over the draws from the device, where its room is needed: a chain has made its last sweep."""
        if self.doc_topic_sum is not None:
            self.doc_topic = self.topic_counts()
            self.doc_topic_sum, self.sweeps = None, Graph()

    def put_sum(self, doc_topic: np.ndarray) -> None:
        """Put topic counts of the documents (n_docs, K), summed over the draws, on the device."""
        lines = wide(np.asarray(doc_topic, np.float32), self.rows.shape.width).reshape(self.n_docs, -1)
        self.doc_topic_sum, self.doc_topic, self.sweeps = self.rows.put(lines).reshape(-1), None, Graph()

    def infer_shares(self, topics: DeviceTopics, n_sweeps: int, key: np.uint64) -> None:
        """Infer the shares of each document under fixed topics that were learned without it."""
        rows, counted = count_new(self.rows.tokens(), topics, n_sweeps, 1, key)
        self.set_shares(self.rows.counts_of(rows, counted), n_sweeps - n_sweeps // 2)

    def regress(self, eta: np.ndarray) -> None:
        """Compute omega of every document given eta (R, K + P); after `leave_out`, from the left-out shares."""
        self.find_omegas(eta, self.covariates, self.known[2], self.omega)

    def find_omegas(self, eta: np.ndarray, covariates: DeviceArray, offset: DeviceArray, omega: DeviceArray) -> None:
        """Compute omega from the current shares."""
        if is_matrix_free(self.n_topics, self.covariates.shape[1], "cuda"):
            self.sums().omegas(eta, covariates, offset, omega)
            return
        n, inverse = self.shares
        launch(
            kernels.omegas, omega.size, n, self.rows.shape.width, inverse, self.n_topics, covariates, offset,
            self.buffers.put("regressed", np.asarray(eta, dtype=np.float64)), omega,
        )  # fmt: skip

    def left_out_omega(self, eta: np.ndarray) -> np.ndarray:
        """The topics' part of omega, computed from the left-out shares given eta (R, K): (n_docs, R)."""
        omega = empty((self.rows.n_rows, len(eta)), np.float64)
        none = empty((self.rows.n_rows, 0), np.float64)
        self.find_omegas(eta, none, zeros(omega.shape, np.float64), omega)
        return self.rows.get(omega)

    def timings(self) -> np.ndarray:
        """Seconds spent on eta, z and lambda so far, (3,)."""
        return self.seconds_before + self.timer.read()

    def topic_counts(self) -> np.ndarray:
        """The topic counts of every document, summed over the draws, (n_docs, K)."""
        if self.doc_topic is not None:
            return self.doc_topic
        assert self.doc_topic_sum is not None
        return self.rows.get(self.doc_topic_sum.reshape(self.rows.n_rows, -1))[:, : self.n_topics]

    def state(self) -> dict[str, np.ndarray]:
        """The arrays that `restore` needs."""
        quadratic = {"kappa": self.rows.get(self.kappa), "lam": self.rows.get(self.lam)}
        state = {"z": self.rows.z(), **quadratic, "seconds": self.timings().copy()}
        if self.doc_topic_sum is not None or self.doc_topic is not None:
            state["doc_topic"] = self.topic_counts()
        return state

    def restore(self, state: dict[str, np.ndarray], eta: np.ndarray) -> None:
        """Set z, kappa and lam to those of a saved state; eta (R, K + P) is the last draw."""
        z, quadratic = state["z"], Quadratic(state["kappa"], state["lam"])
        fits = all(array.shape == (self.n_docs, self.n_columns) for array in quadratic)
        if not fits or z.shape != (self.rows.doc_start[-1],) or (z >= self.n_topics).any():
            raise ValueError("The checkpoint does not fit these documents.")
        self.rows.set_z(z.astype(np.uint16))
        self.sorted = self.listed = False
        self.seconds_before = np.array(state["seconds"], dtype=float)
        if "doc_topic" in state:
            self.put_sum(state["doc_topic"])
        self.set_quadratic(quadratic)
        if self.n_columns:
            self.regress(eta)
