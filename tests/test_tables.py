"""Tables and text for a paper: the numbers are those of the model, and no name can break a format."""

import itertools
import json
import re
import shutil
import subprocess
import sys
from dataclasses import FrozenInstanceError, replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pandas
import polars
import pytest
from scipy.sparse import csr_array
from scipy.special import expit
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.pipeline import make_pipeline

from supertopic import (
    LDA,
    MedLDAClassifier,
    Registration,
    Seeds,
    SLDAClassifier,
    SLDACountRegressor,
    SLDARegressor,
    __version__,
    load,
    save,
)
from supertopic.datasets import make_corpus
from supertopic.estimators.registration import as_plain
from supertopic.report.formats import latex_number, plain, rounded
from supertopic.report.methods import bibtex, held_out_sentence, methods_text
from supertopic.report.references import REFERENCES

ROOT = Path(__file__).parents[1]
RUN = {"n_topics": 4, "n_chains": 2, "burn_in": 20, "n_draws": 6, "predict_sweeps": 10, "random_state": 0}
HOSTILE = [
    "\\", "a & b", "100 %", "snake_case", "<script>alert(1)</script>", "two\nlines", "😀", "x" * 5000, "[opt]", "*star",
    "{brace}", "$math$", "#1", "~", "^", "a|b", "`tick`", '"quoted"', "--dash--", "\x00\u202e", "", "&amp;",
    "a](http://b) **c**", "\\end{table}",
]  # fmt: skip
LONE = HOSTILE.index("")  # a topic whose name is half a character
KINDS = {
    "two classes": (SLDAClassifier, lambda c: np.array(["no", "yes"], object)[c.y]),
    "classes": (SLDAClassifier, lambda c: c.doc_topic.argmax(axis=1)),
    "separate": (lambda **run: SLDAClassifier(multiclass="separate", **run), lambda c: c.doc_topic.argmax(axis=1)),
    "sticks": (lambda **run: SLDAClassifier(multiclass="stick_breaking", **run), lambda c: c.doc_topic.argmax(axis=1)),
    "labels": (SLDAClassifier, lambda c: (c.doc_topic > 0.3).astype(int)),
    "own topics": (lambda **run: SLDAClassifier(multiclass="separate", **run), lambda c: (c.doc_topic > 0.3) * 1),
    "hinge": (MedLDAClassifier, lambda c: c.doc_topic.argmax(axis=1)),
    "rating": (SLDARegressor, lambda c: 10 + c.doc_topic @ [1.0, 2.0, 4.0]),
    "ratings": (SLDARegressor, lambda c: pandas.DataFrame(c.doc_topic[:, :2], columns=["price", "taste"])),
    "counts": (SLDACountRegressor, lambda c: np.rint(c.doc_topic @ [1.0, 5.0, 20.0])),
}


pytestmark = [
    pytest.mark.filterwarnings("ignore::UserWarning"),  # chains are short here
    pytest.mark.usefixtures("short_regressions"),
]


@pytest.fixture(scope="module")
def corpus():
    found = make_corpus(n_docs=200, n_topics=3, random_state=0)
    found.Z = pandas.DataFrame(np.random.default_rng(1).normal(size=(200, 2)) * [1, 50], columns=["age", "income"])
    return found


@pytest.fixture(scope="module")
def models(corpus):
    """A fitted model of every kind, made when it is asked for."""
    found = {}

    def make(name):
        if name not in found:
            kind, respond = KINDS[name]
            found[name] = kind(**RUN).fit(corpus.X, respond(corpus), covariates=corpus.Z)
        return found[name]

    return make


class Cells(HTMLParser):
    """The cells of an HTML table, and all tags."""

    def __init__(self):
        super().__init__()
        self.tags, self.rows, self.open = set(), [], False

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")
        self.open = tag in ("td", "th")

    def handle_endtag(self, tag):
        self.open = False

    def handle_data(self, data):
        if self.open:
            self.rows[-1][-1] += data


# the table


@pytest.mark.parametrize("name", KINDS)
def test_effects_of_topics_are_those_of_the_effect_frame(models, name):
    model = models(name)
    table = model.summary_table(0.2, 0.8).frame()
    topics, effects = table[table["kind"] == "topic"], model.effect_frame(0.2, 0.8)
    n_answers = table["column"].nunique()
    shown = {"two classes": ["yes"]}.get(name, [str(answer) for answer in effects["column"].unique()])
    if name in ("rating", "counts"):
        shown = ["the rating" if name == "rating" else "the count"]
        effects["column"] = shown[0]
    assert list(table["column"].unique()) == shown and len(topics) == n_answers * model.posterior_.n_topics
    scale = 1.0 if name in ("hinge", "rating", "ratings", "counts") else 100.0
    unit = {1.0: "log-odds" if name == "hinge" else "its units", 100.0: "percentage points"}[scale]
    assert set(table["unit"]) == {unit}
    both = topics.merge(effects.assign(column=effects["column"].astype(str)), on=["topic", "column"])
    assert len(both) == len(topics)
    for number in ("change", "lower", "upper"):
        expected = both[f"{number}_y"] * scale
        known = both[f"{number}_x"].notna()
        np.testing.assert_allclose(both[f"{number}_x"][known], expected[known], rtol=1e-9, atol=1e-12)
        assert (expected[~known] == 0).all() and (known.all() or name == "own topics")


