"""A sweep over a shard in one call: draw every z, then find the tokens that moved and count those of each topic.

One call, since every return to Python waits for the interpreter while other threads are at work.
"""

import numpy as np

from supertopic.kernels.compiled import kernel, part
from supertopic.kernels.counts import count_topics, find_moves
from supertopic.kernels.draws import document_streams
from supertopic.kernels.sparse import sweep_sparse
from supertopic.kernels.sweep import sweep


@kernel
def sweep_shard_dense(tokens, z, topics, weights, quadratic, key, first_doc, keep, summed, omega, n_parts):
    """The dense sampler over a shard whose first document has the number first_doc; returns the fields of `Moves`."""
    streams = document_streams(key, first_doc, len(tokens.doc_start) - 1)
    previous = z.copy()
    once = np.int64(1)  # a plain 1 would be a type of its own, for which all would be compiled again
    sweep(tokens, z, topics, weights, quadratic, streams, once, 0 if keep else once, summed, omega)
    return find_changes(tokens, previous, z, topics, n_parts, (0, 0))


@kernel
def sweep_shard_sparse(tokens, z, topics, weights, quadratic, key, first_doc, keep, summed, omega, n_parts):
    """The sparse sampler over a shard; returns the fields of `Moves`."""
    streams = document_streams(key, first_doc, len(tokens.doc_start) - 1)
    previous = z.copy()
    taken = sweep_sparse(tokens, z, topics, weights, quadratic, streams, summed, omega)
    return find_changes(tokens, previous, z, topics, n_parts, taken)


@part
def find_changes(tokens, previous, z, topics, n_parts, taken):
    """The fields of `Moves` after a sweep."""
    n_seen = 0 if topics.live else len(z)  # live counts have followed already
    moves, starts = find_moves(tokens.word[:n_seen], previous, z[:n_seen], n_parts)
    return count_topics(z, len(topics.mass)), moves, starts, taken
