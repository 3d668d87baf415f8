"""The OpenAPI description of a route, as keyword arguments for Litestar: `@get(path, **described(...))`.

Litestar derives parameters, body and headers from a handler's signature. Our handlers read the request themselves,
strictly, so these are declared here, with further media types of the answer."""

from collections.abc import Mapping
from dataclasses import replace
from types import UnionType
from typing import Any, Final, Literal, get_args

import msgspec
from litestar.openapi import ResponseSpec
from litestar.openapi.spec import (
    OpenAPIMediaType,
    Operation,
    Parameter,
    Reference,
    RequestBody,
    Schema,
)
from litestar.openapi.spec.enums import OpenAPIFormat, OpenAPIType

from common.front_config import ERRORS as FRONT_ERRORS
from daemon.api import refusals
from daemon.api.problems import HTTP_CODES, KINDS, Problem
from daemon.api.request.body import MAX_LIMIT, MAX_NUMBER
from daemon.core import errors
from daemon.core.ledger.attempt import DuplicateInvoice
from daemon.core.ledger.take_over import PairNotCompared
from daemon.core.people import Right

Errors = tuple[type[Exception], ...]
Access = Literal["machine", "key", "open"]
"""`machine`: below /v1/mcf/{nim}, with a key for that NIM; `key`: with any key; `open`: without a key."""

HTTP_STATUSES: Final = (400, 408)
"""Errors of HTTP itself, possible for any request (`HTTP_CODES`)."""
FRONT_STATUSES: Final = (502, 503, 504)
"""HAProxy's own answers to any request, as while the daemon restarts."""
ANY_ROUTE: Final[Errors] = (refusals.Misdirected, refusals.TooManyRequests, errors.McfdError)
WITH_A_KEY: Final[Errors] = (refusals.Unauthenticated, refusals.RoleNotAllowed, refusals.WrongLane, errors.NotFound)
NEEDED: Final[Mapping[Access, Errors]] = {
    "machine": (*WITH_A_KEY, refusals.NimNotInScope),
    "key": WITH_A_KEY,
    "open": (),
}
WITH_A_BODY: Final[Errors] = (refusals.InvalidJson, refusals.TooLarge, refusals.UnsupportedMediaType)

AT_THE_MACHINE: Final[Errors] = (
    errors.MachineOffline,
    errors.MachineBusy,
    errors.LineLost,
    errors.NothingDone,
    errors.MachineAttention,
    PairNotCompared,
    errors.MachineNonsense,
    errors.MachineRefused,
)
REPLAYABLE: Final[Errors] = (errors.KeyReused, errors.InvalidRequest)
"""Errors of an Idempotency-Key: in use for another request, or malformed."""
STORED: Final[Errors] = (errors.StorageFull, errors.LedgerUnusable)
CERTIFYING: Final[Errors] = (*AT_THE_MACHINE, *REPLAYABLE, DuplicateInvoice, errors.RequestExpired, *STORED)

STRING: Final = Schema(type=OpenAPIType.STRING)

PATH_TEXTS: Final = {
    "nim": "The key's NIM, exactly, as EL02000015-1",
    "key": "The `Idempotency-Key` of the request, escaped as a path needs it",
    "code": "With or without dashes",
    "z": "Z number or `report_id`",
    "number": "Number of the report",
    "outage": "`id` of the outage",
    "period": "Number of the closure, or its month or year",
    "address": "As it stands on the slip",
}

_MOMENT = Schema(
    type=OpenAPIType.STRING,
    any_of=[Schema(format=OpenAPIFormat.DATE), Schema(format=OpenAPIFormat.DATE_TIME)],
    examples=["2026-01-31", "2026-01-31T08:00:00Z"],
)

IDEMPOTENCY_KEY: Final = "Idempotency-Key"
REPLAYED: Final = "Idempotency-Replayed"
SENT_WITH: Final = {"401": ("WWW-Authenticate",), "429": ("Retry-After",), "503": ("Retry-After",)}


