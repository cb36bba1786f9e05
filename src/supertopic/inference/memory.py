"""What a fit needs of memory, so that what cannot fit is refused before any of it is taken."""

import ctypes
import logging
import sys
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import NamedTuple

import numpy as np

from supertopic.corpus.source import Corpus
from supertopic.sampling.plan import is_matrix_free

logger = logging.getLogger("supertopic")
GIB = 2**30
ROOT = Path("/")


class Group(NamedTuple):
    """A control group, and what its files are called."""

    folder: Path
    limit: str
    used: str
    cache: str  # a row of memory.stat


def check_memory(
    corpus: Corpus, n_words: int, n_topics: int, n_draws: int, n_chains: int, n_sets: int, workers: int,
    tables: int, device: str,
) -> None:  # fmt: skip
    """Refuse a fit that cannot fit into memory; the sum is a lower bound, not an estimate.

    `workers` chains run at a time; `tables` is how many further (V, K) tables of 4 bytes there are.
    """
    target, n_docs, n_tokens = corpus.target, len(corpus.doc_start) - 1, int(corpus.doc_start[-1])
    n_columns, n_covariates = target.weight.shape[1], target.covariates.shape[1]
    shares, width, table = 4 * n_docs * n_topics, n_topics + n_covariates, 4 * n_words * n_topics
    # packed statistics of all columns, twice while they are added up; a matrix and its factor while eta is drawn
    moments = 8 * width**2 * (n_columns + 2) if n_columns else 0
    if is_matrix_free(n_topics, n_covariates, device):  # a diagonal, and some vectors as long
        moments = 80 * width * n_columns
    state = 2 * n_tokens + table + moments  # z; chains share the words of their tokens, which are 4 bytes each
    kept = table + shares + 16 * n_draws * n_columns * width
    matching = 12 * n_topics**2 if n_chains > 1 else 0  # how alike the topics of two chains are, twice
    needed = 4 * n_tokens + workers * state + n_sets * (n_chains * kept + 2 * shares) + tables * table + matching
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

    target, lengths = corpus.target, np.diff(corpus.doc_start)
    n_docs, n_tokens = len(lengths), int(lengths.sum())
    check_places(n_words, n_topics, n_tokens, int(lengths.max(initial=0)))
    shape = target.weight.shape[1], target.covariates.shape[1]
    needed, free = device_bytes(n_tokens, n_docs, n_words, n_topics, *shape), free_bytes()
    logger.info("A chain takes %.2f GiB of the device's memory, %.2f GiB are free", needed / GIB, free / GIB)
    if needed > free:
        raise MemoryError(
            f"A chain takes about {needed / GIB:,.1f} GiB of the device's memory, but {free / GIB:,.1f} GiB are "
            f"free: {n_tokens:,} tokens, {n_docs:,} documents, {n_words:,} words, n_topics={n_topics}. Fewer "
            "topics or a smaller vocabulary (min_df) take less; device='cpu' takes none."
        )
    return free // needed


def device_bytes(n_tokens: int, n_docs: int, n_words: int, n_topics: int, n_columns: int, n_covariates: int) -> int:
    """About how many bytes a chain takes on the device."""
    from supertopic.kernels.cuda.layout import SPARSE_FROM, row_width
    from supertopic.sampling.cuda_documents import NUMBERS
    from supertopic.sampling.cuda_moments import moment_bytes

    width = row_width(n_topics)
    # counts, and either their sum over the draws or those of left-out documents; both again where documents were cut
    documents = n_docs * ((8 if n_topics >= SPARSE_FROM else 16) * width + 8 * (7 * n_columns + n_covariates))
    moments = moment_bytes(n_topics + n_covariates, n_columns)
    if is_matrix_free(n_topics, n_covariates, "cuda"):
        moments = 40 * n_columns * (n_topics + n_docs)
    private = 5 * min(NUMBERS, n_tokens * width)  # topics of left-out documents, and these documents
    return 14 * n_tokens + 32 * n_words * width + documents + moments + private


def free_memory() -> float:
    """Bytes that a program can still take, as Linux says; infinite elsewhere, where nothing is refused for it."""
    try:
        with open(ROOT / "proc/meminfo", encoding="ascii") as file:
            rows = dict(line.split(":", 1) for line in file)
        machine = 1024.0 * (int(rows["MemAvailable"].split()[0]) + int(rows["SwapFree"].split()[0]))
    except (OSError, ValueError, KeyError):
        return float("inf")
    return min([machine, *map(free_in_group, control_groups())])


def return_freed() -> None:
    """Return freed memory to the system where glibc would keep it: a fifth of the peak, between arrays in use."""
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # other C libraries have none
        if trim is not None:
            trim(ctypes.c_size_t(0))


def control_groups() -> Iterator[Group]:
    """The control groups of this process, as a container has them, and those around it: of both versions."""
    try:
        rows = [line.split(":", 2) for line in (ROOT / "proc/self/cgroup").read_text().splitlines()]
        for _, kinds, path in rows:
            if kinds == "":  # version 2
                root, names = ROOT / "sys/fs/cgroup", ("memory.max", "memory.current", "inactive_file")
            elif "memory" in kinds.split(","):
                root = ROOT / "sys/fs/cgroup/memory"
                names = "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"
            else:
                continue
            inside = PurePosixPath(path.strip().lstrip("/"))  # in a container it may be that of the host
            for place in (inside, *inside.parents):
                yield Group(root / place, *names)
    except (OSError, ValueError):
        return


def free_in_group(group: Group) -> float:
    """Bytes that a group has left; the cache of files that nobody uses counts as free."""
    try:
        limit, used = (int((group.folder / name).read_text()) for name in (group.limit, group.used))
        rows = dict(line.split() for line in (group.folder / "memory.stat").read_text().splitlines())
        return float(max(limit - used + int(rows.get(group.cache, 0)), 0))
    except (OSError, ValueError):  # there is none, or it has no limit: "max"
        return float("inf")
