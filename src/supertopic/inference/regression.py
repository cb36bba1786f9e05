"""Documents with given shares as an engine, for Bayesian regressions after the chains."""

import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import numpy as np

from supertopic.corpus.source import Arrays, Target
from supertopic.corpus.tokens import Tokens
from supertopic.model.responses.base import Response
from supertopic.model.state import Priors
from supertopic.sampling.plan import Plan
from supertopic.sampling.pool import one_blas_thread
from supertopic.sampling.threads import ThreadEngine

SHARD_DOCS = 1000  # documents that one thread works on at a time


@contextmanager
def regression_engine(
    shares: Callable[[slice], np.ndarray], width: int, target: Target, response: Response, slices: Sequence[slice],
    n_threads: int, n_groups: int = 0, matrix_free: bool = False,
) -> Iterator[ThreadEngine]:  # fmt: skip
    """An engine of documents whose shares (n, width) are given for each slice of them; there are no tokens.

    The last n_groups covariates are groups of documents. `matrix_free` is how eta is drawn: see `Plan`.
    """
    n_docs, n_columns = target.weight.shape
    each = tuple(slice(i, i + 1) for i in range(len(slices)))
    priors, n_covariates = Priors(np.ones(width), 1.0, 1.0), target.covariates.shape[1]
    plan = Plan(
        tuple(slices), each, 1, n_columns, n_covariates, response, priors, False, "delayed", 0, 0, "cpu", n_groups,
        matrix_free,
    )  # fmt: skip
    nothing = Tokens(np.zeros(0, np.int32), np.zeros(n_docs + 1, np.int64))
    with one_blas_thread:  # more BLAS threads would change the bits of draws
        engine = ThreadEngine(plan, Arrays(nothing, target), n_threads)
        try:
            for shard in engine.shards:
                shard.use_shares(shares(shard.docs))
            yield engine
        finally:
            engine.close()


def cut_documents(n_docs: int) -> list[slice]:
    """Consecutive documents for each shard: from their number alone, so that threads do not change the bits."""
    edges = np.linspace(0, n_docs, -(-n_docs // SHARD_DOCS) + 1).astype(int).tolist()
    return [slice(a, b) for a, b in itertools.pairwise(edges)]