class EmptyBody(msgspec.Struct):
    """No body, or an object whose fields are ignored."""


def described(
    operation_id: str,
    *,
    tag: str,
    summary: str,
    description: str,
    answer: type | UnionType | None = None,
    status: int = 200,
    answer_text: str = "OK",
    also: Mapping[int, tuple[type, str]] = {},
    media: tuple[str, ...] = (),
    mentions: tuple[type, ...] = (),
    parameters: tuple[Parameter, ...] = (),
    body: type | None = None,
    example: Mapping[str, Any] | None = None,
    problems: Errors = (),
    access: Access = "machine",
    right: Right = "administer",
    lasting: bool = False,
) -> dict[str, Any]:
    """`answer`: type of the JSON answer, None for no JSON; `media`: its other media types; `also`: other statuses with
    type and text; `mentions`: types that the description names; `problems`: errors beside those of every request;
    `right`: what a key needs; `lasting`: the answer is a stream. A body without an example is optional."""
    answers = {status: (answer, answer_text), **also}
    may = (*ANY_ROUTE, *problems, *NEEDED[access], *(WITH_A_BODY if body else ()))
    return {
        "operation_id": operation_id,
        "status_code": status,
        "tags": [tag],
        "summary": summary,
        "description": description,
        "responses": _problem_responses(may) | {code: _response(*each) for code, each in answers.items()},
        "security": _security(access, problems),
        "operation_class": operation(parameters, body, example, tuple(map(str, answers)), media),
        "access": access,
        "right": right,
        "lasting": lasting,
        "can_be_tried": DRY_RUN in parameters,
        "queries": frozenset(each.name for each in parameters if each.param_in == "query"),
        "types": _structs(*(kind for kind, _ in answers.values()), body, *mentions),
    }


def _structs(*kinds: type | UnionType | None) -> tuple[type, ...]:
    return tuple(each for kind in kinds if kind is not None for each in get_args(kind) or (kind,))


def _response(kind: Any, text: str, media_type: str = "application/json") -> ResponseSpec:
    return ResponseSpec(kind, description=text, media_type=media_type, generate_examples=False)


def _problem_responses(may: Errors) -> dict[int, ResponseSpec]:
    """The possible problem codes with their titles, by status."""
    found: dict[int, dict[str, str]] = {status: dict([HTTP_CODES[status]]) for status in HTTP_STATUSES}
    found |= {status: dict([FRONT_ERRORS[status][:2]]) for status in FRONT_STATUSES}
    for kind in (KINDS[error] for error in may):
        titles = found.setdefault(kind.status, {})
        titles[kind.code] = f"{titles[kind.code]} / {kind.title}" if kind.code in titles else kind.title
    return {
        status: _response(
            Problem,
            "; ".join(f"`{code}`: {title}" for code, title in sorted(titles.items())),
            "application/problem+json",
        )
        for status, titles in sorted(found.items())
    }


def _security(access: Access, problems: Errors) -> list[dict[str, list[str]]]:
    """The key for a route; optional for an open route that may answer 401."""
    if access != "open":
        return [{"key": []}]
    return [{}, {"key": []}] if refusals.Unauthenticated in problems else []