@pytest.mark.parametrize("name", ["two classes", "rating", "counts", "hinge"])
def test_effects_of_covariates_are_those_of_one_unit(models, name):
    """From the draws by the formula of each response, and the sign's probability by counting."""
    model = models(name)
    table = model.summary_table().frame()
    found = table[(table["kind"] == "covariate") & (table["name"] == "income")].iloc[0]
    draws = model.covariate_coef_draws_[:, 0, 1]
    if name == "two classes":
        base = model.intercept_[0]
        draws = 100 * (expit(base + draws) - expit(base))
    elif name == "counts":
        draws = np.exp(model.intercept_[0] + draws) - np.exp(model.intercept_[0])
    assert found["change"] == pytest.approx(draws.mean(), rel=1e-9)
    assert found["p_direction"] == pytest.approx(max((draws > 0).mean(), (draws < 0).mean()))
    assert found["lower"] < found["change"] < found["upper"]
    assert pandas.isna(found["topic"]) and pandas.isna(found["share"]) and found["words"] == ""


@pytest.mark.parametrize("name", KINDS)
def test_a_table_in_every_format(models, name):
    """Numbers survive each format, rounded to what two digits of the interval's width allow."""
    model = models(name)
    table = model.summary_table()
    frame, n_rows = table.frame(), len(table.rows) * len(table.answers)
    assert len(frame) == n_rows and frame.equals(table.frame())
    assert table.frame("polars").height == n_rows
    np.testing.assert_allclose(table.frame("polars")["change"].to_numpy(), frame["change"], equal_nan=True)
    parser = Cells()
    parser.feed(table.to_html())
    rows = {
        "html": [[cell.replace("\u2212", "-") for cell in row] for row in parser.rows if len(row) == 7][1:],
        "markdown": [
            [cell.strip() for cell in line.strip("|").split(" | ")]
            for line in table.to_markdown().splitlines()
            if line.startswith("|") and "**" not in line
        ][2:],
        "latex": [
            [cell.strip().replace("$", "") for cell in line.removesuffix(r" \\").split(" & ")]
            for line in table.to_latex().splitlines()
            if line.count(" & ") == 6
        ][1:],
        "text": [
            [cell.strip() for cell in re.split(r"\s{2,}", line)]
            for line in repr(table).splitlines()
            if re.search(r"\]\s+>?0\.\d\d$", line)
        ],
    }
    known = frame[frame["change"].notna()]
    for kind, cells in rows.items():
        cells = [row for row in cells if row[-2]]
        assert len(cells) == len(known), kind
        # blocks come one after the other, a frame has all answers of a row together
        order = np.argsort([table.answers.index(column) for column in known["column"]], kind="stable")
        for row, (_, expected) in zip(cells, known.iloc[order].iterrows(), strict=True):
            lower, upper = (float(end) for end in row[-2].strip("[]").split(", "))
            width = expected["upper"] - expected["lower"]
            for shown, number in ((float(row[-3]), "change"), (lower, "lower"), (upper, "upper")):
                assert abs(shown - expected[number]) <= 0.0501 * width, (kind, row)
    assert "*" not in repr(table) and f"K = {RUN['n_topics']}" in repr(table) and __version__ in repr(table)
    assert table._repr_html_() == table.to_html() and {"table", "tbody", "tfoot"} <= parser.tags


def test_the_foot_has_the_measures_of_fit(models):
    model = models("two classes")
    facts, held_out = dict(model.summary_table().facts), model.held_out_
    assert facts["Documents that were cross-fitted"] == str(held_out["cross_fitted"])
    assert facts["Held-out loss"].startswith(f"{held_out['loss']:.3g} (base rate and covariates: ")
    assert facts["Held-out accuracy"].startswith(f"{held_out['contributions']['value']:.3f} ")
    assert facts["Chains"] == "2, 6 draws each" and facts["Seed"] == "0" and facts["Topics"] == "K = 4"
    assert dict(models("separate").summary_table().facts)["Topics"] == "K = 4 for each of 3 classes"
    crossed = replace(model.posterior_, held_out=held_out | {"cross_fitted": 200})
    model = SLDAClassifier(**RUN)
    model.posterior_ = crossed
    assert dict(model.summary_table().facts)["Documents that were cross-fitted"] == "200"


def test_lda_has_a_table_without_effects(corpus, tmp_path):
    model = LDA(**RUN).fit(corpus.X).name_topics({2: "tea"})
    table = model.summary_table(n_words=3)
    frame = table.frame()
    assert list(frame) == ["kind", "topic", "name", "words", "share", "chains"] and len(frame) == 4
    assert frame["share"].is_monotonic_decreasing and frame["share"].sum() == pytest.approx(1)
    assert frame.set_index("topic").loc[2, "name"] == "tea" and (frame["words"].str.count(",") == 2).all()
    for text in (repr(table), table.to_markdown(), table.to_html(), table.to_latex()):
        assert "tea" in text and "Change" not in text and "Held" not in text
    assert "effect_frame" not in dir(model) and not hasattr(model, "placebo")
    text = model.methods_text()
    assert "We fitted latent Dirichlet allocation (Blei, Ng and Jordan 2003" in text and "held" not in text.lower()
    assert "Egami" not in text and "c =" not in text and "Polya" not in text and "weights" not in text
    assert model.freeze(tmp_path / "f.json").check(model)
    assert list(model.typical_documents(corpus.X, 1, 2)) == ["row", "share"]


