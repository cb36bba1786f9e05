"""A small fitted model of every kind, and what a document of each needs beside its text."""

import numpy as np
import pandas as pd

from supertopic import (
    LDA,
    MedLDAClassifier,
    SLDAClassifier,
    SLDACountRegressor,
    SLDACrowdClassifier,
    SLDACrowdRegressor,
    SLDAOrdinalClassifier,
    SLDARegressor,
    SLDASurvivalRegressor,
)

RNG = np.random.default_rng(0)
N = 120
ABOUT = RNG.integers(0, 3, N)
WORDS = np.array(
    [["goal", "team", "match", "win"], ["vote", "law", "party", "senate"], ["code", "bug", "test", "crash"]]
)
TEXTS = [" ".join(RNG.choice([*WORDS[k], "the", "not", "a"], 12)) for k in ABOUT]
NAMES = np.array(["sport", "politics", "computers"], dtype=object)[ABOUT]
LEVEL = ABOUT * 2.0 + RNG.normal(0, 0.3, N)
RUN = {"n_topics": 4, "n_chains": 2, "burn_in": 10, "n_draws": 6, "predict_sweeps": 12, "random_state": 0}
RATERS = np.where(RNG.random((N, 3)) < 0.8, NAMES[:, None], None)


def fit_class(**more):
    return SLDAClassifier(**RUN, **more).fit(TEXTS, NAMES)


FITS = {
    "class": fit_class,
    "two": lambda: SLDAClassifier(**RUN).fit(TEXTS, ABOUT == 0),
    "sticks": lambda: fit_class(multiclass="stick_breaking"),
    "separate": lambda: fit_class(multiclass="separate"),
    "labels": lambda: SLDAClassifier(**RUN).fit(TEXTS, np.stack([ABOUT == 0, ABOUT != 1], axis=1).astype(int)),
    "hinge": lambda: MedLDAClassifier(**RUN).fit(TEXTS, NAMES),
    "ordinal": lambda: SLDAOrdinalClassifier(**RUN).fit(TEXTS, ABOUT),
    "rating": lambda: SLDARegressor(**RUN).fit(TEXTS, LEVEL),
    "ratings": lambda: SLDARegressor(**RUN).fit(TEXTS, np.stack([LEVEL, -LEVEL], axis=1)),
    "count": lambda: SLDACountRegressor(**RUN).fit(TEXTS, ABOUT * 3),
    "exposed": lambda: SLDACountRegressor(**RUN).fit(TEXTS, ABOUT * 3, exposure=1.0 + ABOUT),
    "survival": lambda: SLDASurvivalRegressor(**RUN).fit(TEXTS, 1.0 + LEVEL.clip(0), event=ABOUT > 0),
    "periods": lambda: SLDASurvivalRegressor(effects="by_period", periods=3, **RUN).fit(
        TEXTS, 1.0 + LEVEL.clip(0), event=ABOUT > 0
    ),
    "crowd": lambda: SLDACrowdClassifier(**RUN).fit(TEXTS, RATERS),
    "crowd_ratings": lambda: SLDACrowdRegressor(**RUN).fit(TEXTS, LEVEL[:, None] + RNG.normal(size=(N, 3))),
    "lda": lambda: LDA(**RUN).fit(TEXTS),
    "covariates": lambda: SLDARegressor(**RUN).fit(
        TEXTS, LEVEL, covariates=pd.DataFrame({"year": 2000 + ABOUT, "who": np.where(ABOUT > 1, "x", "y")}),
    ),
    "array": lambda: SLDARegressor(**RUN).fit(TEXTS, LEVEL, covariates=np.stack([ABOUT, ABOUT**2], axis=1)),
    "groups": lambda: SLDAClassifier(**RUN).fit(TEXTS, NAMES, groups=ABOUT % 2),
    "features": lambda: SLDAClassifier(**RUN).fit(TEXTS, NAMES, features=RNG.normal(size=(N, 3)) + ABOUT[:, None]),
}  # fmt: skip
BESIDE = {
    "exposed": {"exposure": 2.0}, "covariates": {"covariates": {"year": 2001, "who": "x"}},
    "array": {"covariates": [1.0, 2.0]}, "groups": {"group": "1"}, "features": {"features": [0.1, -1.0, 2.0]},
}  # fmt: skip
