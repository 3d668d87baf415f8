"""The one file to send: what was found, what moved on the line, which versions; nothing of people."""

from __future__ import annotations

import io
import platform
import re
import zipfile
from collections.abc import Iterable
from datetime import datetime
from importlib.metadata import version
from pathlib import Path

import msgspec

from bridge.ports import find_ports
from bridge.recording.masking import masked
from bridge.recording.recording import header, written
from common.files import write_whole
from common.language import Text, tr
from daemon.probe.replies import ProbeFinding
from daemon.probe.run import ProbeResult

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
    held = {
        "table.txt": "\n".join(table(result.findings, broken_off=result.broken_off)) + "\n",
        "table.json": msgspec.json.format(
            msgspec.json.encode([finding.in_english for finding in result.findings]), indent=2
        ).decode(),
        "recording.rec": header(about) + written(masked(result.events)),
        "versions.txt": "\n".join(_versions(place)) + "\n",
    }
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in held.items():
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
