"""Documents to fit and documents to test on."""

import numpy as np
from sklearn.model_selection import train_test_split


def split_known(
    known: np.ndarray, classes: np.ndarray | None, share: float, seed: int, group: np.ndarray | None = None
) -> np.ndarray:
    """Some of the documents `known`, by their places in order, to test on.

    Documents of one group, by default each its own, are on the same side. Classes keep their shares, but for those of a
    single group and where there are more classes than test documents.
    """
    own = known if group is None else group[known]
    _, first, unit = np.unique(own, return_index=True, return_inverse=True)
    if len(first) < 2:
        raise ValueError(
            "There is nothing to compare on: a test needs two or more documents with a known response and different "
            "texts."
        )
    strata = None
    if classes is not None:
        names, stratum, size = np.unique(classes[first].astype(str), return_inverse=True, return_counts=True)
        strata = np.where(size[stratum] < 2, size.argmax(), stratum)
        if np.unique(strata, return_counts=True)[1].min() < 2 or len(names) > min(share, 1 - share) * len(first):
            strata = None
    test = train_test_split(np.arange(len(first)), test_size=share, random_state=seed, stratify=strata)[1]
    found: np.ndarray = known[np.isin(unit, test)]
    return found
