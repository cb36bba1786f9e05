"""What a fit needs of memory, so that what cannot fit is refused before any of it is taken."""

import logging

import numpy as np

from supertopic.corpus.source import Corpus

logger = logging.getLogger("supertopic")
GIB = 2**30


def check_memory(
    corpus: Corpus, n_words: int, n_topics: int, n_draws: int, n_chains: int, n_sets: int, workers: int,
    tables: int,
) -> None:  # fmt: skip
    """Refuse a fit that cannot fit into memory; the sum is a lower bound, not an estimate.

    `workers` chains run at a time; `tables` is how many further (V, K) tables of 4 bytes there are.
    """
    target, n_docs, n_tokens = corpus.target, len(corpus.doc_start) - 1, int(corpus.doc_start[-1])
    n_columns, n_covariates = target.weight.shape[1], target.covariates.shape[1]
    shares, width, table = 4 * n_docs * n_topics, n_topics + n_covariates, 4 * n_words * n_topics
    # packed statistics of all columns, twice while they are added up; a matrix and its factor while eta is drawn
    moments = 8 * width**2 * (n_columns + 2) if n_columns else 0
    state = 4 * n_tokens + table + moments
    kept = table + shares + 16 * n_draws * n_columns * width
    needed = 4 * n_tokens + workers * state + n_sets * (n_chains * kept + 2 * shares) + tables * table
    free = free_memory()
    if needed > free:
        raise MemoryError(
            f"The fit needs at least {needed / GIB:,.1f} GiB, but {free / GIB:,.1f} GiB of memory are free: "
            f"{n_tokens:,} tokens, {n_docs:,} documents, {n_words:,} words, n_topics={n_topics}, "
            f"n_chains={n_chains}. Fewer topics or chains, or a smaller vocabulary (min_df), need less."
        )


def chains_on_device(corpus: Corpus, n_words: int, n_topics: int) -> int:
    """How many chains have room on the device at a time; refuses what has none before anything is taken."""
    from supertopic.kernels.cuda.device import free_bytes
    from supertopic.kernels.cuda.sweep import check_places
    from supertopic.sampling.cuda import needed_bytes

    target, lengths = corpus.target, np.diff(corpus.doc_start)
    n_docs, n_tokens = len(lengths), int(lengths.sum())
    check_places(n_words, n_topics, n_tokens, int(lengths.max(initial=0)))
    shape = target.weight.shape[1], target.covariates.shape[1]
    needed, free = needed_bytes(n_tokens, n_docs, n_words, n_topics, *shape), free_bytes()
    logger.info("A chain takes %.2f GiB of the device's memory, %.2f GiB are free", needed / GIB, free / GIB)
    if needed > free:
        raise MemoryError(
            f"A chain takes about {needed / GIB:,.1f} GiB of the device's memory, but {free / GIB:,.1f} GiB are "
            f"free: {n_tokens:,} tokens, {n_docs:,} documents, {n_words:,} words, n_topics={n_topics}. Fewer "
            "topics or a smaller vocabulary (min_df) take less; device='cpu' takes none."
        )
    return free // needed


def free_memory() -> float:
    """Bytes that a program can still take, as Linux says; infinite elsewhere, where nothing is refused for it."""
    try:
        with open("/proc/meminfo", encoding="ascii") as file:
            rows = dict(line.split(":", 1) for line in file)
        return 1024.0 * (int(rows["MemAvailable"].split()[0]) + int(rows["SwapFree"].split()[0]))
    except (OSError, ValueError, KeyError):
        return float("inf")
