"""The rule that ends a burn-in, and chains that follow it."""

import contextlib
import time
import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from supertopic import LDA, SLDAClassifier
from supertopic.datasets import make_corpus
from supertopic.inference import chains
from supertopic.inference.settling import FIRST_CHECK, LONGEST, drift, has_settled, longest_burn_in, may_stop

RUN = {"n_topics": 4, "n_chains": 2, "n_draws": 4, "random_state": 0, "predict_sweeps": 6}


def series(kind, n, rng, phi=0.0):
    """A log joint of about -1e6 and a loss of about 100 whose noise has an autocorrelation of phi."""
    noise = np.zeros((2, n))
    for i in range(1, n):
        noise[:, i] = phi * noise[:, i - 1] + rng.normal(size=2)
    noise *= np.sqrt(1 - phi**2)
    t = np.arange(n)
    rise = {"flat": 0 * t, "line": 2000.0 * t, "log": 4e4 * np.log1p(t), "decay": -8e4 * np.exp(-t / n)}[kind]
    return -1e6 + rise + 50.0 * noise[0], 100.0 - rise / 500.0 + noise[1]


@pytest.mark.parametrize("phi", [0.0, 0.5, 0.9])
@pytest.mark.parametrize("n", [12, 20, 60])
def test_settled_series_are_seen_as_settled(n, phi):
    rng = np.random.default_rng(n)
    assert np.mean([has_settled(*series("flat", n, rng, phi)) for _ in range(400)]) > 0.99
    loud = [has_settled(a, 100.0 + 60.0 * (b - 100.0)) for a, b in (series("flat", n, rng) for _ in range(400))]
    assert np.mean(loud) > (0.6 if n == 12 else 0.8)  # noise that is larger than the tolerance does not hide it


@pytest.mark.parametrize("kind", ["line", "log", "decay"])
@pytest.mark.parametrize("n", [12, 20, 60])
def test_drifting_series_are_seen_as_drifting(kind, n):
    rng = np.random.default_rng(n)
    for _ in range(100):
        log_joint, loss = series(kind, n, rng)
        flat = series("flat", n, rng)
        assert not has_settled(log_joint, flat[1])
        assert not has_settled(flat[0], np.linspace(200.0, 100.0, n))  # the loss counts as well
        assert has_settled(*flat)
    assert drift(log_joint)[0] > 0 > drift(loss)[0]


def test_small_changes_do_not_matter_and_few_values_say_nothing():
    flat, rise = np.full(40, 10.0), np.linspace(0.0, 1.0, 40)  # a step is 1/39, the halves are 10 steps apart
    assert drift(rise)[0] == pytest.approx(10 / 39) and drift(rise)[2] == 10
    ahead = 4 / 39  # in 20 iterations, which are four steps
    for part, settled in ((0.9, True), (1.1, False)):
        assert has_settled(-1e6 + part * 1000.0 / ahead * rise - part * 1000.0 / ahead, flat) == settled
        assert has_settled(-1e6 - part * 1000.0 / ahead * rise + part * 1000.0 / ahead, flat) == settled
        assert has_settled(np.full(40, -1e6), 10.0 - part * 0.5 / ahead * (rise - 1.0)) == settled
    for n in range(6):
        assert not has_settled(np.full(n, -5.0), np.full(n, 1.0))
    assert has_settled(np.full(8, -5.0), np.zeros(8))


def test_halves_are_the_last_ones_and_changes_relative_to_the_last_value():
    """The one value that is too many is before both halves."""
    values = np.r_[np.zeros(4), 100.0, 1.0, 2.0, 5.0, 8.0]
    change, noise, half = drift(values)
    assert (change, half) == (5.0, 2) and noise == pytest.approx(np.sqrt(0.5 * (0.5 + 4.5)))
    flat, falls = np.full(40, -1e6), np.r_[np.full(20, 500.0), np.linspace(40.0, 30.0, 20)]
    assert not has_settled(flat, falls) and has_settled(flat, falls + 50.0)  # by 2.1 in 20 iterations
    assert has_settled(np.zeros(8), np.zeros(8))


def test_the_longest_burn_in_depends_on_the_corpus():
    tokens = [0, 1, 1000, 10**6, 2 * 10**6, 5 * 10**6, 10**7, 10**9]
    lengths = [longest_burn_in(n) for n in tokens]
    assert lengths[:4] == [LONGEST] * 4 and lengths[-2:] == [FIRST_CHECK] * 2
    assert LONGEST > lengths[4] > lengths[5] > FIRST_CHECK and all(may_stop(n) for n in lengths)
    between = [longest_burn_in(n) for n in (10**6 * 10**0.45, 10**6 * 10**0.5, 10**6 * 10**0.55)]
    assert between == [200, 180, 160]  # by the logarithm of their number, in steps of twenty
    assert not may_stop(FIRST_CHECK - 20) and not may_stop(FIRST_CHECK + 5)


@pytest.fixture(scope="module")
def corpus():
    return make_corpus(n_docs=120, n_topics=4, random_state=0)


