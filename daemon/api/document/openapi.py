"""The OpenAPI 3.1 document, made from the routes as they are registered: a handler cannot be there and not here.

Schemas are msgspec's, from the very structs that are sent; responses of trouble come from the table of `problems.py`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

import msgspec
from litestar import Litestar
from litestar.handlers import HTTPRouteHandler
from litestar.routes import HTTPRoute

from daemon.api import refusals
from daemon.api.document.describe import Doc, Errors, Media, Parameter, both
from daemon.api.document.wording import CONVENTIONS, FIELDS, INTRODUCTION, PARAGRAPH, PROBLEM_TEXTS, TAGS
from daemon.api.problems import HTTP_CODES, KINDS, Problem
from daemon.core import errors
from daemon.language import Text

Json = dict[str, Any]

ALWAYS: Final = (400, 408, 431)
"""Statuses of HTTP itself that any request may meet (`HTTP_CODES`)."""
ANYBODY: Final[Errors] = (refusals.Misdirected, refusals.TooManyRequests, errors.McfdError)
WITH_A_KEY: Final[Errors] = (refusals.Unauthenticated, refusals.RoleNotAllowed, errors.NotFound)
WITH_A_BODY: Final[Errors] = (refusals.InvalidJson, refusals.TooLarge, refusals.UnsupportedMediaType)

REQUEST_ID: Final[Json] = {"$ref": "#/components/headers/X-Request-ID"}
_NIM: Final[Json] = {"type": "string", "examples": ["EL02000015-1"]}


def document(app: Litestar, version: str) -> bytes:
    operations = list(_operations(app))
    types: dict[Any, None] = {Problem: None}
    for _, _, doc in operations:
        told = (doc.answer, doc.body, *doc.mentions, *(body for body, _ in doc.also.values()))
        types |= dict.fromkeys(each for each in told if each is not None)
    bodies = tuple({doc.body: None for _, _, doc in operations if doc.body is not None})
    schemas = _schemas(tuple(types), bodies)
    paths: dict[str, Json] = {}
    for path, handler, doc in operations:
        method = next(iter(handler.http_methods)).lower()
        paths.setdefault(path, {})[method] = _operation(path, handler, doc)
    return msgspec.json.encode(
        {
            "openapi": "3.1.0",
            "info": {
                "title": "mcfd",
                "version": version or "0",
                "description": f"{both(INTRODUCTION, PARAGRAPH)}{PARAGRAPH}{CONVENTIONS}",
            },
            "servers": [{"url": "/"}],
            "tags": [{"name": name, "description": both(text)} for name, text in TAGS.items()],
            "paths": paths,
            "components": {
                "schemas": schemas,
                "headers": {name: _header(*value) for name, value in _HEADERS.items()},
                "securitySchemes": {
                    "key": {"type": "http", "scheme": "bearer", "bearerFormat": "ak_live_… / ak_test_…"},
                },
            },
        },
    )


def _operations(app: Litestar) -> Iterator[tuple[str, HTTPRouteHandler, Doc]]:
    for route in app.routes:
        if isinstance(route, HTTPRoute):
            for handler in route.route_handlers:
                if isinstance(doc := handler.opt.get("doc"), Doc):
                    yield route.path_format, handler, doc


def _schemas(types: tuple[Any, ...], bodies: tuple[Any, ...]) -> dict[str, Json]:
    _, schemas = msgspec.json.schema_components(types, ref_template="#/components/schemas/{name}")
    for name, texts in FIELDS.items():
        for field, text in texts.items():
            if (schema := schemas.get(name, {}).get("properties", {}).get(field)) is not None:
                schema["description"] = text
    _tell_decimals(schemas)
    for name in msgspec.json.schema_components(bodies)[1]:
        _tell_null(schemas[name])
    return schemas


def _tell_null(body: Json) -> None:
    """In what is sent to us it stands for an absent field (`core.invoice.fields`), so every field may be null that may be left out."""
    properties = body.get("properties", {})
    for name in properties.keys() - set(body.get("required", ())):
        said = properties[name]
        if "anyOf" in said:
            said["anyOf"] = [*said["anyOf"], {"type": "null"}]
        elif "type" in said:
            said["type"] = [said["type"], "null"]
        else:  # a choice, or another schema
            kept = {key: said.pop(key) for key in ("description", "default") if key in said}
            properties[name] = {"anyOf": [said, {"type": "null"}], **kept}


def _tell_decimals(node: object) -> None:
    """They go out as numbers (`answers`, `journal`), and msgspec's schema says strings."""
    if isinstance(node, dict):
        if node.get("format") == "decimal":
            node["type"] = "number"
        for below in node.values():
            _tell_decimals(below)
    elif isinstance(node, list):
        for below in node:
            _tell_decimals(below)


