"""Plots: the numbers that are drawn, labels that do not overlap, fonts in PDF files."""

import itertools
import pickle

import matplotlib
import numpy as np
import pandas
import pytest
from matplotlib.colors import to_hex

from supertopic import (
    LDA,
    CoefficientDisplay,
    ConfusionDisplay,
    EffectDisplay,
    ExplanationDisplay,
    HeatmapDisplay,
    MedLDAClassifier,
    PrevalenceDisplay,
    ReliabilityDisplay,
    SimilarityDisplay,
    SLDAClassifier,
    SLDAOrdinalClassifier,
    SLDARegressor,
    SLDASurvivalRegressor,
    TopicDisplay,
    TraceDisplay,
)
from supertopic.report.maps import diagonal_order
from supertopic.report.style import BLUE, COLUMN, GREY, ORANGE, PAGE, shorten

pytestmark = pytest.mark.usefixtures("short_fits")

matplotlib.use("Agg")
N, V = 150, 40
WORDS = np.array([f"{a}{b}{a}z" for a in "bdfghklm" for b in "aeiou"], dtype=object)
QUICK = {"n_chains": 2, "burn_in": 10, "n_draws": 5, "random_state": 0, "predict_sweeps": 8}


@pytest.fixture(autouse=True)
def closed():
    yield
    matplotlib.pyplot.close("all")


@pytest.fixture(scope="module")
def corpus():
    rng = np.random.default_rng(0)
    phi, y = rng.dirichlet(np.full(V, 0.05), 3), rng.integers(0, 3, N)
    shares = 0.4 * rng.dirichlet(np.full(3, 0.3), N)
    shares[np.arange(N), y] += 0.6
    X = np.array([rng.multinomial(40, share @ phi) for share in shares])
    return X, y, [" ".join(np.repeat(WORDS, row)) for row in X]


@pytest.fixture(scope="module")
def three(corpus):
    _, y, texts = corpus
    names = np.array(["bad", "fair", "good"], object)[y]
    return SLDAClassifier(4, **QUICK).fit(texts, names), texts, names


@pytest.fixture(scope="module")
def large():
    """Thirty topics and twenty classes, with long names."""
    rng = np.random.default_rng(1)
    names = np.array([f"department of international affairs, number {i}" for i in range(20)], object)
    y = np.resize(names, 200)
    X = rng.poisson(0.5 + 3 * (np.arange(60) % 20 == (np.arange(200) % 20)[:, None]))
    words = [f"internationalisation{i}" for i in range(60)]
    model = SLDAClassifier(30, words=False, **(QUICK | {"n_chains": 1})).fit(X, y, feature_names=words)
    return model.name_topics({3: "a name of $1 that somebody gave a topic & that is far too long for a plot"}), X, y


def check_layout(figure):
    """Every text is inside of the figure, and labels of an axis do not overlap."""
    figure.canvas.draw()
    renderer, whole = figure.canvas.get_renderer(), figure.bbox
    for ax in figure.axes:
        if not ax.axison:
            continue
        for axis, side in ((ax.xaxis, 0), (ax.yaxis, 1)):
            lower, upper = sorted(axis.get_view_interval())
            ticks = zip(axis.get_majorticklocs(), axis.get_majorticklabels(), strict=False)
            labels = [label for at, label in ticks if lower <= at <= upper and label.get_text() and label.get_visible()]
            boxes = [label.get_window_extent(renderer) for label in labels if axis.get_visible()]
            boxes.sort(key=lambda box: box.bounds[side])
            for a, b in itertools.pairwise(boxes):
                assert a.bounds[side] + a.bounds[2 + side] <= b.bounds[side] + 1.5, "labels overlap"
            for box in [*boxes, *([axis.label.get_window_extent(renderer)] if axis.label.get_text() else [])]:
                assert box.x0 >= whole.x0 - 2 and box.x1 <= whole.x1 + 2, "a label is cut off"
                assert box.y0 >= whole.y0 - 2 and box.y1 <= whole.y1 + 2, "a label is cut off"
        if ax.get_title():
            assert ax.title.get_window_extent(renderer).x1 <= whole.x1 + 2


def faces(collection):
    return [to_hex(face) for face in collection.get_facecolors()]


