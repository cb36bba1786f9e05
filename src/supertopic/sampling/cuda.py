"""Shards and counts whose arrays live on a graphics card: the verbs of `Shard` and `Counts`.

Of an iteration only eta goes in, and the sums for the next eta come out.
"""

from typing import Any

import numpy as np
from scipy.special import gammaln

from supertopic.corpus.source import Target
from supertopic.corpus.tokens import Tokens
from supertopic.kernels.cuda import counts as gpu_counts
from supertopic.kernels.cuda.device import (
    BLOCK,
    SUMS,
    WARP,
    Parcel,
    Shelf,
    Tape,
    Watch,
    clear,
    empty,
    get,
    launch,
    put,
    stream,
    zeros,
)
from supertopic.kernels.cuda.sweep import Likes, Pull, make_shape, row_width
from supertopic.kernels.draws import make_key
from supertopic.model.responses import Law, Response
from supertopic.model.state import Kept, Moves, Priors, Statistics, Topics
from supertopic.sampling.cuda_documents import (
    MOVING,
    NUMBERS,
    STARTING,
    Frozen,
    Rows,
    count_new,
    fixed_likes,
    freeze,
    inverses,
    no_pull,
    put_key,
    wide,
)
from supertopic.sampling.cuda_moments import Moments, moment_bytes
from supertopic.sampling.new_documents import SETTLE
from supertopic.sampling.plan import Plan
from supertopic.sampling.pool import Crew

ETA, Z, LAMBDA = range(3)


