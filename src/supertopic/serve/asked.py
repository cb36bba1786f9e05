"""What a request asks for: JSON that may be anything becomes documents and options, or is refused."""

import json
import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, NoReturn

from supertopic.corpus.json_text import measure_json
from supertopic.serve.limits import Limits, Refused
from supertopic.serve.needs import Needs

MOST = 1e300  # of a number
OPTIONS = ("set", "interval", "conformal", "topics")
OF_DOCUMENT = ("text", "covariates", "exposure", "features", "group")


@dataclass(frozen=True)
class Document:
    """One document, and what is known of it."""

    text: str
    covariates: tuple[Any, ...] = ()  # in the order of the model's
    exposure: float | None = None
    features: tuple[float, ...] = ()
    group: str | None = None


@dataclass(frozen=True)
class Options:
    """What is asked of all documents of a request; requests with the same options are predicted together."""

    set: float | None = None  # the level of sets of classes
    interval: float | None = None
    conformal: bool = False  # whether intervals are calibrated on held-out documents
    topics: bool = False  # whether shares of topics are wanted


@dataclass(frozen=True)
class Asked:
    """A request for predictions."""

    documents: list[Document]
    options: Options = field(default_factory=Options)
    single: bool = False


def refuse(status: int, message: str) -> NoReturn:
    raise Refused(status, message)


def shown(value: Any) -> str:
    """A value as a message shows it."""
    text = json.dumps(value, default=str)
    return text if len(text) <= 60 else text[:57] + "..."


def parse_body(data: bytes, limits: Limits) -> dict[str, Any]:
    """The JSON object of a body, whose depth and size are measured before a parser sees it."""
    if len(data) > limits.values or data.count(b"{") + data.count(b"[") > limits.depth:  # else it is neither
        depth, values = measure_json(data)
        if depth > limits.depth:
            refuse(400, f"The body is nested {depth:,} deep; at most {limits.depth} levels are read.")
        if values > limits.values:
            refuse(413, f"The body has {values:,} values; at most {limits.values:,} are read. Send several requests.")

    def no_number(name: str) -> NoReturn:
        raise ValueError(f"{name} is no number of JSON")

    try:
        found = json.loads(data.decode("utf-8"), parse_constant=no_number)
    except (ValueError, RecursionError) as error:
        refuse(400, f'The body is not JSON ({str(error)[:200]}). Send an object such as {{"text": "..."}}.')
    if not isinstance(found, dict):
        refuse(422, f'The body is {shown(found)}; an object such as {{"text": "..."}} was expected.')
    return found


def read_asked(body: dict[str, Any], needs: Needs, limits: Limits) -> Asked:
    """The documents and the options of a request to predict."""
    options = read_options({name: body[name] for name in OPTIONS if name in body}, needs)
    rest = {name: value for name, value in body.items() if name not in OPTIONS}
    kinds = [name for name in ("text", "texts", "documents") if name in rest]
    if len(kinds) != 1:
        given = ", ".join(sorted(body))[:200] or "nothing"
        refuse(422, f"The body has {given}; exactly one of text, texts and documents was expected.")
    if kinds[0] == "text":
        return Asked([read_document(rest, "", needs, limits)], options, single=True)
    known_only(rest, (kinds[0],), "the body")
    rows = rest[kinds[0]]
    if not isinstance(rows, list):
        refuse(422, f"{kinds[0]} is {shown(rows)}; a list was expected.")
    if len(rows) > limits.texts:
        refuse(413, f"{kinds[0]} has {len(rows):,} entries; at most {limits.texts:,} are taken. Send several requests.")
    if kinds[0] == "texts":
        rows = [{"text": row} for row in rows]
    return Asked([read_document(row, f"{kinds[0]}[{i}]", needs, limits) for i, row in enumerate(rows)], options)


def read_one(body: dict[str, Any], needs: Needs, limits: Limits) -> tuple[Document, float]:
    """The document of a request to explain, and the level of its intervals."""
    level = read_level(body.get("interval", 0.9), "interval")
    rest = {name: value for name, value in body.items() if name != "interval"}
    return read_document(rest, "", needs, limits), level


def known_only(given: Iterable[str], known: Iterable[str], what: str) -> None:
    """Refuse fields that nobody reads: a misspelt one would go unnoticed."""
    strange = sorted(set(given) - set(known))
    if strange:
        refuse(422, f"{what} has the field {shown(strange[0])}, which is not known; known are {', '.join(known)}.")


