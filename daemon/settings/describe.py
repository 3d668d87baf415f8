"""What each key is, read from the structs: for messages, for the environment, for `docs/configuration.md`."""

from __future__ import annotations

import functools
import re
import types
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from daemon.language import Text
from daemon.settings.model import Place, Settings
from daemon.settings.section import Section

SIMPLE: dict[object, Text] = {
    str: Text("text"),
    Path: Text("a path"),
    Place: Text("a path, tcp://host:port or rfc2217://host:port"),
    bool: Text("true or false"),
    int: Text("a whole number"),
    float: Text("a number"),
}


class Key(msgspec.Struct, frozen=True):
    """One key of one section; `hint` is its type, `default` msgspec's NODEFAULT where required."""

    section: str
    name: str
    hint: Any
    default: object
    text: str
    reload: bool

    @property
    def path(self) -> str:
        return f"{self.section}.{self.name}"

    @property
    def variable(self) -> str:
        return f"MCFD_{self.section}_{self.name}".replace(".", "_").upper()

    @property
    def optional(self) -> bool:
        return types.NoneType in typing.get_args(self.hint)

    @property
    def by_environment(self) -> bool:
        return typing.get_origin(_peel(self.hint)[0]) is not dict

    @property
    def expected(self) -> Text:
        return wording(self.hint)


class SectionInfo(msgspec.Struct, frozen=True):
    """One table of the file; `many` where it is an array of tables, or in one: `machine.habits` is a table of each machine."""

    name: str
    text: str
    many: bool
    default: object
    keys: tuple[Key, ...]


@functools.cache
def sections() -> dict[str, SectionInfo]:
    return {info.name: info for info in _sections()}


def find_section(path: str) -> SectionInfo | None:
    """The table that a path leads to or into, such as `machine[1].habits` or `webhook[0].events[2]`."""
    names = re.sub(r"\[[^]]*\]", "", path).split(".")
    return sections().get(".".join(names[:2])) or sections().get(names[0])


def find_key(path: str) -> Key | None:
    """The key at a path such as `machine[1].nim` or `webhook[0].events[2]`."""
    info = find_section(path)
    plain = re.sub(r"\[[^]]*\]", "", path)
    return next((key for key in info.keys if key.path == plain), None) if info else None


def wording(hint: Any) -> Text:
    """What a value of that type has to be, in words."""
    base, metas = _peel(hint)
    if typing.get_origin(base) is Literal:
        choices = [str(choice) for choice in typing.get_args(base)]
        return _enumerated(choices)
    if typing.get_origin(base) in (tuple, dict):
        item = wording(typing.get_args(base)[0 if typing.get_origin(base) is tuple else 1])
        if typing.get_origin(base) is tuple:
            return Text("a list, each {item}", item=item)
        return Text("a table, each value {item}", item=item)
    limits = [meta for meta in metas if meta.ge is not None or meta.gt is not None]
    plain = Text("text, not empty") if any(meta.min_length for meta in metas) else SIMPLE[base]
    if not limits:
        return plain
    return _within(plain, limits[0])


def _sections() -> Iterator[SectionInfo]:
    for name, text, _reload, hint, default in _fields(Settings):
        base = _peel(hint)[0]
        many = typing.get_origin(base) is tuple
        struct = typing.get_args(base)[0] if many else base
        yield SectionInfo(name, text, many, default, tuple(_keys(name, struct)))
        for inner, told, _inner_reload, kind, value in _fields(struct):
            if is_table(kind):
                path = f"{name}.{inner}"
                yield SectionInfo(path, told, many, value, tuple(_keys(path, _peel(kind)[0])))


def _keys(section: str, struct: type[Section]) -> Iterator[Key]:
    for name, text, reload, hint, default in _fields(struct):
        if not is_table(hint):
            yield Key(section, name, hint, default, text, reload)


def is_table(hint: Any) -> bool:
    base = _peel(hint)[0]
    return isinstance(base, type) and issubclass(base, Section)


def _fields(struct: type[Section]) -> Iterator[tuple[str, str, bool, Any, object]]:
    """Name, description, reload, type and default of each documented field."""
    hints = typing.get_type_hints(struct, include_extras=True)
    for field in msgspec.structs.fields(struct):
        hint = hints[field.name]
        for meta in getattr(hint, "__metadata__", ()):
            if meta.description:
                rest = tuple(other for other in hint.__metadata__ if other is not meta)
                kind = Annotated[(hint.__origin__, *rest)] if rest else hint.__origin__
                default = field.default_factory() if field.default_factory is not msgspec.NODEFAULT else field.default
                yield field.name, meta.description, bool((meta.extra or {}).get("reload")), kind, default


def _peel(hint: Any) -> tuple[Any, list[msgspec.Meta]]:
    """The type without `Annotated` and `| None`, and the limits that were on it."""
    metas: list[msgspec.Meta] = []
    while True:
        if typing.get_origin(hint) is Annotated:
            metas += hint.__metadata__
            hint = hint.__origin__
        elif types.NoneType in (args := typing.get_args(hint)):
            hint = next(arg for arg in args if arg is not types.NoneType)
        else:
            return hint, metas


def _within(kind: Text, meta: msgspec.Meta) -> Text:
    if meta.gt is not None:
        return Text("{kind} above {least}, at most {most}", kind=kind, least=meta.gt, most=meta.le)
    if meta.le is None:
        return Text("{kind}, at least {least}", kind=kind, least=meta.ge)
    return Text("{kind} from {least} to {most}", kind=kind, least=meta.ge, most=meta.le)


def _enumerated(choices: list[str]) -> Text:
    if len(choices) == 1:
        return Text(choices[0])
    return Text("{choices} or {last}", choices=", ".join(choices[:-1]), last=choices[-1])