def operation(
    parameters: tuple[Parameter, ...],
    body: type | None,
    example: object,
    answers: tuple[str, ...],
    media: tuple[str, ...],
) -> type[Operation]:
    """An operation class with the declared parts. A body without an example is optional. `answers`: statuses that are
    no problem; the first one also has the types `media`."""

    class Completed(Operation):
        def __init__(self, **generated: Any) -> None:
            super().__init__(**generated)
            for each in generated["parameters"] or ():
                each.description = PATH_TEXTS[each.name]
            self.parameters = [*(generated["parameters"] or ()), *parameters, REQUEST_ID]
            if ONCE in parameters:
                self.parameters.append(REHEARSED_CASE)
            if body is not None:
                content = {"application/json": OpenAPIMediaType(schema=reference(body), example=example)}
                self.request_body = RequestBody(content=content, required=example is not None)
            for status, response in generated["responses"].items():
                first = status == answers[0]
                replayed = first and any(each.name == IDEMPOTENCY_KEY for each in parameters)
                more = [REPLAYED] if replayed else () if status in answers else SENT_WITH.get(status, ())
                names = ("X-Request-ID", *more)
                response.headers = {name: Reference(ref=f"#/components/headers/{name}") for name in names}
                if first and media:
                    forms = {form: OpenAPIMediaType(schema=_form(form)) for form in media}
                    response.content = {**(response.content or {}), **forms}

    return Completed


def _form(media_type: str) -> Schema:
    return STRING if media_type.startswith("text/") else Schema(type=OpenAPIType.STRING, content_media_type=media_type)


def reference(kind: type) -> Reference:
    return Reference(ref=f"#/components/schemas/{kind.__name__}")


def whole_number(least: int, most: int, default: int) -> Schema:
    return Schema(type=OpenAPIType.INTEGER, minimum=least, maximum=most, default=default)


def matching(pattern: str) -> Schema:
    return Schema(type=OpenAPIType.STRING, pattern=pattern)


def choice(*values: str, default: str | None = None) -> Schema:
    return Schema(type=OpenAPIType.STRING, enum=values, default=default)


def query(name: str, text: str, schema: Schema = STRING, *, empty: bool = False) -> Parameter:
    return Parameter(name, "query", schema, text, allow_empty_value=empty)


def header(name: str, text: str, schema: Schema = STRING, *, required: bool = False) -> Parameter:
    return Parameter(name, "header", schema, text, required)


def paging(limit: str, after: str) -> tuple[Parameter, Parameter]:
    """Parameters `limit` and `after` of a list by number."""
    entries = query("limit", limit, whole_number(1, MAX_LIMIT, MAX_LIMIT))
    return entries, query("after", after, whole_number(0, MAX_NUMBER, 0))


RANGE: Final = (
    query(
        "from",
        "Start: a date (that whole day in the configured time zone) or an RFC 3339 timestamp with offset; default 31 days before `to`.",
        _MOMENT,
    ),
    query("to", "End: a date (included) or an instant (excluded); default now.", _MOMENT),
)
ONCE: Final = header(
    IDEMPOTENCY_KEY,
    "Chosen by the till, one for each invoice; the same key with the same body (the order of names and what is null do not matter) gets the first answer "
    "again, for 30 days on which the shop works, after a restart too.",
    Schema(type=OpenAPIType.STRING, min_length=1, max_length=200, pattern="^[ -~]+$"),
    required=True,
)
OPTIONAL_KEY: Final = replace(ONCE, required=False)
"""Idempotency-Key of an operation whose repeat changes nothing."""
DRY_RUN: Final = query(
    "dry_run",
    "`true`: the totals and warnings, or the error, that the request would get; nothing is stored or sent",
    choice("true", "false", default="false"),
)
STRICT: Final = header(
    "Mcfd-Strict",
    "`true`: a field that is not known is refused (422) instead of being named in `warnings`, as for a strict key.",
    choice("true", "false", default="false"),
)
PREFER: Final = header(
    "Prefer",
    "`respond-async`: the till does not wait, the sale is certified later (202); an `Idempotency-Key` is needed then.",
)
REQUEST_ID: Final = header(
    "X-Request-ID",
    "Echoed in the answer and in the log when it is 1 to 128 printable ASCII characters; otherwise one is made up.",
)
REHEARSED_CASE: Final = header(
    "Mcfd-Test",
    "With a test key: the failure that this request is to meet, as `offline` or `slow:20` (the page *Testing your till*). With a live key it "
    "does nothing.",
)
