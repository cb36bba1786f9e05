"""Features in pairs: each case is a row of a covering design, compared with definitions and with other ways to it."""

import copy
import inspect
import itertools
import pickle
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import lru_cache

import numpy as np
import pandas
import pytest
import scipy.sparse as sp
from scipy.optimize import brentq
from scipy.special import expit, logit
from scipy.stats import norm, rankdata
from sklearn.metrics import r2_score

from supertopic import (
    MedLDAClassifier,
    Prior,
    Seeds,
    SLDAClassifier,
    SLDACountRegressor,
    SLDAOrdinalClassifier,
    SLDARegressor,
    load,
    save,
)
from supertopic.inference import fit as fit_room
from supertopic.inference import linear as linear_room
from supertopic.inference import weights as weights_room
from supertopic.inference.level import sample_omegas
from supertopic.inference.shrinkage import FACTORS, SCALES, USUAL
from supertopic.model.linear import Dictionary, FeatureWeights, WordWeights
from supertopic.model.terms import CovariateWeights, Intercept, TopicWeights
from supertopic.sampling.chain import Chain

K, V, N_DRAWS, BURN_IN = 3, 25, 3, 3
SWEEPS = {"collapsed": 4, "delayed": 6, "drawn": 9}  # fewer draws of topics than of weights, as many, and more
WORDS = np.array([f"w{i}" for i in range(V)], dtype=object)
CLASSES = {"binary": ["a", "b"], "classes": ["a", "b", "c"], "labels": ["p", "o", "q"], "hinge": ["a", "b", "c"],
           "ordinal": ["a", "b", "c", "d"]}  # fmt: skip
FEATURES = {
    "response": ("binary", "classes", "labels", "hinge", "rating", "ratings", "counts", "ordinal"),
    "multiclass": ("shared", "separate", "stick_breaking"),
    "covariates": (False, True),
    "weights": (False, True),
    "unknown": (False, True),
    "known": ("", "seeds", "prior"),
    "n_chains": (1, 2),
    "resumed": (False, True),
    "partial": (False, True),
    "sampler": ("collapsed", "delayed", "drawn"),
    "loaded": (False, True),
    "words": (False, True),
    "features": (False, True),
    "topics_first": (False, True),
    "held_out": (0.0, 0.2),
    "optimize_priors": (False, True),
    "exposure": (False, True),
}


@dataclass(frozen=True)
class Case:
    """One row of the design."""

    response: str
    multiclass: str
    covariates: bool
    weights: bool
    unknown: bool
    known: str
    n_chains: int
    resumed: bool
    partial: bool
    sampler: str
    loaded: bool
    words: bool
    features: bool
    topics_first: bool
    held_out: float
    optimize_priors: bool
    exposure: bool

    @property
    def possible(self):
        several = self.response in ("classes", "labels") or (self.response == "binary" and self.multiclass != "shared")
        return (several or self.multiclass == "shared") and (self.response == "counts" or not self.exposure)

    @property
    def linear(self):
        return self.words or self.features

    @property
    def sticks(self):
        return self.multiclass == "stick_breaking" and self.response == "classes"

    @property
    def balanced(self):
        return self.response in CLASSES and self.sampler == "drawn"

    @property
    def exclusive(self):
        return self.response == "classes" and not self.sticks

    @property
    def n_columns(self):
        return {"binary": 1, "rating": 1, "counts": 1, "ratings": 2, "ordinal": 1}.get(self.response, 3 - self.sticks)

    @property
    def n_sets(self):
        return self.n_columns if self.multiclass == "separate" else 1

    def __str__(self):
        words = [self.response, self.multiclass, self.known, f"{self.n_chains} chains", self.sampler]
        words += [name for name in FEATURES if getattr(self, name) is True] + ["held out"] * (self.held_out > 0)
        return " ".join(word for word in words if word)


def all_pairs(n_tried=100):
    """Cases in which every possible pair of features occurs at least twice: the best of some random ones, each time."""
    rng, left, found = np.random.default_rng(4), {}, []
    for a, b in itertools.combinations(FEATURES, 2):
        left |= {(a, x, b, y): 2 for x in FEATURES[a] for y in FEATURES[b]}
    dead = 0
    while any(left.values()) and dead < 6:
        tried = [Case(*(values[rng.integers(len(values))] for values in FEATURES.values())) for _ in range(n_tried)]
        gains = [sum(map(left.get, pairs_of(case))) if case.possible else -1 for case in tried]
        best = tried[int(np.argmax(gains))]
        dead = dead + 1 if max(gains) <= 0 else 0
        if max(gains) > 0:
            found.append(best)
            for pair in pairs_of(best):
                left[pair] = max(left[pair] - 1, 0)
    return found


def pairs_of(case):
    return [(a, getattr(case, a), b, getattr(case, b)) for a, b in itertools.combinations(FEATURES, 2)]


PAIRS = all_pairs()


