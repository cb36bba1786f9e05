"""A paragraph for the methods section of a paper, with the numbers of a fit, and its references.

Everything that is said comes from the posterior and from the estimator's parameters, so that only what holds is said.
"""

from collections.abc import Mapping
from importlib.metadata import version
from typing import Any

import numpy as np

from supertopic.model.posterior import Posterior
from supertopic.model.responses.classes import ClassResponse
from supertopic.report.formats import plain
from supertopic.report.references import REFERENCES, SOFTWARE, cite, listed
from supertopic.report.tables import held_out_score

MOST_NAMES = 8  # largest number of classes or covariates that are named
SAMPLERS = {
    "collapsed": "collapsed Gibbs sampling",
    "drawn": "Gibbs sampling in which the topics are drawn from their posterior in every iteration",
    "delayed": "Gibbs sampling in which documents see the counts of the previous iteration, which is an approximation",
}
AUGMENTED = "polson2013"


def methods_text(posterior: Posterior, parameters: Mapping[str, Any]) -> str:
    """The paragraph, and the references below it."""
    sentences = [
        model_sentence(posterior), response_sentence(posterior, parameters), sampler_sentence(posterior),
        prior_sentence(posterior, parameters), covariate_sentence(posterior), held_out_sentence(posterior),
        prediction_sentence(posterior, parameters), score_sentence(posterior), reading_sentence(posterior),
        f"The seed was {posterior.seed}. The computations were made with supertopic {version('supertopic')}.",
    ]  # fmt: skip
    paragraph = " ".join(sentence for sentence in sentences if sentence)
    lines = [REFERENCES[key].text for key in reference_keys(posterior)]
    return "\n".join([paragraph, "", "References", "", *sorted(lines)])


def bibtex(posterior: Posterior) -> str:
    """The same references as entries of BibTeX."""
    return "\n\n".join(REFERENCES[key].bibtex(key) for key in reference_keys(posterior)) + "\n"


def reference_keys(posterior: Posterior) -> list[str]:
    """The publications that the paragraph cites, and the software."""
    split = ["egami2022"] if held_out_documents(posterior) else []
    return [*posterior.response.references, *split, "bischof2012", SOFTWARE]


def held_out_documents(posterior: Posterior) -> int:
    """The number of documents whose held-out responses reported weights rest on."""
    held_out = posterior.held_out
    return int(held_out.get("cross_fitted", 0) or held_out.get("documents", 0)) if posterior.supervised else 0


def calibrated(posterior: Posterior) -> bool:
    """Whether weights of predictions are others than those of the chains."""
    return not np.array_equal(posterior.prediction, posterior.training)


def names_of(values: Any) -> str:
    """Some names in a sentence."""
    shown = [plain(value) for value in list(values)[:MOST_NAMES]]
    left = len(list(values)) - len(shown)
    return listed([*shown, f"{left} more"] if left else shown)


def model_sentence(posterior: Posterior) -> str:
    """Which model, how many topics, and what it was fitted to."""
    response, n_sets = posterior.response, len(posterior.topics)
    keys = [key for key in response.references if key != AUGMENTED]
    what = f"{response.title} {cite(*keys)}" if keys else response.title
    each = f" for each of {n_sets} {'labels' if response.kind == 'labels' else 'classes'}" if n_sets > 1 else ""
    n_docs = "" if posterior.doc_topic is None else f"{len(posterior.doc_topic):,} "
    text = f"We fitted {what} with K = {posterior.topics[0].n_topics} topics{each} "
    words = f"with a vocabulary of {posterior.n_words:,} words"
    if posterior.n_batches == 1:
        return f"{text}to {n_docs}documents {words}."
    last = f", the last of which had {n_docs}documents" if n_docs else ""
    return f"{text}to documents {words}, in {posterior.n_batches} batches{last}."


def response_sentence(posterior: Posterior, parameters: Mapping[str, Any]) -> str:
    """What the response is, and its weight."""
    response = posterior.response
    if not posterior.supervised:
        return ""
    if isinstance(response, ClassResponse):
        n, shared = len(response.classes), "" if len(posterior.topics) > 1 else " on the same topics"
        names = names_of(response.classes)
        what = f"The response was one of {n} classes ({names})."
        if response.multilabel:
            what = f"The response was a set of {n} labels ({names}), each with weights of its own{shared}."
        else:
            what += response.how(shared)
    else:
        named = [name for name in getattr(response, "names", ()) if name != "0"]
        what = f"The response was a {response.kind}" + (f" ({names_of(named)})" if named else "") + response.how("")
    weight = f" The response had the weight c = {response.c:g} against the words while topics were learned"
    if "margin" in parameters:
        weight += f", and the margin was {parameters['margin']:g}"
    elif response.c != 1:
        weight += ", where c = 1 is its ordinary likelihood"
    more = " Classes were weighted." if parameters.get("class_weight") is not None else ""
    return f"{what}{weight}.{more}"


def sampler_sentence(posterior: Posterior) -> str:
    """How topics were drawn."""
    n_chains, augmented = posterior.n_chains, AUGMENTED in posterior.response.references
    how = SAMPLERS.get(posterior.sampler, f"the sampler {posterior.sampler!r}")
    how += f", with Polya-Gamma augmentation {cite(AUGMENTED)}" if augmented else ""
    burn_in, settled = posterior.traces.burn_in, int(posterior.traces.settled.sum())
    chains, of_each = (f"{n_chains} independent chains", " of each chain") if n_chains > 1 else ("one chain", "")
    text = f"We used {how}, in {chains}; {posterior.n_draws} draws{of_each} were kept after a burn-in of "
    text += f"{span(burn_in, ',')} iterations, within which {settled} of {n_chains} "
    text += "chain had settled." if n_chains == 1 else "chains had settled."
    if n_chains > 1:
        text += " Topics of the chains were matched by their words, and figures of a topic are means over the chains "
        text += "that have it."
    return text


