"""From a file and the environment to `Settings`, or one line that says which key is wrong and why."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from daemon.language import tr
from daemon.language.system import reason
from daemon.settings.check import check_files as _check_files
from daemon.settings.check import check_values
from daemon.settings.describe import find_key, find_section, sections
from daemon.settings.environment import overlay
from daemon.settings.errors import SettingsError, misspelt
from daemon.settings.model import Place, Settings
from daemon.settings.section import Section

LONGEST = 80
"""Characters of a wrong value that a complaint repeats."""
SEARCH = (Path("/etc/mcfd/mcfd.toml"), Path("mcfd.toml"))
TABLES = tuple(name for name in Settings.__struct_fields__ if name != "file")
"""What a file may hold."""
PROBLEM = re.compile(r"(?P<what>.*?)(?: - at `\$\.?(?P<path>.*)`)?", re.DOTALL)
MISSING = re.compile(r"Object missing required field `(?P<name>\w+)`")
UNKNOWN = re.compile(r"Object contains unknown field `(?P<name>.*)`", re.DOTALL)


S = TypeVar("S", bound=Section)


class Origin(msgspec.Struct, frozen=True):
    """Where each value came from, so that a complaint names the right place."""

    file: Path
    variables: Mapping[str, str] = msgspec.field(default_factory=dict)
    """Path of a key → the environment variable that set it."""

    def error(self, key: str, reason: object) -> SettingsError:
        if variable := self.variables.get(key):
            return SettingsError(variable, "", reason)
        return SettingsError(str(self.file), key, reason)


def load(path: Path | None = None, environ: Mapping[str, str] = os.environ) -> Settings:
    """The settings in force, or SettingsError; relative paths are taken from the file's directory."""
    file = find(path)
    try:
        content = file.read_bytes()
    except OSError as error:
        raise SettingsError(str(file), "", tr("cannot be read: {why}", why=reason(error))) from None
    return parse(content, file, environ)


def parse(content: bytes, file: Path, environ: Mapping[str, str]) -> Settings:
    """The same of a file that has this content."""
    raw = _tables(content, file)
    origin = Origin(file, overlay(raw, environ))
    try:
        settings = msgspec.convert(raw, Settings, dec_hook=_decode)
    except msgspec.ValidationError as error:
        raise _explained(str(error), raw, origin) from None
    place = file.absolute()
    settings = _anchored(msgspec.structs.replace(settings, file=place), place.parent)
    check_values(settings, origin.error)
    return settings


def check_files(settings: Settings, environ: Mapping[str, str] = os.environ) -> None:
    """What only a start needs: that secrets, keys and certificates can be read by this user."""
    _check_files(settings, environ, Origin(settings.file or Path("mcfd.toml")).error)


def find(path: Path | None = None) -> Path:
    if path:
        return path
    for candidate in SEARCH:
        if _may_be_there(candidate):
            return candidate
    raise SettingsError("", "", tr("no configuration: neither {paths}", paths=tr(" nor ").join(map(str, SEARCH))))


def _may_be_there(file: Path) -> bool:
    """Also when this user may not look: reading it then says so."""
    try:
        return file.exists()
    except OSError:
        return True


def _tables(content: bytes, file: Path) -> dict[str, Any]:
    try:
        raw = tomllib.loads(content.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise SettingsError(str(file), "", tr("is not TOML: {why}", why=error)) from None
    for name in raw:
        if name not in TABLES:
            raise SettingsError(str(file), name, misspelt(name, TABLES, tr("unknown section")))
    return raw


def _decode(kind: type, value: object) -> Path | Place:
    if kind in (Path, Place) and isinstance(value, str) and value and "\0" not in value:
        return Path(value) if kind is Path else Place(value)
    raise ValueError(f"Expected `path`, got {type(value).__name__}")


def _anchored(section: S, base: Path) -> S:
    """The same with every relative path taken from `base`."""
    values = ((name, getattr(section, name)) for name in section.__struct_fields__)
    return msgspec.structs.replace(section, **{name: _anchor(value, base) for name, value in values})


def _anchor(value: object, base: Path) -> object:
    if isinstance(value, Path):
        return base / value
    if isinstance(value, Place):
        return value if value.is_network else Place(base / value)
    if isinstance(value, tuple):
        return tuple(_anchor(item, base) for item in value)
    return _anchored(value, base) if isinstance(value, Section) else value


def _explained(problem: str, raw: dict[str, Any], origin: Origin) -> SettingsError:
    """The complaint of msgspec in our own words, with the key as it stands in the file."""
    match = PROBLEM.fullmatch(problem)
    what, path = (match["what"], match["path"] or "") if match else (problem, "")
    if missing := MISSING.fullmatch(what):
        return origin.error(f"{path}.{missing['name']}", tr("is missing"))
    if unknown := UNKNOWN.fullmatch(what):
        info = find_section(path)
        known = [key.name for key in info.keys] if info else []
        return origin.error(f"{path}.{unknown['name']}", misspelt(unknown["name"], known, tr("unknown key")))
    if key := find_key(path):
        return origin.error(
            path,
            tr(
                "{value} is not allowed: it must be {expected}",
                value=_shown(_value_at(raw, path)),
                expected=key.expected,
            ),
        )
    name = re.split(r"[.\[]", path)[0]
    inner = find_section(path)
    if inner and inner.name != name:
        return origin.error(path, tr("must be a section [{name}]", name=inner.name))
    if sections()[name].many:
        return origin.error(path, tr("is written as sections [[{name}]]", name=name))
    return origin.error(path, tr("must be a section [{name}]", name=name))


def _value_at(raw: Any, path: str) -> Any:
    """The value under a path as `machine[1].nim`; the nearest one that exists for `payment_labels[...]`."""
    for step in re.findall(r"[^.\[\]]+", path):
        if isinstance(raw, dict) and step in raw:
            raw = raw[step]
        elif isinstance(raw, list) and step.isdigit():
            raw = raw[int(step)]
    return raw


def _shown(value: object) -> str:
    try:
        text = msgspec.json.encode(value).decode()
    except TypeError:  # TOML's dates of the local kind
        text = str(value)
    return text if len(text) <= LONGEST else text[:LONGEST] + "…"
