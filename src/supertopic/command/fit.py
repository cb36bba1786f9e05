"""The command `fit`: read, fit, evaluate, write, show."""

import json
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import typer
from rich.markup import escape

from supertopic.command import options as opt
from supertopic.command.cells import Column, as_number, as_whole, numbers_if_all
from supertopic.command.evaluate import evaluate_logistic, evaluate_logistic_labels, predict_ridge
from supertopic.command.kinds import KINDS, Asked, ResponseKind, make_model, read_response, response_columns
from supertopic.command.look import look
from supertopic.command.models import formula_columns, make_vectorizer, make_word_vectorizer, read_priors
from supertopic.command.show import MISSED, class_table, show_facts, show_model
from supertopic.command.steps import (
    check_outputs,
    err,
    name_rows,
    note,
    out,
    plain_warnings,
    read_numbers,
    save_somewhere,
    write_page,
)
from supertopic.command.texts import ManyFiles, OneTable, files_of, is_many, open_texts
from supertopic.corpus.look import same_texts
from supertopic.estimators.splitting import split_known
from supertopic.estimators.supervised import Supervised
from supertopic.estimators.validation import check_engine
from supertopic.report.summary import describe_covariates, describe_topics, missed_words


def fit(
    context: typer.Context, data: opt.Data, text: opt.Text, label: opt.Label, output: opt.ModelFile,
    response: opt.Response = opt.AUTO, order: opt.Grades = None, event: opt.Event = None, gold: opt.Gold = None,
    n_topics: opt.NTopics = 20, c: opt.C = None, loss: opt.Loss = opt.LossName.logistic,
    multiclass: opt.Multiclass = opt.MulticlassName.shared, balanced: opt.Balanced = False,
    separator: opt.Separator = ";", missing: opt.Missing = None, weight: opt.Weight = None,
    exposure: opt.Exposure = None, covariate: opt.Covariate = None, formula: opt.FormulaText = None,
    groups: opt.Groups = None, held_out_by: opt.HeldOutBy = opt.HeldOutByName.document,
    checkpoint: opt.Checkpoint = None, burn_in: opt.BurnIn = "auto", max_seconds: opt.MaxSeconds = None,
    draws: opt.Draws = 20, chains: opt.Chains = 4, stop_words: opt.StopWords = "english", words: opt.Words = True,
    min_df: opt.MinDf = 2, max_df: opt.MaxDf = 1.0, ngrams: opt.Ngrams = 1, word_ngrams: opt.WordNgrams = 2,
    priority: opt.Priority = opt.PriorityName.prediction, token_pattern: opt.TokenPattern = opt.WORD,
    seeds: opt.SeedWords = None, seed_strength: opt.SeedStrength = "auto", prior: opt.PriorModel = None,
    prior_weights: opt.PriorWeights = False, discount: opt.PriorDiscount = 1.0, held_out: opt.HeldOut = "auto",
    test_size: opt.TestSize = 0.0, seed: opt.Seed = 0, id: opt.Id = None, jobs: opt.Jobs = -1,
    device: opt.Device = opt.DeviceName.cpu, engine: opt.Engine = "threads", folder: opt.Folder = None,
    report: opt.Report = None, by: opt.ReportBy = None, strict: opt.Strict = False, as_json: opt.AsJson = False,
) -> None:  # fmt: skip
    """Learn topics from texts and a response, and write a model file.

    Example: supertopic fit tickets.csv --text body --label queue -o tickets.model

    Many files, which do not have to fit into memory: supertopic fit 'data/*.parquet' ... (or a folder)
    """
    check_engine(engine)
    check_outputs([output, report], [*files_of(data), seeds, prior, Path(stop_words)])
    if is_many(data) and (report or test_size):
        raise ValueError(
            "--test-size and --report need one table. With many files, leave some files out of the pattern, and pass "
            "these to supertopic predict or report."
        )
    if by and not report:
        raise ValueError("--by adds groups to the page: give --report FILE, too.")
    vectorizer = make_vectorizer(stop_words, min_df, max_df, ngrams, token_pattern)
    direct = words and make_word_vectorizer(min_df, word_ngrams, token_pattern)
    columns = covariate or ([] if formula is None else formula_columns(formula))
    unknown = ["NA"] if missing is None else missing
    asked = Asked(label, separator, unknown, str(loss), str(multiclass), balanced, exposure, order, event, gold)
    names = [*response_columns(response, asked), *filter(None, (weight, exposure, groups, id)), *columns, *(by or [])]
    source = context.with_resource(open_texts(data, text, names, vectorizer, engine, jobs, folder))
    column = read_response(source.cells, response, asked)
    beside = read_numbers(source.cells, weight, exposure, {name: name for name in columns}, groups=groups)
    has_names, english = KINDS[column.response].has_names, stop_words == "english"
    rows = name_rows(source.cells(id) if id else [None] * len(source.texts))
    source.texts, found = look(source.texts, column, has_names, strict, english, as_json, rows)
    documents = Documents(source, column, beside, *split(column, test_size, seed, source.texts), rows)
    share = as_number(held_out)
    options = {
        "n_topics": n_topics, "burn_in": as_whole(burn_in), "max_seconds": max_seconds, "n_draws": draws,
        "n_chains": chains, "words": direct, "priority": str(priority), "vectorizer": vectorizer,
        "formula": formula, "held_out_by": str(held_out_by), "held_out": held_out if share is None else share,
        "random_state": seed,
        "n_jobs": jobs, "device": str(device), "engine": engine, "verbose": err.is_terminal and not as_json,
    }  # fmt: skip
    options |= read_priors(seeds, seed_strength, prior, prior_weights, discount) | ({} if c is None else {"c": c})
    model = make_model(column, asked, options)
    if not as_json:
        show_column(column, missing is None)
    facts = learn(model, documents, checkpoint) | {"findings": found}
    if test_size:
        facts |= documents.evaluate(model)
    save_somewhere(model, output)
    if report:
        documents.write_page(model, report, data.stem, label, by or [])
    show(model, model.vocabulary_, {"model": str(output)} | facts, as_json)


