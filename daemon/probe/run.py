"""A whole probe of one port, and what it leaves: findings, the recording, the settings that follow from them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field

import msgspec

from bridge.errors import LinkEnded
from bridge.recording.recording import LineEvent, Recorder
from common.language import Text, sentence
from daemon.probe.checks import check
from daemon.probe.connect import SPEEDS, connect
from daemon.probe.line import Unanswered
from daemon.probe.replies import ProbeFinding, Setting, state_of


@dataclass
class ProbeResult:
    """`events`: all that moved, with the people in it; `broken_off`: why it did not come to its end, empty when it did."""

    nim: str = ""
    findings: list[ProbeFinding] = field(default_factory=list)
    events: list[LineEvent] = field(default_factory=list)
    broken_off: str = ""

    @property
    def settings(self) -> dict[str, Setting]:
        """Keys of the machine's section that differ from the usual ones, `habits.` before those of that section."""
        return {name: value for finding in self.findings for name, value in finding.settings.items()}


async def probe(
    place: str, speed: int = SPEEDS[0], *, on_finding: Callable[[ProbeFinding], None] = lambda _: None
) -> ProbeResult:
    """Only reads. NoMachine."""
    recorder = Recorder(lambda _: None)
    result = ProbeResult()
    async with connect(place, recorder, speed) as (line, first):
        state = state_of(first)
        result.nim = state.read.nim if state.read else state.fields[0]
        try:
            async with aclosing(check(line, first)) as findings:
                async for finding in findings:
                    result.findings.append(_without_ifu(finding, state.fields[1:2]))
                    on_finding(result.findings[-1])
        except (LinkEnded, Unanswered) as error:
            result.broken_off = sentence(error) or Text("the machine does not answer any more")
        result.events = recorder.take()
    return result


def _without_ifu(finding: ProbeFinding, ifu: Sequence[str]) -> ProbeFinding:
    """The table is sent to others: whose machine it is stays here."""
    for number in (number for number in ifu if number and number in finding.came):
        finding = msgspec.structs.replace(finding, came=finding.came.replace(number, "x" * len(number)))
    return finding
