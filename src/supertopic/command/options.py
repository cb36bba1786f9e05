"""What the options of several commands are."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from supertopic.command.cells import RESPONSES


class Device(StrEnum):
    CPU, CUDA = "cpu", "cuda"


class Kind(StrEnum):
    """What the response is."""

    AUTO, CLASS, LABELS, RATING, COUNT = ("auto", *RESPONSES)


class Loss(StrEnum):
    LOGISTIC, HINGE = "logistic", "hinge"


class By(StrEnum):
    FREX, PROBABILITY, LIFT = "frex", "probability", "lift"


class Multiclass(StrEnum):
    SHARED, SEPARATE, STICK_BREAKING = "shared", "separate", "stick_breaking"


WORD = r"(?u)\b\w\w+\b"  # scikit-learn's: two letters or more

TABLE = "A table: .csv, .tsv, .jsonl or .parquet; - is CSV from the standard input. A folder or 'data/*.csv' is many."
Data = Annotated[Path, typer.Argument(help=TABLE, show_default=False)]
Model = Annotated[Path, typer.Argument(help="A model file that `supertopic fit` wrote.", show_default=False)]
TextColumn = Annotated[str, typer.Option("--text", help="The column with the text.", show_default=False)]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for a script instead of a table.")]
Seed = Annotated[int, typer.Option(help="The same seed gives the same model.")]
NTopics = Annotated[int, typer.Option("--topics", "-k", help="Number of topics.")]
Jobs = Annotated[int, typer.Option("--jobs", "-j", help="Threads; -1 takes all cores. Changes no result.")]
OnDevice = Annotated[Device, typer.Option("--device", help="Where topics are sampled; cuda is an NVIDIA card.")]
Label = Annotated[str, typer.Option(help="The column with the response; an empty cell is unknown.", show_default=False)]
Response = Annotated[Kind, typer.Option(help="What the response is; auto looks at the column.")]
Separator = Annotated[str, typer.Option(help="What stands between labels in one cell.")]
StopWords = Annotated[str, typer.Option(help="Words to drop: english, none, or a file with a word in each line.")]
MinDf = Annotated[int, typer.Option(help="Drop words that are in fewer documents.")]
MaxDf = Annotated[float, typer.Option(help="Drop words that are in a larger share of the documents.")]
Ngrams = Annotated[int, typer.Option(help="The longest run of words that counts as one.", min=1)]
TokenPattern = Annotated[
    str, typer.Option(help="What a word is, as a regular expression; . is for texts without spaces.")
]