def test_topics_of_few_chains_can_be_left_out(models):
    posterior, model = models("two classes").posterior_, SLDAClassifier(**RUN)
    (topics,) = posterior.topics
    counts = topics.word_topic.copy()
    counts[1, :, posterior.order[1, 2]] = counts[1, ::-1, posterior.order[1, 2]]  # one chain has other words there
    model.posterior_ = replace(posterior, topics=(replace(topics, word_topic=counts),))
    assert model.posterior_.consensus.n_having.tolist() == [2, 2, 1, 2]
    for least, expected in ((1, {0, 1, 2, 3}), (2, {0, 1, 3})):
        frame = model.summary_table(min_chains=least).frame()
        assert set(frame["topic"].dropna()) == expected
    assert "1/2" in repr(model.summary_table()) and "1/2" not in repr(model.summary_table(min_chains=2))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"points": 0}, "points must be a share from 0 to 1, got 0"),
        ({"points": np.nan}, "points must be a share"),
        ({"level": 1.0}, "level must be between 0 and 1, got 1.0"),
        ({"n_words": 0}, "n_words must be a whole number from 1 to 500, got 0"),
        ({"n_words": 2.5}, "n_words must be a whole number"),
        ({"min_chains": 3}, "min_chains must be a whole number from 1 to 2, got 3"),
        ({"min_chains": True}, "min_chains must be a whole number"),
        ({"feature_names": ["a"]}, "feature_names has 1 names"),
    ],
)
def test_a_table_that_cannot_be_made(models, wrong, message):
    with pytest.raises(ValueError, match=message):
        models("two classes").summary_table(**wrong)


def test_a_table_cannot_be_changed(models):
    table = models("two classes").summary_table()
    with pytest.raises(FrozenInstanceError):
        table.level = 0.5
    with pytest.raises(ValueError, match="kind must be 'pandas', 'polars' or 'pyarrow', got 'excel'"):
        table.frame("excel")


def test_one_draw_has_no_interval(corpus):
    model = SLDAClassifier(2, n_chains=1, burn_in=2, n_draws=1, held_out=0).fit(corpus.X, corpus.y)
    with pytest.raises(ValueError, match="An interval needs at least two draws"):
        model.summary_table()


def test_everything_but_frames_works_without_pandas(models, tmp_path):
    save(models("classes"), tmp_path / "m")
    code = (
        "import sys; sys.modules['pandas'] = None; sys.modules['polars'] = None\n"
        "import supertopic\n"
        f"model = supertopic.load({str(tmp_path / 'm')!r})\n"
        "table = model.summary_table()\n"
        "print(table, table.to_latex(), table.to_markdown(), table.to_html(), model.methods_text(), model.bibtex())\n"
        "try:\n    table.frame()\nexcept ImportError: print('refused')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.rstrip().endswith("refused") and "toprule" in done.stdout


# hostile names


@pytest.fixture(scope="module")
def hostile(corpus):
    """A table in which words, topics, classes and covariates have hostile names."""
    n = corpus.X.shape[1]
    words = np.array([f"{name}{i}" for i, name in zip(range(n), itertools.cycle(HOSTILE), strict=False)], dtype=object)
    y = np.array(["!", HOSTILE[4] + " & _%\n"], dtype=object)[corpus.y]
    Z = pandas.DataFrame(np.random.default_rng(0).normal(size=(200, len(HOSTILE))), columns=HOSTILE)
    model = SLDAClassifier(**RUN | {"n_topics": len(HOSTILE)}).fit(corpus.X, y, covariates=Z, feature_names=words)
    return model.name_topics(dict(enumerate(HOSTILE)) | {LONE: "\ud800"})


def test_hostile_names_in_html(hostile):
    table = hostile.summary_table(n_words=3)
    parser = Cells()
    parser.feed(table.to_html())
    assert parser.tags == {"table", "caption", "thead", "tbody", "tfoot", "tr", "th", "td"}
    shown = {row[0] for row in parser.rows}
    for topic, name in enumerate(HOSTILE):
        assert plain(f"{topic} {name if topic != LONE else ''}") in shown and plain(name) in shown
    assert all(len(row) in (1, 7) for row in parser.rows) and "\n" not in table.to_html()
    table.to_html().encode()


def test_hostile_names_in_markdown(hostile):
    lines = hostile.summary_table(n_words=3).to_markdown().splitlines()
    rows = [line for line in lines if line.startswith("|")]
    for row in rows:  # pipes that are not escaped separate seven cells
        assert len(re.findall(r"(?<!\\)(?:\\\\)*\|", row)) == 8, row
        assert not re.search(r"(?<!\\)(?:\\\\)*[`$]", row) and "<" not in row
    assert all(ord(letter) >= 32 for row in rows for letter in row)
    assert any(r"a\](http://b) \*\*c\*\*" in row for row in rows) and any("&amp;amp;" in row for row in rows)


def test_hostile_names_in_latex(hostile):
    text = hostile.summary_table(n_words=3).to_latex()
    body = text.split(r"\midrule", 1)[1]
    rows = [line for line in body.splitlines() if line.endswith(r"\\") and "multicolumn" not in line]
    assert len(rows) == 2 * len(HOSTILE)
    for row in rows:
        assert len(re.findall(r"(?<!\\)&", row)) == 6, row
        assert not re.search(r"(?<!\\)[%#_]|^[\[*]|[~^`\"<|]", re.sub(r"\$[^$]*\$", "", row)), row
        assert "--" not in row and row.count("{") - row.count("}") == row.count(r"\{") - row.count(r"\}")
    for escaped in (r"\textbackslash{}end\{table\}", r"\$math\$", r"\textless{}script\textgreater{}", r"{[}opt{]}"):
        assert escaped in text
    assert text.count(r"\end{table}") == 1


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="pdflatex is not installed")
def test_latex_compiles(hostile, models, tmp_path):
    """Emoji and the like apart, which pdfLaTeX does not know."""
    tables = [hostile.summary_table(n_words=3), *(models(name).summary_table() for name in ("classes", "counts"))]
    body = "\\clearpage\n".join(table.to_latex().replace("😀", "") for table in tables)
    packages = r"\usepackage[T1]{fontenc}\usepackage{booktabs}\usepackage[margin=1cm,a2paper]{geometry}"
    (tmp_path / "t.tex").write_text(
        rf"\documentclass{{article}}{packages}\begin{{document}}{body}\end{{document}}", encoding="utf-8"
    )
    run = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "t.tex"]
    done = subprocess.run(run, cwd=tmp_path, capture_output=True, text=True, errors="replace")
    assert done.returncode == 0 and (tmp_path / "t.pdf").exists(), done.stdout[-2000:]