def test_an_explanation_adds_up(three):
    model, texts, _ = three
    found = model.explain(texts[4])
    display = ExplanationDisplay.from_estimator(model, texts[4], n_words=5)
    assert display.total == pytest.approx(found.omega[found.column])
    order = np.argsort(-np.abs(found.total[:, found.column]))
    np.testing.assert_allclose(
        (display.through_topics + display.direct)[1:6], found.total[order[:5], found.column], atol=1e-12
    )
    assert display.labels[0] == "intercept" and display.labels[6] == f"{len(found.words) - 5} more words"
    ends, n = np.cumsum(display.through_topics + display.direct), len(display.labels)
    of_topics, of_words = display.ax_.patches[:n], display.ax_.patches[n : 2 * n]
    np.testing.assert_allclose([bar.get_width() for bar in of_topics], display.through_topics)
    np.testing.assert_allclose([bar.get_x() + bar.get_width() for bar in of_words], ends)  # the next one starts here
    np.testing.assert_allclose([bar.get_x() for bar in of_topics[1:]], ends[:-1])
    assert display.ax_.patches[2 * n].get_width() == pytest.approx(display.total)
    assert display.ax_.get_title() == str(found.columns[found.column])
    assert " ".join(display.ax_.get_xlabel().split()) == "adds to the prediction (log-odds)"
    other = ExplanationDisplay.from_explanation(found, column="bad")
    assert other.total == pytest.approx(found.omega[found.columns.index("bad")])
    check_layout(display.figure_)
    with pytest.raises(ValueError, match="There is no column 'worse'; they are bad, fair, good"):
        ExplanationDisplay.from_explanation(found, column="worse")


def test_the_axis_of_ratings_shows_the_changes(corpus):
    X, y, _ = corpus
    model = SLDARegressor(3, words=False, **QUICK).fit(X, 100.0 + y)
    display = ExplanationDisplay.from_estimator(model, X[:1])
    assert display.ax_.get_xlim()[0] > 90 and display.name == "the response" and "units" in display.ax_.get_xlabel()
    empty = ExplanationDisplay.from_estimator(model, np.zeros((1, V), int))
    assert empty.labels == ["intercept"] and empty.total == pytest.approx(model.predict(np.zeros((1, V), int))[0])


def test_covariates_and_groups_are_rows(corpus):
    X, y, _ = corpus
    z, group = pandas.DataFrame({"age": np.arange(N) % 9}), np.resize(["p", "q", "r"], N)
    model = SLDAClassifier(2, multiclass="separate", words=False, **QUICK).fit(X, y, covariates=z, groups=group)
    display = ExplanationDisplay.from_estimator(model, X[:1], covariates=z[:1], groups=group[:1])
    assert display.labels[:3] == ["intercept", "age", "group p"]
    found = model.explain(X[:1], covariates=z[:1], groups=group[:1])
    assert display.total == pytest.approx(found.omega[found.column])
    weights = HeatmapDisplay.from_estimator(model, values="weight")
    assert (weights.sure.sum(axis=1) <= 1).all()  # a topic has weights for its own class alone
    plain = LDA(3, **QUICK).fit(X)
    for call, message in [
        (lambda: ExplanationDisplay.from_estimator(plain, X[:1]), "about a response, which a LDA does not have"),
        (lambda: ConfusionDisplay.from_estimator(plain, X, y), "about classes, which a LDA does not predict"),
    ]:
        with pytest.raises(ValueError, match=message):
            call()


def test_effects_are_those_of_the_table(three):
    model, _, _ = three
    frame = model.effect_frame(0.2)
    display = EffectDisplay.from_estimator(model, column="fair", points=0.2)
    own = frame[frame["column"] == "fair"].set_index("topic").loc[display.topics]
    for name in ("change", "lower", "upper"):
        np.testing.assert_allclose(getattr(display, name), 100 * own[name])
    assert (np.diff(display.change) <= 0).all()
    dots = display.ax_.collections[1]
    np.testing.assert_allclose(dots.get_offsets()[:, 0], display.change)
    sure = (display.lower > 0) | (display.upper < 0)
    colours = [BLUE if value > 0 else ORANGE for value in display.change]
    assert faces(dots) == [colour if clear else "#ffffff" for colour, clear in zip(colours, sure, strict=True)]
    label = " ".join(display.ax_.get_xlabel().split())
    assert label == "change of the probability of fair (points) with 20 points more of a topic"
    assert len(EffectDisplay.from_estimator(model, n_topics=2).names) == 2


