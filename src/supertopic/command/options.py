"""Every option of the command, declared once."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from supertopic.command.cells import RESPONSES
from supertopic.command.steps import check_place, check_share


class Kind(StrEnum):
    """What the response is."""

    AUTO, CLASS, LABELS, RATING, COUNT = ("auto", *RESPONSES)


class LossName(StrEnum):
    LOGISTIC, HINGE = "logistic", "hinge"


class MulticlassName(StrEnum):
    SHARED, SEPARATE, STICK_BREAKING = "shared", "separate", "stick_breaking"


class DeviceName(StrEnum):
    CPU, CUDA = "cpu", "cuda"


class Order(StrEnum):
    """How the words of a topic are ranked."""

    FREX, PROBABILITY, LIFT = "frex", "probability", "lift"


WORD = r"(?u)\b\w\w+\b"  # scikit-learn's: two letters or more
TABLE = "A table: .csv, .tsv, .jsonl or .parquet; - is CSV from the standard input. A folder or 'data/*.csv' is many."
OTHER_NAMES = "The covariates of the fit, in their order, if they have other names here."
KEEP = "A column to copy beside the prediction; may be repeated. all copies every column."
SEEDS = "A table of seed words for topics, with the columns topic and word, and optionally class."
STRENGTH = "Pseudo-tokens of a seed word in its topic, for each token that it has in the texts."
HELD_OUT = "Share of the labelled documents that no topic learns from; weights are estimated on them."
PAGE = "Write a page about the model here, on the test documents if there are any."
ENGINE = "threads, ray, or ray:ADDRESS of a Ray cluster. Changes no result."
SKIP = "Learn from the text alone where the model does not know the class."

# documents and responses
Data = Annotated[Path, typer.Argument(help=TABLE, show_default=False)]
Text = Annotated[str, typer.Option("--text", help="The column with the text.", show_default=False)]
Label = Annotated[str, typer.Option(help="The column with the response; an empty cell is unknown.", show_default=False)]
KnownLabel = Annotated[str | None, typer.Option(help="The column with the response, to evaluate predictions.")]
NewLabel = Annotated[str | None, typer.Option(help="The column with the response; without it only the texts are used.")]
SkipUnknown = Annotated[bool, typer.Option("--skip-unknown-classes", help=SKIP)]
Response = Annotated[Kind, typer.Option(help="What the response is; auto looks at the column.")]
Separator = Annotated[str, typer.Option(help="What separates the labels in one cell.")]
Missing = Annotated[
    list[str] | None,
    typer.Option(help="A response that means unknown, as an empty cell does; may be repeated.", show_default="NA"),
]
Weight = Annotated[str | None, typer.Option(help="The column with the weight of each document.")]
Exposure = Annotated[str | None, typer.Option(help="For counts: the column with the exposure.")]
Covariate = Annotated[
    list[str] | None, typer.Option(help="A column of numbers that helps to predict; may be repeated.")
]
KnownCovariate = Annotated[list[str] | None, typer.Option("--covariate", help=OTHER_NAMES)]
HoldOut = Annotated[float, typer.Option(help="Share of the labelled documents to test on.", callback=check_share)]
Folder = Annotated[
    Path | None, typer.Option(help="For many files: where tokens are stored during the fit. All machines must see it.")
]

# words
StopWords = Annotated[str, typer.Option(help="Words to drop: english, none, or a file with a word in each line.")]
MinDf = Annotated[int, typer.Option(help="Drop words that are in fewer documents.")]
MaxDf = Annotated[float, typer.Option(help="Drop words that are in a larger share of the documents.")]
Ngrams = Annotated[int, typer.Option(help="The longest run of words that counts as one.", min=1)]
TokenPattern = Annotated[
    str, typer.Option(help="What a word is, as a regular expression; . is for texts without spaces.")
]

# the model
NTopics = Annotated[int, typer.Option("--topics", "-k", help="Number of topics.")]
C = Annotated[float | None, typer.Option(help="Weight of the response.", show_default="the estimator's own")]
Loss = Annotated[LossName, typer.Option(help="For classes and labels: with probabilities, or max-margin.")]
Multiclass = Annotated[MulticlassName, typer.Option(help="For three classes or more.")]
Balanced = Annotated[bool, typer.Option("--balanced", help="Give all classes the same total weight.")]
Words = Annotated[bool, typer.Option(help="Add direct weights of single words to those of the topics.")]
SeedWords = Annotated[Path | None, typer.Option("--seeds", help=SEEDS)]
SeedStrength = Annotated[float, typer.Option(help=STRENGTH)]
PriorModel = Annotated[Path | None, typer.Option("--prior", help="A model file whose topics this one starts from.")]
PriorWeights = Annotated[
    bool, typer.Option("--prior-weights", help="Use the prior's weights, too; it must have the same response.")
]
PriorDiscount = Annotated[float, typer.Option("--discount", help="Weight of a document of the prior, from 0 to 1.")]
Discount = Annotated[float, typer.Option(help="Weight of an earlier document, from 0 to 1.")]

# the run
BurnIn = Annotated[int, typer.Option(help="Iterations before draws are kept.")]
Draws = Annotated[int, typer.Option(help="Draws that are kept.")]
Chains = Annotated[int, typer.Option(help="Independent chains; predictions average over them.")]
HeldOut = Annotated[str, typer.Option(help=HELD_OUT)]
Seed = Annotated[int, typer.Option(help="The same seed gives the same model.")]
Jobs = Annotated[int, typer.Option("--jobs", "-j", help="Threads; -1 takes all cores. Changes no result.")]
Device = Annotated[DeviceName, typer.Option(help="Where topics are sampled; cuda is an NVIDIA GPU.")]
Engine = Annotated[str, typer.Option(help=ENGINE)]
Checkpoint = Annotated[
    Path | None, typer.Option(help="Write the state here every minute; the same command resumes from it.")
]

# results
Model = Annotated[Path, typer.Argument(help="A model file that `supertopic fit` wrote.", show_default=False)]
ModelFile = Annotated[
    Path,
    typer.Option("--output", "-o", help="Where to write the model.", show_default=False, callback=check_place),
]
Report = Annotated[Path | None, typer.Option("--report", help=PAGE, callback=check_place)]
PageFile = Annotated[
    Path, typer.Option("--output", "-o", help="Where to write the page.", show_default=False, callback=check_place)
]
Title = Annotated[str, typer.Option(help="The heading of the page.")]
Unseen = Annotated[bool, typer.Option("--unseen", help="The model has not learned from these documents.")]
Keep = Annotated[list[str] | None, typer.Option(help=KEEP)]
Shares = Annotated[bool, typer.Option("--shares", help="Add the share of each topic in each document.")]
PredictionFile = Annotated[Path | None, typer.Option("--output", "-o", help="Write here instead of the screen.")]
JsonLines = Annotated[bool, typer.Option("--json", help="Write JSON lines instead of CSV.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for a script instead of a table.")]
AsCsv = Annotated[bool, typer.Option("--csv", help="Print all weights of all classes as CSV, one per line.")]
TopWords = Annotated[int, typer.Option("--words", "-n", help="Words to show for each topic.")]
By = Annotated[Order, typer.Option(help="Rank words by frequency and exclusivity, by frequency, or by exclusivity.")]
GivenText = Annotated[str, typer.Option("--text", help="The text itself; - reads it from the standard input.")]
GivenCovariate = Annotated[list[float] | None, typer.Option(help="The covariates of the text, in their order.")]
GivenExposure = Annotated[float | None, typer.Option(help="For counts: the exposure of the text.")]
TopicNumbers = Annotated[str, typer.Option("--topics", "-k", help="Numbers of topics, separated by commas.")]
Figure = Annotated[Path | None, typer.Option(help="Write a figure here: .png, .svg or .pdf.", callback=check_place)]
