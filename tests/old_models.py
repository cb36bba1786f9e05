"""Small models of version 0.2: with that version installed, `python tests/old_models.py FOLDER` writes their files."""

import json
import sys
from pathlib import Path

import numpy as np

SEED, N_DOCS, N_WORDS = 20, 60, 25
RUN = {"n_topics": 3, "n_chains": 2, "burn_in": 6, "n_draws": 3, "predict_sweeps": 6, "random_state": 7}
SEEDS = {"early": ["w0", "w1"], "late": ["w20", "w24"]}
# for each name: the estimator, its parameters, the response, what stands beside the counts, the number of batches
MODELS = {
    "binary": ("SLDAClassifier", {}, "binary", ("covariates",), 1),
    "binary-batches": ("SLDAClassifier", {"discount": 0.5, "hidden": 0.2}, "binary", ("covariates",), 2),
    "shared": ("SLDAClassifier", {"hidden": 0.2}, "classes", (), 2),
    "separate": ("SLDAClassifier", {"multiclass": "separate"}, "classes", ("covariates",), 1),
    "separate-batches": ("SLDAClassifier", {"multiclass": "separate"}, "classes", (), 2),
    "sticks": ("SLDAClassifier", {"multiclass": "stick_breaking"}, "classes", (), 1),
    "labels": ("SLDAClassifier", {"seeds": SEEDS, "seed_strength": 0.5}, "labels", (), 2),
    "hinge": ("MedLDAClassifier", {}, "classes", (), 1),
    "ratings": ("SLDARegressor", {"sigma2": "drawn", "hidden": 0.2}, "ratings", ("covariates",), 2),
    "counts": ("SLDACountRegressor", {}, "counts", ("exposure",), 2),
    "uncalibrated": ("SLDARegressor", {"calibrate": False}, "ratings", (), 1),
    "lda": ("LDA", {"seeds": SEEDS, "seed_strength": 2.0}, None, (), 2),
    "pipeline": ("SLDAClassifier", {}, "binary", (), 1),
}


def inputs(seed: int) -> dict[str, np.ndarray]:
    """Counts, and whatever the models learn from them."""
    rng = np.random.default_rng(seed)
    topics, shares = rng.dirichlet(np.full(N_WORDS, 0.2), 3), rng.dirichlet(np.full(3, 0.5), N_DOCS)
    X = np.array([rng.multinomial(30, share @ topics) for share in shares])
    beside = rng.normal(size=(N_DOCS, 2))
    exposure = rng.uniform(0.5, 3.0, N_DOCS)
    return {
        "X": X, "covariates": beside, "exposure": exposure,
        "binary": np.where(shares[:, 0] + 0.2 * beside[:, 0] > 0.3, "yes", "no"),
        "classes": np.array(["a", "b", "c"])[shares.argmax(axis=1)],
        "labels": (shares[:, :2] > 0.3).astype(int),
        "ratings": np.column_stack([10 + 5 * shares[:, 0] + beside[:, 1], 100 * shares[:, 1]]),
        "counts": rng.poisson(exposure * (1 + 9 * shares[:, 2])),
    }  # fmt: skip


WORDS = np.array([f"w{i}" for i in range(N_WORDS)], dtype=object)


def texts_of(X: np.ndarray) -> list[str]:
    return [" ".join(np.repeat(WORDS, row)) for row in X]


def part(name: str, data: dict[str, np.ndarray], docs: slice) -> tuple:
    """The documents of a model, what stands beside them, and their response."""
    _, _, response, beside, _ = MODELS[name]
    X = texts_of(data["X"][docs]) if name == "pipeline" else data["X"][docs]
    return X, {key: data[key][docs] for key in beside}, None if response is None else data[response][docs]


def answers(name: str, model, data: dict[str, np.ndarray]) -> dict[str, list]:
    """What a model says of the first documents, and of one without words."""
    X, beside, _ = part(name, data, slice(0, 8))
    X = [*X[:7], ""] if name == "pipeline" else np.concatenate([X[:7], np.zeros((1, N_WORDS), int)])
    methods = ("predict_proba", "decision_function", "predict")
    found = {method: getattr(model, method)(X, **beside) for method in methods if hasattr(model, method)}
    last = model[-1] if name == "pipeline" else model
    if name != "pipeline":
        found["transform"] = model.transform(X)
    for attribute in ("coef_", "intercept_", "covariate_coef_"):
        if hasattr(last, attribute):
            found[attribute] = getattr(last, attribute)
    if name == "ratings":
        found["std"] = model.predict(X, return_std=True, **beside)[1]
    if name in ("ratings", "counts"):
        found["lower"], found["upper"] = model.predict_interval(X, **beside)
    return {key: np.asarray(value).tolist() for key, value in found.items()}


def write(folder: Path) -> None:
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.pipeline import make_pipeline

    import supertopic

    data, found = inputs(SEED), {}
    for name, (kind, parameters, _, _, n_batches) in MODELS.items():
        model = getattr(supertopic, kind)(**RUN, **parameters)
        if name == "pipeline":
            X, _, y = part(name, data, slice(None))
            model = make_pipeline(CountVectorizer(), model).fit(X, y)
        else:
            step = N_DOCS // n_batches
            for first in range(0, N_DOCS, step):
                X, beside, y = part(name, data, slice(first, first + step))
                if kind == "SLDAClassifier" and first == 0 and y.ndim == 1:
                    beside["classes"] = np.unique(y if n_batches == 1 else data[MODELS[name][2]])
                model.partial_fit(X, y, feature_names=WORDS, **beside)
        supertopic.save(model, folder / f"version-0.2-{name}.model")
        found[name] = answers(name, model, data)
    (folder / "version-0.2.json").write_text(json.dumps({"seed": SEED, "answers": found}) + "\n")


if __name__ == "__main__":
    write(Path(sys.argv[1]))