@pytest.mark.parametrize("kind", ["hinge", "ordinal", "rating", "labels", "time"])
def test_effects_of_other_responses(kind, corpus):
    X, y, _ = corpus
    model = {
        "hinge": lambda: MedLDAClassifier(4, words=False, **QUICK).fit(X, y > 0),
        "ordinal": lambda: SLDAOrdinalClassifier(4, words=False, **QUICK).fit(X, y),
        "rating": lambda: SLDARegressor(4, words=False, **QUICK).fit(X, y + 0.5),
        "labels": lambda: SLDAClassifier(4, words=False, **QUICK).fit(X, np.c_[y > 0, y > 1].astype(int)),
        "time": lambda: SLDASurvivalRegressor(4, words=False, **QUICK).fit(X, 1.0 + y),
    }[kind]()  # fmt: skip
    for display in (
        EffectDisplay.from_estimator(model),
        HeatmapDisplay.from_estimator(model),
        HeatmapDisplay.from_estimator(model, values="weight"),
        CoefficientDisplay.from_estimator(model),
        ExplanationDisplay.from_estimator(model, X[:1]),
    ):
        check_layout(display.figure_)
    points = kind not in ("hinge", "rating")
    assert ("points" in HeatmapDisplay.from_estimator(model).unit) == points


def test_one_draw_has_no_intervals(corpus):
    X, y, _ = corpus
    model = SLDAClassifier(3, words=False, calibrate=False, **(QUICK | {"n_chains": 1, "n_draws": 1})).fit(X, y)
    display = EffectDisplay.from_estimator(model)
    assert np.isnan(display.lower).all() and "no intervals" in " ".join(display.ax_.get_xlabel().split())
    assert "#ffffff" not in faces(display.ax_.collections[1])
    assert HeatmapDisplay.from_estimator(model).sure.all()
    assert np.isnan(CoefficientDisplay.from_estimator(model).upper).all()


def test_only_sure_cells_are_coloured(three):
    model, _, _ = three
    frame = model.effect_frame()
    display = HeatmapDisplay.from_estimator(model)
    for row, topic in enumerate(display.topics):
        own = frame[frame.topic == topic]
        np.testing.assert_allclose(display.values[row], 100 * own["change"])
        assert display.sure[row].tolist() == ((own["lower"] > 0) | (own["upper"] < 0)).tolist()
    shown = display.ax_.images[0].get_array()
    assert np.array_equal(~np.ma.getmaskarray(np.ma.masked_invalid(shown)), display.sure)
    texts = {text.get_text() for text in display.ax_.texts}
    assert len(display.ax_.texts) == display.sure.sum() and all(text[0] in "+\u2212" for text in texts)
    assert [label.get_text() for label in display.ax_.get_xticklabels()] == ["bad", "fair", "good"]
    with pytest.raises(ValueError, match="values must be 'effect' or 'weight'"):
        HeatmapDisplay.from_estimator(model, values="odds")


def test_rows_of_a_heat_map_make_a_diagonal():
    values = np.array([[0.0, 5.0], [3.0, -1.0], [9.0, 0.0], [1.0, 1.0], [-2.0, -4.0]])
    sure = np.array([[False, True], [True, True], [True, False], [False, False], [True, True]])
    assert diagonal_order(values, sure).tolist() == [2, 1, 0, 4, 3]


def test_confusion_counts_documents(three, corpus):
    model, texts, y = three
    predicted = model.predict(texts)
    unknown = y.copy()
    unknown[:10] = None
    display = ConfusionDisplay.from_estimator(model, texts, unknown)
    wanted = [[np.sum((y[10:] == a) & (predicted[10:] == b)) for b in model.classes_] for a in model.classes_]
    assert display.counts.tolist() == wanted and display.names == ["bad", "fair", "good"]
    np.testing.assert_allclose(
        display.ax_.images[0].get_array(), 100 * display.counts / display.counts.sum(axis=1, keepdims=True)
    )
    assert f"{N - 10} documents" in display.ax_.get_title()
    given = ConfusionDisplay.from_predictions(["a", "b", "b"], ["a", "a", "b"])
    assert given.counts.tolist() == [[1, 0], [1, 1]] and "66.7% right" in given.ax_.get_title()
    X, kinds, _ = corpus
    labels = pandas.DataFrame({"spam": kinds == 0, "urgent": kinds > 0}).astype(int)
    several = SLDAClassifier(3, words=False, **QUICK).fit(X, labels)
    one = ConfusionDisplay.from_estimator(several, X, labels, label="urgent")
    assert one.names == ["not urgent", "urgent"] and one.counts.sum(axis=1).tolist() == [
        np.sum(kinds == 0),
        np.sum(kinds > 0),
    ]
    with pytest.raises(ValueError, match="No class in y is a class of the model"):
        ConfusionDisplay.from_estimator(model, texts, ["worse"] * N)
    with pytest.raises(ValueError, match="several labels: pass label=, one of spam, urgent"):
        ConfusionDisplay.from_estimator(several, X, labels)


