"""Reads file and environment into `Settings`; an error is one line with key and reason.

`MCFD_<SECTION>_<KEY>` overrides a value of the file; a misspelt one stops the start like a misspelt key. A variable
that resembles no section (`MCFD_API_KEY`) belongs to another program, for example a till's script, and is ignored.

A joined headquarters replaces a missing section [upstream]. Its files are in a folder of the daemon beside the ledger,
since the daemon's page joins too and cannot write the configuration."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Iterator, Mapping
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from common.files import read_file
from common.language import tr
from common.language.system import reason
from common.settings import Section, SettingsError, convert, misspelt, read_toml
from common.wire.upstream_kinds import KINDS, UpstreamKindName
from daemon.owner import as_owner
from daemon.settings.check import problems, unreadable_files
from daemon.settings.model import RELOADED, Settings, Upstream

if TYPE_CHECKING:
    from daemon.settings.describe import Key

RECORD: Final = "joined.json"
"""Written last: without it the other files are ignored."""
KEY: Final = "box.key"
"""https: the private key, `whsk_…`."""
CREDENTIALS: Final = "box.creds"
"""nats: credentials with the private key."""
AUTHORITY: Final = "ca.pem"
FILES: Final = (RECORD, KEY, CREDENTIALS, AUTHORITY)

SEARCH = (Path("/etc/mcfd/mcfd.toml"), Path("mcfd.toml"))
PREFIX: Final = "MCFD_"
NOT_OURS: Final = ("MCFD_CONFIG", "MCFD_TEST_")
"""`MCFD_CONFIG` names the file itself; `MCFD_TEST_…` belongs to tests and measurements."""
_PARSED: Final = {msgspec.inspect.BoolType: bool, msgspec.inspect.IntType: int, msgspec.inspect.FloatType: float}
_NEARLY: Final = 0.75
"""Similarity of a misspelt section with the right one: `store` and `storage`, but not `api` and `sandbox`."""


class JoinedHeadquarters(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`url`: address for closures; `headquarters`: the joined one; `label`: its name for the shop."""

    kind: UpstreamKindName
    url: str
    headquarters: str
    label: str = ""


def read_joined(home: Path) -> JoinedHeadquarters | None:
    """None if none was joined, or this user may not read it. Raises SettingsError."""
    file = home / RECORD
    try:
        return msgspec.json.decode(read_file(file), type=JoinedHeadquarters)
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return None
    except OSError as error:
        raise SettingsError(file, "", tr("cannot be read: {why}", why=reason(error))) from None
    except msgspec.MsgspecError as error:
        raise SettingsError(file, "", error) from None


def upstream_of(joined: JoinedHeadquarters, home: Path) -> Upstream:
    has_credentials, authority = KINDS[joined.kind].takes_credentials, home / AUTHORITY
    return Upstream(
        kind=joined.kind,
        url=joined.url,
        key_file=None if has_credentials else home / KEY,
        credentials_file=home / CREDENTIALS if has_credentials else None,
        tls_ca=authority if authority.exists() else None,
        receipt=not has_credentials,
        box=joined.label,
    )


def with_joined(settings: Settings) -> Settings:
    """Unchanged if [upstream] is configured or no headquarters was joined."""
    home = settings.joined_home
    if settings.upstream is not None:
        return settings
    with as_owner(home.parent):  # root must not follow links of other users
        joined = read_joined(home)
        return settings if joined is None else msgspec.structs.replace(settings, upstream=upstream_of(joined, home))


def is_joined(settings: Settings) -> bool:
    """Whether closures go to a joined headquarters."""
    upstream = settings.upstream
    files = () if upstream is None else (upstream.key_file, upstream.credentials_file)
    return any(file is not None and file.parent == settings.joined_home for file in files)


def load(path: Path | None = None, environ: Mapping[str, str] = os.environ) -> Settings:
    """The settings in force; relative paths start at the file's directory. Raises SettingsError."""
    file = find(path)
    try:
        content = read_file(file)
    except OSError as error:
        raise SettingsError(file, "", tr("cannot be read: {why}", why=reason(error))) from None
    return with_joined(parse(content, file, environ))


def parse(content: bytes, file: Path, environ: Mapping[str, str]) -> Settings:
    """The same for the content of a file; without a joined headquarters."""
    raw = read_toml(content, file)
    if "file" in raw:
        raise SettingsError(file, "file", tr("unknown section"))
    variables = _overlay(raw, environ)
    settings = convert({**raw, "file": str(file.absolute())}, Settings, file, sources=variables)
    for key, problem in problems(settings):
        raise SettingsError(variables[key], "", problem) if key in variables else SettingsError(file, key, problem)
    return settings


