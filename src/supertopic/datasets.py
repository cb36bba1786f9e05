"""Corpora: one that every installation already has, 20 Newsgroups, and corpora generated from the model."""

import importlib
import inspect
from collections import Counter

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array
from scipy.special import expit
from sklearn.datasets import fetch_20newsgroups
from sklearn.utils import Bunch, check_random_state

SCIPY_MODULES = (
    "cluster.hierarchy", "cluster.vq", "fft", "integrate", "interpolate", "io", "linalg", "ndimage", "optimize",
    "signal", "sparse", "sparse.csgraph", "sparse.linalg", "spatial", "spatial.distance", "spatial.transform",
    "special", "stats", "stats.contingency", "stats.mstats", "stats.qmc",
)  # fmt: skip


def load_docstrings(min_length: int = 200, min_documents: int = 30) -> Bunch:
    """Load the docstrings of SciPy's subpackages, a real labelled corpus that needs no download.

    A document is the docstring of a public function, class or method; its class is the subpackage that it belongs to.

    Parameters
    ----------
    min_length : int, default=200
        Docstrings of this many characters or fewer are left out.
    min_documents : int, default=30
        Subpackages with fewer documents are left out.

    Returns
    -------
    Bunch
        data (list of str), names (list of str), target (ndarray of int), target_names (list of str).
    """
    found: dict[str, tuple[str, str]] = {}  # docstring -> class, name: a docstring that is inherited counts once
    for path in SCIPY_MODULES:
        module = importlib.import_module(f"scipy.{path}")
        for name in sorted(n for n in dir(module) if not n.startswith("_")):
            thing = getattr(module, name)
            members = {f"{path}.{name}": thing}
            if inspect.isclass(thing):
                members |= {f"{path}.{name}.{a}": x for a, x in sorted(vars(thing).items()) if not a.startswith("_")}
            for full_name, member in members.items():
                text = None if inspect.ismodule(member) else inspect.getdoc(member)
                ours = (getattr(member, "__module__", None) or "scipy").startswith("scipy")
                if text and ours and len(text) > min_length:
                    found.setdefault(text, (path.partition(".")[0], full_name))
    sizes = Counter(label for label, _ in found.values())
    names = sorted(label for label, size in sizes.items() if size >= min_documents)
    rows = [(text, label, name) for text, (label, name) in found.items() if label in names]
    return Bunch(
        data=[text for text, _, _ in rows],
        names=[name for _, _, name in rows],
        target=np.array([names.index(label) for _, label, _ in rows]),
        target_names=names,
    )


def load_20newsgroups(
    subset: str = "train", *, categories: list[str] | None = None, remove: tuple[str, ...] = ()
) -> Bunch:
    """Load 20 Newsgroups through scikit-learn, from its cache or by its download.

    Parameters
    ----------
    subset : {"train", "test", "all"}, default="train"
    categories : list of str, optional
        The groups to load; all by default.
    remove : tuple, default=()
        Parts of the posts to strip: any of "headers", "footers", "quotes".

    Returns
    -------
    Bunch
        data, target, target_names and more, as from `sklearn.datasets.fetch_20newsgroups`.
    """
    try:
        return fetch_20newsgroups(subset=subset, categories=categories, remove=remove, shuffle=False)
    except OSError as error:
        raise OSError(
            "20 Newsgroups is neither in scikit-learn's data folder nor could it be downloaded. Run once with a "
            "network connection, or set SCIKIT_LEARN_DATA to a folder that holds 20news-bydate_py3.pkz."
        ) from error


def make_corpus(
    n_docs: int = 200,
    n_words: int = 500,
    n_topics: int = 5,
    doc_length: float = 80,
    alpha: float = 1.0,
    beta: float = 0.05,
    eta: ArrayLike | None = None,
    random_state: int | np.random.RandomState | None = None,
) -> Bunch:
    """Generate documents and binary labels from the model itself, with the truth returned.

    Parameters
    ----------
    n_docs, n_words, n_topics : int
        The size of the corpus.
    doc_length : float, default=80
        Mean length of a document (Poisson).
    alpha, beta : float
        Dirichlet priors: alpha is the total for a document, beta is for each word of a topic.
    eta : array-like of shape (n_topics,) or (n_columns, n_topics), optional
        The weights; by default n_topics numbers from -6 to 6.
    random_state : int, RandomState or None

    Returns
    -------
    Bunch
        X (n_docs, n_words) counts, y labels ((n_docs,) or (n_docs, n_columns)), and the truth: eta, topic_word,
        doc_topic (the realised zbar), probability.
    """
    rng = check_random_state(random_state)
    eta = np.linspace(-6, 6, n_topics) if eta is None else np.asarray(eta, dtype=float)
    if eta.shape[-1] != n_topics or eta.ndim > 2:
        raise ValueError(f"eta must have n_topics = {n_topics} entries a row, got shape {eta.shape}.")
    topic_word = rng.dirichlet(np.full(n_words, beta), n_topics)
    counts = np.zeros((n_docs, n_words), dtype=np.int64)
    doc_topic = np.zeros((n_docs, n_topics))
    for d, length in enumerate(rng.poisson(doc_length, n_docs)):
        z = rng.multinomial(length, rng.dirichlet(np.full(n_topics, alpha / n_topics)))
        doc_topic[d] = z / max(length, 1)
        for k in np.flatnonzero(z):
            counts[d] += rng.multinomial(z[k], topic_word[k])
    probability = expit(doc_topic @ eta.T)
    y = (rng.random_sample(probability.shape) < probability).astype(int)
    return Bunch(X=csr_array(counts), y=y, eta=eta, topic_word=topic_word, doc_topic=doc_topic, probability=probability)
