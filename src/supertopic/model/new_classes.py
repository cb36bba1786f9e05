"""A posterior with more classes or labels than its documents had.

A new class has a column of weights whose prior is the population's: it is centred on the mean of the other columns,
with the variance between them. Earlier documents did not have the class, and its base rate counts them. Predictions
for the old classes stay as they are, but for the small probability of the new one.

Where each class has topics of its own, a new class starts from those of the class whose weights are the smallest,
which owe most to the words; its weights are around 0, since other classes have other topics. A new stick has weights
around 0, too: sticks are not alike.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from supertopic.kernels.moments import unpack
from supertopic.model.held_out import HeldOutPredictions
from supertopic.model.posterior import Carryover, Posterior, TopicSet
from supertopic.model.reference import Reference
from supertopic.model.responses.base import Response
from supertopic.model.responses.columns import NewColumns
from supertopic.model.state import Statistics, WeightPriors
from supertopic.model.terms import Intercept, Term, TopicWeights

HALF = 0.5  # a document that stands for those of a class that no document has
LEAST_VARIANCE = 1e-6


class PriorVariances(NamedTuple):
    """The variances of the usual priors of weights, to which the statistics of documents are added."""

    training: float
    prediction: float
    reported: float


def with_classes(posterior: Posterior, response: Response, columns: NewColumns, nu2: PriorVariances) -> Posterior:
    """The posterior with the columns of a response that has more classes."""
    growth = Growth(posterior, response, columns)
    rates = growth.rates()
    mean = response.base_mean(rates, np.full(rates.shape[1], HALF))
    held_out = posterior.held_out_predictions
    grown = replace(
        posterior, response=response, topics=growth.topics(), cross_fitted=None,
        terms=tuple(growth.term(term, response.link(mean)) for term in posterior.terms),
        carryover=growth.carryover(rates, response.link(mean), nu2),
        reported_covariates=columns.of(posterior.reported_covariates, 1),
        reported_groups=columns.of(posterior.reported_groups, 1),
        held_out_predictions=None if held_out is None else grow_held_out(held_out, response, columns, mean),
    )  # fmt: skip
    if not growth.separate:
        return replace(grown, reported=columns.of(posterior.reported, 1))
    return replace(
        grown, order=growth.order(), reported=growth.reported(), reference=growth.reference(), doc_topic=None
    )


@dataclass(frozen=True)
class Growth:
    """How a posterior gets more columns."""

    posterior: Posterior
    response: Response  # with the new classes
    columns: NewColumns

    @property
    def separate(self) -> bool:
        """Whether each column has topics of its own."""
        return len(self.response.column_parts(len(self.columns.source))) > 1

    @property
    def sources(self) -> list[int]:
        """The set of topics that each set comes from."""
        if not self.separate:
            return [0]
        size = [np.mean(part.training[..., : part.n_topics] ** 2) for part in self.posterior.topics]
        return [int(np.argmin(size)) if source < 0 else int(source) for source in self.columns.source]

    def of_sets(self, weights: list[np.ndarray], share: bool = False) -> list[np.ndarray]:
        """Weights (chain, draw, R of the set, K or more) by set of topics, for the sets that there are now."""
        wide = self.columns.of(np.concatenate(weights, axis=2), 2, share=share)
        if not self.separate:
            return [wide]
        wide[:, :, self.columns.new, : self.posterior.topics[0].n_topics] = 0.0
        return [wide[:, :, [r]] for r in range(wide.shape[2])]

    def topics(self) -> tuple[TopicSet, ...]:
        """The sets of topics, with the chains' weights for all columns."""
        sets = self.posterior.topics
        training = self.of_sets([part.training for part in sets])
        return tuple(replace(sets[i], training=own) for i, own in zip(self.sources, training, strict=True))

    def rates(self) -> np.ndarray:
        """The sums behind the base rates, (5, R): no earlier document had a new class."""
        columns, sums = self.columns, self.posterior.carryover.sums
        found = columns.of(sums, sign=False, new=sums.mean(axis=1, keepdims=True))
        given, exposure = found[[0, 2]], found[[1, 3]]
        given = np.where(columns.sign < 0, exposure - given, np.where(columns.new, 0.0, given))
        if not columns.typical:  # the documents of the class that was the last one reach the first new stick, and stop
            last = int(np.flatnonzero(~columns.new)[-1])
            reached = exposure[:, last] - given[:, last]
            found[:, columns.new], exposure[:, columns.new], given[:, columns.new] = 0.0, 0.0, 0.0
            exposure[:, last + 1] = given[:, last + 1] = reached
            found[4, last + 1] = reached[0]
        found[[0, 2]], found[[1, 3]] = given, exposure
        return found

    def offsets(self, offset: np.ndarray, new: np.ndarray) -> np.ndarray:
        """Offsets of predictions, (R,); `new` are those of new columns."""
        found = self.columns.of(offset, new=new)
        if self.columns.share != 1.0:  # they were those of a single column
            found = np.where(self.columns.new, new, self.response.predictive_offset(found))
        return found

    def term(self, term: Term, link: np.ndarray) -> Term:
        """A term of predictions; `link` is the base rate of each column."""
        if isinstance(term, TopicWeights):
            return TopicWeights(tuple(self.of_sets(list(term.eta), share=True)))
        if not isinstance(term, Intercept):
            return term.with_columns(self.columns)
        new = self.response.predictive_offset(link)
        base = self.offsets(term.base, new)
        level = base + self.columns.of(term.level - term.base, share=True, new=0.0)
        documents = self.columns.of(term.empty_documents, sign=False, new=term.empty_documents.mean())
        return Intercept(self.response, level, base, self.offsets(term.empty, new), documents)

    def carryover(self, rates: np.ndarray, link: np.ndarray, nu2: PriorVariances) -> Carryover:
        """What the next batch needs of the documents so far."""
        known, columns = self.posterior.carryover, self.columns
        shift = None
        if known.level_shift is not None:
            shift = columns.of(known.level_shift, share=True, new=0.0)
            shift[1] = columns.of(known.level_shift[1], sign=False, new=0.0)  # a sum of weights
        linear = {
            name: own._replace(
                theta=columns.of(own.theta, share=True), precision=columns.of(own.precision, sign=False, new=0.0)
            )
            for name, own in known.linear.items()
        }
        return replace(
            known, sums=rates, level=None if known.level is None else columns.of(known.level, new=link),
            level_shift=shift, linear=linear, grids=columns.of_grids(known.grids), weights=self.weights(nu2),
        )  # fmt: skip

    def weights(self, nu2: PriorVariances) -> tuple[tuple[WeightPriors, ...], ...]:
        """The information of earlier documents about the weights of each set and chain."""
        sets = self.posterior.carryover.weights
        if not sets:
            return ()
        found = []  # of each chain, and of each kind, the sets
        for chain in range(self.posterior.n_chains):
            kinds = zip(*(own[chain] for own in sets), strict=True)
            found.append([self.statistics(list(own), variance) for own, variance in zip(kinds, nu2, strict=True)])
        n_sets = len(self.sources)
        return tuple(
            tuple(WeightPriors(*(kind[place] for kind in chain)) for chain in found) for place in range(n_sets)
        )

    def statistics(self, sets: list[Statistics], nu2: float) -> list[Statistics]:
        """Statistics of one kind and chain, set by set; new columns have those of the population's prior."""
        columns, n_topics = self.columns, self.posterior.topics[0].n_topics
        precision, shift = (np.hstack(arrays) for arrays in zip(*sets, strict=True))
        means = columns.of(posterior_means(Statistics(precision, shift), nu2))[:, ~columns.new]  # (width, R)
        precision, shift = columns.of(precision, sign=False, new=0.0), columns.of(shift, new=0.0)
        if columns.typical and columns.new.any():
            centre = means.mean(axis=1)
            if self.separate:
                centre[:n_topics] = 0.0
            away = (means - centre[:, None]) ** 2
            n = means.shape[1] - (0 if self.separate else 1)
            variance = np.full(len(centre), nu2)
            for part in (slice(0, n_topics), slice(n_topics, None)):
                if away[part].size and n > 0:
                    variance[part] = max(float(away[part].sum() / n / len(away[part])), LEAST_VARIANCE)
            firm = np.maximum(1.0 / variance - 1.0 / nu2, 0.0)
            precision[Statistics(precision, shift).diagonal[:, None], columns.new] = firm[:, None]
            shift[:, columns.new] = (centre * (firm + 1.0 / nu2))[:, None]
        if not self.separate:
            return [Statistics(precision, shift)]
        return [Statistics(precision[:, [r]], shift[:, [r]]) for r in range(shift.shape[1])]

    # where each class has topics of its own

    def blocks(self) -> list[tuple[slice, slice]]:
        """The places of each set's topics among all topics, before and now."""
        n, before = self.posterior.topics[0].n_topics, self.posterior.places
        return [(before[source], slice(i * n, (i + 1) * n)) for i, source in enumerate(self.sources)]

    def order(self) -> np.ndarray:
        """The topics of each chain in the common order, (chain, K)."""
        order = self.posterior.order
        return np.hstack([order[:, old] + (new.start - old.start) for old, new in self.blocks()])

    def reported(self) -> np.ndarray:
        """The reported weights, (n, R, K): a class has some for its own topics."""
        old, blocks = self.posterior.reported, self.blocks()
        found = np.zeros((len(old), len(blocks), blocks[-1][1].stop))
        for r, (theirs, ours) in enumerate(blocks):
            if not self.columns.new[r]:
                found[:, r, ours] = self.columns.sign[r] * old[:, self.columns.source[r], theirs]
        return found

    def reference(self) -> Reference | None:
        """The shares of topics in held-out documents; each set has an equal part."""
        known = self.posterior.reference
        if known is None:
            return None
        share = len(self.posterior.topics) / len(self.sources)
        return known._replace(shares=np.hstack([share * known.shares[:, old] for old, _ in self.blocks()]))