class Batch:
    """Documents, and all that `fit` and `predict` take beside them."""

    def __init__(self, case, number, n_docs, words=WORDS):
        rng = np.random.default_rng([7, number])
        self.case, self.words = case, words
        share = rng.dirichlet(np.full(K, 0.4), n_docs)
        phi = np.array([np.where(np.arange(V) % K == k, 6.0, 1.0) for k in range(K)])
        phi[:, 21:] *= {0: 0.05, 1: 2.0}.get(number, 1.0)  # words that later batches have, and the first one hardly
        phi /= phi.sum(axis=1, keepdims=True)
        lengths = rng.integers(1, 22, n_docs) * (rng.random(n_docs) > 0.08)
        self.X = sp.csr_array(np.array([rng.multinomial(n, p @ phi) for n, p in zip(lengths, share, strict=True)]))
        self.beside = {}
        self.Z = rng.normal(size=(n_docs, 2)) * [1.0, 30.0] + [0.5, -100.0]
        effect = 4.0 * share - 1.2 + 0.4 * self.Z[:, :1]
        if case.covariates:
            self.beside["covariates"] = self.Z + 0.5 * number
        if case.features:
            self.beside["features"] = np.column_stack([effect[:, 0] + 0.3 * self.Z[:, 0], self.Z, np.full(n_docs, 7.0)])
        if case.exposure:
            self.beside["exposure"] = 2.0 ** rng.integers(-1, 3, n_docs)
        self.weight = 2.0 ** rng.integers(-1, 2, n_docs)
        self.missing = rng.random((n_docs, K)) < 0.15
        self.missing[: n_docs // 10] = True
        self.y = getattr(self, case.response)(effect + 0.5 * rng.normal(size=effect.shape), rng)

    def binary(self, effect, rng):
        return np.array(["a", "b"], object)[(effect[:, 0] > 0).astype(int)]

    def classes(self, effect, rng):
        return np.array(["a", "b", "c"], object)[(effect + [0.0, 0.6, -0.3]).argmax(axis=1)]

    hinge = classes

    def labels(self, effect, rng):
        return (effect > [0.0, -0.5, 0.6]).astype(float)

    def ordinal(self, effect, rng):
        return np.array(["a", "b", "c", "d"], object)[np.digitize(effect[:, 0], [-0.8, 0.3, 2.4])]  # "d" is rare

    def rating(self, effect, rng):
        return 3.0 + 2.0 * effect[:, 0]

    def ratings(self, effect, rng):
        return [3.0, -50.0] + [2.0, 20.0] * effect[:, :2]

    def counts(self, effect, rng):
        return rng.poisson(np.exp(0.3 + 0.5 * effect[:, 0]) * self.beside.get("exposure", 1.0)).astype(float)

    @property
    def unknown(self):
        """Which responses are unknown, in the shape of y."""
        return self.missing[:, 0] if self.y.ndim == 1 else self.missing[:, : self.y.shape[1]]

    def known_y(self):
        """y with some of it unknown, where that is in the case."""
        y = self.y.copy()
        if self.case.unknown:
            y[self.unknown] = None if y.dtype == object else np.nan
        return y

    def arguments(self):
        weight = {"sample_weight": self.weight} if self.case.weights else {}
        y = self.known_y()
        if self.case.response == "labels" and not self.case.partial:
            y = pandas.DataFrame(y, columns=CLASSES["labels"])
        return {"X": self.X, "y": y, **weight, **self.beside, "feature_names": self.words}

    # the definition of what the model is to make of them

    @property
    def columns(self):
        """y and its weights as columns of numbers, in the user's units."""
        y, weight = self.y, self.weight if self.case.weights else np.ones(len(self.y))
        known = ~self.unknown if self.case.unknown else np.ones(self.y.shape, bool)
        known = known.reshape(len(y), -1) & (weight > 0)[:, None]
        if self.case.response not in ("binary", "classes", "hinge", "ordinal"):
            y, weight = np.where(known, y.reshape(known.shape), 0.0), known * weight[:, None]
            if self.case.balanced:  # having a label and not having it have the same sum
                n, yes = known.sum(axis=0), y.sum(axis=0)
                weight = weight * np.where(y > 0, n / np.maximum(2 * yes, 1), n / np.maximum(2 * (n - yes), 1))
            return y, weight
        names = CLASSES[self.case.response]
        if self.case.balanced:  # every class that is there has the same sum
            sizes = {name: np.sum((y == name) & known[:, 0]) for name in names}
            there = sum(size > 0 for size in sizes.values())
            weight = weight * [known.sum() / (there * sizes[label]) if sizes[label] else 0.0 for label in y]
        if self.case.response == "binary":
            return known * (y == "b")[:, None] * 1.0, known * weight[:, None]
        if self.case.response == "ordinal":
            place = {name: float(i) for i, name in enumerate(names)}
            return known * np.array([[place[label]] for label in y]), known * weight[:, None]
        columns = np.array([[label == name for name in names] for label in y]) * known * 1.0
        weights = np.repeat(known * weight[:, None], 3, axis=1)
        if self.case.sticks:  # a or later; b or later
            reached = np.array([[True, label != "a"] for label in y])
            return columns[:, :2], weights[:, :2] * np.where(known, reached, True)
        return columns, weights

    @property
    def empty(self):
        return np.asarray(self.X.sum(axis=1)).ravel() == 0

    @property
    def exposure(self):
        return self.beside.get("exposure", np.ones(len(self.y)))[:, None]


def estimator(case, unit=1.0, **more):
    """The estimator of a case; `unit` is that of ratings."""
    kinds = {
        "hinge": MedLDAClassifier,
        "ordinal": SLDAOrdinalClassifier,
        "rating": SLDARegressor,
        "ratings": SLDARegressor,
        "counts": SLDACountRegressor,
    }
    kind = kinds.get(case.response, SLDAClassifier)
    if kind is SLDAClassifier:
        more = {"multiclass": case.multiclass} | more
    names = CLASSES.get(case.response, ["x", "y"])
    if case.response == "ordinal":
        more = {"order": names} | more
    if case.balanced:
        more = {"class_weight": "balanced"} | more
    if case.known == "seeds":
        pull = "auto" if case.response in CLASSES else {names[1]: 0.8 * unit}
        seeds = Seeds({names[1]: ["w1", "w4", "w7"], "free": ["w2"]}, strength=0.5, weights=pull)
        more = {"seeds": seeds} | more
    if case.known == "prior":
        more = {"prior": Prior(prior_model(prior_of(case), unit), weights=True, discount=0.5)} | more
    settings = {
        "words": case.words, "priority": "topics" if case.topics_first else "prediction",
        "held_out": case.held_out, "optimize_priors": case.optimize_priors,
        "n_chains": case.n_chains, "sampler": case.sampler, "burn_in": BURN_IN, "n_draws": N_DRAWS,
        "predict_sweeps": SWEEPS[case.sampler], "n_jobs": 1, "random_state": 11,
        "init": "random" if case.multiclass == "separate" else "nmf",  # a binary problem knows of no other class
    }  # fmt: skip
    return kind(K, **(settings | more))


def prior_of(case):
    """The case of the model that is the prior: other cases have the same one."""
    return replace(
        case, weights=False, unknown=False, known="", n_chains=1, resumed=False, partial=False, sampler="collapsed",
        loaded=False, words=False, features=False, topics_first=False, held_out=0.0, optimize_priors=False,
    )  # fmt: skip


@lru_cache
def prior_model(case, unit=1.0):
    """A model with other words in another order, fewer topics, other covariates and another unit of ratings."""
    batch = Batch(case, 2, 60)
    words = WORDS.copy()
    words[:2] = "alien", "other"
    columns = np.r_[10:V, :10]
    batch.X, batch.words = batch.X[:, columns], words[columns]
    if case.response in ("rating", "ratings"):
        batch.y = unit * (10.0 + 3.0 * batch.y) + 2.0 * (unit - 1.0)
    return estimator(case, n_chains=2).set_params(n_topics=2).fit(**batch.arguments())


class StoppedError(Exception):
    pass


def stopping(monkeypatch, n_steps, call):
    """Make a call that stops after some iterations of its chains."""
    step, left = Chain.step, [n_steps]

    def short_step(chain):
        left[0] -= 1
        if left[0] < 0:
            raise StoppedError
        step(chain)

    with monkeypatch.context() as patch:
        patch.setattr(Chain, "step", short_step)
        with pytest.raises(StoppedError):
            call()


def run(case, batches, model=None, resumed=None, folder=None, monkeypatch=None, discount=0.5):
    """The fitted model of a case."""
    model = estimator(case) if model is None else model
    n_steps = int(0.7 * case.n_sets * model.n_chains * (BURN_IN + N_DRAWS))
    for i, batch in enumerate(batches[: 1 + case.partial]):
        more = {"discount": discount} if i else {}
        if case.partial and not i and case.response in CLASSES:
            more["classes"] = CLASSES[case.response]
        verb = model.partial_fit if case.partial else model.fit
        arguments = batch.arguments() | more
        if resumed:
            before = getattr(model, "posterior_", None)
            arguments |= {"checkpoint": folder / f"{i}", "checkpoint_every": 0}
            stopping(monkeypatch, n_steps, lambda call=verb, given=arguments: call(**given))
            assert getattr(model, "posterior_", None) is before
        verb(**arguments)
    return model


def assert_same(a, b, path="", without=("timings", "doc_topic", "cross_fitted")):
    """Every bit of two values."""
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        assert np.shape(a) == np.shape(b) and np.asarray(a).dtype == np.asarray(b).dtype, path
        np.testing.assert_array_equal(a, b, err_msg=path)
    elif is_dataclass(a):
        assert type(a) is type(b), path
        for field in fields(a):
            if field.name not in without:
                assert_same(getattr(a, field.name), getattr(b, field.name), f"{path}.{field.name}", without)
    elif hasattr(a, "_fields"):
        for name in a._fields:
            if name not in without:
                assert_same(getattr(a, name), getattr(b, name), f"{path}.{name}", without)
    elif isinstance(a, tuple | list):
        assert len(a) == len(b), path
        for i, (one, other) in enumerate(zip(a, b, strict=True)):
            assert_same(one, other, f"{path}[{i}]", without)
    elif isinstance(a, dict):
        assert set(a) == set(b), path
        for name in a:
            assert_same(a[name], b[name], f"{path}[{name!r}]", without)
    else:
        assert a == b or (a != a and b != b), (path, a, b)


DISCOUNT = 0.5


class Recorder:
    """What some functions were given and gave back, by their names: copies, since arrays may change later."""

    def __init__(self, monkeypatch):
        self.calls = {}
        rooms = {
            fit_room: ("find_base_rate", "chain_priors", "split_corpus", "run_chains"),
            weights_room: ("estimate_shrinkage", "shift_level", "match_own"),
            linear_room: ("learn_beside", "estimate_shrinkage"),
        }
        for room, names in rooms.items():
            for name in names:
                place = f"{name} of both" if room is linear_room and name == "estimate_shrinkage" else name
                monkeypatch.setattr(room, name, self.watch(place, getattr(room, name)))

    def watch(self, place, function):
        signature, calls = inspect.signature(function), self.calls.setdefault(place, [])

        def watched(*args, **more):
            given = signature.bind(*args, **more)
            given.apply_defaults()
            some = ("shift_level", "estimate_shrinkage", "estimate_shrinkage of both")
            kept = copy.deepcopy(given.arguments) if place in some else given.arguments
            found = function(*args, **more)
            calls.append((kept, found))
            return found

        return watched


def cumulated(batches, function):
    """The sum of something over batches, discounted."""
    return sum(DISCOUNT ** (len(batches) - 1 - i) * function(batch) for i, batch in enumerate(batches))


class Rates:
    """The base rate of some batches by its definition: means of y, by exposure, and what stands for them in omega."""

    def __init__(self, case, batches):
        self.case = case
        given = [(*batch.columns, batch.exposure, batch.empty) for batch in batches]
        scale = [DISCOUNT ** (len(given) - 1 - i) for i in range(len(given))]
        y, n, y_empty, n_empty, self.weight = (
            sum(d * function(*one) for d, one in zip(scale, given, strict=True))
            for function in (
                lambda y, w, e, _: (w * y).sum(axis=0),
                lambda y, w, e, _: (w * e).sum(axis=0),
                lambda y, w, e, empty: (w * y)[empty].sum(axis=0),
                lambda y, w, e, empty: (w * e)[empty].sum(axis=0),
                lambda y, w, e, _: w.sum(axis=0),
            )
        )
        few = 5.0 * (given[-1][1] * given[-1][2]).max(axis=0)
        self.mean, self.thresholds = y / n, base_thresholds(batches[0])
        self.empty_mean = (y_empty + few * self.mean) / (n_empty + few)
        self.empty_documents = 5.0 + n_empty / (few / 5.0)

    def link(self, mean):
        """The offset of regressions, in the user's units."""
        if self.case.response in ("rating", "ratings"):
            return mean
        if self.case.response == "ordinal":  # whose thresholds have the mean number of the class

            def more(omega, mean):
                return expit(omega - self.thresholds).sum() - mean

            numbers = np.atleast_2d(mean)[:, 0]
            found = np.array([[brentq(more, -40, 40, (number,), 1e-12)] for number in numbers])
            return found.reshape(np.shape(mean))
        return np.log(mean) if self.case.response == "counts" else np.log(mean / (1.0 - mean))

    def predictive(self, mean):
        return np.log(mean) if self.case.exclusive else self.link(mean)


def base_thresholds(batch):
    """Thresholds that give a document with omega = 0 the base rates, half a pseudo-document of each class included."""
    y, weight = batch.columns
    sizes = [weight[y == g].sum() + 0.5 for g in range(4)]
    return -logit(1.0 - np.cumsum(sizes)[:-1] / sum(sizes))


def units(case, batches):
    """Centre and unit of standard numbers: the weighted mean of all batches, the weighted spread of the first."""
    if case.response not in ("rating", "ratings"):
        return 0.0, 1.0
    y, weight = batches[0].columns
    mean = (weight * y).sum(axis=0) / weight.sum(axis=0)
    return Rates(case, batches).mean, np.sqrt((weight * (y - mean) ** 2).sum(axis=0) / weight.sum(axis=0))


def close(a, b, tolerance=1e-9):
    np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)


