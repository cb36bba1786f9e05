"""Supervised models for ArviZ."""

from numbers import Integral
from typing import Any

from supertopic.estimators.effects import training_evidence
from supertopic.inference.pointwise import pointwise
from supertopic.report.inference_data import as_groups

N_CHAINS, LEAST_DRAWS = 4, 4


def to_arviz(self: Any, n_draws: int = 250) -> Any:
    """The regression behind `coef_` for ArviZ, so that `az.loo` and `az.compare` work.

    Topics are fixed. Each training document enters with the topic shares from a chain that has not seen its response,
    as for `coef_`. The regression of the responses on these shares, covariates and groups runs again, with four chains
    of its own, and the log-likelihood of each response is taken in each draw. As no share knows the response of its
    document, leaving out one document changes the weights alone, which is what `az.loo` approximates. Direct weights of
    words and of features have no part in this regression. Compare models with words by
    `evaluate(X, y).losses` on new documents, which needs no approximation.

    Parameters
    ----------
    n_draws : int, default=250
        Draws of each of the four chains.

    Returns
    -------
    arviz.InferenceData or xarray.DataTree
        A DataTree with ArviZ 1.0 or newer. Its groups:

        - posterior: `coef` (chain, draw, column, topic), `covariate_coef` and `group_intercept`, in the units of y.
          Intervals of `coef_` are wider: they also contain how much the chains of the fit differ.
        - log_likelihood: `y` (chain, draw, document), the log density of the whole response of a document: of all its
          known labels or columns, of what is known of a censored time, of all answers of raters. It is in the units of
          y and multiplied by the sample weight. Of three or more classes it is the log of the predicted probability.
        - posterior_predictive and observed_data: `y`, the number of a class (attribute `classes`), labels as 0 and 1,
          numbers, or for times the periods that a document survives. Several raters: neither, as the truth is unknown.

        `document` is the row of X in the last fit. Documents without a known response, and those that were not
        cross-fitted, are left out. Models can be compared if both have the same documents.
    """
    if not isinstance(n_draws, Integral) or isinstance(n_draws, bool) or n_draws < LEAST_DRAWS:
        raise ValueError(f"n_draws must be a whole number >= {LEAST_DRAWS}, got {n_draws!r}.")
    posterior, settings = self._fitted(), self._settings()
    evidence, rows = training_evidence(posterior, None)
    known = evidence.target.weight.any(axis=1)
    evidence, rows = evidence.part(known), rows[known]
    found = pointwise(posterior, evidence, N_CHAINS, int(n_draws), settings.n_threads)
    response = evidence.response.reported().like(evidence.response)
    observed = None if response.several_raters else response.as_replicated(evidence.target)
    return as_groups(posterior, found, observed, rows)
