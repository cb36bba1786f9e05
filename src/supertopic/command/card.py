"""The command `card`: a model card in Markdown."""

from supertopic.command import options as opt
from supertopic.command.steps import check_outputs, load, note, out
from supertopic.corpus.writing import whole_text


def card(model: opt.Model, output: opt.CardFile = None, title: opt.Title = "") -> None:
    """Write a model card: what a model is, how good it is, its topics, its limits, and how it was made.

    It is Markdown. Questions in italics are for you to answer. Example: supertopic card tickets.model -o CARD.md
    """
    check_outputs([output], [model])
    text = load(model).card(title or model.stem)
    if output is None:
        out.print(text, markup=False, highlight=False, soft_wrap=True, end="")
        return
    with whole_text(output) as file:
        file.write(text)
    note(f"The card is in {output}. Answer its questions in italics before you share it.")
