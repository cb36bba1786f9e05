"""The command `name`: names of topics in a model file."""

import json

from rich.markup import escape

from supertopic.command import options as opt
from supertopic.command.console import plain
from supertopic.command.show import find_topic
from supertopic.command.steps import check_place, load, note, out, save_somewhere

MOST_LETTERS = 80  # largest number of letters in a name


def name(
    model: opt.Model, names: opt.NewNames, output: opt.NamedFile = None, as_json: opt.AsJson = False
) -> None:  # fmt: skip
    """Give topics names, which all commands and pages then show; the model file itself is changed.

    Example: supertopic name tickets.model 3=printers "7=late trains"
    """
    output = output or model
    check_place(output)
    estimator, given = load(model), dict[int, str]()
    for each in names:
        topic, separator, new = each.partition("=")
        new = " ".join(plain(new).split())
        if not separator or len(new) > MOST_LETTERS:
            raise ValueError(
                f"A name is TOPIC=NAME, of at most {MOST_LETTERS} letters, such as 3=printers; got {each!r}."
            )
        given[find_topic(estimator.posterior_, topic)] = new
    estimator.name_topics(given)
    save_somewhere(estimator, output)
    found = {k: text for k, text in sorted(estimator.topic_names_.items(), key=lambda row: int(row[0])) if text}
    if as_json:
        print(json.dumps(found))
        return
    for k, text in found.items():
        out.print(f"{k} {escape(text)}", highlight=False)
    note(f"The names are in {escape(str(output))}.")
