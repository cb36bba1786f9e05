"""Groups of draws as ArviZ reads them: InferenceData up to ArviZ 0.x, xarray's DataTree from 1.0 on."""

from typing import Any

import numpy as np

from supertopic.inference.pointwise import Pointwise
from supertopic.model.posterior import Posterior


def as_groups(posterior: Posterior, found: Pointwise, observed: np.ndarray | None, rows: np.ndarray) -> Any:
    """Draws of a regression as groups; rows (n,) are the numbers of its documents in X."""
    import xarray

    draw = {"chain": np.arange(found.topics.shape[0]), "draw": np.arange(found.topics.shape[1])}
    response, beside = posterior.response, posterior.columns_beside
    columns = {"column": response.column_names, "topic": np.arange(posterior.n_topics)}
    weights: dict[str, Any] = {"coef": ((*draw, "column", "topic"), response.in_units(found.topics))}
    of_covariates, of_groups = np.split(found.beside, [len(beside.names)], axis=3)
    if len(beside.names):
        columns["covariate"] = beside.names
        in_units = response.in_units(of_covariates) / beside.scale
        weights["covariate_coef"] = ((*draw, "column", "covariate"), in_units)
    if len(beside.groups):
        columns["group"] = list(map(str, beside.groups))
        weights["group_intercept"] = ((*draw, "column", "group"), response.in_units(of_groups))
    groups = {
        "posterior": xarray.Dataset(weights, coords=draw | columns),
        "log_likelihood": xarray.Dataset(
            {"y": ((*draw, "document"), found.log_likelihood)}, coords=draw | {"document": rows}
        ),
    }
    if found.replicates is not None and observed is not None:
        groups["posterior_predictive"] = responses(posterior, found.replicates, draw, rows)
        groups["observed_data"] = responses(posterior, observed, {}, rows)
    for group in groups.values():
        group.attrs["inference_library"] = "supertopic"
    return join(groups)


def responses(posterior: Posterior, values: np.ndarray, draw: dict[str, np.ndarray], rows: np.ndarray) -> Any:
    """Responses (..., n, m) as a dataset; without their last axis if y has none."""
    import xarray

    response = posterior.response
    dims, coords = (*draw, "document"), draw | {"document": rows}
    if values.shape[-1] == 1:
        values = values[..., 0]
    else:
        names = response.labels if response.labels is not None else response.column_names
        dims, coords = (*dims, "response"), coords | {"response": np.array(list(map(str, names)), dtype=object)}
    found = xarray.Dataset({"y": (dims, values)}, coords=coords)
    if response.labels is not None and response.kind != "labels":
        found.attrs["classes"] = list(map(str, response.labels))  # of which y has the numbers
    return found


def join(groups: dict[str, Any]) -> Any:
    """The groups as the installed ArviZ wants them."""
    import xarray

    try:
        import arviz
    except ImportError as error:
        raise ImportError(
            "to_arviz needs ArviZ: pip install 'supertopic[arviz]'. The draws alone are in to_xarray()."
        ) from error
    if arviz.__version__.startswith("0."):  # in 1.x InferenceData is another name of DataTree
        return arviz.InferenceData(**groups)
    return xarray.DataTree.from_dict(groups)
