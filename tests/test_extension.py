"""The recipes of CONTRIBUTING.md: a response of one's own, and a term of omega of one's own."""

import json
import re
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent
from typing import ClassVar

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.feature_extraction.text import CountVectorizer
from test_posterior import check_exactly

from supertopic import SLDAClassifier, SLDACountRegressor, SLDARegressor, load, save
from supertopic.datasets import make_corpus
from supertopic.estimators.files import register
from supertopic.kernels.draws import inverse_gaussians, make_key, normals
from supertopic.model.responses.augmentation import OneLam
from supertopic.model.responses.numbers import NumberResponse
from supertopic.model.terms import TERMS, Parts, Term, expect
from supertopic.sampling import plan as plans
from supertopic.storage.container import read_file, write_file

pytestmark = pytest.mark.filterwarnings("ignore:Found no relation between topics")
RUN = {"words": False, "burn_in": 20, "n_draws": 10, "random_state": 0}


@dataclass(frozen=True, eq=False)
class Laplace(OneLam, NumberResponse):
    """psi = exp(-c |y - omega| / b): the median of a rating instead of its mean."""

    b: float  # in standard units

    def draw_lam(self, target, omega, key, first_doc):
        a = self.c * target.weight / self.b
        return inverse_gaussians(a * np.abs(target.y - omega), a * a, key, first_doc)

    def kappa(self, target):
        return np.zeros_like(target.y), target.y  # kappa = 0 + y lam

    def mean_lam(self, target, omega):
        return self.c * target.weight / self.b / np.maximum(np.abs(target.y - omega), 0.1)

    def log_density(self, y, omega):
        return -np.abs(y - omega) / self.b - np.log(2.0 * self.b)

    def variance(self, omega):
        return np.full(omega.shape, 2.0 * self.b**2)

    def cdf(self, y, omega):
        tail = 0.5 * np.exp(-np.abs(y - omega) / self.b)
        return np.where(y < omega, tail, 1.0 - tail)


@register
class MedianRegressor(SLDARegressor):
    """Ratings, of which a few are far out."""

    def make_response(self):
        return Laplace(float(self.c), 0.3)


@dataclass(frozen=True, eq=False)
class LengthWeight(Term):
    """A weight for the logarithm of a document's length. A document without known words has none."""

    weight: np.ndarray  # (chain, draw, R)
    centre: np.ndarray  # (1,): the mean of the logarithm in the first batch
    precision: np.ndarray  # (R,): of the weight

    name: ClassVar[str] = "length"

    def log_length(self, counts):
        n = counts.sum(axis=1)[:, None]
        return np.where(n > 0, np.log(np.maximum(n, 1)) - self.centre, 0.0)

    def omega(self, documents):
        return documents.pairs.over(self.weight)[:, None] * self.log_length(documents.counts)

    def parts(self, document):
        return Parts(None, {self.name: self.omega(document)[:, 0]})

    def tensors(self):
        return dict(vars(self))

    @classmethod
    def from_tensors(cls, tensors, response, shape):
        found, n_columns = cls(**tensors), shape.n_columns
        sizes = [(shape.n_chains, shape.n_draws, n_columns), (1,), (n_columns,)]
        expect([array.shape for array in vars(found).values()] == sizes, "the weight of length")
        return found


TERMS[LengthWeight.name] = LengthWeight


class LearnLength:
    """A normal approximation of the weight's posterior. Its prior is N(0, 1), or what earlier batches found."""

    name = LengthWeight.name

    def __call__(self, residual):
        counts, target, n_columns = residual.documents.counts, residual.target, residual.target.y.shape[1]
        centre = np.log(counts.sum(axis=1).clip(1)).mean(keepdims=True)
        prior = residual.previous or LengthWeight(np.zeros((1, 1, n_columns)), centre, np.ones(n_columns))
        x, start = prior.log_length(counts), prior.weight.mean(axis=(0, 1))
        mean = start
        for _ in range(20):  # Newton's method
            omega = target.offset + x * mean
            precision = prior.precision + (x**2 * residual.response.curvature(target, omega)).sum(axis=0)
            slope = (x * residual.response.cost(target, omega)[1]).sum(axis=0) + prior.precision * (mean - start)
            mean = mean - slope / precision
        shape = residual.n_chains, residual.n_draws, n_columns
        noise = normals((shape[0] * shape[1], n_columns), make_key(1 << 40)).reshape(shape)
        return LengthWeight(mean + noise / np.sqrt(precision), prior.centre, precision)