def test_a_burn_in_ends_when_the_rule_says_so(corpus, monkeypatch):
    asked = []

    def rule(log_joint, loss):
        asked.append(len(log_joint))
        assert (log_joint < 0).all() and (loss > 0).all()  # the loss of 120 documents in nats
        return len(log_joint) == 16  # a value every five iterations: after 80

    monkeypatch.setattr(chains, "has_settled", rule)
    model = SLDAClassifier(**RUN).fit(corpus.X, corpus.y)
    assert asked == [12, 16, 12, 16]
    assert model.burn_in_.tolist() == [80, 80] and model.settled_.tolist() == [True, True]
    assert model.log_joint_iterations_.tolist() == list(range(5, 81, 5))  # 84 iterations in all
    fixed = SLDAClassifier(burn_in=80, **RUN).fit(corpus.X, corpus.y)
    np.testing.assert_array_equal(model.coef_draws_, fixed.coef_draws_)
    np.testing.assert_array_equal(model.predict_proba(corpus.X), fixed.predict_proba(corpus.X))
    monkeypatch.setattr(chains, "has_settled", lambda *_: False)
    model = LDA(**RUN).fit(corpus.X)
    assert model.burn_in_.tolist() == [LONGEST] * 2 and not model.settled_.any()
    with pytest.warns(ConvergenceWarning, match="2 of 2 chains had not settled within 300 iterations"):
        model.diagnose()


def test_chains_of_other_lengths(corpus, monkeypatch, tmp_path):
    lengths = [60, 80, 100]

    def rule(log_joint, loss):
        return 5 * len(log_joint) == lengths[0] and bool(lengths.pop(0))

    monkeypatch.setattr(chains, "has_settled", rule)
    model = SLDAClassifier(**RUN | {"n_chains": 3}).fit(corpus.X, corpus.y)
    assert model.burn_in_.tolist() == [60, 80, 100]
    assert np.isnan(model.log_joint_).sum(axis=1).tolist() == [8, 4, 0]
    from supertopic import load, save

    save(model, tmp_path / "model")
    again = load(tmp_path / "model")
    np.testing.assert_array_equal(again.log_joint_, model.log_joint_)
    np.testing.assert_array_equal(again.burn_in_, model.burn_in_)
    np.testing.assert_array_equal(again.coef_, model.coef_)
    monkeypatch.setattr(chains, "has_settled", lambda *_: True)
    separate = SLDAClassifier(**RUN, multiclass="separate").fit(corpus.X, np.arange(120) % 3)
    assert separate.burn_in_.tolist() == [60, 60] and not np.isnan(separate.log_joint_).any()


def test_auto_gives_the_same_bits_on_any_number_of_threads_and_after_a_stop(corpus, tmp_path, monkeypatch):
    models = [
        SLDAClassifier(**RUN | {"n_chains": 3, "n_jobs": n_jobs, "sampler": "delayed"}).fit(corpus.X, corpus.y)
        for n_jobs in (1, 3)
    ]
    step, left = chains.Chain.step, [70]

    def stopping(self):
        step(self)
        left[0] -= 1
        if left[0] == 0:
            raise KeyboardInterrupt

    monkeypatch.setattr(chains.Chain, "step", stopping)
    for iterations in (70, 100, 10**9):
        left[0], model = iterations, SLDAClassifier(**RUN | {"n_chains": 3, "sampler": "delayed"})
        with contextlib.suppress(KeyboardInterrupt):
            models.append(model.fit(corpus.X, corpus.y, checkpoint=tmp_path / "c", checkpoint_every=0))
    assert len(models) == 3
    for name in ("coef_draws_", "burn_in_", "settled_", "log_joint_", "topic_word_"):
        np.testing.assert_array_equal(getattr(models[0], name), getattr(models[1], name))
        np.testing.assert_array_equal(getattr(models[0], name), getattr(models[2], name))


def test_a_limit_of_seconds(corpus, monkeypatch):
    monkeypatch.setattr(chains, "has_settled", lambda *_: False)
    step = chains.Chain.step
    monkeypatch.setattr(chains.Chain, "step", lambda chain: (time.sleep(0.02), step(chain))[1])
    model = SLDAClassifier(**RUN | {"n_jobs": 1}, max_seconds=2.0, words=False).fit(corpus.X, corpus.y)
    assert (model.burn_in_ < 50).all() and not model.settled_.any()  # a second for each chain
    assert (model.burn_in_ >= 1).all() and len(model.training_draws_[0]) >= 4
    for wrong in (0, -1.0, "1", True, float("nan")):
        with pytest.raises(ValueError, match="max_seconds must be"):
            SLDAClassifier(max_seconds=wrong).fit(corpus.X, corpus.y)


def test_a_default_fit_of_the_embedded_corpus_has_settled():
    from sklearn.feature_extraction.text import CountVectorizer

    from supertopic.datasets import load_docstrings

    data = load_docstrings()
    X = CountVectorizer(stop_words="english", token_pattern=r"(?u)\b[a-z]{3,}\b", min_df=2).fit_transform(data.data)
    model = SLDAClassifier(random_state=0, words=False, n_jobs=2).fit(X, data.target)
    assert model.settled_.all() and (model.burn_in_ < LONGEST).all()
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        assert not model.diagnose().advice
    assert (model.topic_agreement() >= 0.75).mean() >= 0.8