class Documents(NamedTuple):
    """Texts with responses and further numbers."""

    source: OneTable | ManyFiles
    column: Column
    beside: dict[str, Any]  # sample weights, exposure, covariates
    train: np.ndarray
    test: np.ndarray  # may be empty
    names: list[str]  # the names of the rows

    @property
    def kind(self) -> ResponseKind:
        return KINDS[self.column.response]

    def known_beside(self, rows: np.ndarray) -> dict[str, Any]:
        """The numbers that predictions of some documents need."""
        return {name: values[rows] for name, values in self.beside.items() if name != "sample_weight"}

    def evaluate(self, model: Supervised) -> dict[str, Any]:
        """How well the test documents are predicted."""
        X, known = self.source.texts[self.test], self.train[self.column.known[self.train]]
        y = self.column.y
        return self.kind.evaluate(model, X, y[self.test], y[known], self.known_beside(self.test))

    def write_page(self, model: Supervised, path: Path, title: str, name: str, by: list[str]) -> None:
        """The page of the test documents, or of all documents if there are none."""
        tested, rival, texts = len(self.test) > 0, None, self.source.texts
        rows = self.test if tested else self.train
        y = self.column.y[rows] if self.kind.one_class else self.column.target[rows]
        if tested and self.kind.one_class:
            rival = evaluate_logistic(texts, self.column.y, self.train, self.test)
            classes = model.posterior_.response.labels or []  # a class may be in the test documents alone
            y = np.where(np.isin(y, classes), y, None)
        elif tested and self.column.response == "labels":
            rival = evaluate_logistic_labels(texts, self.column.y, self.train, self.test)
        elif tested and self.column.response in ("rating", "count"):
            rival = predict_ridge(texts, np.asarray(self.column.target, float), self.train, self.test)
        cells = {column: np.array(numbers_if_all(self.source.cells(column)), dtype=object)[rows] for column in by}
        facts = {"title": title, "test": tested, "rival": rival, "name": name, "by": cells or None}
        facts["rows"] = [self.names[row] for row in rows]
        write_page(model, texts[rows], y, path, self.known_beside(rows), **facts)


def split(column: Column, share: float, seed: int, texts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Documents to fit and to test on; classes keep their shares, and the same texts are on one side."""
    everything = np.arange(len(column.known))
    if not share:
        return everything, np.zeros(0, int)
    known = np.flatnonzero(column.known)
    classes = column.y[known] if KINDS[column.response].one_class else None
    test = split_known(known, classes, share, seed, same_texts(texts))
    return np.setdiff1d(everything, test), test


def show_column(column: Column, by_default: bool) -> None:
    """Print which kind of response was found; `by_default`: no option says which cells are unknown."""
    note(f"[bold]response[/bold]: {column.response} ({escape(column.why)})")
    if column.n_missing and by_default:
        one = column.n_missing == 1
        note(
            f"{column.n_missing:,} {'response is' if one else 'responses are'} 'NA' and {'counts' if one else 'count'} "
            "as unknown; change this with --missing."
        )


def learn(model: Supervised, documents: Documents, checkpoint: Path | None) -> dict[str, Any]:
    """Fit the model; returns facts about the fit."""
    column, train = documents.column, documents.train
    began = time.perf_counter()
    try:
        with plain_warnings():
            known = {"y": column.target} | documents.beside
            documents.source.fit(model, train, known, checkpoint)
    except KeyboardInterrupt:
        if checkpoint:
            note(f"Stopped. The same command resumes from {escape(str(checkpoint))}.")
        raise
    posterior = model.posterior_
    facts: dict[str, Any] = {
        "response": column.response, "why": column.why, "estimator": type(model).__name__, "documents": len(train),
        "unlabelled": int((~column.known[train]).sum()), "words": posterior.n_words,
        "words_with_weights": len(posterior.words.dictionary.word) if posterior.words else 0,
    }  # fmt: skip
    if posterior.response.labels is not None:
        facts["classes"] = posterior.response.labels
    facts |= {"held_out": posterior.held_out, "sampler": posterior.sampler, "seed": posterior.seed}
    return facts | {"seconds": round(time.perf_counter() - began, 2)}


def show(model: Supervised, names: np.ndarray, facts: dict[str, Any], as_json: bool) -> None:
    """Print the facts of a fit and its topics."""
    posterior = model.posterior_
    topics = describe_topics(posterior, names)
    if as_json:
        facts |= {"topics": topics, "covariates": describe_covariates(posterior)}
        print(json.dumps(facts | {"missed_words": missed_words(posterior, names, MISSED) if posterior.words else []}))
        return
    if "test_documents" in facts:
        note(
            f"The model in the file did not learn from the {facts['test_documents']} test documents. Without "
            "--test-size it would learn from all documents."
        )
    show_facts(facts)
    if "test_classes" in facts:
        out.print(class_table(facts["test_classes"]))
    show_model(posterior, topics, names)