def prior_sentence(posterior: Posterior, parameters: Mapping[str, Any]) -> str:
    """The priors of topics."""
    alpha = np.concatenate([posterior.alpha(chain) for chain in range(posterior.n_chains)])
    beta = np.concatenate([part.beta for part in posterior.topics])
    learned = " and learned from the documents" if parameters.get("optimize_priors") else ""
    text = f"The Dirichlet priors were alpha = {span(alpha)} for each topic and beta = {span(beta)} for each "
    text += f"word{learned}."
    pseudo = np.mean([part.pseudo_tokens.sum(axis=1).mean() for part in posterior.topics])
    if pseudo > 0 and posterior.n_batches == 1:
        text += f" The prior of topics also had {pseudo:,.0f} pseudo-counts in each chain, from seed words or from "
        text += "another model."
    return text


def span(values: np.ndarray, form: str = ".4g") -> str:
    """A number, or the smallest and the largest."""
    low, high = format(values.min(), form), format(values.max(), form)
    return low if low == high else f"{low} to {high}"


def covariate_sentence(posterior: Posterior) -> str:
    """What the model had beside the topics: covariates, and groups of documents."""
    columns, sentences = posterior.columns_beside, []
    if len(columns.names):
        kind = "covariate" if len(columns.names) == 1 else "covariates"
        sentences.append(f"The model had {len(columns.names)} {kind} beside the topics: {names_of(columns.names)}.")
    if len(columns.groups):
        sentences.append(
            f"The documents were in {len(columns.groups)} groups, each with an intercept. The intercepts were "
            "partially pooled: they had a normal prior with a half-Cauchy prior of its standard deviation."
        )
    return " ".join(sentences)


def held_out_sentence(posterior: Posterior) -> str:
    """What the reported weights rest on."""
    if not posterior.supervised:
        return ""
    n, c = held_out_documents(posterior), posterior.response.c
    separate = f"This separates the discovery of topics from the estimation of their weights {cite('egami2022')}."
    regression = "logistic " if posterior.response.reported().has_probabilities else ""
    if posterior.held_out.get("cross_fitted"):
        batches = " of the latest batch, and on those of earlier ones" if posterior.n_batches > 1 else ""
        return (
            "Each chain learned its topics without the responses of its own fold of the documents (cross-fitting). The "
            f"reported weights and their intervals come from a Bayesian {regression}regression on {n:,} documents with "
            f"a known response{batches}, each with the topic shares that a chain which had not seen its response "
            f"inferred from its words. {separate}"
        )
    if n:
        which = f"{n:,} documents with a known response"
        if posterior.n_batches > 1:
            which = f"some documents with a known response of every batch that had enough of them ({n:,} of the latest)"
        return (
            f"We held out {which}, which no chain saw. The reported weights and their intervals come from a Bayesian "
            f"{regression}regression on these documents alone, with topic shares that were inferred from their words. "
            f"{separate}"
        )
    if calibrated(posterior):
        text = "No documents were held out. The reported weights come from the documents that the topics were learned "
        return f"{text}from, so that their intervals are too short{' where c > 1' if c > 1 else ''}."
    return (
        f"The reported weights are those of the chains that learned the topics, where the response had the weight "
        f"c = {c:g}. No documents were held out, so that intervals are too short."
    )


def prediction_sentence(posterior: Posterior, parameters: Mapping[str, Any]) -> str:
    """What predictions use beside the topics, and how weights are shrunk."""
    if not posterior.supervised:
        return ""
    if not calibrated(posterior):
        return "Predictions used the same weights, without shrinkage."
    text = "Predictions used weights that were estimated with c = 1 on the topic shares that the training documents "
    text += "would have if they were new"
    factors = np.array(posterior.held_out.get("shrinkage", []))
    if factors.size:
        many = "a factor for each response" if factors.size > 1 else "a factor"
        text += f", shrunk by {many} whose posterior comes from held-out responses (mean {span(factors, '.2f')})"
    beside, words = [], posterior.words
    if words is not None:
        names = () if posterior.word_names is None else posterior.word_names
        pairs = " and pairs of words" if any(" " in str(name) for name in names) else ""
        beside.append(f"{len(words.dictionary.word):,} words{pairs}")
    if posterior.features is not None:
        beside.append(f"{len(posterior.features.columns.mean):,} features")
    if not beside:
        return f"{text}."
    first = ", for what topics leave" if parameters.get("priority") == "topics" else ""
    text += f". Beside the topics, predictions used direct weights of {listed(beside)}, by ridge regression{first}"
    return f"{text}; these change neither the topics nor their reported weights."


def score_sentence(posterior: Posterior) -> str:
    """How well held-out documents are predicted."""
    held_out, score = posterior.held_out, held_out_score(posterior)
    if "loss" not in held_out:
        return ""
    base = "the base rate with covariates" if posterior.covariates else "the base rate"
    text = f"On held-out documents the loss of predictions was {held_out['loss']:.3g}, and that of {base} "
    text += f"{held_out['base_loss']:.3g} (standard error of the difference: {held_out['se']:.2g})."
    if score:
        text += f" Their {score.name} was {score.value:.3f}, and that of the base rate {score.of_base:.3f}; the "
        text += "shrinkage was estimated on the same documents."
    return text


def reading_sentence(posterior: Posterior) -> str:
    text = f"Topics are described by words that are frequent and exclusive {cite('bischof2012')}."
    return text + " Intervals are central posterior intervals." * posterior.supervised