def check_files(settings: Settings, environ: Mapping[str, str] = os.environ) -> None:
    """For a start only: secrets, keys and certificates must be readable by this user. Raises SettingsError."""
    for key, problem in unreadable_files(settings, environ):
        raise SettingsError(settings.file or "mcfd.toml", key, problem)


def find(path: Path | None = None) -> Path:
    if path:
        return path
    for candidate in SEARCH:
        if _may_be_there(candidate):
            return candidate
    raise SettingsError("", "", tr("no configuration: neither {paths}", paths=tr(" nor ").join(map(str, SEARCH))))


def _may_be_there(file: Path) -> bool:
    """True also if this user may not look: reading then reports it."""
    try:
        return file.exists()
    except OSError:
        return True


def _overlay(raw: dict[str, Any], environ: Mapping[str, str]) -> dict[str, str]:
    """Puts the environment's values into the tables of the file; returns variables by the path of their key."""
    ours = sorted(name for name in environ if name.startswith(PREFIX) and not name.startswith(NOT_OURS))
    if not ours:
        return {}
    from daemon.settings.describe import tables  # noqa: PLC0415  it takes 10 % of a command's start

    names = [table.name for table in tables()]
    of_file = tuple(f"{PREFIX}{table.name}_".upper() for table in tables() if table.many)
    keys = {key.variable: key for table in tables() if not table.many for key in table.keys}
    used = {}
    for variable in ours:
        key = keys.get(variable)
        if (key and key.is_table) or variable.startswith(of_file):
            raise SettingsError(variable, "", tr("is set in the file, not by the environment"))
        if key:
            if any("\udc80" <= character <= "\udcff" for character in environ[variable]):
                raise SettingsError(variable, "", tr("is not UTF-8"))
            table = raw.setdefault(key.section, {})
            if isinstance(table, dict):
                table[key.name] = _value(key, environ[variable])
                used[key.path] = variable
        elif difflib.get_close_matches(variable.split("_")[1].lower(), names, n=1, cutoff=_NEARLY):
            raise SettingsError(variable, "", misspelt(variable, keys, tr("unknown key")))
    return used


def _value(key: Key, text: str) -> object:
    """Text as the key's type: lists are split at commas, an empty value unsets an optional key; a value that does not
    fit stays text and is refused like one in the file."""
    if not text and key.default is None:
        return None
    if isinstance(key.type, msgspec.inspect.VarTupleType):
        return [part.strip() for part in text.split(",") if part.strip()]
    choices = key.type.values if isinstance(key.type, msgspec.inspect.LiteralType) else ()
    kind = type(choices[0]) if choices else _PARSED.get(type(key.type), str)
    try:
        return msgspec.convert(text, kind, strict=False)
    except msgspec.ValidationError:
        return text


class Changes(NamedTuple):
    """Paths of keys, as `logs.level`; for an added or removed section `upstream` or `machine[1]`."""

    reloaded: tuple[str, ...]
    restart: tuple[str, ...]
    in_force: Settings
    """The old settings with the reloaded ones: the next reload names again what waits for a restart."""


def changes(old: Settings, new: Settings) -> Changes:
    paths = [
        path for name in old.__struct_fields__ for path in _differences(getattr(old, name), getattr(new, name), name)
    ]
    reloaded = tuple(path for path in paths if path in RELOADED or re.split(r"[.\[]", path)[0] in RELOADED)
    in_force = old
    for path in RELOADED:
        section, _, key = path.partition(".")
        value = getattr(new, section)
        if key:
            value = msgspec.structs.replace(getattr(old, section), **{key: getattr(value, key)})
        in_force = msgspec.structs.replace(in_force, **{section: value})
    return Changes(reloaded, tuple(path for path in paths if path not in reloaded), in_force)


def _differences(before: object, after: object, path: str) -> Iterator[str]:
    if before == after:
        return
    if isinstance(before, Section) and isinstance(after, Section):
        for name in before.__struct_fields__:
            yield from _differences(getattr(before, name), getattr(after, name), f"{path}.{name}")
    elif isinstance(before, tuple) and isinstance(after, tuple) and isinstance((before + after)[0], Section):
        for index, pair in enumerate(zip_longest(before, after)):
            yield from _differences(*pair, f"{path}[{index}]")
    else:
        yield path