def test_similar_topics_are_side_by_side(corpus):
    X, _, _ = corpus
    model = LDA(6, **(QUICK | {"n_chains": 1})).fit(X)
    display = SimilarityDisplay.from_estimator(model)
    roots = np.sqrt(model.topic_word_[display.topics])
    np.testing.assert_allclose(display.overlap, roots @ roots.T, atol=1e-9)
    assert sorted(display.topics) == list(range(6)) and display.overlap.max() <= 1
    nearest = np.argmax(display.overlap - 2 * np.eye(6), axis=1)
    best = np.unravel_index(np.argmax(display.overlap - 2 * np.eye(6)), (6, 6))
    assert abs(best[0] - best[1]) == 1 and nearest.shape == (6,)


def test_topics_beside_the_corpus(three):
    model, _, _ = three
    display = TopicDisplay.from_estimator(model, topics=[2, 0], n_words=3)
    words = model.vocabulary_.tolist()
    whole = model.posterior_.mean_shares @ model.topic_word_
    for k, own, p, q in zip([2, 0], display.words, display.probabilities, display.corpus, strict=True):
        places = [words.index(word) for word in own]
        np.testing.assert_allclose(p, model.topic_word_[k, places])
        np.testing.assert_allclose(q, whole[places])
    widths = [bar.get_width() for bar in display.axes_[0].patches]
    np.testing.assert_allclose(widths, 100 * np.concatenate([display.probabilities[0], display.corpus[0]]))
    assert whole.sum() == pytest.approx(1.0)
    with pytest.raises(ValueError, match="topics must be from 0 to 3, got 4"):
        TopicDisplay.from_estimator(model, topics=[4])


