"""A corpus in memory that is a matrix of counts: tokens are made where somebody reads them."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from supertopic.corpus.source import Arrays, Part, Target, no_target, select_target
from supertopic.corpus.tokens import Tokens, list_words, make_tokens, token_starts


class Counted(NamedTuple):
    """Documents as counts. The caller has these anyway, and all tokens would need as much memory again.

    Chains read their documents again and again, so they get the tokens of those: see `select`.
    """

    counts: sp.csr_array  # (n_docs, V), checked
    doc_start: np.ndarray
    target: Target

    def read(self, docs: slice) -> tuple[Tokens, Target]:
        starts = self.doc_start[docs.start : docs.stop + 1]
        tokens = Tokens(list_words(self.counts, self.doc_start, docs), starts - starts[0])
        return tokens, select_target(self.target, docs)

    def part(self, docs: slice) -> Part:
        return Part(docs.start, Arrays(*self.read(docs)))

    def with_target(self, target: Target) -> "Counted":
        return self._replace(target=target)

    def column(self, r: int) -> "Counted":
        return self._replace(target=self.target.column(r))

    def select(self, docs: np.ndarray) -> Arrays:
        """The documents of a mask, with their tokens."""
        starts = np.concatenate([[0], np.cumsum(np.diff(self.doc_start)[docs])])
        return Arrays(Tokens(list_words(self.counts, self.doc_start, docs), starts), select_target(self.target, docs))

    def load(self) -> Arrays:
        return Arrays(make_tokens(self.counts), self.target)

    def arrays(self) -> Iterator[np.ndarray]:
        yield from (*make_tokens(self.counts), *self.target)


def make_counted(counts: sp.csr_array) -> Counted:
    """The corpus of checked counts, without a response yet."""
    return Counted(counts, token_starts(counts), no_target(counts.shape[0]))
