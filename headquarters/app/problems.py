"""Error answers of requests, for programs and people (decision 11)."""

import errno
from collections.abc import Mapping
from typing import Final, NamedTuple

from litestar.exceptions import HTTPException

from common.language import Text
from common.wire.errors import BadEvent, BadQuery
from common.wire.joining import JoinRefusal
from common.wire.signing import NotSigned
from headquarters.core.reception import MessageRefused, Reason
from headquarters.intake.joining import TooManyGuesses
from headquarters.page.shared import FOREIGN, NOT_PERMITTED
from headquarters.store.database import BadContent, StoreError
from headquarters.store.joining import JoinRefused

STATUS: Final[dict[Reason, int]] = {
    "malformed": 400,
    "oversized": 413,
    "unsigned": 401,
    "unknown": 401,
    "foreign": 401,
    "time": 425,
    "fork": 422,
}
"""For boxes 400, 413 and 422 are permanent; others are retried (docs/upstream.md)."""
JOIN: Final[dict[JoinRefusal, tuple[int, str]]] = {
    "CODE_UNKNOWN": (403, "no such code was given here"),
    "CODE_USED": (409, "another box has joined with this code"),
    "CODE_EXPIRED": (410, "the code has ended; headquarters gives another one"),
    "OTHER_MACHINES": (422, "the code is for other machines"),
    "KEY_REVOKED": (409, "the key of this box is revoked; it makes another one"),
}
CODES: Final = {
    400: "BAD_REQUEST",
    401: "UNAUTHENTICATED",
    403: "NOT_PERMITTED",
    404: "NOT_FOUND",
    405: "METHOD_NOT_ALLOWED",
    413: "TOO_LARGE",
    422: "INVALID_REQUEST",
}
NOT_FOUND: Final = Text("There is nothing at this address.")


class ErrorAnswer(NamedTuple):
    """`words` are shown to people."""

    status: int
    code: str
    detail: str
    headers: Mapping[str, str] = {}
    words: Text = NOT_FOUND
    fault: tuple[str, str] | None = None
    """The invalid field, and why."""


def problem_of(error: Exception) -> ErrorAnswer:
    match error:
        case MessageRefused(reason=reason) if STATUS[reason] == STATUS["unsigned"]:
            # Does not disclose to a stranger whether the NIM is registered.
            problem = ErrorAnswer(401, "UNAUTHENTICATED", "no signature of a key that is known for this NIM")
        case MessageRefused(reason=reason):
            problem = ErrorAnswer(STATUS[reason], reason.upper(), str(error))
        case JoinRefused(reason=reason, machines=machines):
            status, detail = JOIN[reason]
            problem = ErrorAnswer(status, reason, f"{detail}: {', '.join(machines)}" if machines else detail)
        case TooManyGuesses(seconds=seconds):
            problem = ErrorAnswer(429, "TOO_MANY_REQUESTS", str(error), {"Retry-After": str(seconds)})
        case NotSigned() | BadEvent():
            status = 401 if isinstance(error, NotSigned) else 422 if isinstance(error, BadQuery) else 400
            fault = (error.field, error.reason) if isinstance(error, BadQuery) else None
            problem = ErrorAnswer(status, CODES[status], str(error), fault=fault)
        case BadContent():  # a NUL, which PostgreSQL rejects: no retry would help
            problem = ErrorAnswer(400, "BAD_REQUEST", "a text has a character that cannot be kept")
        case StoreError():
            words = Text("The database does not answer; try again.")
            problem = ErrorAnswer(
                503, "STORAGE_UNAVAILABLE", "nothing was kept; try again", {"Retry-After": "5"}, words
            )
        case OSError(errno=errno.ENOSPC):
            words = Text("No room is left on the disk of headquarters.")
            problem = ErrorAnswer(507, "STORAGE_FULL", "no room is left on the disk", words=words)
        case HTTPException(status_code=status, detail=detail):
            words = next((text for text in (FOREIGN, NOT_PERMITTED) if detail == text), NOT_FOUND)
            problem = ErrorAnswer(status, CODES.get(status, CODES[400]), detail, error.headers or {}, words)
        case _:
            words = Text("A fault of headquarters; it is in the log.")
            problem = ErrorAnswer(500, "INTERNAL_ERROR", "a fault of headquarters; it is in the log", words=words)
    return problem
