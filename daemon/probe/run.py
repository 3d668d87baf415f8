"""A whole probe of one port, and what it leaves: findings, the recording, the settings that follow from them. The one file to send: what was
found, what moved on the line, which versions; nothing of people."""

from __future__ import annotations

import io
import platform
import re
import zipfile
from collections.abc import Callable, Iterable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from datetime import datetime
from importlib.metadata import version
from pathlib import Path

import msgspec

from bridge.errors import LinkEnded
from bridge.ports import find_ports
from bridge.recording.masking import masked
from bridge.recording.recording import LineEvent, Recorder, header, written
from common.files import write_whole
from common.language import Text, sentence, tr
from daemon.probe.checks import check
from daemon.probe.connect import SPEEDS, Unanswered, connect
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


MODE = 0o644
_VERSIONS = ("mcfd", "pyserial", "uvloop", "msgspec")
_VERDICTS = {
    "confirmed": Text("confirmed"),
    "contradicted": Text("CONTRADICTED"),
    "not tried": Text("not tried"),
}
_MARKS = {"confirmed": "✓", "contradicted": "✗", "not tried": "–"}


def name_of(result: ProbeResult, now: datetime) -> str:
    """A machine may call itself anything."""
    nim = re.sub(r"[^A-Za-z0-9-]", "", result.nim)[:20] or "unknown"
    return f"probe-{nim}-{now:%Y%m%d-%H%M%S}.zip"


def write_bundle(result: ProbeResult, place: str, folder: Path, now: datetime) -> Path:
    """OSError when it cannot be written."""
    about = {"nim": result.nim, "port": place, "mcfd": version("mcfd"), "masked": "yes"}
    files = {
        "table.txt": "\n".join(table(result.findings, broken_off=result.broken_off)) + "\n",
        "table.json": msgspec.json.format(
            msgspec.json.encode([finding.in_english for finding in result.findings]), indent=2
        ).decode(),
        "recording.rec": header(about) + written(masked(result.events)),
        "versions.txt": "\n".join(_versions(place)) + "\n",
    }
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    path = folder / name_of(result, now)
    write_whole(path, content.getvalue(), MODE)
    return path


def table(findings: Iterable[ProbeFinding], *, broken_off: str = "") -> Iterable[str]:
    for finding in findings:
        yield from row(finding)
    if broken_off:
        yield "✗ " + tr("broken off: {why}", why=broken_off)


def row(finding: ProbeFinding) -> Iterable[str]:
    yield f"{_MARKS[finding.verdict]} {finding.check:<16} {tr(finding.expected)}"
    yield f"  {tr(_VERDICTS[finding.verdict]):<16} {tr(finding.came)}"
    if finding.todo:
        yield f"  {'':<16} → {tr(finding.todo)}"


def _versions(place: str) -> Iterable[str]:
    yield from (f"{name} {version(name)}" for name in _VERSIONS)
    yield f"Python {platform.python_version()}, {platform.platform()}"
    for port in find_ports():
        if place in (str(port.path), str(port.stable)):
            yield f"{port.path} {port.usb} {port.product}"
