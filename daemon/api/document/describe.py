"""What a route says of itself, as the keyword arguments that Litestar's OpenAPI generator reads: `@get(path, **described(...))`."""

from __future__ import annotations

from collections.abc import Mapping
from types import UnionType
from typing import Any, Final, Literal, get_args

import msgspec
from litestar.openapi import ResponseSpec
from litestar.openapi.spec import Parameter

from daemon.api import refusals
from daemon.api.document.operation import operation
from daemon.api.problems import HTTP_CODES, KINDS, Problem
from daemon.core import errors
from daemon.core.ledger.attempt import DuplicateInvoice
from daemon.core.people import Right

Errors = tuple[type[Exception], ...]
Access = Literal["machine", "key", "open"]
"""`machine`: below /v1/mcf/{nim}, with a key of that NIM; `open`: without a key."""

HTTP_STATUSES: Final = (400, 408)
"""Of HTTP itself, for any request (`HTTP_CODES`)."""
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
    errors.MachineNonsense,
    errors.MachineRefused,
)
REPLAYABLE: Final[Errors] = (errors.KeyReused, errors.InvalidRequest)
"""With an Idempotency-Key: one that stands for another request, one that is malformed."""
STORED: Final[Errors] = (errors.StorageFull, errors.LedgerUnusable)
CERTIFYING: Final[Errors] = (*AT_THE_MACHINE, *REPLAYABLE, DuplicateInvoice, errors.RequestExpired, *STORED)


class EmptyBody(msgspec.Struct):
    """Nothing is needed: no body at all, or an object whose fields are ignored."""


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
    """`answer` is the type that goes out as JSON (None: it never does), `media` are the other forms of it, `also` other statuses with their
    type and text, `mentions` types that the description names; `problems` may come beside those of every request. A body without an
    example may be left out. `right` is what a key needs; the answer of a `lasting` route has no end."""
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
        "right": right,
        "lasting": lasting,
        "types": _structs(*(kind for kind, _ in answers.values()), body, *mentions),
    }


def _structs(*kinds: type | UnionType | None) -> tuple[type, ...]:
    return tuple(each for kind in kinds if kind is not None for each in get_args(kind) or (kind,))


def _response(kind: Any, text: str, media_type: str = "application/json") -> ResponseSpec:
    return ResponseSpec(kind, description=text, media_type=media_type, generate_examples=False)


def _problem_responses(may: Errors) -> dict[int, ResponseSpec]:
    """By status: each code that may come, with its title."""
    found: dict[int, dict[str, str]] = {status: dict([HTTP_CODES[status]]) for status in HTTP_STATUSES}
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
    """An open answer that may refuse for want of a key takes one from some and none from others."""
    if access != "open":
        return [{"key": []}]
    return [{}, {"key": []}] if refusals.Unauthenticated in problems else []