def test_hostile_names_in_text(hostile):
    text = repr(hostile.summary_table(n_words=3))
    assert max(map(len, text.splitlines())) < 300 and "<script>" in text
    methods = hostile.methods_text()
    assert "\n" not in methods.split("\n\nReferences")[0] and "\x00" not in methods
    methods.encode()


@pytest.mark.parametrize(
    ("value", "width", "shown"),
    [
        (1.2345, 2.0, "1.2"),
        (-1.2345, 0.2, "-1.23"),
        (-0.0004, 0.2, "0.00"),
        (12.345, 25.0, "12"),
        (5678.0, 1234.0, "5700"),
        (1.5, 0.0, "1.50"),
        (0.0, 0.0, "0"),
        (3.21e-12, 1.0e-11, "3e-12"),
        (-4.567e9, 2.0e8, "-4.57e+09"),
        (1e-20, 1e-11, "0"),
        (np.nan, 1.0, "nan"),
        (1e300, 1e299, "1.00e+300"),
        (np.inf, np.inf, "inf"),
    ],
)
def test_numbers_are_rounded_by_the_width_of_their_interval(value, width, shown):
    assert rounded(value, width) == shown


def test_numbers_in_latex_have_minus_signs():
    assert latex_number("[-1.2, 3.4]") == "[$-1.2$, 3.4]" and latex_number(">0.99") == "$>$0.99"
    assert latex_number("-4.5e-08") == r"$-4.5\times 10^{-8}$" and latex_number("2/4") == "2/4"


# text


def words_of(text):
    return text.split("\n\nReferences")[0]


GRID = {
    "two classes": ("with a logistic response (Zhu, Zheng and Zhang 2013)", "c = 25", "one of 2 classes (no and yes)"),
    "classes": ("with a logistic response", "one of 3 classes (0, 1 and 2)", "against the rest on the same topics"),
    "separate": ("K = 4 topics for each of 3 classes", "weights of its own against the rest."),
    "sticks": ("stick-breaking, in this order",),
    "labels": ("a set of 3 labels", "each with weights of its own on the same topics"),
    "hinge": ("Gibbs MedLDA", "Zhu, Chen, Perkins and Zhang 2014", "margin was 16", "Bayesian logistic regression"),
    "rating": ("Gaussian response (Blei and McAuliffe 2007; Zhu", "The response was a rating.", "c = 8"),
    "ratings": ("The response was a rating (price and taste)", "a factor for each response"),
    "counts": ("negative binomial response", "The response was a count.", "c = 1 against"),
}
AUGMENTED = {"two classes", "classes", "separate", "sticks", "labels", "counts"}


@pytest.mark.parametrize("name", GRID)
def test_the_text_has_the_numbers_of_the_fit(models, name):
    model = models(name)
    text = words_of(model.methods_text())
    for part in GRID[name]:
        assert part in text, text
    held_out = model.held_out_
    for part in (
        "K = 4 topics", "to 200 documents", "vocabulary of 500 words", "2 independent chains", "6 draws of each chain",
        "burn-in of 20 iterations", "collapsed Gibbs sampling", "alpha = 0.1", "beta = 0.01", "The seed was 0.",
        f"supertopic {__version__}", f"regression on {held_out['cross_fitted']} documents", f"{held_out['loss']:.3g}",
        f"{held_out['base_loss']:.3g}", f"{held_out['contributions']['value']:.3f}",
        "2 covariates beside the topics: age and",
        "the base rate with covariates", f"{len(model.posterior_.words.dictionary.word):,} words, by ridge regression",
        "Egami, Fong, Grimmer, Roberts and Stewart 2022", "Bischof and Airoldi 2012",
    ):  # fmt: skip
        assert part in text, (part, text)
    assert ("Polya-Gamma" in text) == (name in AUGMENTED) and ("margin" in text) == (name == "hinge")
    for wrong in ("No documents were held out", "too short", "batches", "features", "pairs of words", "pseudo-counts"):
        assert wrong not in text
    assert ("ordinary likelihood" in text) == (name not in ("hinge", "counts"))
    assert not re.search(r"\b(None|nan|contributions|inf)\b", text) and "  " not in text and ".." not in text


