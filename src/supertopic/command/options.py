"""Every option of the command, declared once."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from supertopic.command.kinds import KINDS
from supertopic.command.steps import check_place, check_share
from supertopic.estimators.texts import TOPIC_WORD

Kind = StrEnum("Kind", ["auto", *KINDS])  # type: ignore[misc]
AUTO = Kind("auto")
LossName = StrEnum("LossName", ["logistic", "hinge"])
MulticlassName = StrEnum("MulticlassName", ["shared", "separate", "stick_breaking"])
PriorityName = StrEnum("PriorityName", ["prediction", "topics"])
HeldOutByName = StrEnum("HeldOutByName", ["document", "group"])
DeviceName = StrEnum("DeviceName", ["cpu", "cuda"])
Which = StrEnum("Which", ["wrong", "unsure", "surprising"])
WORD = TOPIC_WORD
Order = StrEnum("Order", ["frex", "probability", "lift"])  # of the words of a topic
TABLE = (
    "A table: .csv, .tsv, .jsonl, .parquet, .xlsx or .ods (FILE.xlsx::SHEET); - is CSV from the standard input. A "
    "folder or a pattern such as 'data/*.csv' means many tables."
)
RESPONSE = f"What the response is: {', '.join(KINDS)}; auto looks at the column."
MISSING = "A response that means unknown, as an empty cell does; may be repeated."
GRADES = "For ordinal: the classes, the lowest first, as bad,fair,good. Numbers need no order."
GIVEN_TEXT = "The text itself; - reads it from the standard input. With a table: the column with the text."
WHICH = "Explain documents that are predicted wrong, or unsure, or whose response is surprising."
GOLD = "For raters: the column with true classes or ratings, as far as they are known."
EVENT = "For time: the column with 1 if the event happened, and 0 if the document is censored."
LOSS = "For classes and labels: logistic, which gives probabilities, or hinge, which is max-margin."
MULTICLASS = "For three classes or more: shared or separate topics, or stick_breaking."
SEEDS = "A table of seed words for topics, with the columns topic and word, and optionally class."
ORDER = "Rank words by frex (frequency and exclusivity), by probability, or by lift (exclusivity)."
PRIORITY = "prediction, or topics: words then explain only what the topics do not."
FORMULA = "Which columns help to predict, and which products of them, such as 'critic * year'."
HELD_OUT = "Share of the labelled documents to hold out; predictions are calibrated on them."

# documents and responses
Data = Annotated[Path, Argument(help=TABLE, show_default=False)]
Text = Annotated[str, Option("--text", help="The column with the text.", show_default=False)]
Label = Annotated[str, Option(help="The column with the response; an empty cell is unknown.", show_default=False)]
KnownLabel = Annotated[str | None, Option(help="The column with the response, to evaluate predictions.")]
LookedLabel = Annotated[str | None, Option("--label", help="The column with the response.")]
ComparedLabel = Annotated[str | None, Option("--label", help="The column with the response, to compare predictions.")]
CheckedLabel = Annotated[str, Option("--label", help="The column with the labels to check.", show_default=False)]
NewLabel = Annotated[str | None, Option(help="The column with the response; without it only the texts are used.")]
SkipUnknown = Annotated[
    bool, Option("--skip-unknown-classes", help="If a class is new to the model, learn from the text alone.")
]
AddClasses = Annotated[bool, Option("--add-classes", help="Add classes or labels that are new to the model.")]
NoNewWords = Annotated[bool, Option("--no-new-words", help="Keep the vocabulary, and ignore new words.")]
Response = Annotated[Kind, Option(metavar="KIND", help=RESPONSE)]
Grades = Annotated[str | None, Option("--order", help=GRADES)]
Gold = Annotated[str | None, Option(help=GOLD)]
Event = Annotated[str | None, Option(help=EVENT)]
Separator = Annotated[str, Option(help="What separates the labels in one cell.")]
Missing = Annotated[list[str] | None, Option(help=MISSING, show_default="NA")]
Weight = Annotated[str | None, Option(help="The column with the weight of each document (1 is the usual one).")]
Exposure = Annotated[
    str | None, Option(help="For counts: the column with what each count is relative to, such as days.")
]
Covariate = Annotated[
    list[str] | None, Option(help="A column of numbers, text or dates that helps to predict; may be repeated.")
]
Groups = Annotated[str | None, Option(help="The column with each document's group, such as its author.")]
HeldOutBy = Annotated[HeldOutByName, Option(metavar="WHAT", help="Hold out single documents, or whole groups.")]
FormulaText = Annotated[str | None, Option("--formula", help=FORMULA)]
KnownCovariate = Annotated[list[str] | None, Option(help="Covariates in the fit's order, if they have other names.")]
TestSize = Annotated[float, Option(help="Share of the labelled documents to test on.", callback=check_share)]
Strict = Annotated[bool, Option("--strict", help="Stop if the data look wrong, and correct nothing.")]
Folder = Annotated[
    Path | None, Option(help="For many files: where tokens are stored, a folder that all machines can read.")
]

# words
StopWords = Annotated[
    str, Option(help="Words that topics leave out: english, none, or a file with a word in each line.")
]
MinDf = Annotated[int, Option(help="Drop words that are in fewer documents.")]
MaxDf = Annotated[float, Option(help="Drop words that are in a larger share of the documents.")]
Ngrams = Annotated[int, Option(metavar="INTEGER", help="The longest run of words that topics count as one.", min=1)]
WordNgrams = Annotated[int, Option(metavar="INTEGER", help="The same for words with direct weights.", min=1)]
TokenPattern = Annotated[str, Option(help="What a word is, as a regular expression; . is for texts without spaces.")]

# the model
NTopics = Annotated[int, Option("--topics", "-k", help="Number of topics.")]
TopicNumbers = Annotated[str, Option("--topics", "-k", help="Numbers of topics, separated by commas.")]
MergedTopics = Annotated[
    list[str],
    Option("--topics", help="Numbers of topics to merge, such as 3,7; may be repeated.", show_default=False),
]
BannedWords = Annotated[
    str, Option("--words", help="Words, separated by commas, or a file with a word in each line.", show_default=False)
]
Everywhere = Annotated[
    bool, Option("--everywhere", help="Also remove the direct weights of the words from predictions.")
]
ShortBurnIn = Annotated[int, Option("--burn-in", help="Iterations before draws are kept.", min=0)]
C = Annotated[
    float | None,
    Option(help="How many times the response counts while topics are learned.", show_default="the estimator's own"),
]
Loss = Annotated[LossName, Option(metavar="LOSS", help=LOSS)]
Multiclass = Annotated[MulticlassName, Option(metavar="HOW", help=MULTICLASS)]
Balanced = Annotated[bool, Option("--balanced", help="Give all classes the same total weight.")]
Words = Annotated[bool, Option(help="Add direct weights of words and pairs of words to those of the topics.")]
Priority = Annotated[PriorityName, Option(metavar="WHAT", help=PRIORITY)]
SeedWords = Annotated[Path | None, Option("--seeds", help=SEEDS)]
SeedStrength = Annotated[
    str,
    Option(
        help="Pseudo-tokens of a seed word in its topic for each token in the texts; with auto, the texts determine it."
    ),
]
PriorModel = Annotated[Path | None, Option(help="A model file whose topics this one starts from.")]
PriorWeights = Annotated[bool, Option("--prior-weights", help="Use its weights, too; the response must be the same.")]
PriorDiscount = Annotated[float, Option(help="Weight of a document of the prior, from 0 to 1.")]
Discount = Annotated[float, Option(help="Weight of an earlier document, from 0 to 1.")]

# the run
BurnIn = Annotated[str, Option(help="Iterations before draws are kept; auto waits until the chains have settled.")]
MaxSeconds = Annotated[float | None, Option(help="A limit for the sampling of topics, in seconds.")]
Draws = Annotated[int, Option(help="Draws that are kept.")]
Chains = Annotated[int, Option(help="Independent chains; predictions average over them.")]
MinChains = Annotated[int, Option(help="Leave out topics that fewer chains have.")]
HeldOut = Annotated[str, Option(help=HELD_OUT)]
Seed = Annotated[int, Option(help="The same seed gives the same model.")]
Jobs = Annotated[int, Option("--jobs", "-j", help="Threads; -1 uses all cores. The result is the same for any number.")]
Device = Annotated[DeviceName, Option(help="Where topics are sampled: cpu or cuda, an NVIDIA GPU.")]
Engine = Annotated[str, Option(help="threads, ray, or ray:ADDRESS of a Ray cluster. The result is the same.")]
Checkpoint = Annotated[Path | None, Option(help="Write the state here every minute; the same command resumes from it.")]

# results
Model = Annotated[Path, Argument(help="A model file that `supertopic fit` wrote.", show_default=False)]
ModelFile = Annotated[Path, Option("--output", "-o", help="Where to write the model.", callback=check_place)]
PageFile = Annotated[Path, Option("--output", "-o", help="Where to write the page.", callback=check_place)]
Report = Annotated[
    Path | None,
    Option(
        help="Write an HTML page to this file. It shows the test documents, if there are any.", callback=check_place
    ),
]
ReportBy = Annotated[
    list[str] | None, Option("--by", help="For the page: a column of groups or dates; may be repeated.")
]
OtherModel = Annotated[
    Path | None, Option("--other", help="A second model of the same kind of documents, to compare with on the page.")
]
CardFile = Annotated[
    Path | None, Option("--output", "-o", help="Write the card here instead of the screen.", callback=check_place)
]
Title = Annotated[str, Option(help="The heading.")]
Test = Annotated[bool, Option("--test", help="The model has not learned from these documents.")]
Keep = Annotated[list[str] | None, Option(help="A column to copy; may be repeated. all copies every column.")]
Shares = Annotated[bool, Option("--shares", help="Add the share of each topic in each document.")]
PredictionFile = Annotated[Path | None, Option("--output", "-o", help="Write here instead of the screen.")]
SetLevel = Annotated[
    float | None,
    Option(
        "--set",
        help="Add the set of classes, or the interval of a rating or count, that contains the truth with this "
        "probability, such as 0.9. It is calibrated on held-out documents.",
    ),
]
MaxError = Annotated[
    float | None,
    Option(help="Add decisions, of which at most this share, such as 0.05, is wrong; if empty, ask a person."),
]
HowMany = Annotated[int, Option("-n", "--documents", help="The number of documents.", min=0)]
MostWrong = Annotated[
    int | None,
    Option("-n", "--documents", help="The number of labels to list.", min=0, show_default="as many as are wrong"),
]
Folds = Annotated[int, Option(help="The number of folds; each model checks the fold that it was not fitted to.", min=2)]
ListFile = Annotated[
    Path | None, Option("--output", "-o", help="Write the list here instead of the screen.", callback=check_place)
]
JsonLines = Annotated[bool, Option("--json", help="Write JSON lines instead of CSV.")]
AsJson = Annotated[bool, Option("--json", help="Print JSON for a script instead of a table.")]
AsCsv = Annotated[bool, Option("--csv", help="Print all weights of all classes as CSV, one per line.")]
BatchesCsv = Annotated[bool, Option("--csv", help="Print a row for each batch as CSV.")]
TopWords = Annotated[int, Option("--words", "-n", help="Words to show for each topic.")]
By = Annotated[Order, Option(metavar="ORDER", help=ORDER)]
GivenText = Annotated[str | None, Option("--text", help=GIVEN_TEXT, show_default=False)]
GivenGroup = Annotated[str | None, Option(help="The group of the text; with a table its column.")]
GivenCovariate = Annotated[
    list[str] | None, Option(help="The covariates of the text, in their order; with a table their columns.")
]
GivenExposure = Annotated[str | None, Option(help="For counts: the exposure of the text; with a table its column.")]

# rows
OptionalData = Annotated[Path | None, Argument(help="A table, as for the other commands.", show_default=False)]
OptionalText = Annotated[str | None, Option("--text", help="The column with the text.", show_default=False)]
Id = Annotated[str | None, Option("--id", help="The column with the name of each row, instead of its number.")]
Row = Annotated[
    str | None, Option(help="The row to explain: its number, the first document is 1, or with --id its id.")
]
Where = Annotated[Which | None, Option(metavar="WHICH", help=WHICH)]
MostRows = Annotated[int, Option("--most", "-n", help="How many documents to show.", min=0)]
CsvRows = Annotated[bool, Option("--csv", help="Print CSV, with whole texts.")]
OneTopic = Annotated[str | None, Option("--topic", help="Its number or its name; by default every topic.")]
NewNames = Annotated[list[str], Argument(help="TOPIC=NAME, such as 3=printers; 3= removes the name.")]
NamedFile = Annotated[
    Path | None,
    Option("--output", "-o", help="Write the model here instead of changing its file.", callback=check_place),
]
Figure = Annotated[Path | None, Option(help="Write a figure here: .png, .svg or .pdf.", callback=check_place)]

# a server
Host = Annotated[str, Option(help="The address to listen on; addresses that other machines can reach need a token.")]
Port = Annotated[int, Option(min=0, max=65535, help="The port; 0 uses any free port.")]
Reload = Annotated[bool, Option(help="Load the model again when its file changes.")]
NoToken = Annotated[bool, Option("--no-token", help="Accept requests without a token.")]
AllowedHost = Annotated[list[str] | None, Option("--name", help="A name that clients use for the server; repeatable.")]
Workers = Annotated[int, Option(min=1, max=64, help="The number of processes; with --mmap they share arrays.")]
Threads = Annotated[int, Option(min=1, max=64, help="Threads that predict in each process.")]
Mmap = Annotated[bool, Option("--mmap", help="Leave arrays in the file, which must then be replaced, not changed.")]
Documents = Annotated[
    Path | None, Option(help="A table of documents; those that are most like a text are shown beside it.")
]
DocumentText = Annotated[str | None, Option("--text", help="The column with the texts of --documents.")]
MaxBody = Annotated[int, Option(min=1000, help="The largest request, in bytes.")]
MaxTexts = Annotated[int, Option(min=1, help="The most texts in a request.")]
MaxLetters = Annotated[int, Option(min=1, help="The most letters in a text.")]
Timeout = Annotated[float, Option(min=0.1, help="The most seconds for a request.")]
Queue = Annotated[int, Option(min=1, help="The most requests at a time; further ones get 503.")]