def check_base_rate(case, batches, model):
    rates, posterior = Rates(case, batches), model.posterior_
    close(model.intercept_, rates.predictive(rates.mean))
    close(model.empty_intercept_, rates.predictive(rates.empty_mean))
    close(model.empty_documents_, rates.empty_documents)
    close(posterior.carryover.level, rates.link(rates.mean))
    close(posterior.carryover.sums[4], rates.weight)
    centre, unit = units(case, batches)
    close(posterior.response.unit, unit)
    close(posterior.response.offset_in_units(np.zeros(case.n_columns)), centre + np.zeros(case.n_columns))


def dense(statistics, r):
    """Precision and shift of a column."""
    width = len(statistics.shift)
    matrix = np.zeros((width, width))
    matrix[np.tril_indices(width)] = statistics.precision[:, r]
    return matrix + np.tril(matrix, -1).T, statistics.shift[:, r]


def log_density(statistics, r, eta):
    precision, shift = dense(statistics, r)
    return shift @ eta - 0.5 * eta @ precision @ eta


def check_chain_priors(case, batches, mask, previous, found):
    """Pseudo-counts, and what the statistics of earlier documents say of omega, whatever the units."""
    batch, rates = batches[-1], Rates(case, batches)
    seeded = np.zeros((V, K))
    if case.known == "seeds":
        total = np.asarray(batch.X.sum(axis=0)).ravel()
        for k, words in enumerate([[1, 4, 7], [2]]):
            seeded[words, k] = np.maximum(1, np.rint(0.5 * total[words]))
    theirs = previous
    if previous is None and case.known == "prior":
        theirs = prior_model(prior_of(case)).posterior_
    assert len(found) == case.n_sets * case.n_chains
    for index, prior in enumerate(found):
        place, chain = divmod(index, case.n_chains)
        if theirs is None and case.known == "":
            assert prior.pseudo_counts is None and prior.weights is None and not prior.pseudo_tokens.any()
            continue
        expected, tokens = seeded.copy(), seeded.sum(axis=0)
        if theirs is not None:
            own, at = theirs.topics[place], chain % theirs.n_chains
            counts = own.word_topic[at] / own.n_draws
            if previous is not None:
                expected += DISCOUNT * np.maximum(counts - seeded, 0)
                tokens = tokens + DISCOUNT * (own.pseudo_tokens[chain] - tokens)
            else:
                for word, row in zip(theirs.vocabulary, counts, strict=True):
                    if word in WORDS:
                        expected[WORDS.tolist().index(word), : len(row)] += 0.5 * row
        assert np.abs(prior.pseudo_counts - expected).max() < 1
        assert (prior.pseudo_counts[expected == 0] == 0).all()
        if theirs is not None and previous is None:
            tokens = prior.pseudo_counts.sum(axis=0)
        close(prior.pseudo_tokens, tokens)
        if theirs is not None:
            check_carried(case, batches, rates, theirs, place, at, prior.weights)
        elif case.known == "seeds":
            check_pull(case, batches, mask, place, prior.weights)


def check_carried(case, batches, rates, theirs, place, chain, found):
    """Differences of the log density of weights are those of the earlier model, discounted, for the same omega."""
    rng, (_, unit) = np.random.default_rng(place), units(case, batches)
    columns = list(range(case.n_columns)) if case.n_sets == 1 else [place]
    unit, level = (np.broadcast_to(value, (case.n_columns,)) for value in (unit, rates.link(rates.mean)))
    old_unit = np.broadcast_to(theirs.response.unit, (case.n_columns,))
    n_theirs = theirs.topics[0].n_topics
    ours = moments = (np.zeros(0), np.ones(0))
    if case.covariates:
        Z = batches[0].beside["covariates"]
        ours, moments = (Z.mean(axis=0), Z.std(axis=0)), theirs.covariates.columns
        moments = moments.mean, moments.scale

    def translate(eta, r):
        """Their weights that give the same omega as ours, in the user's units."""
        by_covariates = unit[r] * eta[K:] / ours[1]  # for one unit of each
        of_topics = level[r] + unit[r] * eta[:n_theirs] - by_covariates @ ours[0]
        of_topics = of_topics - theirs.carryover.level[r] + by_covariates @ moments[0]
        return np.concatenate([of_topics, by_covariates * moments[1]]) / old_unit[r]

    for new, old in zip(found, theirs.carryover.weights[place][chain], strict=True):
        for i, r in enumerate(columns):
            a, b = rng.normal(size=(2, K + len(ours[0])))
            gain = log_density(new, i, a) - log_density(new, i, b)
            free = np.arange(n_theirs, K)  # topics of which nothing is known
            assert not new.shift[free].any() and not dense(new, i)[0][free].any()
            wanted = log_density(old, i, translate(a, r)) - log_density(old, i, translate(b, r))
            np.testing.assert_allclose(gain, DISCOUNT * wanted, rtol=1e-7, atol=1e-9)


def check_pull(case, batches, mask, place, found):
    """The prior means of seeded topics, and how firm they are."""
    pulls = {"binary": [1], "classes": [0, 1, 0], "labels": [0, 1, 0], "hinge": [0, 1, 0]}.get(case.response)
    pulls = [-1, 1] if case.sticks else [-1 / 3] if case.response == "ordinal" else pulls
    unit = np.broadcast_to(units(case, batches)[1], (case.n_columns,))
    y, weight = batches[-1].columns
    column, yes = 0 if case.response == "binary" else 1, ((weight > 0) & (y == 1))[~mask]
    support = 0.5 * (weight > 0)[~mask].sum() if case.response == "ordinal" else yes.sum(axis=0)[column % len(yes[0])]
    belief = 1.0 / (1.0 + support) if pulls else 1.0
    for i, r in enumerate(range(case.n_columns) if case.n_sets == 1 else [place]):
        training, prediction = (6.0 * pulls[r], 40.0 * pulls[r]) if pulls else (0.8 / unit[r], 0.8 / unit[r])
        training, prediction = belief * training, belief * prediction
        spread = 0.1 if pulls else 0.5
        largest = max(map(abs, pulls)) * 40.0 if pulls else np.max(0.8 / unit)
        largest = abs(40.0 * pulls[r]) if pulls and case.n_sets > 1 else largest
        close(found.training.shift[:, i], [training] + [0.0] * (len(found.training.shift) - 1))  # nu2 is 1
        assert not found.training.precision.any() and not found.reported.shift.any()
        precision, shift = dense(found.prediction, i)
        precision = precision + np.eye(len(shift)) / 100.0
        variance, free = (spread * largest) ** 2, 4.0
        variances = [variance] + [free] * (K - 1) if largest else [100.0] * K  # a set of another class knows nothing
        variances = [belief * v + (1 - belief) * 100.0 for v in variances] + [100.0] * (len(shift) - K)
        close(np.linalg.inv(precision), np.diag(variances))
        close(np.linalg.solve(precision, shift), [prediction] + [0.0] * (len(shift) - 1))