def _operation(path: str, handler: HTTPRouteHandler, doc: Doc) -> Json:
    post = "POST" in handler.http_methods
    operation: Json = {
        "operationId": re.sub(r"\W+", "_", handler.name or handler.handler_name).lower(),
        "tags": [doc.tag],
        "summary": both(doc.summary),
        "description": both(doc.text, "\n\n"),
        "parameters": [*_parameters(path, doc, post=post)],
        "responses": _responses(path, doc, post=post),
        "security": _security(doc),
    }
    if doc.body is not None:
        operation["requestBody"] = {
            "required": doc.body_required,
            "content": {"application/json": {"schema": _reference(doc.body), "example": doc.example}},
        }
    return operation


def _security(doc: Doc) -> list[Json]:
    """An open answer that may refuse for want of a key takes one from some and none from others."""
    if not doc.open:
        return [{"key": []}]
    return [{}, {"key": []}] if refusals.Unauthenticated in doc.problems else []


def _parameters(path: str, doc: Doc, *, post: bool) -> Iterator[Json]:
    if "{nim}" in path:
        yield _parameter(
            "path",
            Parameter("nim", _NIM, Text("the key's NIM, exactly")),
            required=True,
        )
    for parameter in doc.path:
        yield _parameter("path", parameter, required=True)
    for parameter in doc.query:
        yield _parameter("query", parameter)
    for parameter in doc.headers:
        yield _parameter("header", parameter)
    if post:
        schema = {"type": "string", "minLength": 1, "maxLength": 200, "pattern": "^[ -~]+$"}
        yield _parameter("header", Parameter("Idempotency-Key", schema, PROBLEM_TEXTS["Idempotency-Key"]))
    yield _parameter("header", Parameter("X-Request-ID", {"type": "string"}, PROBLEM_TEXTS["X-Request-ID"]))


def _parameter(place: str, parameter: Parameter, *, required: bool = False) -> Json:
    return {
        "name": parameter.name,
        "in": place,
        "required": required,
        "description": both(parameter.text, " " if parameter.text.endswith(".") else " · "),
        "schema": parameter.schema,
    }


def _responses(path: str, doc: Doc, *, post: bool) -> dict[str, Json]:
    replayed = {"Idempotency-Replayed": {"$ref": "#/components/headers/Idempotency-Replayed"}} if post else {}
    answers = {doc.status: (doc.answer, doc.answer_text), **doc.also}
    responses = {
        str(status): {
            "description": both(text),
            "headers": {"X-Request-ID": REQUEST_ID, **(replayed if status == doc.status else {})},
            "content": _content(body, doc.media if status == doc.status else ()),
        }
        for status, (body, text) in answers.items()
    }
    for status, codes in sorted(_problems(path, doc).items()):
        if status not in answers:
            responses[str(status)] = _problem_response(status, codes)
    return responses


def _content(body: Any, media: tuple[Media, ...]) -> Json:
    content: Json = {} if body is None else {"application/json": {"schema": _reference(body)}}
    return {**content, **{form.type: {"schema": form.schema} for form in media}}


def _problems(path: str, doc: Doc) -> dict[int, dict[str, str]]:
    """By status: each code that may come, with its title."""
    may = [*ANYBODY, *doc.problems]
    may += [] if doc.open else WITH_A_KEY
    may += WITH_A_BODY if doc.body is not None else ()
    may += [refusals.NimNotInScope] if "{nim}" in path else []
    found: dict[int, dict[str, str]] = {status: dict([HTTP_CODES[status]]) for status in ALWAYS}
    for kind in (KINDS[error] for error in may):
        codes = found.setdefault(kind.status, {})
        codes[kind.code] = f"{codes[kind.code]} / {kind.title}" if kind.code in codes else kind.title
    return found


def _problem_response(status: int, codes: dict[str, str]) -> Json:
    headers = {"X-Request-ID": REQUEST_ID}
    for name, statuses in _SENT_WITH.items():
        if status in statuses:
            headers[name] = {"$ref": f"#/components/headers/{name}"}
    narrowed = {"properties": {"status": {"const": status}, "code": {"enum": sorted(codes)}}}
    return {
        "description": "; ".join(f"`{code}`: {title}" for code, title in sorted(codes.items())),
        "headers": headers,
        "content": {"application/problem+json": {"schema": {"allOf": [_reference(Problem), narrowed]}}},
    }


def _reference(kind: Any) -> Json:
    return {"$ref": f"#/components/schemas/{kind.__name__}"}


_SENT_WITH: Final = {"Retry-After": (429, KINDS[errors.MachineOffline].status), "WWW-Authenticate": (401,)}

_HEADERS: Final[dict[str, tuple[str, Json]]] = {
    "X-Request-ID": (
        "The request's own, or one made up; it stands in every log line of the request.",
        {"type": "string"},
    ),
    "Idempotency-Replayed": ("`true` when this is the first answer again.", {"type": "string", "const": "true"}),
    "Retry-After": ("Seconds to wait (not with MACHINE_ATTENTION).", {"type": "string", "pattern": "^[0-9]+$"}),
    "WWW-Authenticate": ("`Bearer`, with what was wrong with the key.", {"type": "string"}),
}


def _header(text: str, schema: Json) -> Json:
    return {"description": text, "schema": schema}
