"""Test failures by the header `Mcfd-Test` with a test key (decision 40). docs/testing-your-till.md says
what each does, and what a till gets.

Each failure acts on the sandbox's machine, line, queue or disk (`daemon.app.sandbox`), so the answer and its retry come
from the code for live tills. With a live key the header does nothing."""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from typing import Annotated, Final, Literal, NamedTuple, Protocol

import msgspec
from msgspec import Meta

from common.language import Text
from daemon.api.http.answers import Headers
from daemon.core.errors import InvalidRequest

HEADER: Final = "Mcfd-Test"
_VALUE = re.compile(r"([a-z0-9-]+)(?::([0-9]{1,2}))?")
REHEARSED: Final[ContextVar[Rehearsal | None]] = ContextVar("rehearsed", default=None)
"""The failure for the current request and its tasks."""


class RehearsedCase(NamedTuple):
    """`seconds` and `most`: default and greatest duration (0: no duration). `always`: every request with the header
    meets the failure; else only the first with its `Idempotency-Key`."""

    seconds: int = 0
    most: int = 0
    always: bool = False


CASES: Final[Mapping[str, RehearsedCase]] = {
    "offline": RehearsedCase(seconds=5, most=60),
    "busy": RehearsedCase(),
    "slow": RehearsedCase(seconds=10, most=25),
    "line-lost-at-38h": RehearsedCase(),
    "unknown": RehearsedCase(seconds=6),
    "refused": RehearsedCase(always=True),
    "blocked": RehearsedCase(always=True),
    "attention": RehearsedCase(always=True),
    "storage-full": RehearsedCase(),
    "late": RehearsedCase(seconds=20, most=60),
}


class Rehearsal:
    """The failure for one request."""

    def __init__(self, case: str, seconds: int, met: Callable[[], None]) -> None:
        self.case = case
        self.seconds = seconds
        self._met = met

    def plays(self, *cases: str) -> bool:
        """Whether it is one of these cases; then it counts as having happened."""
        if self.case in cases:
            self._met()
        return self.case in cases


class SandboxClock(msgspec.Struct, frozen=True):
    """The sandbox's time."""

    now: Annotated[str, Meta(description="The sandbox's time")]
    ahead_seconds: Annotated[int, Meta(description="How far it is ahead of the box's clock")]
    tax_server: Annotated[
        Literal["reachable", "unreachable"], Meta(description="Whether the simulated machine reaches the tax server")
    ]


class SandboxControls(Protocol):
    """Controls of one sandbox for tests."""

    async def prepare(self, rehearsal: Rehearsal) -> Callable[[], None]:
        """Prepares the failure before the request; the result has to be called when the request is over."""
        ...

    def now(self) -> int:
        """The sandbox's time (ms)."""
        ...

    async def move_clock(self, seconds: int, *, reachable: bool | None) -> SandboxClock:
        """Advances the clock. `reachable`: of the tax server, from before the move; None for no change."""
        ...


class PlayedCases:
    """Keys that have met their failure since the start: a repeated request with the same header succeeds."""

    MAX_KEYS: Final = 10_000

    def __init__(self) -> None:
        self._met: OrderedDict[tuple[int, bytes, bytes], None] = OrderedDict()

    def rehearsal(self, book: int, headers: Headers) -> Rehearsal | None:
        """The failure for the request; InvalidRequest for an unknown case."""
        sent = [value for name, value in headers if name == b"mcfd-test"]
        if not sent:
            return None
        case, seconds = _read(b",".join(sent).decode("latin-1").strip())
        key = b"\n".join(value for name, value in headers if name == b"idempotency-key")
        use = (book, key, case.encode())
        if not key or CASES[case].always:
            return Rehearsal(case, seconds, lambda: None)
        return None if use in self._met else Rehearsal(case, seconds, lambda: self._note(use))

    def _note(self, use: tuple[int, bytes, bytes]) -> None:
        self._met[use] = None
        if len(self._met) > self.MAX_KEYS:
            self._met.popitem(last=False)


def _read(value: str) -> tuple[str, int]:
    match = _VALUE.fullmatch(value)
    case = CASES.get(match[1]) if match else None
    if match is None or case is None:
        raise InvalidRequest.at(HEADER, Text("must be one of {choices}", choices=", ".join(CASES)))
    if match[2] is None:
        return match[1], case.seconds
    if not case.most:
        raise InvalidRequest.at(HEADER, Text("{case} takes no seconds", case=match[1]))
    if not 1 <= int(match[2]) <= case.most:
        raise InvalidRequest.at(HEADER, Text("{case} takes 1 to {most} seconds", case=match[1], most=case.most))
    return match[1], int(match[2])
