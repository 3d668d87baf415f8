"""A whole probe of one port and its results. One file to send has findings, masked recording and versions, without
people. `write` puts the resulting settings into the configuration file; comments and order stay."""

import io
import os
import platform
import re
import tempfile
import zipfile
from collections.abc import Callable, Iterable, Mapping, Sequence
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
from common.files import sync_path, write_whole
from common.language import Text, sentence, tr
from daemon.core.machine.state import short_nim
from daemon.probe.checks import check
from daemon.probe.connect import SPEEDS, Unanswered, connect
from daemon.probe.replies import ProbeFinding, Setting, state_of
from daemon.settings import SettingsError, load

MODE = 0o644
_VERSIONS = ("mcfd", "pyserial", "uvloop", "msgspec")
_VERDICTS = {
    "confirmed": Text("confirmed"),
    "contradicted": Text("CONTRADICTED"),
    "not tried": Text("not tried"),
}
_MARKS = {"confirmed": "✓", "contradicted": "✗", "not tried": "–"}

HABITS = "habits."
_HEADER = re.compile(r"\s*\[")
_MACHINE = re.compile(r"\s*\[\[\s*machine\s*\]\]")
_HABITS = re.compile(r"\s*\[\s*machine\s*\.\s*habits\s*\]")


@dataclass
class ProbeResult:
    """`events`: all traffic, unmasked; `broken_off`: why the probe did not finish, empty if it did."""

    nim: str = ""
    findings: list[ProbeFinding] = field(default_factory=list)
    events: list[LineEvent] = field(default_factory=list)
    broken_off: str = ""

    @property
    def settings(self) -> dict[str, Setting]:
        """Keys of the machine's section that differ from the defaults; those of its habits begin with `habits.`."""
        return {name: value for finding in self.findings for name, value in finding.settings.items()}


async def probe(
    place: str, speed: int = SPEEDS[0], *, on_finding: Callable[[ProbeFinding], None] = lambda _: None
) -> ProbeResult:
    """Only reads. Raises NoMachine."""
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
        result.events = recorder.drain()
    return result


def _without_ifu(finding: ProbeFinding, ifu: Sequence[str]) -> ProbeFinding:
    """The table is sent to others: the taxpayer is removed."""
    for number in (number for number in ifu if number and number in finding.came):
        finding = msgspec.structs.replace(finding, came=finding.came.replace(number, "x" * len(number)))
    return finding


def name_of(result: ProbeResult, now: datetime) -> str:
    """Only safe characters: a machine may have any name."""
    nim = re.sub(r"[^A-Za-z0-9-]", "", result.nim)[:20] or "unknown"
    return f"probe-{nim}-{now:%Y%m%d-%H%M%S}.zip"


def write_bundle(result: ProbeResult, place: str, folder: Path, now: datetime) -> Path:
    """Returns the path. Raises OSError."""
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


class SectionNotFound(Exception):
    """The file has no section for that machine."""


def lines_of(settings: Mapping[str, Setting]) -> list[str]:
    """As in the file, for people."""
    own = [_line(name, value) for name, value in settings.items() if not name.startswith(HABITS)]
    habits = [_line(name, value) for name, value in settings.items() if name.startswith(HABITS)]
    return [*own, *(["[machine.habits]", *habits] if habits else [])]


def changed(text: str, nim: str, settings: Mapping[str, Setting]) -> str:
    """The file's text with those keys in that machine's section. Raises SectionNotFound."""
    lines = text.splitlines()
    begin, end = _section(lines, nim)
    middle = next((at for at in range(begin + 1, end) if _HABITS.match(lines[at])), end)
    own = {name: value for name, value in settings.items() if not name.startswith(HABITS)}
    habits = {name: value for name, value in settings.items() if name.startswith(HABITS)}
    first = _with(lines[begin:middle], own)
    second = lines[middle:end] or (["", "[machine.habits]"] if habits else [])
    return "\n".join([*lines[:begin], *first, *_with(second, habits), *lines[end:]]) + "\n"


def write(path: Path, nim: str, settings: Mapping[str, Setting]) -> Path:
    """Replaces the file; returns the old one's path. SettingsError if a start would refuse it, OSError,
    SectionNotFound."""
    text = changed(path.read_text("utf-8"), nim, settings)
    with tempfile.NamedTemporaryFile("w", encoding="utf-8", dir=path.parent, prefix=f".{path.name}.") as trial:
        trial.write(text)  # in the same folder: relative paths start there
        trial.flush()
        try:
            load(Path(trial.name))
        except SettingsError as error:
            raise SettingsError(str(path), error.key, error.reason) from None
    old_file = path.with_name(f"{path.name}.{datetime.now():%Y%m%d-%H%M%S}")  # noqa: DTZ005  local time
    old_file.hardlink_to(path)
    sync_path(path.parent)
    status = path.stat()
    uid, gid = (status.st_uid, status.st_gid) if os.geteuid() == 0 else (-1, -1)
    write_whole(path, text.encode(), status.st_mode & 0o777, uid=uid, gid=gid)
    return old_file


def _section(lines: list[str], nim: str) -> tuple[int, int]:
    """Lines from its `[[machine]]` to the next header of another section."""
    begins = [at for at, line in enumerate(lines) if _MACHINE.match(line)]
    for begin in begins:
        after = range(begin + 1, len(lines))
        end = next((at for at in after if _HEADER.match(lines[at]) and not _HABITS.match(lines[at])), len(lines))
        if any(re.match(rf'\s*nim\s*=\s*["\']{re.escape(short_nim(nim))}(-|["\'])', line) for line in lines[begin:end]):
            while end > begin and not lines[end - 1].strip().strip("#"):
                end -= 1
            return begin, end
    raise SectionNotFound(nim)


def _with(lines: list[str], settings: Mapping[str, Setting]) -> list[str]:
    """Replaces existing keys; appends new ones."""
    for name, value in settings.items():
        bare = name.removeprefix(HABITS)
        at = next((at for at, line in enumerate(lines) if re.match(rf"\s*{bare}\s*=", line)), None)
        at, end = (len(lines), len(lines)) if at is None else (at, at + 1)
        lines = [*lines[:at], _line(name, value), *lines[end:]]
    return lines


def _line(name: str, value: Setting) -> str:
    """Strings and numbers are the same in JSON and TOML."""
    return f"{name.removeprefix(HABITS)} = {msgspec.json.encode(value).decode()}"