def changed(corpus, parameters=None, fit=None, y=None):
    model = SLDAClassifier(**RUN | (parameters or {}))
    return model.fit(corpus.X, corpus.y if y is None else y, **fit or {}).methods_text()


def test_the_text_without_held_out_documents(corpus):
    text = changed(corpus, {"held_out": 0})
    assert "No documents were held out. The reported weights come from the documents that the topics" in text
    assert "too short where c > 1" in text and "Egami" not in text and "On held-out" not in text
    assert "shrunk" not in text and "estimated with c = 1" in text and "base rate" not in text
    assert "too short." in changed(corpus, {"held_out": 0, "c": 1.0})


def test_the_text_without_calibration(corpus):
    text = changed(corpus, {"calibrate": False})
    assert "those of the chains that learned the topics, where the response had the weight c = 25" in text
    assert "Predictions used the same weights, without shrinkage." in text
    assert "estimated with c = 1" not in text and "ridge" not in text and "Egami" not in text


def test_the_text_of_further_terms(corpus):
    features = np.random.default_rng(0).normal(size=(200, 7))
    text = changed(corpus, {"words": False}, {"features": features})
    assert "direct weights of 7 features, by ridge regression;" in text and "words, by ridge" not in text
    assert "ridge" not in changed(corpus, {"words": False})
    assert "for what topics leave" in changed(corpus, {"priority": "topics"})
    text = changed(corpus, {"class_weight": "balanced", "n_chains": 1, "sampler": "drawn"})
    assert "Classes were weighted." in text and "in one chain; 6 draws were kept" in text
    assert "matched" not in text and "topics are drawn from their posterior in every iteration" in text
    assert "approximation" in changed(corpus, {"sampler": "delayed"})
    text = changed(corpus, {"optimize_priors": True, "seeds": Seeds([[0, 1], [2]], strength=1.0)})
    assert "learned from the documents" in text and "pseudo-counts in each chain" in text


def test_the_text_of_texts():
    texts = ["goal match team was not good", "team match win", "vote law senate it is not good", "law vote party"] * 15
    model = SLDAClassifier(**RUN | {"n_topics": 2}).fit(texts, ["sport", "sport", "politics", "politics"] * 15)
    text = words_of(model.methods_text())
    if model.posterior_.words is not None:
        assert f"{len(model.posterior_.words.dictionary.word)} words and pairs of words" in text
    assert f"vocabulary of {model.posterior_.n_words} words" in text and "to 60 documents" in text


def test_the_text_of_batches_and_of_a_loaded_model(corpus, tmp_path):
    model = SLDAClassifier(**RUN).partial_fit(corpus.X[:120], corpus.y[:120])
    assert "batches" not in model.methods_text()
    model.partial_fit(corpus.X[120:], corpus.y[120:])
    text = words_of(model.methods_text())
    assert "in 2 batches, the last of which had 80 documents" in text and "pseudo-counts" not in text
    assert f"{model.held_out_['cross_fitted']} documents with a known response of the latest batch, and on" in text
    save(model, tmp_path / "m")
    again = words_of(load(tmp_path / "m").methods_text())
    assert again == text.replace(", the last of which had 80 documents", "")


def test_the_sentence_of_cross_fitted_models(models):
    posterior = models("two classes").posterior_
    crossed = replace(posterior, held_out=posterior.held_out | {"cross_fitted": 187})
    said = held_out_sentence(crossed)
    assert "regression on 187 documents with a known response, each with the topic shares" in said
    assert said in methods_text(crossed, {}) and "We held out" not in said and "Egami" in said
    older = {name: value for name, value in posterior.held_out.items() if name != "cross_fitted"}
    assert "no chain saw" in held_out_sentence(replace(posterior, held_out=older))


@pytest.mark.parametrize("name", GRID)
def test_bibtex_has_the_references_of_the_text(models, name):
    model = models(name)
    listed, entries = model.methods_text().split("References\n\n")[1], model.bibtex()
    keys = re.findall(r"^@\w+\{(\w+),$", entries, re.MULTILINE)
    assert len(keys) == len(set(keys)) == len(listed.splitlines()) and "supertopic" in keys
    for key in keys:
        assert REFERENCES[key].text in listed
        cited = key == "supertopic" or REFERENCES[key].cited in words_of(model.methods_text())
        assert cited, key
    for entry in entries.split("\n\n"):
        assert entry.count("{") == entry.count("}") and entry.isascii()
        assert {"author", "title", "year"} <= set(re.findall(r"^  (\w+) = \{", entry, re.MULTILINE))
    assert bibtex(model.posterior_) == entries