@pytest.mark.filterwarnings("ignore:These may be the documents of the fit")
def test_shares_over_time_and_by_group(three):
    model, texts, _ = three
    by = pandas.DataFrame({"year": 2000 + np.arange(N) % 10, "party": np.resize(["left", "right"], N)})
    effects = model.topic_effects(texts, by, n_draws=20)
    for variable, shape in (("year", 10), ("party", 2)):
        display = PrevalenceDisplay.from_effects(effects, variable, topics=[3, 1])
        frame = effects.frame(variable)
        for row, topic in enumerate([3, 1]):
            own = frame[frame.topic == topic]
            for name, values in (("share", display.mean), ("lower", display.lower), ("upper", display.upper)):
                np.testing.assert_allclose(values[row], own[name])
        assert display.mean.shape == (2, len(frame) // 4) and len(display.values) >= shape
    dots = display.axes_[0].collections[1].get_offsets()
    np.testing.assert_allclose(dots[:, 0], 100 * display.mean[0])
    drawn = PrevalenceDisplay.from_estimator(model, texts, by[["year"]], n_draws=20)
    np.testing.assert_allclose(drawn.axes_[0].lines[0].get_ydata(), 100 * drawn.mean[0])
    assert drawn.mean.shape[0] == 4 and drawn.figure_.get_supxlabel() == "year"
    check_layout(drawn.figure_)
    with pytest.raises(ValueError, match="topics must be from 0 to 3"):
        PrevalenceDisplay.from_effects(effects, topics=[7])


def test_many_topics_classes_and_long_names(large):
    model, X, y = large
    for kind in (EffectDisplay, SimilarityDisplay):
        check_layout(kind.from_estimator(model).figure_)
        check_layout(kind.from_estimator(model, figsize="column").figure_)
    for display in (
        ExplanationDisplay.from_estimator(model, X[:1]),
        TopicDisplay.from_estimator(model, n_words=4, figsize="column"),
        HeatmapDisplay.from_estimator(model),
        ConfusionDisplay.from_estimator(model, X, y),
    ):
        check_layout(display.figure_)
    named = EffectDisplay.from_estimator(model, n_topics=30)
    assert any("$1" in label.get_text() for label in named.ax_.get_yticklabels())  # it is no formula


def test_labels_that_overlap_are_noticed():
    figure, ax = matplotlib.pyplot.subplots(figsize=(2, 2))
    ax.set_xticks(range(8), ["a long name"] * 8)
    with pytest.raises(AssertionError, match="labels overlap"):
        check_layout(figure)


def test_sizes_and_axes(three):
    model, texts, names = three
    assert EffectDisplay.from_estimator(model).figure_.get_figwidth() == COLUMN
    assert EffectDisplay.from_estimator(model, figsize="page").figure_.get_figwidth() == PAGE
    assert EffectDisplay.from_estimator(model, figsize=(5, 2)).figure_.get_size_inches().tolist() == [5, 2]
    for wrong in ("wide", (1, 2, 3), (0, 2), 5):
        with pytest.raises(ValueError, match=r"figsize must be 'column', 'page' or \(width, height\)"):
            EffectDisplay.from_estimator(model, figsize=wrong)
    figure, axes = matplotlib.pyplot.subplots(2, 3)
    before = dict(matplotlib.rcParams)
    for place, make in zip(axes.ravel(), [
        lambda ax: EffectDisplay.from_estimator(model, ax=ax),
        lambda ax: HeatmapDisplay.from_estimator(model, ax=ax),
        lambda ax: ConfusionDisplay.from_estimator(model, texts, names, ax=ax),
        lambda ax: SimilarityDisplay.from_estimator(model, ax=ax),
        lambda ax: ExplanationDisplay.from_estimator(model, texts[0], ax=ax),
        lambda ax: TraceDisplay.from_estimator(model, ax=ax),
    ], strict=True):  # fmt: skip
        display = make(place)
        assert display.ax_ is place and display.figure_ is figure
        assert display.plot(ax=matplotlib.pyplot.figure().subplots()).figure_ is not figure
    assert dict(matplotlib.rcParams) == before  # the style is for these plots alone


def test_fonts_are_embedded_as_truetype(three, tmp_path):
    model, texts, names = three
    display = ReliabilityDisplay.from_estimator(model, texts, names)
    display.figure_.savefig(tmp_path / "a.pdf")
    written = (tmp_path / "a.pdf").read_bytes()
    assert b"/FontFile2" in written and b"/Type3" not in written and matplotlib.rcParams["pdf.fonttype"] == 3
    again = pickle.loads(pickle.dumps(display.figure_))
    again.savefig(tmp_path / "b.pdf")
    assert b"/Type3" not in (tmp_path / "b.pdf").read_bytes()


def test_blue_and_orange_differ_in_grey_and_names_stay_apart():
    def luminance(colour):
        return np.dot(matplotlib.colors.to_rgb(colour), [0.299, 0.587, 0.114])

    assert abs(luminance(BLUE) - luminance(ORANGE)) > 0.08 and luminance(GREY) < 0.6
    assert shorten("department of affairs 1", 12) == "departm…rs 1" and shorten("short", 12) == "short"


def test_intervals_stand_beside_their_own_topic(three):
    """In the order of the plot, for each class."""
    model, *_ = three
    for column, name in enumerate(["bad", "fair", "good"]):
        lower, upper = model.coef_interval()
        shown = CoefficientDisplay.from_estimator(model, column=name)
        for found, values in ((shown.mean, model.coef_), (shown.lower, lower), (shown.upper, upper)):
            np.testing.assert_allclose(found, values[column, shown.topics])
        effects = model.effect_frame(0.2)
        own = effects[effects["column"] == name].set_index("topic")
        display = EffectDisplay.from_estimator(model, column=name, points=0.2)
        for found, what in ((display.change, "change"), (display.lower, "lower"), (display.upper, "upper")):
            np.testing.assert_allclose(found, 100 * own[what][display.topics])
        few = EffectDisplay.from_estimator(model, column=name, n_topics=2)
        largest = own["change"].abs().sort_values(ascending=False).index[:2]
        assert set(few.topics) == set(largest) and (np.diff(few.change) <= 0).all()


def test_either_of_two_classes_can_be_shown(corpus):
    _, y, texts = corpus
    model = SLDAClassifier(4, **QUICK).fit(texts, np.where(y > 0, "yes", "no"))
    frame = model.effect_frame().set_index(["column", "topic"])["change"]
    for given, name in ((0, "yes"), ("yes", "yes"), ("no", "no")):
        shown = EffectDisplay.from_estimator(model, column=given)
        assert shown.answer == name
        np.testing.assert_allclose(shown.change, [100 * frame[name, k] for k in shown.topics])


def test_colours_of_a_confusion_are_shares_of_the_true_class():
    shown = ConfusionDisplay.from_predictions(list("aaaab"), list("aabbb"))
    assert shown.counts.tolist() == [[2, 2], [0, 1]]
    np.testing.assert_allclose(shown.ax_.images[0].get_array(), [[50, 50], [0, 100]])


def test_a_heat_map_is_sure_at_its_level(three):
    model, *_ = three
    counts = []
    for level in (0.2, 0.999):
        shown = HeatmapDisplay.from_estimator(model, level=level)
        frame = model.effect_frame(level=level).set_index(["topic", "column"])
        clear = (frame["lower"] > 0) | (frame["upper"] < 0)
        expected = [[clear[k, name] for name in shown.columns] for k in shown.topics]
        np.testing.assert_array_equal(shown.sure, expected)
        counts.append(shown.sure.sum())
    assert counts[0] > counts[1]