def shares_of(case, batches, model, place, chain, prior):
    """The share of each topic in the tokens of documents."""
    part = model.posterior_.topics[place]
    return np.maximum(part.word_topic[chain].sum(axis=0) / part.n_draws - prior.pseudo_tokens, 1e-300)


class Made:
    """The weights of predictions by their definition, from the runs of the chains."""

    def __init__(self, case, batches, model, runs, priors):
        posterior, self.case = model.posterior_, case
        n_known = Rates(case, batches).weight
        firm = (case.response != "hinge") * n_known / (n_known + 5.0)
        eta = [
            [runs[place * case.n_chains + chain].weights for place in range(case.n_sets)]
            for chain in range(case.n_chains)
        ]
        self.scale = np.array([np.concatenate([w.scale for w in sets], axis=1) for sets in eta])
        self.left_out = np.mean([np.concatenate([w.left_out_omega for w in sets], axis=1) for sets in eta], axis=0)
        self.raw, self.beside, self.centre = [], [], []  # [chain]: of topics, for each column; of covariates; (R,)
        for chain, sets in enumerate(eta):
            raw, centre = [], []
            for place, weights in enumerate(sets):
                tokens = shares_of(case, batches, model, place, chain, priors[place * case.n_chains + chain])
                for r in range(weights.eta.shape[1]):
                    raw.append(weights.eta[:, r, :K])
                    centre.append(raw[-1].mean(axis=0) @ (tokens / tokens.sum()))
            self.raw.append(raw)
            self.centre.append(np.array(centre) * firm)
            self.beside.append(np.concatenate([w.eta[:, :, K:] for w in sets], axis=1))
        self.centre, self.beside = np.array(self.centre), np.array(self.beside)
        self.topics = np.empty((case.n_chains, N_DRAWS, case.n_columns))  # the factors
        own = np.stack([
            draws[..., np.argsort(order)] for draws, order in zip(posterior.prediction, posterior.order, strict=True)
        ])  # fmt: skip
        for chain, draw, r in np.ndindex(self.topics.shape):
            base = self.raw[chain][r][draw] - self.centre[chain, r]
            at = np.argmax(np.abs(base))
            start = (r if case.n_sets > 1 else 0) * K
            self.topics[chain, draw, r] = own[chain, draw, r, start + at] / base[at]
            wanted = np.zeros(case.n_sets * K)
            wanted[start : start + K] = self.topics[chain, draw, r] * base
            close(own[chain, draw, r], wanted)
        self.covariates = np.ones_like(self.topics)
        if case.covariates:
            eta = posterior.covariates.eta
            self.covariates = eta[..., 0] / self.beside[..., 0]
            close(eta, self.beside * self.covariates[..., None])
        self.linear = np.zeros_like(self.topics)
        terms = [term for term in (posterior.words, posterior.features) if term]
        assert len(terms) == case.words + case.features
        for term in terms:  # they have one factor
            self.linear = term.factor
            assert_same(term.factor, terms[0].factor)


def check_factors(case, model, made, alone, beside):
    """Factors are quantiles of their posteriors; without held-out documents they are the usual ones."""
    posterior, n = model.posterior_, case.n_chains * N_DRAWS
    scales = np.ones((*made.topics.shape[:2], 0))
    if made.scale.size and case.response != "ordinal":  # thresholds are moved: see `check_thresholds`
        scales = posterior.scale / made.scale
    if alone is None:
        usual = (1.0, 1.0) if case.topics_first else USUAL
        close(made.topics, usual[0] if case.linear else 1.0)
        close(made.linear, usual[1] if case.linear else 0.0)
        close(made.covariates, 1.0)
        close(scales, 1.0)
        return
    for factor, grid in ((made.topics, FACTORS), (made.covariates, FACTORS[1:]), (scales, SCALES)):
        assert (np.abs(factor[..., None] - grid).min(axis=-1) < 1e-9).all()
    assert (beside is None) == (case.topics_first or not case.linear)
    if case.exclusive:
        assert (np.ptp(made.topics, axis=2) < 1e-9).all()
    found = {"topics": made.topics, "covariates": made.covariates, "scale": scales}
    if beside is None:
        close(made.linear, 1.0 if case.linear else 0.0)
    else:
        found["topics"] = np.stack([made.topics, made.linear], axis=-1)
    for name, factors in found.items():
        grid, mass = (beside or alone).posteriors[name]
        for r in range(factors.shape[2]):
            cumulated = np.cumsum(mass[:, r if mass.shape[1] > 1 else 0])
            places = [min(np.sum(cumulated < (i + 0.5) / n), len(grid) - 1) for i in range(n)]
            own = factors[:, :, r].reshape(n, *grid.shape[1:])
            away = np.abs(own[:, None] - grid).reshape(n, len(grid), -1).max(axis=2)
            assert np.sort(away.argmin(axis=1)).tolist() == places and away.min(axis=1).max() < 1e-9


def batch_offset(case, batches, docs):
    """The offset of regressions on some documents of the last batch, at its own level, in standard units."""
    rates, here, (centre, unit) = Rates(case, batches), Rates(case, batches[-1:]), units(case, batches)
    empty = batches[-1].empty[docs][:, None]
    level = np.where(empty, rates.predictive(rates.empty_mean), rates.predictive(here.mean))
    return (level - centre) / unit + np.log(batches[-1].exposure[docs])


def check_level(case, batches, model, previous, made, mask, given, found, added, held_out):
    """omega of the training documents as if they were new, and the constant with which it is right on average."""
    posterior, (_, unit) = model.posterior_, units(case, batches)
    Z = batches[0].beside["covariates"] if case.covariates else np.zeros((1, 0))
    Z = (batches[-1].beside["covariates"] - Z.mean(axis=0)) / Z.std(axis=0) if case.covariates else Z
    by_covariates = Z[~mask] @ made.beside.mean(axis=(0, 1)).T if case.covariates else 0.0
    y, weight = batches[-1].columns
    offset, draws = batch_offset(case, batches, ~mask), given["draws"]
    words = ~batches[-1].empty[:, None]  # a document without words has no topics to be relative to
    close(given["target"].offset + np.zeros_like(y[~mask]), offset, 1e-8)
    close(given["target"].weight, weight[~mask])
    with_linear = (made.linear > 0).any(axis=2)
    kinds = np.unique(with_linear)
    assert len(kinds) == len(draws) and abs(sum(kind.share for kind in draws) - 1.0) < 1e-12
    for kind, used in zip(draws, kinds, strict=True):
        own = with_linear == used
        like = (made.left_out - words[~mask] * made.centre.mean(axis=0)) * made.topics[own].mean(axis=0)
        like = like + by_covariates * made.covariates[own].mean(axis=0)
        close(kind.like, like)
        close(kind.omega, offset + like + (added * made.linear[own].mean(axis=0) if used else 0.0), 1e-8)
        assert kind.share == own.mean()
        if held_out is not None:
            spread = []
            for chain, part in enumerate(held_out):
                for i, omega in enumerate(part.topics):
                    if own[chain, i % N_DRAWS]:
                        omega = (omega - words[mask] * made.centre[chain]) * made.topics[chain, i % N_DRAWS]
                        if case.covariates:
                            omega = omega + part.covariates[i] * made.covariates[chain, i % N_DRAWS]
                        spread.append(omega)
            close(kind.held_out, np.array(spread))
    earlier = np.zeros((3, case.n_columns))
    if previous is not None:
        away, n, bent = previous.carryover.level_shift
        earlier = np.array([DISCOUNT * away, DISCOUNT * n, bent])
    close(given["earlier"], earlier)
    away, n, bent = posterior.carryover.level_shift
    close(found, posterior.carryover.level_shift)
    level = (model.prediction_intercept_ - model.intercept_) / unit
    close(level, bent + away / np.where(n > 0, n, 1.0))
    some = np.isfinite(sum(kind.omega for kind in draws)).all(axis=1) & (weight[~mask] > 0).any(axis=1)
    some &= ~batches[-1].empty[~mask]
    if case.response in ("hinge", "ordinal") or some.sum() < 5:  # a hinge has no mean to be right on
        return
    w, target = weight[~mask][some], given["target"].y[some]
    mean = (w * sum(kind.share * (kind.omega - offset)[some] for kind in draws)).sum(axis=0) / w.sum(axis=0)
    close(away, earlier[0] - w.sum(axis=0) * mean, 1e-8)
    close(n, earlier[1] + w.sum(axis=0))
    past, now = 0.25 * earlier[1], w.sum(axis=0)
    shift = (bent * (past + now) - past * earlier[2]) / now - mean  # that of this batch alone
    draws = [kind._replace(omega=kind.omega[some], like=kind.like[some]) for kind in draws]
    omega = sample_omegas(draws, given["rng"]) + shift
    predicted = (w * posterior.response.mean(omega).mean(axis=0)).sum(axis=0) / w.sum(axis=0)
    wanted = (w * target).sum(axis=0) / w.sum(axis=0)
    known = (wanted > 0) & (wanted < 1) if case.response in CLASSES else wanted == wanted
    np.testing.assert_allclose(predicted[known], wanted[known], atol=1e-3)


