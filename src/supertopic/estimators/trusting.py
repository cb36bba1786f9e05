"""What documents that no topic has seen tell: how far weights can be trusted, and what words say beside topics."""

import threading
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from scipy.special import expit

from supertopic.corpus.source import Target, select_target
from supertopic.estimators.base import TopicModel
from supertopic.estimators.beliefs import constants
from supertopic.inference.level import Draws, match_level, sample_omegas
from supertopic.inference.shrinkage import BESIDE_WORDS, Foretold, Surfaces, Trust, draw_factors, enough, find_trust
from supertopic.inference.words import (
    COPIES,
    Dictionary,
    Past,
    carry,
    count_documents,
    learn_words,
    make_dictionary,
    make_past,
)
from supertopic.model.responses import Response
from supertopic.sampling.pool import each
from supertopic.warn import warn

HIDDEN, ENOUGH = (0.05, 0.15), 100  # hidden="auto": the least and the largest share, and how many documents are enough
OLD_LEVEL = 0.25  # what a document of batches before counts for where the level depends on the weights
FEW_LABELS = 5.0  # documents; with so many the level of predictions is half theirs, and half that of seeds
LEAST_HIDDEN, MOST_HIDDEN = 5, 10_000  # documents; fewer tell nothing, more tell nothing new
NO_THETA, NO_WORDS = np.zeros((0, 0, 0), np.float32), Dictionary(np.zeros(0, int), np.zeros(0))


