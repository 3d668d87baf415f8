"""`MCFD_<SECTION>_<KEY>` overrides a value of the file; a misspelt one stops the start like a misspelt key.

A name of no section, not even nearly (`MCFD_API_KEY`), belongs to somebody else, as a till's script, and is left alone."""

from __future__ import annotations

import difflib
import typing
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from daemon.language import tr
from daemon.settings.describe import Key, sections
from daemon.settings.errors import SettingsError, misspelt

PREFIX = "MCFD_"
NOT_OURS = ("MCFD_CONFIG", "MCFD_TEST_")
"""`MCFD_CONFIG` names the file itself; what begins with `MCFD_TEST_` belongs to tests and measurements."""

_NEARLY = 0.75
"""How alike a misspelt section and its own name are: `store` and `storage`, not `api` and `sandbox`."""


def overlay(raw: dict[str, Any], environ: Mapping[str, str]) -> dict[str, str]:
    """Put the environment's values into the tables of the file; path of each key set → its variable."""
    used: dict[str, str] = {}
    ours = sorted(name for name in environ if name.startswith(PREFIX) and not name.startswith(NOT_OURS))
    if not ours:
        return used  # to describe every key takes a tenth of a command's start
    known = {key.variable: key for info in sections().values() if not info.many for key in info.keys}
    for variable in ours:
        key = known.get(variable)
        if key is None and not _names_a_section(variable):
            continue
        if key is None:
            raise SettingsError(variable, "", _unknown(variable, known))
        table = raw.setdefault(key.section, {})
        if isinstance(table, dict):
            table[key.name] = _value(key, variable, environ[variable])
            used[key.path] = variable
    return used


def _names_a_section(variable: str) -> bool:
    section = variable.removeprefix(PREFIX).split("_")[0].lower()
    return bool(difflib.get_close_matches(section, list(sections()), n=1, cutoff=_NEARLY))


def _value(key: Key, variable: str, text: str) -> Any:
    """Text as the key's type: lists are split at commas, an empty value unsets what may be unset."""
    if not key.by_environment:
        raise SettingsError(variable, "", tr("is set in the file, not by the environment"))
    if typing.get_origin(key.hint) is tuple:
        return [part.strip() for part in text.split(",") if part.strip()]
    if key.optional and not text:
        return None
    try:
        return msgspec.to_builtins(msgspec.convert(text, key.hint, strict=False, dec_hook=_as_text), enc_hook=str)
    except msgspec.ValidationError:
        reason = tr("{value} is not allowed: it must be {expected}", value=f'"{text}"', expected=key.expected)
        raise SettingsError(variable, "", reason) from None


def _as_text(_: type, value: Any) -> Path:
    if not value:
        raise ValueError("empty path")
    return Path(value)


def _unknown(variable: str, known: Iterable[str]) -> str:
    section = variable.removeprefix(PREFIX).split("_")[0].lower()
    if section in sections() and sections()[section].many:
        return tr("is set in the file, not by the environment")
    return misspelt(variable, known, tr("unknown key"))