def check_thresholds(case, batches, model, previous, made, mask, given, found):
    """All draws of a threshold are moved by a number, with which as many documents as were seen are above it."""
    close(model.threshold_draws_, made.scale + found)
    assert (np.diff(model.threshold_draws_, axis=2) > 0).all()
    y, weight = batches[-1].columns
    target, draws = given["seen"], given["draws"]
    some = np.isfinite(sum(kind.omega for kind in draws)).all(axis=1) & (weight[~mask] > 0).any(axis=1)
    some &= ~batches[-1].empty[~mask]
    draws = [kind._replace(omega=kind.omega[some], like=kind.like[some]) for kind in draws]
    y, weight, omega = y[~mask][some], weight[~mask][some], sample_omegas(draws, given["made"].rng(6)) + given["level"]
    close(target.y[some], y)

    def above(x):
        """The weight of documents that are predicted to be above each threshold."""
        return (weight * expit(omega - x).mean(axis=0)).sum(axis=0)

    drawn, earlier = made.scale.mean(axis=(0, 1)), 0.0
    before = drawn
    if previous is not None:
        before = drawn + previous.carryover.scale_shift
        earlier = DISCOUNT * previous.carryover.sums[4].max() / weight.sum()
    wanted = (weight * (y > np.arange(3))).sum(axis=0) + earlier * above(before)
    x, pseudo = before + found - (before - drawn), 0.5 * np.arange(3, 0, -1)  # half a pseudo-document in each class
    np.testing.assert_allclose((1.0 + earlier) * above(x) + 2.0 * expit(-x), wanted + pseudo, atol=1e-6)


def check_held_out(case, batches, model, mask, alone):
    """Which documents were held out, and draws of their omega: those of any new documents."""
    y, weight = batches[-1].columns
    may = (weight > 0).any(axis=1)
    if case.response in ("binary", "classes", "hinge"):
        kinds = [tuple(row) for row in y]
        sizes = [sum(kind == other for other, ok in zip(kinds, may, strict=True) if ok) for kind in kinds]
        may &= np.array(sizes) >= 4
    n = int(case.held_out * may.sum())
    assert mask.sum() == (n if n >= 5 else 0) and not mask[~may].any()
    if not mask.any():
        return
    (given, _), (centre, unit) = alone, units(case, batches)
    close(given["target"].y, np.where(weight > 0, (y - centre) / unit, 0.0)[mask])
    close(given["target"].weight, weight[mask])
    close(given["target"].offset + np.zeros_like(y[mask]), batch_offset(case, batches, mask), 1e-8)


def check_omega_of_held_out(case, batch, model, mask, draws, runs):
    """Held-out documents are as new ones are, in the first batch bit for bit."""
    raw = [
        np.array([runs[place * case.n_chains + chain].weights.eta for chain in range(case.n_chains)])
        for place in range(case.n_sets)
    ]
    documents = model._new(batch.X, **batch.beside).part(mask)
    topics = TopicWeights(tuple(eta[..., :K] for eta in raw)).omega(documents)
    assert_same(np.concatenate([part.topics for part in draws]), topics)
    if case.covariates:
        eta = np.concatenate([eta[..., K:] for eta in raw], axis=2)
        beside = CovariateWeights(model.posterior_.covariates.columns, eta).omega(documents)
        assert_same(np.concatenate([part.covariates for part in draws]), beside)


def tf_idf(dictionary, counts):
    """Rows by their definition."""
    rows = np.zeros((counts.shape[0], len(dictionary.word)))
    for d, row in enumerate(counts.toarray()):
        for i, (word, idf) in enumerate(zip(dictionary.word, dictionary.idf, strict=True)):
            rows[d, i] = (1.0 + np.log(row[word])) * idf if row[word] else 0.0
        rows[d] /= np.sqrt(np.sum(rows[d] ** 2)) or 1.0
    return rows


def feature_rows(case, batches, batch):
    """Rows of features by their definition: standardised as in the first batch, of about length 1."""
    first, own = batches[0].beside["features"], batch.beside["features"]
    return (
        np.column_stack([(own[:, :3] - first[:, :3].mean(axis=0)) / first[:, :3].std(axis=0), np.zeros(len(own))])
        / 3**0.5
    )


def check_linear(case, batches, model, previous, made, mask, given, beside, alone):
    """The words that have weights, rows of words and features, and what earlier batches say of their weights."""
    posterior, parts = model.posterior_, dict(zip(linear_names(case), given["parts"], strict=True))
    assert given["seen"].rows.tolist() == np.flatnonzero(~mask).tolist()
    assert given["held_out"].rows.tolist() == np.flatnonzero(mask).tolist()
    if case.features:
        close(parts["features"].x, feature_rows(case, batches, batches[-1]))
    offset = batch_offset(case, batches, ~mask)
    if case.covariates:
        Z = batches[0].beside["covariates"]
        Z = (batches[-1].beside["covariates"] - Z.mean(axis=0)) / Z.std(axis=0)
        offset = offset + Z[~mask] @ made.beside.mean(axis=(0, 1)).T
    if case.topics_first:  # with the factor that they have alone
        factor = alone.posteriors["topics"][0] @ alone.posteriors["topics"][1] if alone else 1.0
        offset = offset + factor * (made.left_out - ~batches[-1].empty[~mask, None] * made.centre.mean(axis=0))
    close(given["seen"].target.offset + np.zeros_like(made.left_out), offset, 1e-8)
    assert (given["judge"] is None) == (not case.topics_first or alone is None)
    if previous is None:
        assert all(part.past is None for part in parts.values()) and (beside is None or beside[0]["earlier"] is None)
    elif "topics beside words" in previous.carryover.grids and beside:
        check_grids(beside[0]["earlier"], previous.carryover.grids["topics beside words"])
    for name, part in parts.items():
        places = np.arange(part.x.shape[1]), np.arange(part.x.shape[1]), np.ones(part.x.shape[1])
        if name == "words":
            n_docs = cumulated(batches, lambda batch: (batch.X.toarray() > 0).sum(axis=0))
            whole = cumulated(batches, lambda batch: batch.X.shape[0])
            word, idf = posterior.words.dictionary
            assert word.tolist() == [w for w in range(V) if n_docs[w] > 1]
            close(idf, [np.log((1.0 + whole) / (1.0 + n_docs[w])) + 1.0 for w in word])
            close(part.x.toarray(), tf_idf(posterior.words.dictionary, batches[-1].X))
            if part.new is not None:  # as if the document were not counted
                frequent = np.array([n_docs[w] - 1 > 1 for w in word])
                alone = Dictionary(word, np.where(frequent, idf, 0.0))
                close(part.new.toarray(), tf_idf(alone, batches[-1].X[mask]))
            if previous is not None:
                old = previous.words.dictionary
                at = [np.flatnonzero(old.word == w) for w in word]
                new = [i for i, place in enumerate(at) if len(place)]
                before = np.array([at[i][0] for i in new])
                places = np.array(new), before, idf[new] / old.idf[before]
        if previous is None:
            continue
        known, (new, before, ratio) = previous.carryover.linear[name], places
        prior = 1.0 / known.penalty if known.penalty else 1e15
        precision, theta = np.zeros((2, part.x.shape[1], case.n_columns))
        precision[new] = DISCOUNT * known.precision[before] * ratio[:, None] ** 2
        shift = DISCOUNT * known.theta[before] * (known.precision[before] + prior)
        theta[new] = shift / (DISCOUNT * known.precision[before] + prior) / ratio[:, None]
        close(part.past.precision, precision, 1e-5)
        close(part.past.theta, theta, 1e-5)
        assert part.past.penalty == known.penalty


