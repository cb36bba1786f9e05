"""The history of a model as tables: how well each batch was predicted before the model learned from it."""

from typing import Any

from supertopic.model.history import SAMPLE
from supertopic.model.posterior import Posterior


def history_rows(posterior: Posterior) -> list[dict[str, Any]]:
    """A row for each batch."""
    return [entry.row() for entry in posterior.history]


def history_frame(posterior: Posterior) -> Any:
    """A pandas frame with a row for each batch."""
    import pandas

    return pandas.DataFrame(history_rows(posterior), columns=list(SAMPLE))