def test_the_software_is_cited_as_the_citation_file_says():
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    own = REFERENCES["supertopic"]
    assert f'title: "{own.title}"' in citation and f'name: "{own.authors[0]}"' in citation
    assert f"date-released: {own.year}-" in citation and f"license: {own.fields['license']}" in citation
    assert f"version: {own.fields['version']}" in citation and REFERENCES["zhu2013"].title in citation


# documents


def test_documents_of_counts_have_row_numbers(corpus, models):
    model, y = models("two classes"), KINDS["two classes"][1](corpus)
    frame = model.surprising(corpus.X, y, 5, covariates=corpus.Z)
    assert list(frame) == ["row", "predicted", "observed", "score"] and frame["score"].is_monotonic_increasing
    p = model.predict_proba(corpus.X, covariates=corpus.Z)
    of_true = p[np.arange(200), (y == "yes").astype(int)]
    assert frame["row"].tolist() == np.argsort(of_true, kind="stable")[:5].tolist()
    np.testing.assert_allclose(frame["score"], of_true[frame["row"]])
    assert frame["predicted"].tolist() == model.predict(corpus.X, covariates=corpus.Z)[frame["row"]].tolist()
    assert frame["observed"].tolist() == y[frame["row"]].tolist()
    unsure = model.unsure(corpus.X, 4, covariates=corpus.Z)
    assert list(unsure) == ["row", "predicted", "score"]
    np.testing.assert_allclose(unsure["score"], np.sort(p.max(axis=1))[:4])
    typical = model.typical_documents(corpus.X, 2, 3)
    np.testing.assert_allclose(typical["share"], model.transform(corpus.X)[typical["row"], 2])


def test_documents_of_frames_have_the_labels_of_the_index(corpus, models):
    model, y = models("two classes"), KINDS["two classes"][1](corpus)
    bare = model.surprising(corpus.X, y, 3, covariates=corpus.Z)
    index = pandas.Index([f"doc {i % 150}" for i in range(200)])  # some twice
    X = pandas.DataFrame(corpus.X.toarray(), index=index)
    for given in (y, pandas.Series(y, index=range(1000, 1200)), y.tolist()):
        frame = model.surprising(X, given, 3, covariates=corpus.Z)
        assert frame["row"].tolist() == index[bare["row"]].tolist()
        assert frame.drop(columns="row").equals(bare.drop(columns="row"))
    assert model.typical_documents(X, 0, 2)["row"].str.startswith("doc ").all()
    pairs = pandas.MultiIndex.from_product([["a", "b"], range(100)])
    first = model.unsure(X.set_axis(pairs), 1, covariates=corpus.Z)["row"][0]
    assert isinstance(first, tuple) and len(first) == 2


def test_documents_of_texts_have_texts():
    texts = ["goal match team", "team match win", "vote law senate", "law vote party"] * 15
    y = ["sport", "sport", "politics", "politics"] * 15
    model = SLDAClassifier(**RUN | {"n_topics": 2}).fit(texts, y)
    series = pandas.Series(texts, index=range(500, 560))
    for X, labels in (
        (texts, range(60)),
        (series, series.index),
        (np.array(texts), range(60)),
        (tuple(texts), range(60)),
    ):
        for frame in (model.surprising(X, y, 3), model.unsure(X, 3), model.typical_documents(X, 0, 3)):
            assert list(frame)[:2] == ["row", "text"] and set(frame["row"]) <= set(labels)
            place = frame["row"] - labels[0]
            assert frame["text"].tolist() == [texts[i] for i in place]
    assert model.unsure(polars.Series(texts), 2)["text"].to_list() == model.unsure(texts, 2)["text"].tolist()
    missing = model.typical_documents([*texts[:3], None], 0, 4)
    assert len(missing) == 4 and missing["text"].isna().sum() == 1


@pytest.mark.parametrize("name", KINDS)
def test_documents_of_every_response(corpus, models, name):
    model, y = models(name), KINDS[name][1](corpus)
    frame = model.surprising(corpus.X, y, 6, covariates=corpus.Z)
    rising = name in ("two classes", "classes", "separate", "sticks", "labels", "own topics")
    assert frame["score"].is_monotonic_increasing if rising else frame["score"].is_monotonic_decreasing
    predicted, values = model.predict(corpus.X, covariates=corpus.Z)[frame["row"]], np.asarray(y)[frame["row"]]
    if name in ("labels", "own topics"):
        expected = [tuple(np.flatnonzero(row).tolist()) for row in values]
        assert frame["observed"].tolist() == expected
        assert frame["predicted"].tolist() == [tuple(np.flatnonzero(row).tolist()) for row in predicted]
    elif name == "ratings":
        np.testing.assert_allclose(np.array(frame["observed"].tolist()), values)
        np.testing.assert_allclose(np.array(frame["predicted"].tolist()), predicted)
    else:
        assert frame["observed"].tolist() == values.tolist()  # to the last digit
        np.testing.assert_allclose(frame["predicted"].astype(float), predicted.astype(float)) if name in (
            "rating", "counts") else None  # fmt: skip
    assert model.unsure(corpus.X, 3, covariates=corpus.Z)["score"].notna().all()