@register
class LengthRegressor(SLDARegressor):
    """Ratings that depend on the length of a document, too."""

    _learners = (LearnLength(),)


def test_contributing_shows_these_recipes():
    root = Path(__file__).parents[1]
    source = Path(__file__).read_text(encoding="utf-8")
    blocks = re.findall(r"^( *)```python\n(.*?)^ *```$", (root / "CONTRIBUTING.md").read_text("utf-8"), re.S | re.M)
    recipes = [dedent(body).strip() for _, body in blocks]
    assert len(recipes) == 4 and all(recipe in source for recipe in recipes)
    for name in ("Laplace", "MedianRegressor", "LengthWeight", "LearnLength", "LengthRegressor"):
        assert any(f"class {name}" in recipe for recipe in recipes)


# --- a response


@pytest.mark.parametrize("sampler", ["collapsed", "drawn"])
def test_its_posterior_is_exact(sampler, monkeypatch):
    monkeypatch.setattr(plans, "SPARSE_FROM", 10**6)
    check_exactly(
        sampler,
        "real",
        Laplace(1.5, 0.8),
        lambda y, omega, scale: 1.5 * (-np.abs(y - omega) / 0.8 - np.log(1.6)),
        [0.5, 0.5],
        {},
    )


def test_its_estimator_forgives_what_is_far_out():
    corpus = make_corpus(n_docs=400, n_topics=3, random_state=0)
    rng = np.random.default_rng(0)
    truth = corpus.doc_topic @ [1.0, 2.0, 4.0]
    y = truth + 0.1 * rng.normal(size=400)
    y[rng.permutation(400)[:40]] += 100.0
    run = {"n_topics": 3, "c": 1.0, "words": False, "burn_in": 60, "n_draws": 20, "random_state": 0}
    robust, mean = (kind(**run).fit(corpus.X, y).predict(corpus.X) for kind in (MedianRegressor, SLDARegressor))
    assert np.median(np.abs(robust - truth)) < 0.1 < 5 < np.median(np.abs(mean - truth))


def test_its_estimator_is_whole(tmp_path):
    """Spread, intervals, densities, explanations and files are those of the new response, in the ratings' units."""
    corpus = make_corpus(n_docs=300, n_topics=3, random_state=0)
    y = 50.0 + 10.0 * (corpus.doc_topic @ [1.0, 2.0, 4.0] + np.random.default_rng(0).laplace(0, 0.3, 300))
    model = MedianRegressor(3, c=1.0, **RUN).fit(corpus.X, y)
    new = corpus.X[:40]
    mean, std = model.predict(new, return_std=True)
    response = model.posterior_.response
    assert isinstance(response, Laplace)
    b = 0.3 * response.unit[0]
    assert (std >= np.sqrt(2.0) * b).all() and (std < 3.0 * b).all()
    omega = response.offset_in_units(model._new(new).omega())[..., 0].T  # (n_docs, draw)
    np.testing.assert_allclose(mean, omega.mean(axis=1))
    density = np.exp(-np.abs(y[:40, None] - omega) / b).mean(axis=1) / (2.0 * b)
    np.testing.assert_allclose(model.log_predictive(new, y[:40]), np.log(density))
    lower, upper = model.predict_interval(new, 0.8)
    for end, q in ((lower, 0.1), (upper, 0.9)):
        tail = 0.5 * np.exp(-np.abs(end[:, None] - omega) / b)
        np.testing.assert_allclose(np.where(end[:, None] < omega, tail, 1.0 - tail).mean(axis=1), q, atol=1e-6)
    assert set(model.surprising(new, y[:40], 5)["row"]) <= set(range(40))
    assert model.evaluate(new, y[:40])[1:3] == (pytest.approx(model.score(new, y[:40])), "R2")
    check_explanation(model, new[:1])
    save(model, tmp_path / "m")
    again = load(tmp_path / "m")
    assert type(again) is MedianRegressor and isinstance(again.posterior_.response, Laplace)
    np.testing.assert_array_equal(again.predict(new, return_std=True), (mean, std))
    again.partial_fit(corpus.X, y)
    model.partial_fit(corpus.X, y)
    assert model.n_batches_ == 2 and isinstance(model.posterior_.response, Laplace)
    np.testing.assert_array_equal(again.predict(new, return_std=True), model.predict(new, return_std=True))
    assert (model.predict(new) != mean).any()
    np.testing.assert_allclose(model.predict(new), mean, atol=b)


