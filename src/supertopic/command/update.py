"""The command `update`: a model learns from more documents."""

import json
from typing import Any

from rich.markup import escape

from supertopic.command import options as opt
from supertopic.command.cells import NamedColumns
from supertopic.command.drift import drift_line, note_drift
from supertopic.command.kinds import Asked, kind_of
from supertopic.command.look import look
from supertopic.command.models import read_beside
from supertopic.command.predict import count_empty
from supertopic.command.show import show_facts
from supertopic.command.steps import Table, check_outputs, err, load, out, plain_warnings, row_names, save_somewhere
from supertopic.report.history import describe_batch


def update(
    model: opt.Model, data: opt.Data, text: opt.Text, output: opt.ModelFile, label: opt.NewLabel = None,
    discount: opt.Discount = 1.0, weight: opt.Weight = None, exposure: opt.Exposure = None,
    covariate: opt.KnownCovariate = None, groups: opt.Groups = None, skip_unknown_classes: opt.SkipUnknown = False,
    add_classes: opt.AddClasses = False, no_new_words: opt.NoNewWords = False, event: opt.Event = None,
    gold: opt.Gold = None, separator: opt.Separator = ";", jobs: opt.Jobs = -1, id: opt.Id = None,
    strict: opt.Strict = False, as_json: opt.AsJson = False,
) -> None:  # fmt: skip
    """Update a model with more documents.

    Its posterior is the prior, so an update takes time for the new documents only. New words are added to its
    vocabulary, and with --add-classes also new classes. Example: supertopic update tickets.model monday.csv --text body
    --label queue -o tickets.model
    """
    check_outputs([output], [data])
    estimator = load(model)
    table, response = Table(data), estimator.posterior_.response
    table.need_rows()
    beside = read_beside(estimator, model, table, exposure, covariate, weight, groups)
    y: Any = None
    n_strange, more = 0, {"new_words": not no_new_words}
    if add_classes:
        if skip_unknown_classes:
            raise ValueError("--add-classes and --skip-unknown-classes cannot both be given.")
        if not response.grows:
            raise ValueError(
                "--add-classes is for classes without an order and for labels, and this is a model of "
                f"{response.kind or 'texts alone'}."
            )
        more["add_classes"] = True
    if label:
        asked = Asked(label, separator, event=event, gold=gold, add_classes=add_classes)
        y, n_strange = kind_of(response).known(response, table.__getitem__, asked, skip_unknown_classes)
    estimator.set_params(n_jobs=jobs, verbose=err.is_terminal and not as_json)
    texts, findings = look(table.texts(text), None, False, strict, False, as_json, row_names(table, id))
    of_predictions = {name: values for name, values in beside.items() if name != "sample_weight"}
    compared = None if isinstance(y, NamedColumns) else y  # there are new labels, which no prediction has
    with plain_warnings():
        line = drift_line(estimator, texts, compared, **of_predictions)  # before the model knows them
    with plain_warnings():
        estimator.partial_fit(texts, y, discount=discount, **more, **beside)
    save_somewhere(estimator, output)
    posterior = estimator.posterior_
    facts = {"model": str(output), "documents": len(texts), "batches": posterior.n_batches}
    if n_strange:
        facts["rows_of_unknown_classes"] = n_strange
    entry = posterior.history[-1]
    facts |= {
        "findings": findings,
        "before_learning": entry.row(),
        "without_known_words": count_empty(estimator, texts),
        "held_out": posterior.held_out,
    }
    if as_json:
        print(json.dumps(facts))
    else:
        show_facts(facts)
        for sentence in describe_batch(entry):
            out.print(escape(sentence), highlight=False)
    note_drift(line)