def test_surprise_of_a_rating_is_in_standard_deviations(corpus, models):
    model, y = models("rating"), KINDS["rating"][1](corpus)
    mean, std = model.predict(corpus.X, return_std=True, covariates=corpus.Z)
    frame = model.surprising(corpus.X, y, 5, covariates=corpus.Z)
    np.testing.assert_allclose(frame["score"], np.sort(np.abs(y - mean) / std)[::-1][:5])
    lower, upper = model.predict_interval(corpus.X, covariates=corpus.Z)
    unsure = model.unsure(corpus.X, 5, covariates=corpus.Z)
    np.testing.assert_allclose(unsure["score"], (upper - lower)[unsure["row"]])


def test_documents_with_unknown_responses_come_last(corpus, models):
    y = np.where(np.arange(200) < 190, None, KINDS["two classes"][1](corpus))
    frame = models("two classes").surprising(corpus.X, y, 200, covariates=corpus.Z)
    assert frame["score"][:10].notna().all() and frame["score"][10:].isna().all()
    assert frame["observed"][10:].isna().all() and set(frame["row"][:10]) == set(range(190, 200))
    rating = np.where(np.arange(200) < 190, np.nan, 1.0)
    frame = models("rating").surprising(corpus.X, rating, 200, covariates=corpus.Z)
    assert frame["observed"].notna().sum() == 10 and frame["score"][10:].isna().all()


def test_numbers_of_documents_that_cannot_be_right(corpus, models):
    model = models("two classes")
    assert len(model.typical_documents(corpus.X, 0, 0)) == 0 == len(model.unsure(corpus.X, 0, covariates=corpus.Z))
    assert len(model.typical_documents(corpus.X, 0, 10**6)) == 200
    for wrong in (-1, 2.5, True, "3", None):
        for call in (lambda n: model.typical_documents(corpus.X, 0, n), lambda n: model.unsure(corpus.X, n)):
            with pytest.raises(ValueError, match="n must be a whole number of documents"):
                call(wrong)
    with pytest.raises(ValueError, match="X has 200 documents but y has 3"):
        model.surprising(corpus.X, ["no"] * 3, covariates=corpus.Z)


# placebo


def test_placebo_of_signal_and_of_noise():
    """Intervals exclude 0 where there is a signal; where responses are shuffled, about as often as they should."""
    corpus = make_corpus(n_docs=400, n_topics=4, eta=[-9, -9, 9, 9], random_state=5)
    run = RUN | {"held_out": 0.3}
    model = SLDAClassifier(**run).fit(corpus.X, corpus.y)
    before = model.posterior_
    frame = model.placebo(corpus.X, corpus.y, n=4)
    assert list(frame) == ["fit", "seed", "topics", "covariates", "held_out_loss", "base_loss"] and len(frame) == 5
    assert model.posterior_ is before and frame["fit"].tolist() == ["model", *(f"placebo {i}" for i in range(1, 5))]
    assert frame["seed"].nunique() == 5 and frame["covariates"].isna().all()
    lower, upper = model.coef_interval(0.9)
    assert frame["topics"][0] == ((lower > 0) | (upper < 0)).mean() >= 0.75
    assert frame["topics"][1:].mean() <= 0.4  # of 16 intervals
    assert frame["held_out_loss"][0] < 0.6 * frame["base_loss"][0]
    assert (frame["held_out_loss"][1:] > 0.95 * frame["base_loss"][1:]).all()
    again = model.placebo(corpus.X, corpus.y, n=2)  # seeds follow from that of the model
    pandas.testing.assert_frame_equal(again, frame[:3])


def test_placebo_inside_groups_keeps_what_groups_explain():
    """A covariate that is the group still predicts where responses are shuffled inside groups, and only there."""
    corpus = make_corpus(n_docs=400, n_topics=3, random_state=2)
    rng = np.random.default_rng(0)
    group = rng.integers(0, 2, 400)
    y = (rng.random(400) < 0.1 + 0.8 * group).astype(int)
    run = RUN | {"n_topics": 2, "words": False, "held_out": 0.4}
    model = SLDAClassifier(**run).fit(corpus.X, y, covariates=group)
    inside = model.placebo(corpus.X, y, 2, np.array(["a", "b"])[group], covariates=group)
    across = model.placebo(corpus.X, y, 2, covariates=group)
    assert inside["covariates"].tolist() == [1, 1, 1] and across["covariates"][1:].mean() <= 0.5


@pytest.mark.parametrize("kind", ["list", "series", "frame", "sparse", "exposure"])
def test_placebo_takes_what_fit_takes(corpus, kind):
    more, estimator = {}, SLDAClassifier(**RUN | {"n_topics": 2})
    y = {
        "list": corpus.y.tolist(), "series": pandas.Series(corpus.y, index=range(7, 207)),
        "frame": pandas.DataFrame((corpus.doc_topic > 0.3) * 1, columns=list("abc")),
        "sparse": csr_array((corpus.doc_topic > 0.3) * 1), "exposure": np.arange(200),
    }[kind]  # fmt: skip
    if kind == "exposure":
        estimator, more = SLDACountRegressor(**RUN | {"n_topics": 2}), {"exposure": np.arange(1, 201)}
    frame = estimator.fit(corpus.X, y, **more).placebo(corpus.X, y, **more)
    assert len(frame) == 2 and frame["topics"].between(0, 1).all()