def posterior_means(known: Statistics, nu2: float) -> np.ndarray:
    """The means of weights given statistics and their usual prior, (width, R)."""
    if known.is_diagonal:
        return known.shift / (known.precision + 1.0 / nu2)
    width, n_columns = known.shift.shape
    found = np.empty((width, n_columns))
    for r in range(n_columns):
        lower = unpack(known.precision, r, width)
        whole = lower + np.tril(lower, -1).T + np.eye(width) / nu2
        found[:, r] = np.linalg.solve(whole, known.shift[:, r])
    return found


def grow_held_out(
    known: HeldOutPredictions, response: Response, columns: NewColumns, mean: np.ndarray
) -> HeldOutPredictions:
    """Predictions for held-out documents, none of which has a new class; `mean` is the base rate of each column."""
    n_old = known.truth.shape[1]
    n_new = len(response.labels or ()) - n_old
    truth = np.hstack([known.truth, np.zeros((len(known.truth), n_new))])
    if response.has_probabilities:
        rate = float(np.minimum(mean, 1.0 - mean)[columns.new].mean())
        others = known.expected if response.kind == "labels" else known.expected * (1.0 - n_new * rate)
        expected = np.hstack([others[:, :n_old], np.full((len(truth), n_new), rate)])
    else:  # scores: a new class is never the best one, and a new label is not there
        expected = columns.of(known.expected, new=0.0)
        lowest = expected[:, ~columns.new].min(axis=1, keepdims=True, initial=-1.0)
        expected[:, columns.new] = lowest
    return known._replace(truth=truth.astype(np.float32), expected=expected.astype(np.float32))