class GpuShard:
    """Some documents on the card, with their z, kappa and lam."""

    def __init__(self, tokens: Tokens, target: Target, first_doc: int, n_words: int, n_topics: int, response: Response):
        self.target, self.first_doc, self.n_docs = target, first_doc, len(target.y)
        self.n_words, self.n_topics, self.n_columns = n_words, n_topics, target.y.shape[1]
        self.rows = Rows(tokens, make_shape(n_topics, self.n_columns))
        self.rows.number(first_doc)
        shape = (self.n_docs, self.n_columns)
        known = (target.y, target.weight, np.broadcast_to(target.offset, shape))
        self.known = tuple(self.rows.put(array.astype(np.float64)) for array in known)  # y, weight, offset
        self.covariates = self.rows.put(target.covariates.astype(np.float64))
        self.lam, self.kappa, self.omega = (zeros((self.rows.n_rows, self.n_columns), np.float64) for _ in range(3))
        self.set_shares(self.rows.docs.n, 1)
        self.kept: Any = None
        self.watch, self.shelf, self.tape, self.before = Watch(3), Shelf(), Tape(), np.zeros(3)
        self.seen: Likes | None = None  # for which sweeps are recorded
        self.sweeps = Tape()
        self.nothing = no_pull()
        self.for_augment = Parcel(key=((1,), np.uint64), own=((self.n_columns,), np.float64))
        of_shape, width = self.rows.shape, n_topics + target.covariates.shape[1]
        by_topic, by_lane = map(len, of_shape.arrange(np.zeros((self.n_columns, n_topics))))
        self.for_sweep = Parcel(
            key=((1,), np.uint64), eta=((self.n_columns, width), np.float64), by_topic=((by_topic,), np.float32),
            by_lane=((by_lane,), np.float32),
        )  # fmt: skip
        self.restart(response)

    def set_shares(self, n, n_draws: int) -> None:
        """Take counts, summed over some draws, for the topics of the documents."""
        self.shares = n, put(inverses(self.rows, n_draws))
        x = *self.shares, self.n_topics, self.covariates
        self.moments = Moments(x, self.rows.shape.width, self.lam, self.kappa) if self.n_columns else None

    def start(self, key: np.uint64, topics: Topics | None = None) -> None:
        """Draw every z from the uniform distribution or, if something is known of topics, as those of new documents."""
        self.rows.begin(key)
        if topics is not None:
            rows = self.rows.without_response()
            rows.docs = self.rows.docs
            rows.sweep(freeze(topics).likes, self.nothing, put_key(make_key(key, MOVING)), SETTLE, SETTLE)

    def restart(self, response: Response) -> None:
        """lam as it is before the first iteration."""
        self.set_lam(response, response.start_lam(self.target))

    def set_lam(self, response: Response, lam: np.ndarray) -> None:
        """Take lam (n_docs, R), and the kappa that belongs to it."""
        self.rows.put_into(self.lam, lam)
        if response.law is not None:
            self.find_lam(response, response.law, np.uint64(0), False)
            return
        constant, slope = response.kappa(self.target)
        self.rows.put_into(self.kappa, constant + (slope - self.target.offset) * lam)

    def sweep(self, eta: np.ndarray, topics: Likes, key: np.uint64, keep: bool, n_parts: int) -> None:
        """Sweep z given eta (R, K + P); `keep` adds the topic counts of every document to those that are kept."""
        if keep and self.kept is None:
            self.kept = zeros(self.rows.n_rows * self.rows.shape.width, np.float32)
        by_topic, by_lane = self.rows.shape.arrange(eta[:, : self.n_topics])
        self.for_sweep.send(key=key, eta=eta, by_topic=by_topic, by_lane=by_lane)
        if topics is not self.seen:
            self.seen, self.sweeps = topics, Tape()
        with self.watch.over(Z):
            self.sweeps.play(keep, lambda: self.launch_sweep(topics, keep))

    def launch_sweep(self, topics: Likes, keep: bool) -> None:
        sent, pull = self.for_sweep.on_card, self.nothing
        if self.n_columns:
            tables = sent["eta"], sent["by_topic"], sent["by_lane"]
            pull = Pull(*tables, self.kappa, self.lam, self.known[2], self.covariates, self.omega)
        self.rows.sweep(topics, pull, sent["key"], 1, 0 if keep else 1, self.kept)

    def add_tokens(self, count) -> None:
        """Add the shard's tokens to the counts."""
        launch(
            gpu_counts.count_words, self.rows.n_rows, self.rows.docs, self.rows.shape.group, self.rows.shape.width,
            count,
        )  # fmt: skip

    def augment(self, response: Response, key: np.uint64) -> None:
        """Draw lam; where the card does not know how, the processor does it."""
        law = response.law
        if law is None:
            omega = self.rows.get(self.omega)
            self.set_lam(response, response.draw_lam(self.target, omega, key, self.first_doc))
            return
        with self.watch.over(LAMBDA):
            self.find_lam(response, law, key, True)

    def linearise(self, response: Response) -> None:
        """Let the quadratic be that of the response itself at omega, lam integrated out: Newton's, not a draw's."""
        omega = self.rows.get(self.omega)
        lam = response.information(self.target, omega)
        self.rows.put_into(self.lam, lam)
        self.rows.put_into(self.kappa, response.gradient(self.target, omega) + lam * (omega - self.target.offset))

    def find_lam(self, response: Response, law: Law, key: np.uint64, draw: bool) -> None:
        """Draw lam if it is to be drawn, and find its kappa."""
        self.for_augment.send(key=key, own=law.own)
        sent = self.for_augment.on_card
        self.tape.play(
            ("augment", law.kind, response.c, draw),
            lambda: launch(
                gpu_counts.augment, self.lam.size, law.kind, response.c, sent["own"], self.known, self.omega,
                self.rows.docs.number, sent["key"], draw, self.lam, self.kappa,
            ),
        )  # fmt: skip

    def add_statistics(self, total: Statistics) -> Statistics:
        """Add to what the next draw of eta needs to know, in place; without a response that is nothing."""
        if self.moments is None:
            return total
        with self.watch.over(ETA):
            precision, shift = self.moments.find()
        total.precision[:] += precision
        total.shift[:] += shift
        return total

    def sum_up(self, name, kernel, size: int, n_columns: int, *args) -> np.ndarray:
        """The sum over all rows of what a kernel says of each, (n_columns,); `name` tells it from other sums."""
        values = self.shelf.empty("values", (self.rows.n_rows, n_columns), np.float64)
        parts = self.shelf.empty("parts", (SUMS, n_columns), np.float64)

        def add() -> None:
            launch(kernel, size, *args, values)
            launch(gpu_counts.add_up, parts.size, values, parts)

        self.tape.play(name, add)
        return get(parts).sum(axis=0)

    def log_likelihoods(self, responses: list[Response]) -> np.ndarray:
        """The log-likelihood of all documents under each of some responses, (n, R)."""
        found = np.zeros((len(responses), self.n_columns))
        if not self.n_columns:
            return found
        for i, response in enumerate(responses):
            law = response.law
            if law is None:
                found[i] = response.log_likelihood(self.target, self.rows.get(self.omega))
                continue
            name, columns = ("likelihoods", law.kind), self.n_columns
            self.for_augment.send(own=law.own)
            about = law.kind, self.for_augment.on_card["own"], self.known, self.omega
            found[i] = response.c * self.sum_up(name, gpu_counts.likelihoods, self.omega.size, columns, *about)
        return found

    def residuals(self) -> np.ndarray:
        """The sum of the weights, and that of the weighted squares of y - omega: (2, R)."""
        size, columns = self.omega.size, 2 * self.n_columns
        sums = self.sum_up("residuals", gpu_counts.residuals, size, columns, self.known, self.omega)
        return sums.reshape(2, -1)

    def log_documents(self, alpha: np.ndarray) -> float:
        """log p(z | alpha)."""
        about = self.rows.docs, self.rows.shape.width, self.shelf.put("alpha", alpha), alpha.sum()
        name = "documents", alpha.sum()
        return float(self.sum_up(name, gpu_counts.log_documents, self.rows.n_rows, 1, *about)[0])

    def alpha_sums(self, alpha: np.ndarray) -> np.ndarray:
        """The sums of Minka's fixed point for alpha over the shard's documents: one a topic, then that of lengths."""
        about = self.rows.docs, self.rows.shape.width, self.shelf.put("alpha", alpha), alpha.sum()
        name, n = ("alpha", alpha.sum()), len(alpha) + 1
        return self.sum_up(name, gpu_counts.alpha_sums, self.rows.n_rows * n, n, *about)

    def leave_out(self, kept: Kept, priors: Priors, n_sweeps: int, key: np.uint64) -> None:
        """From here on zbar is what it would be if each document were new, to topics that were learned without it."""
        rows = self.rows
        docs, width, group = rows.docs, rows.shape.width, rows.shape.group
        mass = put(kept.tokens / kept.n_draws + self.n_words * priors.beta)
        summed, moving = put(wide(kept.word_topic.astype(np.int64), width)), put_key(make_key(key, MOVING))
        sizes = empty(rows.n_rows, np.int64)
        launch(gpu_counts.count_distinct, rows.n_rows, docs, group, sizes)
        ends = np.concatenate([[0], np.cumsum(get(sizes))])
        entry, new = put(ends), rows.without_response()
        new.hash(key)
        new.begin(make_key(key, STARTING))
        counted, first = zeros(rows.n_rows * width, np.float32), 0
        while first < rows.n_rows:  # as many documents at a time as their own topics have room
            last = int(np.searchsorted(ends, ends[first] + NUMBERS // width, side="right")) - 1
            last = min(max(last // WARP * WARP, first + WARP), rows.n_rows)
            like = empty(max(int(ends[last] - ends[first]), 1) * width, np.float32)
            launch(
                gpu_counts.private_rows, last - first, docs, group, summed, kept.n_draws, priors.beta, mass, width,
                first, last, entry, new.docs.word, like,
            )  # fmt: skip
            likes = fixed_likes(like, priors.alpha)
            new.sweep(likes, self.nothing, moving, n_sweeps, n_sweeps // 2, counted, 0, (first, last))
            first = last
        self.set_shares(counted, n_sweeps - n_sweeps // 2)

    def meet(self, topics: Frozen, n_sweeps: int, key: np.uint64) -> None:
        """From here on zbar is what fixed topics make of the words, for documents that these were learned without."""
        _, counted = count_new(self.rows.tokens(), topics, n_sweeps, 1, key)
        self.set_shares(counted, n_sweeps - n_sweeps // 2)

    def regress(self, eta: np.ndarray) -> None:
        """omega of the documents, as if they were new once they are left out, given eta (R, K + P)."""
        self.find_omegas(eta, self.covariates, self.known[2], self.omega)

    def find_omegas(self, eta: np.ndarray, covariates, offset, omega) -> None:
        n, inverse = self.shares
        launch(
            gpu_counts.omegas, omega.size, n, self.rows.shape.width, inverse, self.n_topics, covariates, offset,
            self.shelf.put("regressed", np.asarray(eta, dtype=np.float64)), omega,
        )  # fmt: skip

    def told(self, eta: np.ndarray) -> np.ndarray:
        """What the documents' topics say of the response as if they were new, (n_docs, R), given eta (R, K)."""
        omega = empty((self.rows.n_rows, len(eta)), np.float64)
        none = empty((self.rows.n_rows, 0), np.float64)
        self.find_omegas(eta, none, zeros(omega.shape, np.float64), omega)
        return self.rows.get(omega)

    def timings(self) -> np.ndarray:
        """Seconds in eta, z and lambda so far."""
        return self.before + self.watch.read()

    def topic_counts(self) -> np.ndarray:
        """The topic counts of every document, summed over the kept draws, (n_docs, K)."""
        return self.rows.get(self.kept.reshape(self.rows.n_rows, -1))[:, : self.n_topics]

    def state(self) -> dict[str, np.ndarray]:
        """All that `restore` needs."""
        state = {"z": self.rows.z(), "lam": self.rows.get(self.lam), "seconds": self.timings().copy()}
        if self.kept is not None:
            state["kept"] = self.topic_counts()
        return state

    def restore(self, state: dict[str, np.ndarray], response: Response, eta: np.ndarray) -> None:
        """Be where a shard with this state was; eta (R, K + P) is the last that was drawn."""
        z, lam = state["z"], state["lam"]
        if z.shape != (len(self.rows.flat),) or (z >= self.n_topics).any() or lam.shape != self.target.y.shape:
            raise ValueError("The checkpoint does not fit these documents.")
        self.rows.set_z(z.astype(np.uint16))
        self.before = np.array(state["seconds"], dtype=float)
        if "kept" in state:
            lines = wide(np.asarray(state["kept"], np.float32), self.rows.shape.width).reshape(self.n_docs, -1)
            self.kept, self.sweeps = self.rows.put(lines).reshape(-1), Tape()
        self.set_lam(response, lam)
        if self.n_columns:
            self.regress(eta)


class GpuCounts:
    """word_topic on the card, which follows the sweeps by itself, and its sum over the draws that are kept."""

    dense = 0  # all topics are weighed for every token, always

    def __init__(self, plan: Plan, shards: list[GpuShard], crew: Crew):
        self.plan, self.width = plan, row_width(plan.n_topics)
        size = plan.n_words * self.width
        self.count, self.believed = zeros(size, np.int32), None
        if plan.belief:
            self.believed = put(wide(plan.belief.word_topic, self.width))
            if shards[0].first_doc == 0:  # where others have other shards, one adds pseudo-counts for all
                launch(gpu_counts.keep, size, self.believed, self.count)
        for shard in shards:
            shard.add_tokens(self.count)
        self.drawn, self.table = plan.sampler == "drawn", empty(size, np.float32)
        self.summed: Any = None
        self.n_draws, self.shelf, self.tape = 0, Shelf(), Tape()
        self.n_blocks = -(-plan.n_words // gpu_counts.WORDS)
        self.on_card = zeros(plan.n_topics, np.int64)
        self.priors: Priors | None = None
        inverse, inverse_own = (put(wide(np.ones((1, plan.n_topics), np.float32), self.width)) for _ in range(2))
        prior, alpha = (self.shelf.empty(name, (n,), np.float32) for name, n in (("prior", 2), ("alpha", self.width)))
        self.likes = Likes(self.table, prior, inverse, inverse_own, alpha, self.count)
        self.add_columns()
        self.n_tokens = int(self.tokens.sum())
        self.told: np.ndarray | None = None  # the counts that those who have other shards know

    def add_columns(self) -> None:
        """The tokens of each topic."""
        clear(self.on_card)
        gpu_counts.add_columns[self.n_blocks, BLOCK, stream()](self.count, self.width, self.plan.n_topics, self.on_card)

    @property
    def tokens(self) -> np.ndarray:
        return get(self.on_card)

    @property
    def word_topic(self) -> np.ndarray:
        return get(self.count).reshape(-1, self.width)[:, : self.plan.n_topics]

    @property
    def kept(self) -> np.ndarray:
        if self.summed is None:
            return np.zeros((self.plan.n_words, self.plan.n_topics), np.int32)
        return get(self.summed).reshape(-1, self.width)[:, : self.plan.n_topics]

    def topics(self, priors: Priors, key: np.uint64) -> Likes:
        """What the documents see of the topics in the next sweep."""
        if priors is not self.priors:
            self.priors = priors
            self.shelf.put("prior", np.array([0.0 if self.drawn else priors.beta, not self.drawn], np.float32))
            self.shelf.put("alpha", wide(priors.alpha.astype(np.float32)[None], self.width))
            self.prepare()
        if self.drawn:
            self.draw_phi(priors.beta, key)
        return self.likes

    def prepare(self) -> None:
        """Count the tokens of each topic, and let the next sweep see the counts as they are now."""
        whole = self.plan.n_words * self.priors.beta if self.priors else 0.0
        self.tape.play(("prepare", whole), lambda: self.copy(whole))

    def copy(self, whole: float) -> None:
        self.add_columns()
        if not self.drawn:
            launch(gpu_counts.copy_counts, len(self.count), self.count, self.table)
            inverses = self.likes.inverse, self.likes.inverse_own
            launch(gpu_counts.invert, self.plan.n_topics, self.on_card, whole, *inverses)

    def draw_phi(self, beta: float, key: np.uint64) -> None:
        """phi_k ~ Dirichlet(word_topic_k + beta), as log-gammas that are normalised in the log."""
        n_topics, place = self.plan.n_topics, self.shelf.put("key", np.array([key], np.uint64))
        largest, total = (self.shelf.empty(x, (self.n_blocks, n_topics), np.float64) for x in ("largest", "total"))
        log_sum = self.shelf.empty("sums", (n_topics,), np.float64)

        def draw() -> None:
            size, width = len(self.table), self.width
            launch(gpu_counts.draw_log_gammas, size, self.count, beta, place, width, n_topics, self.table)
            gpu_counts.add_exponentials[self.n_blocks, BLOCK, stream()](self.table, width, n_topics, largest, total)
            launch(gpu_counts.log_sums, n_topics, largest, total, log_sum)
            launch(gpu_counts.normalise, size, self.table, width, log_sum)

        self.tape.play(("phi", beta), draw)

    def follow(self, moves: list[Moves | None], keep: bool) -> None:
        """The counts have followed their own shards, and now follow others; `keep` adds them to the kept ones."""
        self.add([move for move in moves if move])
        self.prepare()
        if keep:
            self.keep()

    def add(self, told: list[Moves]) -> None:
        """Add changes of the counts."""
        for move in told:
            launch(gpu_counts.keep, len(self.count), self.shelf.put("change", move.change), self.count)
        if self.told is not None:
            self.told = get(self.count)

    def pack(self, moves: list[None]) -> list[Moves]:
        """How the counts have changed, for those who have other shards."""
        change = get(self.count) - self.told
        return [Moves(self.tokens, np.zeros(0, np.uint64), np.zeros(1, np.int64), (0, 0), change)]

    def all(self) -> list[Moves]:
        """All that is counted, for those who have other shards."""
        self.told = np.zeros(len(self.count), np.int32)
        return self.pack([])

    def join(self, told: list[Moves]) -> None:
        """Count what others have counted, too."""
        self.add(told)
        self.add_columns()
        self.n_tokens = int(self.tokens.sum())

    def keep(self) -> None:
        """Add the counts of this draw to those that are kept."""
        self.n_draws += 1
        if self.summed is None:
            self.summed = zeros(len(self.count), np.int32)
        if self.summed.dtype == np.int32 and self.n_draws * self.n_tokens >= 2**31:
            self.summed, self.tape = put(get(self.summed).astype(np.int64)), Tape()
        self.tape.play("keep", lambda: launch(gpu_counts.keep, len(self.count), self.count, self.summed))

    def draws(self) -> Kept:
        """The sum over the draws that were kept."""
        kept = self.kept
        return Kept(kept, kept.sum(axis=0, dtype=np.int64), self.n_draws)

    def restore(self, kept: np.ndarray, n_draws: int, dense: int) -> None:
        """Take over what was kept."""
        self.summed, self.n_draws, self.tape = put(wide(kept, self.width)), n_draws, Tape()

    def log_words(self, beta: float) -> float:
        """log p(w | z, beta), the topics integrated out; pseudo-counts are given."""
        value = self.log_counts("words", self.count, self.tokens, beta)
        if self.believed is not None and self.plan.belief:
            tokens = self.plan.belief.word_topic.sum(axis=0, dtype=np.int64)
            value -= self.log_counts("believed", self.believed, tokens, beta)
        return value

    def log_counts(self, name: str, count, tokens: np.ndarray, beta: float) -> float:
        n_words, n_topics, whole = self.plan.n_words, self.plan.n_topics, self.plan.n_words * beta
        values = self.shelf.empty("values", (n_words, 1), np.float64)
        parts = self.shelf.empty("parts", (SUMS, 1), np.float64)

        def add() -> None:
            launch(gpu_counts.log_words, n_words, count, self.width, n_topics, beta, values)
            launch(gpu_counts.add_up, parts.size, values, parts)

        self.tape.play((name, beta), add)
        sums = get(parts).sum() + n_topics * gammaln(whole) - gammaln(whole + tokens).sum()
        return float(sums)

    def sizes(self) -> np.ndarray:
        """How many (word, topic) have 0, 1, 2, ... tokens."""
        return np.bincount(self.word_topic.reshape(-1))


def needed_bytes(n_tokens: int, n_docs: int, n_words: int, n_topics: int, n_columns: int, n_covariates: int) -> int:
    """What a chain takes of the card's memory; documents that are left out take a gigabyte more, or less."""
    width = row_width(n_topics)
    documents = n_docs * (16 * width + 8 * (7 * n_columns + n_covariates))
    moments = moment_bytes(n_topics + n_covariates, n_columns)
    private = 4 * min(NUMBERS, n_tokens * width)
    return 16 * n_tokens + 32 * n_words * width + documents + moments + private
