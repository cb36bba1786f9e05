"""Predictions from raw texts, beside what people use: `python -m benchmarks.texts [accuracy|time|few|noise] ...`.

accuracy: our defaults on raw texts against logistic regression and a linear SVM on tf-idf of words and pairs of words,
whose C is chosen by cross-validation on the training documents. time: words beside topics against a grid search of
scikit-learn's logistic regression on the same tf-idf, one thread each, alternated. few: 1 % of the labels of 20
Newsgroups, with word vectors as features. noise: what random features cost. Results are added to texts.json.
"""

import sys
import time
import warnings

import numpy as np
from sklearn.datasets import fetch_20newsgroups
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer, TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

from benchmarks import corpora, history
from supertopic import SLDAClassifier
from supertopic.corpus.source import make_target
from supertopic.inference.beside import Part, Seen, learn_beside
from supertopic.model.linear import count_documents, make_dictionary
from supertopic.model.responses import Logistic
from supertopic.sampling.pool import Pool

SEEDS = range(5)
RESULTS = history.place("texts")
ROWS: list[dict] = []  # of this run
Texts = tuple[list[str], np.ndarray, list[str], np.ndarray]


def newsgroups() -> Texts:
    """20 Newsgroups as posted: headers, quotes and all."""
    parts = [
        fetch_20newsgroups(data_home=corpora.DATA / "scikit_learn_data", subset=s, download_if_missing=False)
        for s in ("train", "test")
    ]
    (train, test), names = parts, np.array(parts[0].target_names)
    return train.data, names[train.target], test.data, names[test.target]


def reuters() -> Texts:
    """Documents with one of eight frequent topics, in the split of Lewis."""
    wanted = set(corpora.REUTERS_TEN) - {"wheat", "corn"}
    rows = [(doc, [name for name in doc["labels"] if name in corpora.REUTERS_TEN]) for doc in
            corpora.read_json(corpora.REUTERS_FILE)]  # fmt: skip
    one = [(doc, own[0]) for doc, own in rows if len(own) == 1 and own[0] in wanted]
    parts = [[(doc["text"], label) for doc, label in one if doc["split"] == s] for s in ("train", "test")]
    (a, y), (b, z) = (zip(*part, strict=True) for part in parts)
    return list(a), np.array(y), list(b), np.array(z)


def films() -> Texts:
    """Film reviews with a rating above the median or not; a fixed fifth is for the test."""
    docs = corpora.read_json(corpora.MOVIES_FILE)
    rating = np.array([doc["y"] for doc in docs])
    return split([doc["text"] for doc in docs], np.where(rating > np.median(rating), "above", "below"))


def docstrings() -> Texts:
    """Docstrings of SciPy and their subpackages; a fixed fifth is for the test."""
    data = corpora.load_docstrings()
    return split(data.data, np.array(data.target_names)[data.target])


def split(texts: list[str], y: np.ndarray) -> Texts:
    a, b = train_test_split(np.arange(len(y)), test_size=0.2, random_state=0, stratify=y)
    return [texts[i] for i in a], y[a], [texts[i] for i in b], y[b]


CORPORA = {"docstrings": docstrings, "films": films, "Reuters": reuters, "20 Newsgroups": newsgroups}


def figures(model, texts, y, **more) -> dict[str, float]:
    """Accuracy and, if there are probabilities, log-loss on test documents."""
    found = {"accuracy": float(np.mean(model.predict(texts, **more) == y))}
    if hasattr(model, "predict_proba"):
        found["log-loss"] = float(log_loss(y, model.predict_proba(texts, **more), labels=model.classes_))
    return found


def rivals() -> dict:
    tfidf = {"ngram_range": (1, 2), "sublinear_tf": True, "min_df": 2}
    grids = {
        "logistic regression": (LogisticRegression(max_iter=300), [1.0, 10.0, 100.0, 1000.0], "neg_log_loss"),
        "linear SVM": (LinearSVC(), [0.1, 1.0, 10.0], "accuracy"),
    }
    return {
        name: make_pipeline(TfidfVectorizer(**tfidf), GridSearchCV(model, {"C": c}, scoring=score, cv=3, n_jobs=2))
        for name, (model, c, score) in grids.items()
    }


def accuracy(names: list[str]) -> None:
    for name in names or CORPORA:
        texts, y, texts_test, y_test = CORPORA[name]()
        for seed in SEEDS:
            began = time.perf_counter()
            model = SLDAClassifier(random_state=seed, n_jobs=2).fit(texts, y)
            seconds = time.perf_counter() - began
            report("accuracy", name, "supertopic", seed, figures(model, texts_test, y_test) | {"seconds": seconds})
        for rival, model in rivals().items():
            began = time.perf_counter()
            model.fit(texts, y)
            seconds = time.perf_counter() - began
            report("accuracy", name, rival, 0, figures(model, texts_test, y_test) | {"seconds": seconds})