def check_explanation(model, document):
    """The parts add up to omega of the prediction."""
    found = model.explain(document)
    np.testing.assert_allclose(found.total.sum(axis=0) + sum(found.others.values()), found.omega)
    omega = model._new(document).omega()[:, 0].mean(axis=0)
    np.testing.assert_allclose(found.omega, model.posterior_.response.offset_in_units(omega))
    return found


def texts_of(counts):
    """Counts as texts, and the vectorizer that counts them again."""
    rows, names = csr_array(counts), np.array([f"word{i}" for i in range(counts.shape[1])])
    texts = [" ".join(np.repeat(names[row.indices], row.data)) for row in (rows[[i]] for i in range(rows.shape[0]))]
    return texts, CountVectorizer(vocabulary=names)


def check_page(model, counts, y, path):
    """The page is one file that evaluates and explains documents."""
    texts, vectorizer = texts_of(counts)
    np.testing.assert_array_equal(vectorizer.transform(texts).toarray(), counts.toarray())
    page = model.report(texts, y, path, vectorizer=vectorizer, test=True)
    assert path.read_text(encoding="utf-8") == page and type(model).__name__ in page and len(page) > 10_000
    return page


def test_its_page(tmp_path):
    corpus = make_corpus(n_docs=120, n_topics=3, random_state=0)
    y = 50.0 + 10.0 * (corpus.doc_topic @ [1.0, 2.0, 4.0] + np.random.default_rng(0).laplace(0, 0.3, 120))
    model = MedianRegressor(3, c=1.0, **RUN).fit(corpus.X, y)
    assert "rating" in model.posterior_.response.kind
    check_page(model, corpus.X[:20], y[:20], tmp_path / "page.html")


# --- a term


@pytest.fixture(scope="module")
def lengths():
    """Documents of which some are three times as long as others, and what their length adds."""
    corpus = make_corpus(n_docs=600, n_topics=3, doc_length=60, random_state=0)
    rng = np.random.default_rng(0)
    share = rng.uniform(0.3, 1.0, (600, 1))
    X = csr_array(rng.binomial(corpus.X.toarray(), share))
    n = X.sum(axis=1)
    return X, corpus.doc_topic @ [-1.0, 0.0, 1.0], np.log(n) - np.log(n).mean()