def linear_names(case):
    return ["words"] * case.words + ["features"] * case.features


def check_grids(earlier, before):
    """Log-likelihoods of factors on earlier held-out documents, discounted."""
    for name, grid in zip(("topics", "covariates", "scale"), before, strict=True):
        close(earlier[name], DISCOUNT * grid)


def check_fit(case, batches, recorder, previous, model):
    """Everything between documents and terms, for the last batch."""
    last = {name: calls[-1] if calls else None for name, calls in recorder.calls.items()}
    check_base_rate(case, batches, model)
    priors, runs, split = last["chain_priors"][1], last["run_chains"][1], last["split_corpus"][1]
    check_chain_priors(case, batches, split.mask, previous, priors)
    made = Made(case, batches, model, runs, priors)
    alone, beside = last["estimate_shrinkage"], last["estimate_shrinkage of both"]
    n_past = len(batches) - 1
    alone = alone if len(recorder.calls["estimate_shrinkage"]) > n_past * bool(alone) else None
    check_factors(case, model, made, alone and alone[1], beside and beside[1])
    if case.held_out:
        check_held_out(case, batches, model, split.mask, alone)
    else:
        assert not split.mask.any()
    if previous is not None and alone:
        check_grids(alone[0]["earlier"], previous.carryover.grids["topics alone"])
    if previous is None and split.mask.any():
        check_omega_of_held_out(case, batches[-1], model, split.mask, alone[0]["draws"], runs)
    added = 0.0
    if case.linear:
        given, fit = last["learn_beside"]
        check_linear(case, batches, model, previous, made, split.mask, given, beside, alone and alone[1])
        added = fit.added
    given, found = last["shift_level"]
    check_level(
        case, batches, model, previous, made, split.mask, given, found, added, alone[0]["draws"] if alone else None
    )
    if case.response == "ordinal":
        check_thresholds(case, batches, model, previous, made, split.mask, *last["match_own"])
    check_shares(case, batches, model, priors)


def check_shares(case, batches, model, priors):
    posterior = model.posterior_
    close(posterior.shares.sum(axis=1), 1.0)
    for place, part in enumerate(posterior.topics):
        close(part.shares.sum(axis=1), 1.0)
        for chain in range(case.n_chains):
            tokens = shares_of(case, batches, model, place, chain, priors[place * case.n_chains + chain])
            order = posterior.order[chain, posterior.places[place]] - place * K
            close(posterior.shares[chain, posterior.places[place]], (tokens / tokens.sum() / case.n_sets)[order])
    close(posterior.doc_topic.sum(axis=1), 1.0)
    close(
        posterior.doc_topic[batches[-1].empty],
        np.tile(posterior.mean_shares, (batches[-1].empty.sum(), 1)),
    )
    names = {}
    if case.known == "seeds":
        topics = [CLASSES.get(case.response, ["x", "y"])[1], "free"]
        names = {str(place * K + k): name for place in range(case.n_sets) for k, name in enumerate(topics)}
    assert model.topic_names_ == names


# predictions


def naive_omega(case, batches, model, batch):
    """omega of new documents: the sum of its terms, draw by draw, from the posterior's arrays."""
    posterior, documents = model.posterior_, model._new(batch.X, **batch.beside)
    n_kept = SWEEPS[case.sampler] - SWEEPS[case.sampler] // 2
    n_pairs, lengths = max(N_DRAWS, n_kept), np.asarray(batch.X.sum(axis=1)).ravel().astype(int)
    omega = np.zeros((case.n_chains * n_pairs, len(lengths), case.n_columns))
    terms = {type(term): term for term in posterior.terms}
    rows = {}
    if case.words:
        rows[WordWeights] = tf_idf(terms[WordWeights].dictionary, batch.X)
    if case.features:
        rows[FeatureWeights] = feature_rows(case, batches, batch)
    place_of = np.arange(1, len(omega) + 1)[:, None] * 0.381966011250105 + np.arange(case.n_columns) * 0.618033988749895
    noise = norm.ppf((rankdata(place_of % 1.0, axis=0) - 0.5) / len(omega))
    noise /= noise.std(axis=0)
    empty = (
        terms[Intercept]
        .response.plain()
        .draw_offsets(terms[Intercept].empty, terms[Intercept].empty_documents, len(omega))
    )
    topics = [
        [[documents.part(slice(d, d + 1)).token_topics(place, chain) for d in range(len(lengths))]
         for chain in range(case.n_chains)] for place in range(case.n_sets)
    ]  # fmt: skip
    for i, d, r in np.ndindex(omega.shape):
        (chain, pair), place = divmod(i, n_pairs), r if case.n_sets > 1 else 0
        draw, own = pair % N_DRAWS, 0 if case.n_sets > 1 else r
        total = float(np.log(batch.exposure[d, 0]))
        total += terms[Intercept].level[r] if lengths[d] else empty[i, r]
        if lengths[d]:
            z = topics[place][chain][d][pair % n_kept]
            total += sum(terms[TopicWeights].eta[place][chain, draw, own, k] for k in z) / lengths[d]
        if case.covariates:
            Z = batches[0].beside["covariates"]
            Z = (batch.beside["covariates"][d] - Z.mean(axis=0)) / Z.std(axis=0)
            total += terms[CovariateWeights].eta[chain, draw, r] @ Z
        for kind, x in rows.items():
            sd = np.sqrt(terms[kind].variance[:, r] @ x[d] ** 2)
            total += terms[kind].factor[chain, draw, r] * (terms[kind].theta[0, :, r] @ x[d] + sd * noise[i, r])
        omega[i, d, r] = total
    return omega


def naive_expected(case, batches, omega, scale):
    """The prediction of each draw, in the user's units."""
    centre, unit = units(case, batches)
    if case.response in ("rating", "ratings"):
        return centre + unit * omega
    if case.response in ("hinge", "counts"):
        return omega if case.response == "hinge" else np.exp(omega)
    if case.response == "ordinal":
        n_pairs = len(omega) // case.n_chains
        own = scale[:, np.arange(n_pairs) % N_DRAWS].reshape(len(omega), 1, -1)
        ends = np.full((len(omega), 1, 1), np.inf)
        return np.diff(expit(np.concatenate([-ends, own, ends], axis=2) - omega), axis=2)
    p = 1.0 / (1.0 + np.exp(-omega))
    if case.response == "labels":
        return p
    if case.response == "binary":
        return np.concatenate([1.0 - p, p], axis=2)
    if case.sticks:
        return np.stack([p[..., 0], (1 - p[..., 0]) * p[..., 1], (1 - p[..., 0]) * (1 - p[..., 1])], axis=2)
    return np.exp(omega) / np.exp(omega).sum(axis=2, keepdims=True)


def answers(model, batch):
    """What a user sees of predictions."""
    found = [model.predict(batch.X, **batch.beside), *model.predict_interval(batch.X, 0.8, **batch.beside)]
    for name in ("predict_proba", "decision_function"):
        if hasattr(model, name):
            found.append(getattr(model, name)(batch.X, **batch.beside))
    if isinstance(model, SLDAOrdinalClassifier):
        found += [*model.predict_grade_interval(batch.X, **batch.beside), model.predict_grade(batch.X, **batch.beside)]
        found.append(model.linear_predictor(batch.X, **batch.beside))
    if isinstance(model, SLDARegressor):
        found += model.predict(batch.X, return_std=True, **batch.beside)
    return [*found, model.transform(batch.X)]


