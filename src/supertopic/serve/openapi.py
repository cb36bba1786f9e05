"""The description of the server for programs: OpenAPI 3.1, with what this model needs of a document."""

from typing import Any

from supertopic.serve.limits import Limits
from supertopic.serve.needs import Needs

Schema = dict[str, Any]
NUMBER: Schema = {"type": "number"}
LEVEL: Schema = {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1}


def ref(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


def items(schema: Schema) -> Schema:
    return {"type": "array", "items": schema}


def document_schema(needs: Needs, limits: Limits) -> Schema:
    """One document as this model needs it."""
    properties: dict[str, Schema] = {"text": {"type": "string", "maxLength": limits.letters}}
    if needs.covariates:
        one = {"type": ["number", "string", "boolean"]}
        covariates = {name: one | {"description": f"A {kind}."} for name, kind in needs.covariates.items()}
        whole = {
            "type": "object",
            "properties": covariates,
            "required": list(covariates),
            "additionalProperties": False,
        }
        in_order = items(one) | {"minItems": len(covariates), "maxItems": len(covariates)}
        properties["covariates"] = {"oneOf": [whole, in_order]}
    if needs.takes_exposure:
        properties["exposure"] = {"type": "number", "exclusiveMinimum": 0}
    if needs.n_features:
        properties["features"] = items(NUMBER) | {"minItems": needs.n_features, "maxItems": needs.n_features}
    if needs.has_groups:
        properties["group"] = {"type": "string", "description": "Any name that was not in the fit is a new group."}
    required = ["text", *needs.beside]
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def prediction_schema(needs: Needs) -> Schema:
    """A row: the columns of `predict_table`, and what was asked for beside them."""
    properties: dict[str, Schema] = {"topics": items(ref("Share"))}
    if needs.response != "none":
        properties["prediction"] = {"description": "A class, a list of labels, or a number; null if it is infinite."}
        properties["interval"] = {"description": "Its lower and upper end; of each class by name, if it has classes."}
    if needs.has_sets:
        properties["set"] = items({"description": "A class or a label."})
    more = {"type": ["number", "null"], "description": "A probability, a score, or another figure of the prediction."}
    return {"type": "object", "properties": properties, "additionalProperties": more}


def schemas(needs: Needs, limits: Limits) -> dict[str, Schema]:
    """All components."""
    document = document_schema(needs, limits)
    options: dict[str, Schema] = {"topics": {"type": "boolean", "description": "Shares of topics, too."}}
    if needs.response != "none":
        options["interval"] = LEVEL | {"description": "The level of intervals."}
    if needs.has_conformal:
        options["conformal"] = {"type": "boolean", "description": "Calibrate intervals on held-out documents."}
    if needs.has_sets:
        options["set"] = LEVEL | {"description": "The level of sets of classes."}
    single = document | {"properties": document["properties"] | options}
    many: list[Schema] = [
        {"type": "object", "properties": {"documents": items(ref("Document")) | {"maxItems": limits.texts}} | options,
         "required": ["documents"], "additionalProperties": False},
    ]  # fmt: skip
    if not needs.beside:
        texts = items({"type": "string", "maxLength": limits.letters}) | {"maxItems": limits.texts}
        many.append({"type": "object", "properties": {"texts": texts} | options, "required": ["texts"],
                     "additionalProperties": False})  # fmt: skip
    error = {"type": "object", "properties": {"status": {"type": "integer"}, "message": {"type": "string"}},
             "required": ["status", "message"]}  # fmt: skip
    share = {"type": "object", "properties": {"topic": {"type": "integer"}, "share": NUMBER},
             "required": ["topic", "share"]}  # fmt: skip
    predictions = {"type": "object", "properties": {"predictions": items(ref("Prediction"))},
                   "required": ["predictions"]}  # fmt: skip
    topic = {"type": "object", "required": ["topic", "share", "words"], "properties": {
        "topic": {"type": "integer"}, "name": {"type": "string"}, "label": {"type": "string"}, "share": NUMBER,
        "chains": {"type": "integer"}, "of_chains": {"type": "integer"}, "words": items({"type": "string"}),
        "weight": NUMBER, "interval": items(NUMBER), "class": {},
    }}  # fmt: skip
    return {
        "Document": document, "Single": single, "Many": {"oneOf": many}, "Share": share, "Topic": topic,
        "Prediction": prediction_schema(needs), "Predictions": predictions,
        "Explained": document | {"properties": document["properties"] | {"interval": LEVEL}},
        "Error": {"type": "object", "properties": {"error": error}, "required": ["error"]},
    }  # fmt: skip


def operation(
    what: str, name: str, answer: Schema, body: Schema | None = None, kind: str = "application/json",
    secured: bool = True,
) -> Schema:  # fmt: skip
    """One path."""
    problem = {
        "description": "The request is invalid; the message says why.",
        "content": {"application/json": {"schema": ref("Error")}},
    }
    found: Schema = {
        "operationId": name, "summary": what,
        "responses": {"200": {"description": "The answer.", "content": {kind: {"schema": answer}}}, "default": problem},
    }  # fmt: skip
    if body is not None:
        found["requestBody"] = {"required": True, "content": {"application/json": {"schema": body}}}
    if not secured:
        found["security"] = []
    return found


def describe(needs: Needs, limits: Limits, version: str, secured: bool) -> Schema:
    """The whole document."""
    text, anything = {"type": "string"}, {"type": "object"}
    topics = {"type": "object", "properties": {"topics": items(ref("Topic"))}, "required": ["topics"]}
    paths = {
        "/predict": {"post": operation(
            "Predict one document, or many.", "predict", {"anyOf": [ref("Prediction"), ref("Predictions")]},
            {"anyOf": [ref("Single"), ref("Many")]},
        )},
        "/topics": {"get": operation("The topics, the largest first.", "topics", topics)},
        "/model": {"get": operation("What the model needs and answers, and the limits.", "model", anything)},
        "/health": {"get": operation("Whether the server works.", "health", anything, secured=False)},
        "/metrics": {"get": operation("Figures for Prometheus.", "metrics", text, kind="text/plain")},
        "/openapi.json": {"get": operation("This document.", "openapi", anything)},
        "/": {"get": operation("A page for people.", "page", text, kind="text/html", secured=False)},
    }  # fmt: skip
    if needs.response != "none":
        paths["/explain"] = {
            "post": operation("What each word adds to the prediction.", "explain", anything, ref("Explained"))
        }
    found: Schema = {
        "openapi": "3.1.0",
        "info": {"title": f"supertopic: {needs.kind}", "version": version, "license": {"name": "BSD-3-Clause"}},
        "paths": paths, "components": {"schemas": schemas(needs, limits)},
    }  # fmt: skip
    if secured:
        found["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        found["security"] = [{"token": []}]
    return found
