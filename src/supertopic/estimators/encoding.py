"""What a user says of documents, checked and in the form that `inference.fit` reads."""

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.validation import _check_sample_weight

from supertopic.corpus.frames import read_frame
from supertopic.corpus.source import Corpus
from supertopic.estimators.validation import (
    describe_covariates,
    describe_features,
    group_columns,
    group_names,
    log_exposure,
    new_covariates,
    new_features,
    warn_of_many_topics,
)
from supertopic.inference.beside import LinearInputs
from supertopic.model.formula import as_formula
from supertopic.model.posterior import Posterior
from supertopic.model.priors import check_discount
from supertopic.model.responses.base import Encoded, Response
from supertopic.model.responses.values import MOST
from supertopic.model.terms import CovariateColumns


class Given(NamedTuple):
    """The arguments of `fit` about documents, as a user gave them."""

    y: Any
    sample_weight: Any = None
    covariates: Any = None
    exposure: Any = None
    classes: Any = None
    features: Any = None
    formula: Any = None
    groups: Any = None


def check_sizes(corpus: Corpus, n_topics: int, n_chains: int, previous: Posterior | None, discount: Any) -> None:
    """Warn of too many topics, and refuse to update a model of another size."""
    check_discount(discount)
    if previous is None:
        warn_of_many_topics(n_topics, len(corpus.doc_start) - 1, int(corpus.doc_start[-1]))
    elif (previous.topics[0].n_topics, previous.n_chains) != (n_topics, n_chains):
        raise ValueError(
            f"partial_fit updates a model of {previous.topics[0].n_topics} topics and {previous.n_chains} chains, "
            f"but n_topics={n_topics} and n_chains={n_chains}; `fit` starts again."
        )


def encode_documents(
    corpus: Corpus, response: Response, given: Given, previous: Posterior | None, discount: float
) -> tuple[Corpus, Encoded, CovariateColumns]:
    """The corpus with its target, the response as columns, and how covariates are standardised."""
    lengths, sums = np.diff(corpus.doc_start), None
    weight = _check_sample_weight(given.sample_weight, lengths[:, None], dtype=np.float64, ensure_non_negative=True)
    if weight.max() * response.c > MOST:
        raise ValueError(f"sample_weight times c must be at most {MOST:g}, got {weight.max() * response.c:g}.")
    if previous is None:
        columns, Z = describe_covariates(given.covariates, len(lengths), as_formula(given.formula))
        columns = replace(columns, groups=group_names(given.groups, len(lengths)))
    else:
        columns = previous.columns_beside
        Z = new_covariates(columns, given.covariates, len(lengths))
        response, sums = response.like(previous.response), discount * previous.carryover.sums
    logs = None if given.exposure is None else log_exposure(given.exposure, len(lengths))
    encoded = response.encode(given.y, weight, logs, given.classes, sums)
    beside = np.hstack([columns.standard(Z), group_columns(columns.groups, given.groups, len(lengths))])
    return corpus.with_target(encoded.target._replace(covariates=beside)), encoded, columns


def response_of(given: Any, y: Any, covariates: Any) -> Any:
    """y as it was given, or the column that the left side of a formula names."""
    formula = as_formula(given)
    if formula is None or not formula.has_sides():
        return y
    frame = None if covariates is None else read_frame(covariates)
    if frame is None or not frame.named:
        raise ValueError(f"formula={formula.text!r} needs covariates=, a data frame with its columns.")
    name = formula.parse(frame.names).response
    if name is not None and y is not None:
        raise ValueError(f"formula={formula.text!r} says that y is the column {name!r}: leave y out, or the left side.")
    return y if name is None else frame.response(name)


def with_features(inputs: LinearInputs, given: Given, previous: Posterior | None, n_docs: int) -> LinearInputs:
    """What linear terms read, with the features of a user; later batches are scaled as the first one was."""
    if previous is None:
        columns, values = describe_features(given.features, n_docs)
    else:
        values = new_features(previous.features, given.features, n_docs)
        columns = previous.features.columns if previous.features else None
    if columns is None or values is None:
        return inputs
    return inputs._replace(columns=columns, features=values if inputs.docs is None else values[inputs.docs])
