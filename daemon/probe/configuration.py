"""What a probe found, put into the configuration file beside what is there: comments and order stay."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path

import msgspec

from common.files import sync_path, write_whole
from daemon.probe.replies import Setting
from daemon.settings import SettingsError, load

HABITS = "habits."
_HEADER = re.compile(r"\s*\[")
_MACHINE = re.compile(r"\s*\[\[\s*machine\s*\]\]")
_HABITS = re.compile(r"\s*\[\s*machine\s*\.\s*habits\s*\]")


class SectionNotFound(Exception):
    """No section of that machine in the file."""


def lines_of(settings: Mapping[str, Setting]) -> list[str]:
    """As they stand in the file, for people."""
    own = [_line(name, value) for name, value in settings.items() if not name.startswith(HABITS)]
    habits = [_line(name, value) for name, value in settings.items() if name.startswith(HABITS)]
    return [*own, *(["[machine.habits]", *habits] if habits else [])]


def changed(text: str, nim: str, settings: Mapping[str, Setting]) -> str:
    """The file's text with those keys in that machine's section. SectionNotFound."""
    lines = text.splitlines()
    begin, end = _section(lines, nim)
    middle = next((at for at in range(begin + 1, end) if _HABITS.match(lines[at])), end)
    own = {name: value for name, value in settings.items() if not name.startswith(HABITS)}
    habits = {name: value for name, value in settings.items() if name.startswith(HABITS)}
    first = _with(lines[begin:middle], own)
    second = lines[middle:end] or (["", "[machine.habits]"] if habits else [])
    return "\n".join([*lines[:begin], *first, *_with(second, habits), *lines[end:]]) + "\n"


def write(path: Path, nim: str, settings: Mapping[str, Setting]) -> Path:
    """Puts the changed file in place; where the old one is kept. SettingsError when a start would refuse it, OSError, SectionNotFound."""
    text = changed(path.read_text("utf-8"), nim, settings)
    with tempfile.NamedTemporaryFile("w", encoding="utf-8", dir=path.parent, prefix=f".{path.name}.") as trial:
        trial.write(text)  # beside it: what it names is found from there
        trial.flush()
        try:
            load(Path(trial.name))
        except SettingsError as error:
            raise SettingsError(str(path), error.key, error.reason) from None
    old_file = path.with_name(f"{path.name}.{datetime.now():%Y%m%d-%H%M%S}")  # noqa: DTZ005  for who sits at the box
    old_file.hardlink_to(path)
    sync_path(path.parent)
    status = path.stat()
    owner = {"uid": status.st_uid, "gid": status.st_gid} if os.geteuid() == 0 else {}
    write_whole(path, text.encode(), status.st_mode & 0o777, **owner)
    return old_file


def _section(lines: list[str], nim: str) -> tuple[int, int]:
    """From its `[[machine]]` to the next header that is none of its own."""
    begins = [at for at, line in enumerate(lines) if _MACHINE.match(line)]
    for begin in begins:
        after = range(begin + 1, len(lines))
        end = next((at for at in after if _HEADER.match(lines[at]) and not _HABITS.match(lines[at])), len(lines))
        if any(re.match(rf'\s*nim\s*=\s*["\']{re.escape(_short(nim))}(-|["\'])', line) for line in lines[begin:end]):
            while end > begin and not lines[end - 1].strip().strip("#"):
                end -= 1
            return begin, end
    raise SectionNotFound(nim)


def _short(nim: str) -> str:
    return nim.partition("-")[0]


def _with(lines: list[str], settings: Mapping[str, Setting]) -> list[str]:
    """A key that is there gets its new value; another one comes last."""
    for name, value in settings.items():
        bare = name.removeprefix(HABITS)
        at = next((at for at, line in enumerate(lines) if re.match(rf"\s*{bare}\s*=", line)), None)
        at, end = (len(lines), len(lines)) if at is None else (at, at + 1)
        lines = [*lines[:at], _line(name, value), *lines[end:]]
    return lines


def _line(name: str, value: Setting) -> str:
    """JSON's texts and numbers are TOML's too."""
    return f"{name.removeprefix(HABITS)} = {msgspec.json.encode(value).decode()}"
