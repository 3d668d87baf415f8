"""A whole probe of one port, and what it leaves: findings, the recording, the settings that follow from them."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass, field
from functools import partial

import msgspec

from bridge.errors import LinkEnded
from bridge.frame import Request, encode
from bridge.recording.recorder import Recorder
from bridge.recording.recording import Event
from daemon.language import Text
from daemon.probe.certifying import certify
from daemon.probe.finding import Finding, Setting
from daemon.probe.line import Unanswered
from daemon.probe.looking import look
from daemon.probe.meeting import SPEEDS, met
from daemon.probe.replies import CLOSE, state_of


@dataclass
class Result:
    """`events`: all that moved, with the people in it; `broken_off`: why it did not come to its end, empty when it did."""

    nim: str = ""
    findings: list[Finding] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    broken_off: str = ""

    @property
    def settings(self) -> dict[str, Setting]:
        """Keys of the machine's section that differ from the usual ones, `habits.` before those of that section."""
        return {name: value for finding in self.findings for name, value in finding.settings.items()}


class NotInTestMode(Exception):
    """`--certify` on a machine whose invoices are real; `is_known` when its last code says so, otherwise nothing tells."""

    def __init__(self, *, is_known: bool) -> None:
        super().__init__(is_known)
        self.is_known = is_known


async def probe(
    place: str,
    speed: int = SPEEDS[0],
    *,
    on_finding: Callable[[Finding], None] = lambda _: None,
    certifying: bool = False,
    real: bool = False,
) -> Result:
    """NoMachine, NotInTestMode. `real`: certify also where the invoices are real. Without `certifying` it only reads."""
    recorder = Recorder(lambda _: None)
    result = Result()
    async with met(place, recorder, speed) as (line, first):
        state = state_of(first)
        result.nim = state.read.nim if state.read else state.fields[0]
        if certifying and not real and state.is_test is not True:
            raise NotInTestMode(is_known=state.is_test is False)
        try:
            tell = partial(_tell, result, state.fields[1:2], on_finding)
            await _gather(look(line, first), tell)
            if certifying:
                await _gather(certify(line), tell)
        except (LinkEnded, Unanswered) as error:
            result.broken_off = str(error) or Text("the machine does not answer any more")
        finally:
            if certifying:
                with suppress(LinkEnded):
                    await line.send(encode(Request(line.next_seq(), CLOSE, b"C")))  # whatever it was in the middle of
        result.events = recorder.take()
    return result


async def _gather(findings: AsyncGenerator[Finding, None], tell: Callable[[Finding], None]) -> None:
    async with aclosing(findings) as told:
        async for finding in told:
            tell(finding)


def _tell(result: Result, ifu: Sequence[str], on_finding: Callable[[Finding], None], finding: Finding) -> None:
    """A table is sent on: whose machine it is stays here."""
    for number in (number for number in ifu if number and number in finding.came):
        finding = msgspec.structs.replace(finding, came=finding.came.replace(number, "x" * len(number)))
    result.findings.append(finding)
    on_finding(finding)
