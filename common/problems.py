"""Errors of an HTTP request as `application/problem+json` (RFC 9457, decision 11), for box, relay and HAProxy alike."""

import itertools
import re
import secrets
from collections.abc import Iterable
from typing import Final

MAX_REQUEST_ID: Final = 128
_PRINTABLE_ID = re.compile(rb"[ -~]{1,%d}" % MAX_REQUEST_ID)
_start = secrets.token_hex(6)
_numbers = itertools.count(1)


def request_id(headers: Iterable[tuple[bytes, bytes]]) -> str:
    """The client's own if it is printable (decision 7), otherwise a new one."""
    for name, value in headers:
        if name == b"x-request-id" and _PRINTABLE_ID.fullmatch(value):
            return value.decode("ascii")
    return new_request_id()


def new_request_id() -> str:
    """Unique in the logs of a box: random for each start, then counted."""
    return f"{_start}-{next(_numbers):x}"


def problem_type(code: str) -> str:
    return "urn:mcfd:problem:" + code.lower().replace("_", "-")


def problem_content(
    status: int, code: str, title: str, detail: str, request_id: str, *, fault: tuple[str, str] | None = None
) -> dict[str, object]:
    """`error` repeats `detail`, for clients that are older than this format. `fault`: the invalid field, and why."""
    errors = {"errors": [{"field": fault[0], "message": fault[1]}]} if fault else {}
    return {
        "type": problem_type(code),
        "title": title,
        "status": status,
        "detail": detail,
        "code": code,
        "error": detail,
        "request_id": request_id,
        **errors,
    }
