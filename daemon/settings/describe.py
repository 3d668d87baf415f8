"""What each key is, read from the structs: for messages, for the environment, for `docs/configuration.md`."""

from __future__ import annotations

import functools
import re
import types
import typing
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from daemon import texts
from daemon.settings.model import Section, Settings
from daemon.texts import Text

SIMPLE: dict[object, Text] = {
    str: texts.A_TEXT,
    Path: texts.A_PATH,
    bool: texts.A_TRUTH,
    int: texts.A_WHOLE,
    float: texts.A_NUMBER,
}


@dataclass(frozen=True)
class Key:
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
        return f"MCFD_{self.section}_{self.name}".upper()

    @property
    def optional(self) -> bool:
        return types.NoneType in typing.get_args(self.hint)

    @property
    def by_environment(self) -> bool:
        return typing.get_origin(_peel(self.hint)[0]) is not dict

    @property
    def expected(self) -> Text:
        return wording(self.hint)


@dataclass(frozen=True)
class SectionInfo:
    """One table of the file; `many` where it is an array of tables."""

    name: str
    text: str
    many: bool
    default: object
    keys: tuple[Key, ...]


@functools.cache
def sections() -> dict[str, SectionInfo]:
    return {info.name: info for info in _sections()}


def find_key(path: str) -> Key | None:
    """The key at a path such as `machine[1].nim` or `webhook[0].events[2]`."""
    section, _, name = re.sub(r"\[[^]]*\]", "", path).partition(".")
    info = sections().get(section)
    return next((key for key in info.keys if key.name == name), None) if info else None


def wording(hint: Any) -> Text:
    """What a value of that type has to be, in words."""
    base, metas = _peel(hint)
    if typing.get_origin(base) is Literal:
        choices = [str(choice) for choice in typing.get_args(base)]
        return Text(*(_enumerated(choices, word) for word in (texts.OR.fr, texts.OR.en)))
    if typing.get_origin(base) in (tuple, dict):
        item = wording(typing.get_args(base)[0 if typing.get_origin(base) is tuple else 1])
        whole = texts.A_LIST if typing.get_origin(base) is tuple else texts.A_TABLE
        return Text(whole.fr.format(item=item.fr), whole.en.format(item=item.en))
    limits = [meta for meta in metas if meta.ge is not None or meta.gt is not None]
    plain = texts.A_FULL_TEXT if any(meta.min_length for meta in metas) else SIMPLE[base]
    if not limits:
        return plain
    return _within(plain, limits[0])


def _sections() -> Iterator[SectionInfo]:
    for name, text, _, hint, default in _fields(Settings):
        base, _ = _peel(hint)
        many = typing.get_origin(base) is tuple
        struct = typing.get_args(base)[0] if many else base
        keys = tuple(Key(name, key, kind, value, told, reload) for key, told, reload, kind, value in _fields(struct))
        yield SectionInfo(name, text, many, default, keys)


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
        return Text(
            f"{kind.fr} au-dessus de {meta.gt}, au plus {meta.le}",
            f"{kind.en} above {meta.gt}, at most {meta.le}",
        )
    if meta.le is None:
        return Text(f"{kind.fr}, au moins {meta.ge}", f"{kind.en}, at least {meta.ge}")
    return Text(f"{kind.fr} de {meta.ge} à {meta.le}", f"{kind.en} from {meta.ge} to {meta.le}")


def _enumerated(choices: list[str], word: str) -> str:
    return ", ".join(choices[:-1]) + word + choices[-1] if len(choices) > 1 else choices[0]
