"""One pass over a shard in one call: sweep, then who moved and how many tokens each topic has.

Every return to Python is a wait for the interpreter when many threads are at work.
"""

import numpy as np

from supertopic.kernels.compiled import kernel, part
from supertopic.kernels.counts import count_topics, find_moves
from supertopic.kernels.draws import document_streams
from supertopic.kernels.sparse import sweep_sparse
from supertopic.kernels.sweep import sweep


@kernel
def pass_dense(tokens, z, topics, weights, quadratic, key, first_doc, keep, kept, omega, n_parts):
    """`sweep` over the shard whose first document has the number first_doc; returns what `Moves` holds."""
    streams = document_streams(key, first_doc, len(tokens.doc_start) - 1)
    previous = z.copy()
    once = np.int64(1)  # a plain 1 would be a type of its own, for which all would be compiled again
    sweep(tokens, z, topics, weights, quadratic, streams, once, 0 if keep else once, kept, omega)
    return result(tokens, previous, z, topics, n_parts, (0, 0))


@kernel
def pass_sparse(tokens, z, topics, weights, quadratic, key, first_doc, keep, kept, omega, n_parts):
    """The same with `sweep_sparse`."""
    streams = document_streams(key, first_doc, len(tokens.doc_start) - 1)
    previous = z.copy()
    taken = sweep_sparse(tokens, z, topics, weights, quadratic, streams, kept, omega)
    return result(tokens, previous, z, topics, n_parts, taken)


@part
def result(tokens, previous, z, topics, n_parts, taken):
    n_seen = 0 if topics.live else len(z)  # live counts have followed already
    moves, starts = find_moves(tokens.word[:n_seen], previous, z[:n_seen], n_parts)
    return count_topics(z, len(topics.mass)), moves, starts, taken
