"""Parameters of estimators as `inference.fit` wants them."""

from numbers import Integral, Real
from typing import Any, Protocol

import numpy as np
from sklearn.utils import check_random_state

from supertopic.estimators.validation import check_engine
from supertopic.inference.chains import INITS, Config
from supertopic.model.formula import as_formula
from supertopic.model.responses.values import LEAST, MOST
from supertopic.model.seeds import as_seeds
from supertopic.model.state import Priors
from supertopic.sampling.plan import SAMPLERS

ALPHA_EACH = 0.1  # alpha=None: the prior of each topic
MOST_JOBS = 4096
BOUNDS = {  # smallest and largest value of whole numbers
    "n_topics": (1, 2**16 - 1), "burn_in": (0, 10**7), "n_draws": (1, 10**6), "n_chains": (1, 4096),
    "predict_sweeps": (1, 100_000),
}  # fmt: skip
ELSEWHERE = (
    "n_jobs",
    "engine",
    "verbose",
    "n_draws",
    "max_seconds",
    "random_state",
    "prior",
    "vectorizer",
    "words",
    "priority",
)  # a checkpoint does not depend on them


class HasParameters(Protocol):
    """The parameters that all topic models have, as far as they are checked here."""

    n_topics: int
    alpha: Any
    beta: float
    init: str
    sampler: str
    engine: str
    burn_in: int | str
    max_seconds: float | None
    n_draws: int
    n_chains: int
    predict_sweeps: int
    n_jobs: int | None


def check_whole_numbers(model: HasParameters) -> None:
    """Refuse what is not a whole number, or too small or large."""
    for name, (smallest, largest) in BOUNDS.items():
        value = getattr(model, name)
        if name == "burn_in" and isinstance(value, str) and value == "auto":
            continue
        if not isinstance(value, Integral) or isinstance(value, bool) or int(value) < smallest:
            auto = "'auto' or " if name == "burn_in" else ""
            raise ValueError(f"{name} must be {auto}a whole number >= {smallest}, got {value!r}.")
        if int(value) > largest:
            raise ValueError(f"{name} must be at most {largest:,}, got {value:,}.")
    seconds = model.max_seconds
    if seconds is not None and (not isinstance(seconds, Real) or isinstance(seconds, bool) or not seconds > 0):
        raise ValueError(f"max_seconds must be None or a number of seconds above 0, got {seconds!r}.")
    n_jobs = model.n_jobs
    whole = isinstance(n_jobs, Integral) and not isinstance(n_jobs, bool)
    if n_jobs is not None and not (whole and 0 < abs(int(n_jobs)) <= MOST_JOBS):
        raise ValueError(
            f"n_jobs must be None or a whole number other than 0, from {-MOST_JOBS} to {MOST_JOBS}, got {n_jobs!r}."
        )


def check_choices(model: HasParameters) -> None:
    """Refuse what is not one of some values, and priors that cannot be."""
    for name, values in {"sampler": ("auto", *SAMPLERS), "init": INITS}.items():
        if getattr(model, name) not in values:
            raise ValueError(f"{name} must be one of {', '.join(map(repr, values))}, got {getattr(model, name)!r}.")
    make_priors(model.n_topics, model.alpha, model.beta)
    check_engine(model.engine)


def make_priors(n_topics: int, alpha: Any, beta: float, nu2: float = 1.0) -> Priors:
    """The Dirichlet priors, and the prior variance of weights."""
    each = np.asarray(ALPHA_EACH * n_topics if alpha is None else alpha, dtype=float)
    if each.shape not in ((), (n_topics,)):
        raise ValueError(f"alpha must be a number or have n_topics = {n_topics} entries, got {each.shape}.")
    if not ((each >= LEAST) & (each <= MOST)).all():
        raise ValueError(f"alpha must be from {LEAST:g} to {MOST:g}, got {alpha!r}.")
    if each.ndim == 0:
        each = np.full(n_topics, each / n_topics)
    return Priors(each, float(beta), float(nu2))


def make_seed(random_state: Any) -> int | None:
    """The seed, or None for fresh entropy."""
    if random_state is None:
        return None
    if isinstance(random_state, bool | np.bool_):
        raise ValueError(f"random_state must be a whole number, a RandomState or None, got {random_state!r}.")
    if isinstance(random_state, Integral):
        if not 0 <= int(random_state) < 2**63:
            raise ValueError(f"random_state must be in 0 .. 2**63 - 1, got {random_state}.")
        return int(random_state)
    return int(check_random_state(random_state).randint(2**31 - 1))


def make_config(kind: str, parameters: dict[str, Any], n_words: int, seed: int | None) -> Config:
    """How an estimator of this kind, with these parameters, is fitted."""
    seeds, formula = as_seeds(parameters["seeds"]), as_formula(parameters.get("formula"))
    identity = {name: value for name, value in parameters.items() if name not in ELSEWHERE}
    identity |= {"kind": kind, "seed": seed, "seeds": seeds and seeds.get_params()}
    identity["formula"] = formula and formula.get_params()
    same = [
        "n_topics",
        "init",
        "burn_in",
        "max_seconds",
        "n_draws",
        "n_chains",
        "sampler",
        "predict_sweeps",
        "n_jobs",
        "device",
        "engine",
    ]
    same += ["calibrate", "held_out"] if "held_out" in parameters else []
    priors = make_priors(parameters["n_topics"], parameters["alpha"], parameters["beta"], parameters.get("nu2", 1.0))
    return Config(
        n_words=n_words, priors=priors, learn_priors=bool(parameters["optimize_priors"]),
        verbose=bool(parameters["verbose"]), title=kind, identity=identity,
        topics_first=parameters.get("priority") == "topics", by_group=parameters.get("held_out_by") == "group",
        **{name: parameters[name] for name in same},
    )  # fmt: skip