def check_predictions(case, batches, model, batch):
    documents, omega = model._new(batch.X, **batch.beside), naive_omega(case, batches, model, batch)
    np.testing.assert_allclose(documents.omega(), omega, rtol=1e-5, atol=1e-5)  # counts of topics are float32
    mean, found = naive_expected(case, batches, omega, model.posterior_.scale).mean(axis=0), answers(model, batch)
    np.testing.assert_allclose(documents.expected(), mean, rtol=1e-4, atol=1e-5)
    expected = documents.expected()
    if case.response == "labels":
        assert_same(found[0], (expected > 0.5).astype(int))
    elif case.response in CLASSES:
        assert found[0].tolist() == [CLASSES[case.response][k] for k in expected.argmax(axis=1)]
    else:
        assert_same(found[0], expected if case.response == "ratings" else expected[:, 0])
    order = np.random.default_rng(0).permutation(len(batch.y))
    other = copy.copy(batch)
    other.X, other.beside = batch.X[order], {name: values[order] for name, values in batch.beside.items()}
    for one, permuted in zip(found, answers(model, other), strict=True):
        assert_same(one[order], permuted)
    for d in (0, 1):
        check_explanation(case, batches, model, batch, omega[:, d], mean[d], d)


def check_explanation(case, batches, model, batch, omega, mean, d):
    """Parts add up to omega, in the user's units, and those of topics to what topics add."""
    beside = {name: values[d : d + 1] for name, values in batch.beside.items()}
    explanation, (centre, unit) = model.explain(batch.X[d : d + 1], **beside), units(case, batches)
    total = centre + unit * omega.mean(axis=0)
    if case.sticks:  # log-odds of the decision for a class, less those of decisions for classes before it
        total = np.array([total[0], total[1] - total[0], -total[0] - total[1]])
    close(explanation.omega, total, 1e-5)
    close(explanation.total.sum(axis=0) + explanation.constant + explanation.covariates, total, 1e-5)
    close(explanation.mean, mean, 1e-4)
    words = batch.X[d : d + 1].indices
    assert explanation.words == WORDS[words].tolist() and explanation.times.tolist() == batch.X[d : d + 1].data.tolist()
    if case.n_chains == 1:
        close(explanation.topics.sum(axis=0), explanation.through_topics.sum(axis=0), 1e-9)
    close(explanation.topic_shares.sum(), 1.0 if len(words) else 0.0)
    others = ["0", "1"] * case.covariates + ["features"] * case.features
    assert set(explanation.others) == {"intercept", *others}


# the same thing done another way


def check_resumed(case, batches, model, other, monkeypatch, folder):
    resumed = run(case, batches, resumed=True, folder=folder, monkeypatch=monkeypatch)
    assert_same(resumed.posterior_, model.posterior_, without=("timings", "cross_fitted"))


def check_loaded(case, batches, model, other, monkeypatch, folder):
    """Predictions of a model from a file, or from a pickle, and what it makes of one more batch."""
    save(model, folder / "model")
    copies = [load(folder / "model"), pickle.loads(pickle.dumps(model))]
    for loaded in copies:
        for a, b in zip(answers(model, other), answers(loaded, other), strict=True):
            assert_same(a, b)
        for field in fields(model.posterior_):
            if field.name not in ("response", "terms", "doc_topic", "traces", "cross_fitted", "held_out_docs"):
                assert_same(getattr(loaded.posterior_, field.name), getattr(model.posterior_, field.name), field.name)
        for name in model.posterior_.response.learned:
            a, b = (getattr(m.posterior_.response, name) for m in (loaded, model))
            assert np.array_equal(a, b), name
        assert_same(loaded.coef_, model.coef_)
        loaded.partial_fit(**batches[1].arguments(), discount=DISCOUNT)
    further = copy.copy(model).partial_fit(**batches[1].arguments(), discount=DISCOUNT)
    for loaded in copies:
        assert_same(loaded.posterior_, further.posterior_, without=("timings", "cross_fitted"))


def check_weight_0(case, batches, model, other, monkeypatch, folder):
    """A document of weight 0 has an unknown response, whatever it is."""
    known, zero = copy.deepcopy(batches), copy.deepcopy(batches)
    for one, two in zip(known, zero, strict=True):
        case_of = replace(case, unknown=True)
        one.case = case_of
        one.missing[:] = one.missing[:, :1]
        two.case, two.missing = replace(case, unknown=False, weights=True), one.missing
        two.weight = np.where(one.missing[:, 0], 0.0, one.weight if case.weights else 1.0)
        two.y[one.missing[:, 0]] = two.y[~one.missing[:, 0]][0]
    a, b = run(case, known), run(case, zero)
    assert_same(a.posterior_, b.posterior_, without=("timings", "cross_fitted"))


def check_units(case, batches, model, other, monkeypatch, folder):
    """Ratings in other units; names of classes in the same order; c and weights that have the same product."""
    changed = copy.deepcopy(batches)
    if case.response in ("rating", "ratings"):
        for batch in changed:
            batch.y = 4.0 * batch.y + 6.0
        moved = run(case, changed, estimator(case, unit=4.0))
        tolerance = 1e-5 if case.linear else 1e-9  # a regression on words ends where it gains little
        close(moved.coef_, 4.0 * model.coef_)
        close(moved.prediction_draws_, 4.0 * model.prediction_draws_, tolerance)
        for a, b in zip(answers(moved, other)[:3], answers(model, other)[:3], strict=True):
            close(a, 6.0 + 4.0 * b, tolerance)
        close(answers(moved, other)[-2], 4.0 * answers(model, other)[-2], tolerance)
        return
    if case.response in CLASSES and case.response != "labels" and case.known != "seeds":
        names = {"a": 3, "b": 5, "c": 8, "d": 9}
        for batch in changed:
            batch.known_y = lambda batch=batch: np.array(
                [names.get(label) for label in Batch.known_y(batch)], object if case.unknown else None
            )
        more = {}
        if case.known == "prior":  # its weights are for the old names
            more["prior"] = Prior(prior_model(prior_of(case)), discount=0.5)
            model = run(case, batches, estimator(case, **more))
        with monkeypatch.context() as patch:
            patch.setitem(CLASSES, case.response, [names[name] for name in CLASSES[case.response]])
            renamed = run(case, changed, estimator(case, **more))
        assert_same(renamed.posterior_, model.posterior_, without=("timings", "classes", "order", "cross_fitted"))
        assert renamed.classes_.tolist() == [names[name] for name in model.classes_]


def check_c_and_weights(case, batches, model, other, monkeypatch, folder):
    """Half the c and twice the weights are the same chain; not with pseudo-documents, whose weight is 1."""
    if case.response == "ordinal":
        return
    changed = copy.deepcopy(batches)
    for batch in changed:
        batch.weight = 2.0 * (batch.weight if case.weights else np.ones(len(batch.y)))
        batch.case = replace(case, weights=True, partial=False)
    first = replace(case, partial=False)  # later batches begin with weights of regressions, in which c is 1
    twice = run(first, changed, estimator(case).set_params(c=0.5 * estimator(case).c))
    once = model if not case.partial else run(first, [replace_case(batch, first) for batch in batches])
    for a, b in zip(twice.posterior_.topics, once.posterior_.topics, strict=True):
        assert_same(a.word_topic, b.word_topic)
        assert_same(a.training, b.training)
    close(twice.intercept_, once.intercept_)


def replace_case(batch, case):
    batch = copy.copy(batch)
    batch.case = case
    return batch


def check_jobs(case, batches, model, other, monkeypatch, folder):
    two = run(case, batches, estimator(case, n_jobs=2))
    assert_same(two.posterior_, model.posterior_, without=("timings", "cross_fitted"))
    for a, b in zip(answers(model, other), answers(two, other), strict=True):
        assert_same(a, b)
    found = (m.evaluate(other.X, other.known_y(), **other.beside) for m in (model, two))
    (losses, score, *_), (again, same, *_) = found
    assert_same(losses, again)
    assert score == same


