"""The systems of `benchmarks.topics`: each fits topics when it is called, and returns a predictor."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from sklearn.decomposition import NMF, LatentDirichletAllocation
from sklearn.feature_extraction.text import TfidfTransformer

from benchmarks import peers
from benchmarks.peers import Predict, Task
from supertopic import LDA


class Fitted(NamedTuple):
    topics: np.ndarray  # (K, V)
    predict: Predict
    agreement: float | None = None


def line(t: Task, train: Callable[[], np.ndarray], test: Callable[[], np.ndarray]) -> Predict:
    """Regression on topic shares, which is fitted when it is asked to predict."""
    return lambda: peers.linear(t).fit(train(), t.y).predict(test())


def agreement(model: Any) -> float:
    return float(np.mean(model.topic_agreement() >= 0.75))


def ours(t: Task, **parameters) -> Fitted:
    model, predict = peers.supertopic(t, **parameters)
    return Fitted(model.topic_word_, predict, agreement(model))


def ours_lda(t: Task) -> Fitted:
    model = LDA(t.n_topics, n_chains=4, random_state=t.seed, n_jobs=t.threads)
    if t.quick:
        model.set_params(burn_in=6, n_draws=4)
    model.fit(t.X)
    predict = line(t, lambda: model.transform(t.X), lambda: model.transform(t.X_test))
    return Fitted(model.topic_word_, predict, agreement(model))


def by_name(t: Task, topics: np.ndarray, names: list[str]) -> np.ndarray:
    """Topics over a system's own order of words, in the order of the task."""
    place = {word: i for i, word in enumerate(t.words)}
    found = np.zeros((len(topics), len(t.words)))
    found[:, [place[name] for name in names]] = topics
    return found


def tomotopy_topics(t: Task, model: Any) -> np.ndarray:
    return by_name(t, np.array([model.get_topic_word_dist(k) for k in range(model.k)]), list(model.used_vocabs))


def tomotopy_lda(t: Task) -> Fitted:
    import tomotopy

    model = tomotopy.LDAModel(k=t.n_topics, seed=t.seed)
    for words in t.docs:
        model.add_doc(words)
    model.train(t.times(1000), workers=t.threads, show_progress=False)

    def test():
        new = [model.make_doc(words) for words in t.docs_test]
        return np.array(model.infer(new, iterations=t.times(100), workers=t.threads)[0])

    return Fitted(tomotopy_topics(t, model), line(t, lambda: np.array([d.get_topic_dist() for d in model.docs]), test))


def tomotopy_slda(t: Task) -> Fitted:
    model, predict = peers.tomotopy_slda(t)
    return Fitted(tomotopy_topics(t, model), predict)


def sklearn_lda(t: Task) -> Fitted:
    model = LatentDirichletAllocation(t.n_topics, max_iter=t.times(50), n_jobs=t.threads, random_state=t.seed).fit(t.X)
    return Fitted(model.components_, line(t, lambda: model.transform(t.X), lambda: model.transform(t.X_test)))


def gensim_lda(t: Task) -> Fitted:
    from gensim.matutils import Sparse2Corpus
    from gensim.models import LdaModel

    def shares(bags):
        gamma = model.inference(bags)[0]
        return gamma / gamma.sum(axis=1, keepdims=True)

    train, test = (list(Sparse2Corpus(X, documents_columns=False)) for X in (t.X, t.X_test))
    settings = {"passes": t.times(10), "iterations": t.times(200), "eval_every": None, "random_state": t.seed}
    model = LdaModel(train, t.n_topics, id2word=dict(enumerate(t.words)), **settings)
    return Fitted(model.get_topics(), line(t, lambda: shares(train), lambda: shares(test)))


def topica_lda(t: Task) -> Fitted:
    import topica

    model = topica.LDA(t.n_topics, seed=t.seed, num_threads=t.threads)
    model.fit(t.docs, iters=t.times(1000), keep_theta_draws=False)
    topics = by_name(t, np.asarray(model.topic_word), model.vocabulary)
    predict = line(t, lambda: np.asarray(model.doc_topic), lambda: np.asarray(model.transform(t.docs_test)))
    return Fitted(topics, predict)


def topica_supervised(t: Task) -> Fitted:
    fit = partial(peers.topica_classes, kind="DiscLDA") if t.n_classes else peers.variational
    model, predict = fit(t)
    return Fitted(by_name(t, np.asarray(model.topic_word), model.vocabulary), predict)


def nmf(t: Task) -> Fitted:
    weights = TfidfTransformer(sublinear_tf=True).fit(t.X)
    model = NMF(t.n_topics, init="nndsvda", max_iter=t.times(400), random_state=t.seed)
    shares = model.fit_transform(weights.transform(t.X))
    return Fitted(model.components_, line(t, lambda: shares, lambda: model.transform(weights.transform(t.X_test))))


class System(NamedTuple):
    package: str
    fit: Callable[[Task], Fitted]
    settings: str


LINE = "then regression"
SYSTEMS = {
    "supertopic": System("supertopic", ours, "defaults: 4 chains, topics and words"),
    "supertopic-topics": System("supertopic", partial(ours, words=False), "the same, topics alone"),
    "supertopic-lda": System("supertopic", ours_lda, f"`LDA`, 4 chains, {LINE}"),
    "tomotopy-lda": System("tomotopy", tomotopy_lda, f"`LDAModel`, 1,000 sweeps, {LINE}"),
    "tomotopy-slda": System("tomotopy", tomotopy_slda, "`SLDAModel`, 1,000 sweeps (classes: 200)"),
    "topica-lda": System("topica", topica_lda, f"`LDA`, 1,000 sweeps, {LINE}"),
    "topica-supervised": System(
        "topica",
        topica_supervised,
        "`DiscLDA`, 1,000 sweeps, a topic or more a class and of all; ratings: `SupervisedLDA`",
    ),
    "sklearn-lda": System("sklearn", sklearn_lda, f"`LatentDirichletAllocation`, 50 passes, {LINE}"),
    "gensim-lda": System("gensim", gensim_lda, f"`LdaModel`, 10 passes, {LINE}"),
    "nmf": System("sklearn", nmf, f"`NMF` of tf-idf, {LINE}"),
}