def read_options(given: dict[str, Any], needs: Needs) -> Options:
    """Levels of sets and intervals, and whether topics are wanted."""
    wanted = {name: given.get(name, False) for name in ("topics", "conformal")}
    for name, value in wanted.items():
        if not isinstance(value, bool):
            refuse(422, f"{name} is {shown(value)}; true or false was expected.")
    levels = {name: read_level(given[name], name) for name in ("set", "interval") if given.get(name) is not None}
    if "set" in levels and not needs.has_sets:
        refuse(422, "set was asked for; sets are of classes and labels, which this model does not have. Leave set out.")
    if "interval" in levels and not needs.has_intervals:
        refuse(422, "interval was asked for, but the model has no response. Leave interval out.")
    if wanted["conformal"] and not needs.has_conformal:
        refuse(422, "conformal goes with ratings and counts of which some were held out. Leave conformal out.")
    if wanted["conformal"] and "interval" not in levels:
        refuse(422, "conformal needs interval, the level of the intervals.")
    return Options(levels.get("set"), levels.get("interval"), **wanted)


def read_level(value: Any, what: str) -> float:
    """A probability such as 0.9."""
    if not is_number(value) or not 0.0 < float(value) < 1.0:
        refuse(422, f"{what} is {shown(value)}; a probability between 0 and 1 was expected, such as 0.9.")
    return float(value)


def is_number(value: Any) -> bool:
    """Whether a value of JSON is a number that floats hold."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return -MOST < value < MOST and math.isfinite(value)


def read_document(row: Any, place: str, needs: Needs, limits: Limits) -> Document:
    """One document with all that the model needs of it."""
    where = place or "the body"
    if not isinstance(row, dict):
        refuse(422, f'{where} is {shown(row)}; an object such as {{"text": "..."}} was expected.')
    known_only(row, OF_DOCUMENT, where)
    prefix, text = f"{place}." if place else "", row.get("text")
    if not isinstance(text, str):
        what = place if place.startswith("texts") else f"{prefix}text"
        refuse(422, f"{what} is {shown(text)}; a text was expected.")
    if len(text) > limits.letters:
        refuse(
            413, f"{prefix}text has {len(text):,} letters; at most {limits.letters:,} are taken. Cut it, or split it."
        )
    missing = [name for name in needs.beside if row.get(name) is None]
    if missing:
        refuse(422, f"{where} lacks {missing[0]}: {needs.beside[missing[0]]}.")
    for name in ("covariates", "exposure", "features", "group"):
        if row.get(name) is not None and name not in needs.beside and not (name == "exposure" and needs.takes_exposure):
            refuse(422, f"{prefix}{name} is given, but the model was fitted without. Leave it out.")
    return Document(
        text, read_covariates(row.get("covariates"), prefix, needs), read_exposure(row.get("exposure"), prefix),
        read_features(row.get("features"), prefix, needs), read_group(row.get("group"), prefix),
    )  # fmt: skip


def read_covariates(given: Any, prefix: str, needs: Needs) -> tuple[Any, ...]:
    """The covariates in the model's order: an object by their names, or a list."""
    names = list(needs.covariates)
    if given is None:
        return ()
    if isinstance(given, list) and len(given) == len(names):
        given = dict(zip(names, given, strict=True))
    if not isinstance(given, dict):
        refuse(422, f"{prefix}covariates is {shown(given)}; an object with {', '.join(names)} was expected.")
    known_only(given, names, f"{prefix}covariates")
    for name, kind in needs.covariates.items():
        value = given.get(name)
        if not (isinstance(value, str | bool) or is_number(value)):
            refuse(422, f"{prefix}covariates.{name} is {shown(value)}; a {kind} was expected.")
    return tuple(given[name] for name in names)


def read_exposure(given: Any, prefix: str) -> float | None:
    """A positive number."""
    if given is None:
        return None
    if not is_number(given) or given <= 0:
        refuse(422, f"{prefix}exposure is {shown(given)}; a number above 0 was expected.")
    return float(given)


def read_features(given: Any, prefix: str, needs: Needs) -> tuple[float, ...]:
    """A list of numbers, as long as the model's."""
    if given is None:
        return ()
    if not isinstance(given, list) or len(given) != needs.n_features or not all(map(is_number, given)):
        refuse(422, f"{prefix}features is {shown(given)}; a list of {needs.n_features:,} numbers was expected.")
    return tuple(map(float, given))


def read_group(given: Any, prefix: str) -> str | None:
    """The name of a group."""
    if given is None:
        return None
    if not isinstance(given, str | int) or isinstance(given, bool):
        refuse(422, f"{prefix}group is {shown(given)}; the name of a group was expected.")
    return str(given)[:1000]