def test_a_term_is_learned_and_kept(lengths, tmp_path):
    X, effect, away = lengths
    y = 20.0 + 5.0 * (effect + 2.0 * away + 0.3 * np.random.default_rng(1).normal(size=600))
    plain, model = (kind(3, **RUN).fit(X[:300], y[:300]) for kind in (SLDARegressor, LengthRegressor))
    posterior, new = model.posterior_, X[500:]
    assert [term.name for term in posterior.terms] == ["topics", "intercept", "length"]
    weight = posterior.term(LengthWeight).weight * posterior.response.unit
    assert weight.mean() == pytest.approx(10.0, rel=0.1) and 0.01 < weight.std() < 2.0
    for name in ("coef_draws_", "topic_word_", "training_draws_"):  # topics know nothing of the term
        np.testing.assert_array_equal(getattr(model, name), getattr(plain, name))
    assert plain.score(new, y[500:]) < 0.6 < 0.85 < model.score(new, y[500:])
    assert model.predict(X[:300]).mean() == pytest.approx(y[:300].mean(), abs=0.3)  # right on average
    lower, upper = model.predict_interval(new, 0.9)
    assert np.mean((lower <= y[500:]) & (y[500:] <= upper)) > 0.8
    found = check_explanation(model, new[:1])
    expected = weight.mean() * posterior.term(LengthWeight).log_length(new[:1])[0, 0]
    assert list(found.others) == ["intercept", "length"] and found.others["length"][0] == pytest.approx(expected)
    assert "length" in repr(found) and "length" in found._repr_html_()
    mean, std = model.predict(new, return_std=True)
    save(model, tmp_path / "m")
    again = load(tmp_path / "m")
    np.testing.assert_array_equal(again.predict(new, return_std=True), (mean, std))
    check_page(again, new[:20], y[500:520], tmp_path / "page.html")
    for update in (model, again):
        update.partial_fit(X[300:500], y[300:500])
    np.testing.assert_array_equal(again.predict(new), model.predict(new))
    later = model.posterior_.term(LengthWeight)
    assert later.precision[0] > 1.3 * posterior.term(LengthWeight).precision[0]
    np.testing.assert_array_equal(later.centre, posterior.term(LengthWeight).centre)
    assert (later.weight * model.posterior_.response.unit).mean() == pytest.approx(10.0, rel=0.1)
    assert model.score(new, y[500:]) > 0.85
    model.partial_fit(X[:50])  # no response: nothing is learned of the weight
    np.testing.assert_allclose(model.posterior_.term(LengthWeight).precision, later.precision)
    np.testing.assert_allclose(model.posterior_.term(LengthWeight).weight, later.weight, atol=0.05)
    check_explanation(model, np.zeros((1, X.shape[1]), int))


class LengthClassifier(SLDAClassifier):
    _learners = LengthRegressor._learners


class LengthCounts(SLDACountRegressor):
    _learners = LengthRegressor._learners


@pytest.mark.parametrize("words", [False, True])
@pytest.mark.parametrize("kind", ["two classes", "three classes", "separate", "labels", "counts"])
def test_a_term_of_every_response(lengths, kind, words, short_regressions):
    """The same term, whatever the response is: it finds its part, and explanations add up."""
    X, effect, away = lengths
    rng, omega = np.random.default_rng(2), effect + 3.0 * away
    run, more = RUN | {"words": words}, {}
    if kind == "counts":
        model, y = LengthCounts(3, **run), rng.poisson(np.exp(omega))
    else:
        y = (rng.random(600) < 1 / (1 + np.exp(-omega))).astype(int)
        if kind in ("three classes", "separate"):
            y = np.where(rng.random(600) < 0.2, 2, y)
            more = {"multiclass": "separate"} if kind == "separate" else {}
        elif kind == "labels":
            y = np.column_stack([y, rng.integers(0, 2, 600)])
        model = LengthClassifier(3, **run, **more)
    weight = model.fit(X, y).posterior_.term(LengthWeight).weight.mean(axis=(0, 1))
    assert model.posterior_.terms[-1].name == "length"
    if kind in ("two classes", "counts"):
        assert 2.0 < weight[0] < 4.0
    elif kind == "labels":
        assert 2.0 < weight[0] < 4.0 and abs(weight[1]) < 1.0
    else:
        assert weight[0] < 0 < weight[1]
    check_explanation(model, X[:1])