class Trusting(TopicModel):
    """The part of a supervised model that hides documents, and asks them."""

    calibrate: bool
    words: bool
    hidden: Any
    _theta: np.ndarray  # (COPIES, R, n_words): direct weights of words
    _dictionary: Dictionary
    _batch_shift: np.ndarray  # (R,): from the offset of all batches to that of this one
    intercept_: np.ndarray
    calibrated_intercept_: np.ndarray

    def _hide(self, target: Target) -> np.ndarray:
        """Documents whose responses are known: every so-many-th in the order of these, so that all kinds are there."""
        hidden, known = np.zeros(len(target.y), bool), np.flatnonzero(self._can_be_hidden(target))
        share = np.clip(ENOUGH / max(len(known), 1), *HIDDEN) if self.hidden == "auto" else float(self.hidden)
        n = min(int(share * len(known)), MOST_HIDDEN)
        if self.calibrate and n >= LEAST_HIDDEN:
            rng = np.random.default_rng([self.seed_, 1, *self._round()])
            order = known[np.lexsort([rng.random(len(known)), *target.y[known].T])]
            hidden[order[((np.arange(n) + rng.random()) * (len(known) / n)).astype(int)]] = True
        return hidden

    def _can_be_hidden(self, target: Target) -> np.ndarray:
        """Which documents may be hidden, (n_docs,)."""
        return np.any(target.weight > 0, axis=1)

    def _trusted(
        self, plan: Any, X: Any, source: Any, aside: Any, hidden: Any, chains: Any
    ) -> tuple[np.ndarray, np.ndarray]:
        eta, scale = super()._trusted(plan, X, source, aside, hidden, chains)
        self._learned["scale"] = np.concatenate(scale)
        if hidden.any() or not self.n_batches_:
            self.hidden_: dict[str, Any] = {"documents": 0}
        self._theta = NO_THETA
        if not (self.calibrate and self.words and X is not None):
            self._dictionary = NO_WORDS
        if not self.calibrate:
            self.calibrated_intercept_ = self.intercept_
            return eta, scale
        response, seen = plan.response.plain(), self._at_batch_level(plan.response, source)
        alone, asked, scales = None, np.zeros(0, int), scale[0, :0]
        foretold, before = [chain.foretold for chain in chains if chain.foretold], self._surfaces("alone")
        if not foretold and before:  # nothing is hidden this time, but was before
            told = np.zeros((self._n_told(eta)[1], 0, plan.n_columns))
            foretold = [Foretold(told, told[: len(told) * bool(plan.n_covariates)])] * len(chains)
            aside = source.select(np.zeros(len(source.target.y), bool)).load()
        if foretold:
            pairs, some = np.arange(len(foretold[0].topics)) % eta.shape[1], enough(aside.target, *self._n_told(eta))
            aside, asked, scales = aside.select(some), np.flatnonzero(hidden)[some], np.concatenate(scale[:, pairs])
            aside = aside.with_target(self._at_batch_level(plan.response, aside))
            alone = find_trust(response, aside.target, foretold, scales, before=before)
        told = np.mean([chain.left_out for chain in chains], axis=0)
        usual = self._usual_omega(response, eta[..., : plan.n_topics], np.array([chain.word_topic for chain in chains]))
        by_covariates = source.target.covariates @ eta[..., plan.n_topics :].mean(axis=(0, 1)).T
        trust, believed, said = alone, 0.0, np.zeros(seen.y.shape)
        if self.words and X is not None:
            target = seen._replace(offset=seen.offset + by_covariates)
            x, past = self._open_words(X, plan.n_columns)
            n_threads = effective_n_jobs(self.n_jobs)
            learned = learn_words(
                x[~hidden], target, told, x[asked], aside.target if aside else select_target(target, asked), foretold,
                scales, response.with_scale(scale.mean(axis=(0, 1))), [self.seed_, *self._round()],
                lambda verb, n: each(verb, n, min(n, n_threads), threading.Event()), past, self._surfaces("beside"),
            )  # fmt: skip
            self._theta, trust, past = learned.copies, learned.trust or alone, learned.past
            self._learned |= {"theta": past.theta.astype(np.float32), "penalty": np.array([past.penalty])}
            self._learned["theta_precision"] = past.precision.astype(np.float32)
            believed = float(self._theta.any())
            if learned.trust and alone:
                believed = round(COPIES * expit(learned.trust.evidence - alone.evidence)) / COPIES
                self._keep_surfaces("beside", learned.trust)
            self._theta[round(COPIES * believed) :] = 0.0
            said = learned.said
        if alone:
            self._keep_surfaces("alone", alone)
        if trust and alone and hidden.any():
            self._told(trust, alone, believed, int(hidden.sum()))
        shape, n_topics = eta.shape[:3], plan.n_topics
        rng = np.random.default_rng([self.seed_, 2, *self._round()])
        n_draws = shape[0] * shape[1]
        worded = (np.arange(n_draws) % COPIES < COPIES * believed)[:, None]
        topics, beside, of_scale = (
            np.broadcast_to(np.where(worded, *pair).reshape(*shape[:2], -1), shape)
            for pair in zip(
                draw_factors(trust, n_draws, rng, BESIDE_WORDS), draw_factors(alone, n_draws, rng, 1.0), strict=True
            )
        )
        draws = []
        for kind in np.unique(worded):
            own = (worded == kind).reshape(shape[:2])
            a, b = topics[own].mean(axis=0), beside[own].mean(axis=0)
            like = (told - usual.mean(axis=0)) * a + by_covariates * b
            omega = seen.offset + like + (said if kind else 0.0)
            draws.append(Draws(float(own.mean()), omega, draws_of_hidden(foretold, usual, topics, beside, own), like))
        self._set_level(response, seen, np.diff(source.doc_start), draws)
        of_topics = (eta[..., :n_topics] - usual[:, None, :, None]) * self._own_topics(shape[2], n_topics)
        eta = np.concatenate([of_topics * topics[..., None], eta[..., n_topics:] * beside[..., None]], axis=3)
        return eta, scale * of_scale[..., : scale.shape[2]]

    def _usual_omega(self, response: Response, eta: np.ndarray, word_topic: np.ndarray) -> np.ndarray:
        """What weights (chain, draw, R, K) say of the usual mixture of topics in all batches so far, (chain, R).

        Weights for predictions are taken from there, so that a constant that all topics have in common, which the
        level takes the place of, is neither shrunk nor counted twice. Where there is no such level, they stay.
        """
        shares = self._shares_of(word_topic, eta.shape[1]) * self.n_blocks_
        n_known = self._learned["sums"][4]
        firm = response.about_mean * n_known / (n_known + FEW_LABELS)  # of what no label tells, seeds may
        return np.einsum("crk,ck->cr", eta.mean(axis=1), shares) * firm

    def _at_batch_level(self, response: Response, documents: Any) -> Target:
        """What is known of documents, with the offset that predicts the mean response of this batch.

        Regressions begin at the mean of all batches. What topics and words explain is to be judged inside a batch, or
        a mean that changes from batch to batch would be taken for an effect of theirs.
        """
        target, empty = documents.target, np.diff(documents.doc_start) == 0
        shift = np.where(empty[:, None], 0.0, self._batch_shift)
        return target._replace(offset=response.predictive_offset(target.offset + shift))

    def _set_level(self, response: Response, target: Target, lengths: np.ndarray, draws: list[Draws]) -> None:
        """Set the constant of predictions, with which they are right on average over this batch and those before it.

        It has two parts. How far the documents of a batch are from the usual ones is averaged over the batches. What
        the mean of a probability differs from the probability of the mean depends on the weights, which change: there
        the batches before count for less.
        """
        there = [np.isfinite(kind.omega).all(axis=1) for kind in draws]
        some = (lengths > 0) & np.any(target.weight > 0, axis=1) & np.all(there, axis=0)
        away, weight, bent = self._learned.get("level_shift", np.zeros((3, target.y.shape[1])))
        away, weight = float(self.discount) * away, float(self.discount) * weight
        if some.sum() >= LEAST_HIDDEN:
            draws = [kind._replace(omega=kind.omega[some], like=kind.like[some]) for kind in draws]
            rng, here = np.random.default_rng([self.seed_, 5, *self._round()]), select_target(target, some)
            parts = sum(kind.share * (kind.omega - here.offset) for kind in draws)
            mean, known = weighted_mean(parts, here.weight) * response.about_mean, here.weight.sum(axis=0)
            shift, found = match_level(response, here, sample_omegas(draws, rng))
            now, past = known * found, OLD_LEVEL * weight
            bent = (past * bent + now * (shift + mean)) / np.maximum(past + now, 1e-300)
            away, weight = away - known * mean, weight + known
        self._learned["level_shift"] = np.array([away, weight, bent])
        shift = bent + away / np.where(weight > 0, weight, 1.0)
        self.calibrated_intercept_ = self.intercept_ + shift * constants(self)[1]

    def _open_words(self, X: Any, n_columns: int) -> tuple[Any, Past | None]:
        """The words that will have weights, as rows of the documents, and what batches before have told of them."""
        n_docs, past, discount = count_documents(X), None, float(self.discount)
        old, known = self._dictionary if self.n_batches_ else NO_WORDS, "theta" in self._learned
        if known:
            n_docs = n_docs + discount * self._learned["documents"]
        self._learned["documents"], self._dictionary = n_docs, make_dictionary(n_docs, n_columns)
        if known:
            theta, precision, penalty = (self._learned[name] for name in ("theta", "theta_precision", "penalty"))
            past = carry(make_past(theta, precision, penalty.item()), old, self._dictionary, discount)
        return self._dictionary.rows(X), past

    def _keep_surfaces(self, name: str, trust: Trust) -> None:
        """Keep what hidden documents have told so far, for batches to come."""
        self._learned |= {f"{name}_{i}": surface for i, surface in enumerate(trust.surfaces)}

    def _surfaces(self, name: str) -> Surfaces | None:
        """What hidden documents of batches before have told, of topics alone or beside words."""
        if f"{name}_0" not in self._learned:
            return None
        return [float(self.discount) * self._learned[f"{name}_{i}"] for i in range(3)]

    def _told(self, trust: Trust, alone: Trust, believed: float, n_hidden: int) -> None:
        """Keep what the hidden documents have told, and warn if it was that the topics say nothing.

        `alone` is the trust in topics without words beside them, `believed` the share of draws that words speak in.
        """
        weight, n = trust.weight, trust.weight.sum()
        with np.errstate(divide="ignore"):
            loss = -np.logaddexp(np.log(believed) - trust.loss, np.log1p(-believed) - alone.loss)
        gain = (weight * (alone.base_loss - loss)).sum(axis=1) * (len(weight) / n)
        parts = {"loss": loss, "base_loss": alone.base_loss}
        if trust is not alone:
            parts |= {"topics_loss": alone.loss, "words_loss": trust.base_loss}
        factors, mass = alone.posteriors[0]
        self.hidden_ = {"documents": n_hidden} | {
            name: float((weight * loss).sum() / n) for name, loss in parts.items()
        }
        self.hidden_ |= {
            "se": float(gain.std() / np.sqrt(len(gain))),  # of the difference of loss and base_loss
            "factor": (factors @ (believed * trust.posteriors[0][1] + (1.0 - believed) * mass)).tolist(),
            "nothing": mass[0].tolist(),
        }
        if trust is not alone and self.hidden_["loss"] < self.hidden_["base_loss"]:
            base, topics, words, both = (self.hidden_[f"{name}loss"] for name in ("base_", "topics_", "words_", ""))
            share = 0.5 * ((base - topics) + (words - both)) / (base - both)  # topics first, or words first
            self.hidden_["topics_share"] = float(np.clip(share, 0.0, 1.0))
        better = (weight * (alone.base_loss - alone.loss)).sum(axis=0) > 0
        lost = np.flatnonzero(~better | (mass[0] > 0.5))
        if len(lost):
            names = getattr(self, "classes_", getattr(self, "response_names_", ()))
            what = "the response" if len(better) == 1 else "columns " + ", ".join(str(names[i]) for i in lost[:5])
            what += f" and {len(lost) - 5} more of {len(better)}" if len(lost) > 5 else ""
            alone_loss = self.hidden_.get("topics_loss", self.hidden_["loss"])
            warn(
                f"{n_hidden} documents that the topics have not seen do not show that topics foretell {what} better "
                f"than its base rate does (loss {alone_loss:.4g}, that of the base rate "
                f"{self.hidden_['base_loss']:.4g}). Predictions leave the topics out of it. Is there a relation to be "
                "found, and are there enough documents to find it?",
            )

    def _n_told(self, etas: np.ndarray) -> tuple[int, int]:
        """How many draws of eta there are, and of a new document's topics; predictions use as many as the more."""
        return etas.shape[1], self.predict_sweeps - self.predict_sweeps // 2


def weighted_mean(values: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """The mean of each column, (R,)."""
    return (weight * values).sum(axis=0) / np.maximum(weight.sum(axis=0), 1e-300)


def draws_of_hidden(
    foretold: list[Foretold], usual: np.ndarray, topics: np.ndarray, beside: np.ndarray, own: np.ndarray
) -> np.ndarray:
    """What some draws, those of the mask `own` (chain, draw), say of hidden documents, (n, n_hidden, R).

    topics and beside (chain, draw, R) are the factors of the draws, `usual` (chain, R) is what topics say of the usual
    mixture.
    """
    found = []
    for part, centre, a, b, mine in zip(foretold, usual, topics, beside, own, strict=bool(foretold)):
        pairs = np.arange(len(part.topics)) % len(a)
        pairs, some = pairs[mine[pairs]], mine[pairs]
        told = (part.topics[some] - centre) * a[pairs][:, None]
        if len(part.covariates):
            told = told + part.covariates[some] * b[pairs][:, None]
        found.append(told)
    return np.concatenate(found) if found else np.zeros((0, 0, topics.shape[2]))