def check_evaluation(case, batches, model, batch):
    """Losses and scores by their definition: a document whose response is unknown has neither."""
    batch = replace_case(batch, replace(case, unknown=True))
    losses, score, *_ = model.evaluate(batch.X, batch.known_y(), **batch.beside)
    known, y = ~batch.unknown.reshape(len(batch.y), -1), batch.y.reshape(len(batch.y), -1)
    expected, rows = model._new(batch.X, **batch.beside).expected(), known.all(axis=1)
    assert np.isnan(losses[~known.any(axis=1)]).all() and np.isfinite(losses[rows]).all()
    if case.response in ("rating", "ratings"):
        close(losses[rows], ((expected - y) ** 2 / model.posterior_.response.unit**2).mean(axis=1)[rows])
    elif case.response in ("binary", "classes", "ordinal"):
        names = CLASSES[case.response]
        close(losses[rows], [-np.log(expected[d, names.index(batch.y[d])]) for d in np.flatnonzero(rows)])
    elif case.response == "labels":
        p = np.where(y > 0.5, expected, 1.0 - expected)
        close(losses[known.any(axis=1)], np.where(known, -np.log(p), 0.0).sum(axis=1)[known.any(axis=1)])
    predicted = model.predict(batch.X, **batch.beside)
    if case.response == "hinge":
        close(losses[rows], predicted[rows] != batch.y[rows])
    elif case.response == "counts":
        close(losses[rows], -model.log_predictive(batch.X, batch.known_y(), **batch.beside)[rows])
    if case.response in CLASSES:
        close(score, np.mean(predicted[rows] == batch.y[rows]))
    else:
        close(score, r2_score(batch.y[rows], predicted[rows]))


def check_matches(case, model):
    """Topics of a chain are those of the same set that are most like the best chain's, by trying all orders.

    Seeded topics stay in their places, and those of later batches where the first one had them.
    """
    posterior, n_seeded = model.posterior_, 2 if case.known == "seeds" else 0
    found = model.match_topics()
    if case.partial:
        return
    for place, part in enumerate(posterior.topics):
        counts = part.word_topic / part.n_draws + part.beta[:, None, None]
        phi = np.sqrt(counts / counts.sum(axis=1, keepdims=True))
        for chain in range(case.n_chains):
            alike = phi[posterior.best_chain].T @ phi[chain]
            orders = [order for order in itertools.permutations(range(K)) if order[:n_seeded] == tuple(range(n_seeded))]
            best = orders[int(np.argmax([sum(alike[k, j] for k, j in enumerate(order)) for order in orders]))]
            best = range(K) if chain == posterior.best_chain else best
            assert found[chain, place * K : (place + 1) * K].tolist() == [place * K + k for k in best]


def check_separate(case, batches, model, other, monkeypatch, folder):
    """Each class's set of topics is that of a binary problem, whose chains are numbered on."""
    masks = iter([])

    def same_documents(*_):
        return next(masks)

    first = 0  # the chain that the first fold belongs to

    def same_folds(_, target, held_out, *__):
        fold = np.arange(len(target.y)) % (2 * case.n_chains)
        return np.where((fold < case.n_chains) & held_out.any(), first + fold, -1)

    with monkeypatch.context() as patch:
        patch.setattr(fit_room, "choose_held_out", same_documents)
        patch.setattr(fit_room, "choose_folds", same_folds)
        fixed = []
        for i, batch in enumerate(batches[: 1 + case.partial]):
            known = np.flatnonzero((batch.columns[1] > 0).all(axis=1))
            mask = np.zeros(len(batch.y), bool)
            mask[known[:: 5 + i]] = case.held_out > 0
            fixed.append(mask)
        masks = iter(fixed)
        case = replace(case, words=False)
        model = run(case, batches, estimator(case, prior=None))
        for r in range(case.n_columns):
            names = CLASSES[case.response]
            one = replace(case, response="binary", multiclass="shared", n_chains=(r + 1) * case.n_chains, known="")
            parts = []
            for batch in batches:
                batch = copy.deepcopy(batch)
                y = batch.columns[0][:, r] if case.response == "labels" else batch.y == names[r]
                weight = batch.columns[1][:, r]  # that of the class is in it
                batch.missing = batch.missing[:, r : r + 1] if case.response == "labels" else batch.missing
                batch.case, batch.y = replace(one, weights=True), np.where(y, "b", "a").astype(object)
                batch.weight = weight
                parts.append(batch)
            seeds = None
            if case.known == "seeds":
                seeds = Seeds({"b" if r == 1 else "x": ["w1", "w4", "w7"], "free": ["w2"]}, strength=0.5)
                seeds.set_params(weights="auto" if r == 1 else None)
            masks, first = iter(fixed), r * case.n_chains
            binary = run(one, parts, estimator(one, seeds=seeds, class_weight=None, init="random")).posterior_.topics[0]
            chains = slice(r * case.n_chains, (r + 1) * case.n_chains)
            mine = model.posterior_.topics[r]
            for name in ("word_topic", "training", "alpha", "beta", "pseudo_tokens"):
                a, b = getattr(mine, name), getattr(binary, name)[chains]
                close(a, b) if case.balanced else assert_same(a, b, name)  # weights of classes are rounded

    if case.response == "labels":  # sets of topics beyond those of the prior start from its first ones
        few = estimator(case, seeds=None, prior=None, class_weight=None).fit(batches[0].X, batches[0].y[:, :2])
        more = estimator(case, prior=few, seeds=None).fit(batches[0].X, batches[0].y)
        assert len(more.posterior_.topics) == 3 and more.posterior_.topics[2].pseudo_tokens.all()


def check_words_off(case, batches, model, other, monkeypatch, folder):
    """Words that are left out of the last batch are not there, also after saving."""
    off = copy.copy(model).set_params(words=False).partial_fit(**batches[1].arguments())
    save(off, folder / "off")
    loaded = load(folder / "off")
    assert off.posterior_.words is None
    for again in (off, loaded):
        again.set_params(words=True).partial_fit(**batches[1].arguments())
    assert_same(off.posterior_, loaded.posterior_, without=("timings", "cross_fitted"))


def check_uncalibrated(case, batches, model, other, monkeypatch, folder):
    """Without calibration the chains' own weights predict, and the chains are those that hold out nothing."""
    case, other = replace(case, words=False, features=False), without_features(other)
    batches = [without_features(batch) for batch in batches[: 1 + case.partial]]
    own = run(case, batches, estimator(case, calibrate=False))
    posterior = own.posterior_
    assert_same(posterior.prediction, posterior.training)
    assert_same(posterior.intercept.level, posterior.intercept.base)
    check_base_rate(case, batches, own)
    check_predictions(case, batches, own, other)
    check_loaded(case, [batches[0], batches[-1]], own, other, monkeypatch, folder)
    if not case.partial:
        whole = run(case, batches, estimator(case, held_out=0)).posterior_
        for a, b in zip(posterior.topics, whole.topics, strict=True):
            assert_same(a.training, b.training)
            assert_same(a.word_topic, b.word_topic)


def without_features(batch):
    batch = copy.copy(batch)
    batch.beside = {name: values for name, values in batch.beside.items() if name != "features"}
    batch.case = replace(batch.case, features=False)
    return batch


WAYS = (check_jobs, check_weight_0, check_units, check_c_and_weights, check_uncalibrated)


@pytest.mark.parametrize("number", range(len(PAIRS)), ids=lambda i: f"{i}: {PAIRS[i]}".replace(" ", "-"))
@pytest.mark.filterwarnings("ignore")
def test_features_in_pairs(number, short_regressions, monkeypatch, tmp_path):
    case = PAIRS[number]
    batches, other = [Batch(case, 0, 80), Batch(case, 1, 60)], Batch(case, 3, 7)
    other.X = sp.csr_array(np.vstack([other.X.toarray()[:-2], np.zeros(V, int), np.eye(V, dtype=int)[24]]))
    if case.known == "prior":
        prior_model(prior_of(case))
    with monkeypatch.context() as patch:
        recorder = Recorder(patch)
        first = run(replace(case, partial=False), [replace_case(batches[0], case)]) if not case.partial else None
        if case.partial:
            first = run(case, batches[:1])
        check_fit(case, batches[:1], recorder, None, first)
        model = first
        if case.partial:
            before = first.posterior_
            model = copy.copy(first).partial_fit(**batches[1].arguments(), discount=DISCOUNT)
            assert first.posterior_ is before
            check_fit(case, batches, recorder, before, model)
    check_predictions(case, batches[: 1 + case.partial], model, other)
    check_evaluation(case, batches, model, other)
    check_matches(case, model)
    ways = [WAYS[number % len(WAYS)]] + [check_resumed] * case.resumed + [check_loaded] * case.loaded
    ways += [check_separate] * (case.n_sets > 1) + [check_words_off] * (case.words and number % 3 == 0)
    for i, check in enumerate(ways):
        folder = tmp_path / str(i)
        folder.mkdir()
        check(case, batches, model, other, monkeypatch, folder)