def test_a_term_of_documents_in_files(lengths, tmp_path, monkeypatch, short_regressions):
    """`fit_files` learns the term, too, with the same bits; where there are too many tokens it warns."""
    X, effect, away = lengths
    y, (texts, _) = effect + 2.0 * away, texts_of(X)
    lines = (json.dumps({"text": text, "y": value}) for text, value in zip(texts[:200], y, strict=False))
    (tmp_path / "docs.jsonl").write_text("\n".join(lines), encoding="utf-8")
    model = LengthRegressor(3, **RUN).fit_files(tmp_path / "docs.jsonl", label="y")
    counts = model.vectorizer_.transform(texts)
    other = LengthRegressor(3, **RUN).fit(counts[:200], y[:200])
    assert model.posterior_.term(LengthWeight).weight.mean() > 0.5
    np.testing.assert_array_equal(model.predict(counts[200:]), other.predict(counts[200:]))
    monkeypatch.setattr("supertopic.estimators.from_files.IN_MEMORY", 100)
    with pytest.warns(UserWarning, match="further terms need all documents"):
        without = LengthRegressor(3, **RUN).fit_files(tmp_path / "docs.jsonl", label="y")
    assert without.posterior_.find(LengthWeight) is None


class Looks:
    """A term that adds nothing, and a learner that keeps what it was shown."""

    name = LengthWeight.name

    def __init__(self):
        self.seen = []

    def __call__(self, residual):
        self.seen.append(residual)
        n_columns = residual.target.y.shape[1]
        return LengthWeight(np.zeros((residual.n_chains, residual.n_draws, n_columns)), np.zeros(1), np.ones(n_columns))


def test_what_a_learner_is_given():
    """Documents that were not held out, covariates as the user gave them, and what the other terms say of omega."""
    corpus = make_corpus(n_docs=200, n_topics=3, random_state=0)
    Z = np.random.default_rng(0).normal(7.0, 3.0, (200, 2))
    y = corpus.doc_topic @ [1.0, 2.0, 3.0] + Z[:, 0]
    learner = Looks()

    class Looking(SLDARegressor):
        _learners = (learner,)

    model = Looking(3, held_out=0, **RUN).fit(corpus.X, y, covariates=Z)
    (residual,) = learner.seen
    np.testing.assert_array_equal(residual.documents.counts.toarray(), corpus.X.toarray())
    np.testing.assert_allclose(residual.documents.covariates, Z)
    assert residual.previous is None and residual.response.c == 1.0
    np.testing.assert_allclose(residual.response.scale, model.posterior_.scale.mean(axis=(0, 1)))
    np.testing.assert_allclose(residual.target.y[:, 0], (y - y.mean()) / y.std())
    assert np.corrcoef(residual.target.offset[:, 0], y)[0, 1] > 0.9
    term = model.posterior_.term(LengthWeight)
    model.partial_fit(corpus.X, y, covariates=Z)
    assert learner.seen[1].previous is term
    np.testing.assert_allclose(learner.seen[1].documents.covariates, Z)


def test_a_wrong_term_in_a_file_is_refused(lengths, tmp_path):
    X, effect, away = lengths
    model = LengthRegressor(3, **RUN).fit(X[:100], effect[:100] + away[:100])
    save(model, tmp_path / "m")
    header, tensors = read_file(tmp_path / "m", "supertopic model")
    weight, names = tensors["terms.length.weight"], header["posterior"]["terms"]
    for wrong in (weight[:1], weight[:, :1], np.full_like(weight, np.nan)):
        write_file(tmp_path / "w", header, tensors | {"terms.length.weight": np.ascontiguousarray(wrong)})
        with pytest.raises(ValueError, match="not a valid supertopic model"):
            load(tmp_path / "w")
    for stray in ([*names, "width"], names[1:], [names[0], names[2]], [*names, "topics"]):
        write_file(tmp_path / "w", header | {"posterior": header["posterior"] | {"terms": stray}}, tensors)
        with pytest.raises(ValueError, match="not a valid supertopic model"):
            load(tmp_path / "w")
    assert names == ["topics", "intercept", "length"]
