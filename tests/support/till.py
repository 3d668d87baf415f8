"""What a till looks at: answers, problems, and that a refusal has left machine and ledger as they were."""

import itertools
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

import httpx
from support.shop import Machine, Shop

PROBLEM_MEMBERS = {"type", "title", "status", "detail", "code", "error", "request_id"}
LEAKS = re.compile(r"Traceback|\.py\b|ak_(?:live|test)_|/(?:tmp|dev|work|home|etc|var)/")

ROWS = ("certification", "closure", "idempotency", "outbox")

_numbers = itertools.count(1)


def fresh() -> str:
    """An invoice number that no other test of this run has."""
    return f"T-{next(_numbers)}"


def problem(answer: httpx.Response, status: int, code: str) -> dict[str, Any]:
    """The body of a problem answer, once it is all that decision 11 asks for."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    body: dict[str, Any] = answer.json()
    assert body.keys() >= PROBLEM_MEMBERS, body
    assert (body["status"], body["code"]) == (status, code), body
    assert body["error"] == body["detail"] != ""
    assert body["request_id"] == answer.headers["x-request-id"]
    assert not LEAKS.search(answer.text), answer.text
    return body


def invalid(answer: httpx.Response) -> dict[str, str]:
    """422 INVALID_REQUEST: message by field."""
    errors = problem(answer, 422, "INVALID_REQUEST")["errors"]
    return {error["field"]: error["message"] for error in errors}


def certified(answer: httpx.Response) -> dict[str, Any]:
    assert answer.status_code == httpx.codes.OK, answer.text
    return answer.json()


def on_machine(machine: Machine, receipt: dict[str, Any]) -> dict[str, Any]:
    """What the machine holds of that certification."""
    return next(entry for entry in machine.certified(receipt["tc"] - 1) if entry["code"] == receipt["codeSecef"])


def rows(shop: Shop) -> dict[str, int]:
    """How many rows the ledger has of everything that a request could add."""
    with closing(sqlite3.connect(f"file:{shop.ledger}?mode=ro", uri=True)) as ledger:
        return {table: ledger.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in ROWS}  # noqa: S608  names of ours


@contextmanager
def untouched(shop: Shop) -> Iterator[None]:
    """What happens inside leaves no trace on any machine or in the ledger."""
    before = _trace(shop)
    yield
    assert _trace(shop) == before


def _trace(shop: Shop) -> tuple[object, ...]:
    machines = [machine.order("snapshot", log=False) for machine in shop.machines]
    seen = [(each["state"]["tc"], each["state"]["fvc"], each["state"]["frc"], each["stage"]) for each in machines]
    return seen, rows(shop)