def words_alone(counts, y) -> None:
    """The weights of words, as a default fit learns them."""
    classes, index = np.unique(y, return_inverse=True)
    columns = index[:, None].astype(float) if len(classes) == 2 else np.eye(len(classes))[index]
    response = Logistic(1.0, classes=classes)
    rate = columns.mean(axis=0)
    offset = np.log(rate / (1 - rate)) if len(classes) == 2 else np.log(rate)
    target = make_target(columns, np.ones_like(columns), np.tile(offset, (len(y), 1)))
    rows = make_dictionary(count_documents(counts), columns.shape[1]).rows(counts)
    held_out = np.arange(len(y)) % 20 == 0
    parts = [Seen(np.flatnonzero(m), make_target(*(a[m] for a in target[:3]))) for m in (~held_out, held_out)]
    learn_beside([Part(rows)], *parts, response, Pool(1))


def timing(names: list[str]) -> None:
    for name in names or CORPORA:
        texts, y, *_ = CORPORA[name]()
        counts = CountVectorizer(ngram_range=(1, 2), min_df=2).fit_transform(texts)
        tfidf = TfidfTransformer(sublinear_tf=True).fit_transform(counts)
        words_alone(counts[:200], y[:200])  # compiles
        for i in range(3):
            began = time.perf_counter()
            words_alone(counts, y)
            ours = time.perf_counter() - began
            grid = GridSearchCV(LogisticRegression(), {"C": [1.0, 10.0, 100.0, 1000.0, 1e4]}, cv=5, n_jobs=1)
            began = time.perf_counter()
            if i == 0 or len(y) < 5000:
                grid.fit(tfidf, y)
                theirs = time.perf_counter() - began
            report("time", name, "words / grid search", i, {"ours": ours, "theirs": theirs, "ratio": ours / theirs})


def embeddings(texts: list[str]) -> np.ndarray:
    """The mean of the GloVe vectors of a text's words."""
    file = np.load(corpora.DATA / "glove_100d_50k.npz")
    vectorizer = CountVectorizer(vocabulary=file["words"].tolist(), token_pattern=r"(?u)\b\w+\b")
    counts = vectorizer.transform(texts).astype(float)
    return (counts @ file["vectors"].astype(float)) / np.maximum(counts.sum(axis=1), 1.0).reshape(-1, 1)


def few_labels(_: list[str]) -> None:
    texts, y, texts_test, y_test = newsgroups()
    vectors, vectors_test = (np.asarray(embeddings(part)) for part in (texts, texts_test))
    for seed in SEEDS:
        known = np.random.default_rng(seed).permutation(len(y))[: len(y) // 100]
        labels = np.full(len(y), None, dtype=object)
        labels[known] = y[known]
        for name, more in {"without": [None, None], "with embeddings": [vectors, vectors_test]}.items():
            model = SLDAClassifier(40, random_state=seed, n_jobs=2).fit(texts, labels, features=more[0])
            test = {} if more[1] is None else {"features": more[1]}
            report("few", "20 Newsgroups, 1 %", f"supertopic {name}", seed, figures(model, texts_test, y_test, **test))
        alone = GridSearchCV(LogisticRegression(max_iter=500), {"C": [0.1, 1.0, 10.0, 100.0]}, cv=3)
        centre, scale = vectors[known].mean(axis=0), vectors[known].std(axis=0)
        alone.fit((vectors[known] - centre) / scale, y[known])
        found = figures(alone, (vectors_test - centre) / scale, y_test)
        report("few", "20 Newsgroups, 1 %", "logistic regression on embeddings", seed, found)


def noise(_: list[str]) -> None:
    texts, y, texts_test, y_test = films()
    rng = np.random.default_rng(0)
    columns, columns_test = rng.normal(size=(len(y), 300)), rng.normal(size=(len(y_test), 300))
    for seed in SEEDS:
        model = SLDAClassifier(random_state=seed, n_jobs=2).fit(texts, y)
        report("noise", "films", "without", seed, figures(model, texts_test, y_test))
        model = SLDAClassifier(random_state=seed, n_jobs=2).fit(texts, y, features=columns)
        report("noise", "films", "300 random columns", seed, figures(model, texts_test, y_test, features=columns_test))


def report(table: str, corpus: str, system: str, seed: int, found: dict[str, float]) -> None:
    rounded = {name: round(value, 4) for name, value in found.items()}
    print(table, corpus, system, seed, rounded, flush=True)
    ROWS.append({"table": table, "corpus": corpus, "system": system, "seed": seed} | rounded)


TABLES = {"accuracy": accuracy, "time": timing, "few": few_labels, "noise": noise}

if __name__ == "__main__":
    warnings.simplefilter("ignore", ConvergenceWarning)
    wanted, names = [a for a in sys.argv[1:] if a in TABLES], [a for a in sys.argv[1:] if a in CORPORA]
    for table in wanted or TABLES:
        TABLES[table](names)
    history.append(RESULTS, {"rows": ROWS})
