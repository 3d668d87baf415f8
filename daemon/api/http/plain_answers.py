"""Answers as bytes, for where there is no application to send them."""

from __future__ import annotations

from uvicorn.protocols.http.httptools_impl import STATUS_LINE

from daemon.api.http.answers import Answer
from daemon.api.http.headers import SAFETY, made_up_id
from daemon.api.problems import plain_problem


def refusal(status: int, detail: str) -> bytes:
    """For a connection that does not come to its first request."""
    own_id = made_up_id()
    return plainly(plain_problem(status, detail, own_id, ((b"retry-after", b"5"),)), own_id)


def plainly(answer: Answer, own_id: str) -> bytes:
    """As it goes out where there is no application to send it; the connection ends with it."""
    headers = [*answer.headers, (b"x-request-id", own_id.encode()), *SAFETY, (b"connection", b"close")]
    head = b"".join(b"%s: %s\r\n" % header for header in headers)
    return STATUS_LINE[answer.status] + head + b"\r\n" + answer.body
