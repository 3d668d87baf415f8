"""Errors of the relay itself, in the format of the box's API (RFC 9457)."""

from collections.abc import Mapping
from typing import Final, NamedTuple, get_args

import msgspec

from common.language import Text, preferred, translate
from common.problems import problem_content
from common.wire.call import METHOD, Headers

PROBLEM: Final = "application/problem+json"
NOT_ALLOWED: Final = "METHOD_NOT_ALLOWED"


class RelayProblem(Exception):
    """An error answer: status, code for programs, and Retry-After in seconds (0: no such header)."""

    status: int = 503
    code: str
    title: Text
    detail: Text
    retry_after: int = 2
    fault: tuple[str, str] | None = None
    """The invalid field, and why."""


class RequestRefused(RelayProblem):
    """The request itself is invalid."""

    retry_after = 0

    def __init__(self, status: int, code: str, title: Text, detail: Text, fault: tuple[str, str] | None = None) -> None:
        self.status, self.code, self.title, self.detail, self.fault = status, code, title, detail, fault
        super().__init__(str(detail))


class BoxOffline(RelayProblem):
    """Nothing was sent, or no box was listening."""

    code = "BRIDGE_OFFLINE"
    title = Text("The box cannot be reached")
    detail = Text("the box of this machine is not connected at the moment; nothing was sent")

    def __init__(self, retry_after: int = 5) -> None:
        self.retry_after = retry_after
        super().__init__()


class BoxAmbiguous(RelayProblem):
    code = "BOX_AMBIGUOUS"
    title = Text("Two boxes say that they are this one")
    detail = Text("two boxes have the identity of this machine (a copied card?); neither was called")
    retry_after = 60


class BoxSilent(RelayProblem):
    """The call was sent; no answer came."""

    status = 504
    code = "OUTCOME_UNKNOWN"
    title = Text("The outcome is not known yet")
    detail = Text(
        "the box did not answer in time; send the same request again with the same Idempotency-Key, or ask for it with GET …/requests/{key}"
    )


class TooManyCalls(RelayProblem):
    code = "MACHINE_BUSY"
    title = Text("The machine is busy")
    detail = Text("too many requests for this machine are under way; nothing was sent")


class QueueFull(RelayProblem):
    code = "MACHINE_BUSY"
    title = Text("Too many sales wait for this box")
    detail = Text("as many sales as may be kept wait for this box already; this one was not accepted")
    retry_after = 60


class RelayAnswer(NamedTuple):
    status: int
    headers: Headers
    body: bytes


def answer_of(problem: RelayProblem, request_id: str, headers: Mapping[str, str]) -> RelayAnswer:
    """`headers` are the request's: they select the language."""
    language = preferred(headers.get("accept-language", ""))
    title, detail = str(translate(problem.title, language)), str(translate(problem.detail, language))
    fault = (problem.fault[0], str(translate(problem.fault[1], language))) if problem.fault else None
    content = problem_content(problem.status, problem.code, title, detail, request_id, fault=fault)
    sent = {"content-type": PROBLEM, "x-request-id": request_id, "cache-control": "no-store"}
    if problem.code == NOT_ALLOWED:
        sent["allow"] = ", ".join(get_args(METHOD))
    if problem.retry_after:
        sent["retry-after"] = str(problem.retry_after)
    return RelayAnswer(problem.status, tuple(sent.items()), msgspec.json.encode(content))
