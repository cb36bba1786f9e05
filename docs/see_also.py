"""What else to look at, for each name of the reference; the site adds it to the docstrings."""

from typing import Any

CLASSIFIER, REGRESSOR = "SLDAClassifier : Classes and labels.", "SLDARegressor : Ratings."
SHOW = "report.tables.SummaryTable : The same numbers as a table."
PLOTS = "EffectDisplay : Effects of topics, with intervals."
SEE_ALSO = {
    "SLDAClassifier": [
        "MedLDAClassifier : Classes with a margin, without probabilities.",
        "SLDAOrdinalClassifier : Classes that have an order.",
        "SLDACrowdClassifier : Classes that several raters gave.",
        "LDA : Topics without a response.",
    ],
    "MedLDAClassifier": [CLASSIFIER, "baselines.VariationalMedLDA : The variational method of the paper."],
    "SLDAOrdinalClassifier": [CLASSIFIER, "SLDARegressor : Ratings whose distances have a meaning."],
    "SLDARegressor": [
        "SLDAOrdinalClassifier : Grades whose distances are unknown.", "SLDACountRegressor : Counts.",
        "SLDACrowdRegressor : Ratings that several raters gave.", "SLDASurvivalRegressor : Times until an event.",
    ],
    "SLDACountRegressor": [REGRESSOR, "SLDASurvivalRegressor : Times until an event."],
    "SLDASurvivalRegressor": [REGRESSOR, "SLDACountRegressor : Counts."],
    "SLDACrowdClassifier": [
        CLASSIFIER, "SLDACrowdRegressor : Ratings that several raters gave.",
        "baselines.dawid_skene : True classes from the answers alone, without texts.",
    ],
    "SLDACrowdRegressor": [REGRESSOR, "SLDACrowdClassifier : Classes that several raters gave."],
    "LDA": [CLASSIFIER, REGRESSOR, "Prior : The topics of an LDA as the start of another model."],
    "Seeds": ["Prior : Another model as the start and the prior.", "LDA : Takes seeds, too."],
    "Prior": ["Seeds : Words that topics start from.", "load : Load a model file."],
    "Formula": ["model.design.Design : The columns that a formula has chosen."],
    "choose_topics": ["Choice : What it returns.", "ChoiceDisplay : Its plot."],
    "Choice": ["choose_topics : Makes it.", "ChoiceDisplay : Its plot."],
    "ChoiceDisplay": ["choose_topics : Compares numbers of topics."],
    "explain": ["report.explain.Explanation : What it returns.", "ExplanationDisplay : Its plot."],
    "Explanation": ["explain : Makes it.", "ExplanationDisplay : Its plot."],
    "save": ["load : Load the file.", "light.load_predictor : Predict from the file without Numba."],
    "load": ["save : Write the file.", "light.load_predictor : Predict from the file without Numba."],
    "load_predictor": ["load : The whole model.", "light.Predictor : What it returns."],
    "Predictor": ["light.load_predictor : Makes it."],
    "Registration": ["report.interactions.Effects : Effects on documents that came after the registration."],
    "SummaryTable": [PLOTS, "HeatmapDisplay : Topics by classes."],
    "TopicEffects": ["PrevalenceDisplay : Its plot.", "report.interactions.Interactions : Weights in groups."],
    "Effects": ["Registration : Shows that the topics were not changed.", SHOW],
    "Interactions": ["report.plots.InteractionDisplay : Its plot.", "report.effects.TopicEffects : Shares by group."],
    "InteractionDisplay": ["report.interactions.Interactions : The numbers."],
    "EffectDisplay": [
        "CoefficientDisplay : Weights instead of effects.",
        "HeatmapDisplay : All classes at once.",
        SHOW,
    ],
    "CoefficientDisplay": [
        "EffectDisplay : Effects in units of the response.",
        "HeatmapDisplay : All classes at once.",
    ],
    "HeatmapDisplay": [PLOTS, "CoefficientDisplay : The weights for one class."],
    "ExplanationDisplay": ["explain : The same as numbers."],
    "ConfusionDisplay": ["ReliabilityDisplay : Are the probabilities right?"],
    "ReliabilityDisplay": ["ConfusionDisplay : Which classes are confused?"],
    "TopicDisplay": ["SimilarityDisplay : Which topics have the same words?"],
    "SimilarityDisplay": ["TopicDisplay : The words of topics."],
    "PrevalenceDisplay": ["report.effects.TopicEffects : The same as numbers."],
    "TraceDisplay": ["report.diagnose.Diagnosis : Have the chains converged?"],
    "Diagnosis": ["TraceDisplay : The traces of the chains."],
    "Decisions": ["MedLDAClassifier : Decides without probabilities.", CLASSIFIER],
    "Drift": ["report.drift.Row : One row of its table."],
    "LabelCheck": ["SLDACrowdClassifier : Labels of several raters.", CLASSIFIER],
    "Revision": ["SimilarityDisplay : Shows which topics can be merged."],
    "load_docstrings": [
        "datasets.load_20newsgroups : A larger corpus.",
        "datasets.make_corpus : A corpus with a known truth.",
    ],
    "load_20newsgroups": ["datasets.load_docstrings : A corpus that needs no download."],
    "make_corpus": ["datasets.load_docstrings : A real corpus."],
    "dawid_skene": ["SLDACrowdClassifier : Uses the texts, too.", "baselines.DawidSkene : What it returns."],
    "DawidSkene": ["baselines.dawid_skene : Makes it."],
    "VariationalSLDA": [CLASSIFIER, "baselines.paper_system : All systems of the paper by name."],
    "VariationalMedLDA": ["MedLDAClassifier : The same loss with Gibbs sampling."],
    "DiscLDA": [CLASSIFIER, "baselines.paper_system : All systems of the paper by name."],
    "paper_system": [CLASSIFIER, "baselines.VariationalSLDA : One of these systems."],
    "Posterior": [
        "model.posterior.TopicSet : Topics of one chain, or of one class.",
        "model.terms.Term : A part of omega.",
    ],
}  # fmt: skip


def add_see_also(obj: Any, what: str, lines: list[str]) -> None:
    """Add the section in numpydoc's style, with names that the site can find."""
    entries = SEE_ALSO.get(getattr(obj, "__name__", ""), []) if what in ("class", "function") else []
    if entries:
        full = [f"supertopic.{entry.partition(' : ')[0]} : {entry.partition(' : ')[2]}" for entry in entries]
        lines += ["", "See Also", "--------", *full, ""]
