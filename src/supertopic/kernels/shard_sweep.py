"""A sweep over a shard: draw every z, then find the tokens that moved and count those of each topic."""

from typing import Any

import numpy as np

from supertopic.kernels.counts import places
from supertopic.kernels.draws import document_streams
from supertopic.kernels.sparse import sweep_sparse
from supertopic.kernels.sweep import sweep


def sweep_shard(
    tokens: Any, z: np.ndarray, topics: Any, weights: Any, quadratic: Any, key: np.uint64, first_doc: int, keep: bool,
    summed: np.ndarray, omega: np.ndarray, n_parts: int,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, tuple[int, int]]:  # fmt: skip
    """A sweep over a shard whose first document has the number first_doc; returns the fields of `Moves`.

    The sampler is the one for many topics where `topics` has what it needs.
    """
    streams = document_streams(key, first_doc, len(tokens.doc_start) - 1)
    found, taken = places(z, len(topics.mass), topics.live, n_parts), (0, 0)
    if len(topics.smooth):
        taken = sweep_sparse(tokens, z, topics, weights, quadratic, streams, summed, omega, found)
    else:
        sweep(tokens, z, topics, weights, quadratic, streams, 1, 0 if keep else 1, summed, omega, found)
    starts = found.starts[:-1]
    return found.tokens, found.moves[: starts[-1]].copy(), starts, taken  # the room is used again for the next shard
