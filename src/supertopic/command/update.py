"""The command `update`: a model learns from more documents."""

import json

from supertopic.command import options as opt
from supertopic.command.kinds import Asked, kind_of
from supertopic.command.look import look
from supertopic.command.models import read_beside
from supertopic.command.predict import count_empty
from supertopic.command.show import show_facts
from supertopic.command.steps import Table, check_outputs, err, load, plain_warnings, row_names, save_somewhere


def update(
    model: opt.Model, data: opt.Data, text: opt.Text, output: opt.ModelFile, label: opt.NewLabel = None,
    discount: opt.Discount = 1.0, weight: opt.Weight = None, exposure: opt.Exposure = None,
    covariate: opt.KnownCovariate = None, groups: opt.Groups = None, skip_unknown_classes: opt.SkipUnknown = False,
    event: opt.Event = None, gold: opt.Gold = None, separator: opt.Separator = ";", jobs: opt.Jobs = -1,
    id: opt.Id = None, strict: opt.Strict = False, as_json: opt.AsJson = False,
) -> None:  # fmt: skip
    """Let a model learn from more documents: what it knows is the prior, and only the new ones cost time.

    Its vocabulary and its classes do not change. Example: supertopic update tickets.model monday.csv --text body
    --label queue -o tickets.model
    """
    check_outputs([output], [data])
    estimator = load(model)
    table, response = Table(data), estimator.posterior_.response
    beside = read_beside(estimator, model, table, exposure, covariate, weight, groups)
    y, n_strange = None, 0
    if label:
        y, n_strange = kind_of(response).known(
            response, table.__getitem__, Asked(label, separator, event=event, gold=gold), skip_unknown_classes
        )
    estimator.set_params(n_jobs=jobs, verbose=err.is_terminal and not as_json)
    texts, findings = look(table.texts(text), None, False, strict, False, as_json, row_names(table, id))
    with plain_warnings():
        estimator.partial_fit(texts, y, discount=discount, **beside)
    save_somewhere(estimator, output)
    posterior = estimator.posterior_
    facts = {"model": str(output), "documents": len(texts), "batches": posterior.n_batches}
    if n_strange:
        facts["rows_of_unknown_classes"] = n_strange
    facts |= {
        "findings": findings,
        "without_known_words": count_empty(estimator, texts),
        "held_out": posterior.held_out,
    }
    if as_json:
        print(json.dumps(facts))
    else:
        show_facts(facts)