def test_exposures_are_shuffled_with_their_counts(corpus, monkeypatch):
    model = SLDACountRegressor(**RUN | {"n_topics": 2}).fit(corpus.X, np.arange(200), exposure=np.arange(1, 201))
    given = []
    monkeypatch.setattr(
        SLDACountRegressor, "fit", lambda self, X, y, **more: given.append((y, more)) or setattr(
            self, "posterior_", model.posterior_) or self)  # fmt: skip
    model.placebo(corpus.X, np.arange(200), exposure=np.arange(1, 201), covariates=corpus.Z)
    ((y, more),) = given
    assert (more["exposure"] == y + 1).all() and (y != np.arange(200)).mean() > 0.9
    assert sorted(y) == list(range(200)) and more["covariates"] is corpus.Z


def test_a_placebo_that_cannot_be_made(corpus, models):
    model, y = models("two classes"), KINDS["two classes"][1](corpus)
    for wrong in (0, 1.5, True, None):
        with pytest.raises(ValueError, match="n must be a whole number of fits"):
            model.placebo(corpus.X, y, wrong)
    with pytest.raises(ValueError, match="y has 200 responses but groups has 3"):
        model.placebo(corpus.X, y, groups=[1, 2, 3])
    with pytest.raises(ValueError, match="groups must be known for every document, got nan in row 5"):
        model.placebo(corpus.X, y, groups=np.where(np.arange(200) == 5, np.nan, 1.0))
    with pytest.raises(ValueError, match="Every group has one document only"):
        model.placebo(corpus.X, y, groups=range(200))
    with pytest.raises(ValueError, match="level must be between 0 and 1"):
        model.placebo(corpus.X, y, level=2)
    with pytest.raises(ValueError, match="not fitted"):
        SLDAClassifier().placebo(corpus.X, y)


# registration


def test_frozen_topics_are_known_again(corpus, tmp_path):
    words = [f"wörd {i}" for i in range(500)]
    model = SLDAClassifier(**RUN | {"class_weight": {0: 1.0, 1: 2.0}}).fit(corpus.X, corpus.y, feature_names=words)
    record = model.freeze(tmp_path / "topics.json")
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00", record.date) and len(record.sha256) == 64
    assert as_plain({np.int64(1): {"b", "a"}, "x": (CountVectorizer(), int)})["1"] == ["a", "b"]
    assert (record.version, record.model, record.n_topics, record.seed) == (__version__, "SLDAClassifier", 4, 0)
    assert record.parameters["n_chains"] == 2 and record.parameters["class_weight"] == {"0": 1.0, "1": 2.0}
    for part in (record.sha256, record.date, __version__, "SLDAClassifier", '"n_topics": 4'):
        assert part in str(record)
    assert Registration.read(tmp_path / "topics.json") == record and record.check(model)
    save(model, tmp_path / "m")
    assert record.check(load(tmp_path / "m"))
    assert record.check(make_pipeline(CountVectorizer(), model))
    model.name_topics({0: "tea"}).set_params(n_jobs=2)
    assert record.check(model) and model.freeze().sha256 == record.sha256
    again = SLDAClassifier(**RUN).fit(corpus.X, corpus.y, feature_names=words)
    assert not record.check(again)  # other weights of the classes, other topics
    assert not record.check(model.partial_fit(corpus.X[:50], corpus.y[:50]))
    with pytest.raises(FrozenInstanceError):
        record.sha256 = ""


@pytest.mark.parametrize("part", ["counts", "alpha", "beta", "order", "vocabulary", "draws"])
def test_the_hash_is_of_all_that_topics_are(models, part):
    model, other = models("two classes"), SLDAClassifier(**RUN)
    posterior = model.posterior_
    record, (topics,) = model.freeze(), posterior.topics
    counts = topics.word_topic.copy()
    counts[1, 3, 2] += 1
    order = posterior.order.copy()
    order[0, :2] = order[0, 1::-1]
    posterior = {
        "counts": lambda: replace(posterior, topics=(replace(topics, word_topic=counts),)),
        "alpha": lambda: replace(posterior, topics=(replace(topics, alpha=topics.alpha * (1 + 1e-15)),)),
        "beta": lambda: replace(posterior, topics=(replace(topics, beta=topics.beta + 1e-9),)),
        "draws": lambda: replace(posterior, topics=(replace(topics, n_draws=7),)),
        "order": lambda: replace(posterior, order=order),
        "vocabulary": lambda: replace(posterior, vocabulary=np.array([f"w{i}" for i in range(500)], object)),
    }[part]()  # fmt: skip
    other.posterior_ = posterior
    assert record.check(model) and not record.check(other)


def test_records_that_cannot_be_read(corpus, models, tmp_path):
    path = tmp_path / "x.json"
    for wrong in ("", "[]", "{}", '{"date": 1}', json.dumps({"sha256": "0", "more": 1})):
        path.write_text(wrong, encoding="utf-8")
        with pytest.raises(ValueError, match="is not a record of frozen topics"):
            Registration.read(path)
    with pytest.raises(TypeError, match="check takes a fitted supertopic estimator, got a SLDAClassifier"):
        models("two classes").freeze().check(SLDAClassifier())
    with pytest.raises(TypeError, match="got a int"):
        models("two classes").freeze().check(3)
    with pytest.warns(UserWarning, match="words of the columns are unknown"):
        models("two classes").freeze()
    with pytest.raises(ValueError, match="not fitted"):
        SLDAClassifier().freeze()
