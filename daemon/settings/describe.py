"""Descriptions of all keys, read from the structs and the docstrings below their fields: for the environment, the
manual, and the site (`mcfd config doc`, docs/conf.py)."""

import ast
import inspect
import itertools
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import msgspec

from common.language import Text
from common.settings import describe_type, plain_type
from daemon.settings.model import RELOADED, Settings


class Key(NamedTuple):
    """The field `name` of `struct`. `default` is msgspec's NODEFAULT for a required key."""

    section: str
    struct: type
    name: str
    type: msgspec.inspect.Type
    default: object

    @property
    def text(self) -> str:
        return _docstrings(self.struct).get(self.name, "")

    @property
    def path(self) -> str:
        return f"{self.section}.{self.name}"

    @property
    def variable(self) -> str:
        return f"MCFD_{self.section}_{self.name}".upper()

    @property
    def is_table(self) -> bool:
        """The environment cannot set a table."""
        return isinstance(plain_type(self.type), msgspec.inspect.DictType)

    @property
    def expected(self) -> Text:
        return describe_type(self.type)


class KeyTable(NamedTuple):
    """A section of the file, a field of `struct`. `many`: an array of tables, or inside one, as `machine.habits`."""

    name: str
    struct: type
    many: bool
    keys: tuple[Key, ...]

    @property
    def text(self) -> str:
        return _docstrings(self.struct).get(self.name.rpartition(".")[2], "")


@cache
def tables() -> tuple[KeyTable, ...]:
    return tuple(_tables(Settings))


def _tables(struct: type, within: str = "", *, many: bool = False) -> Iterator[KeyTable]:
    for _, name, kind, _ in _fields(struct):
        item = kind.item_type if isinstance(kind, msgspec.inspect.VarTupleType) else kind
        if isinstance(item, msgspec.inspect.StructType):
            path, several = f"{within}{name}", many or item is not kind
            keys = (Key(path, *field) for field in _fields(item.cls))
            yield KeyTable(
                path,
                struct,
                several,
                tuple(key for key in keys if not isinstance(key.type, msgspec.inspect.StructType)),
            )
            yield from _tables(item.cls, f"{path}.", many=several)


def _fields(struct: type) -> Iterator[tuple[type, str, msgspec.inspect.Type, object]]:
    """Struct, name, type and default of each field."""
    found = msgspec.inspect.type_info(struct)
    for field in found.fields if isinstance(found, msgspec.inspect.StructType) else ():
        factory = field.default_factory
        default = field.default if factory is msgspec.NODEFAULT else factory()
        yield struct, field.name, plain_type(field.type), default


@cache
def _docstrings(struct: type) -> dict[str, str]:
    """The text below each field, on one line. Reading all takes 250 ms, and only the manual needs it."""
    (definition,) = ast.parse(inspect.getsource(struct)).body
    found = {}
    for pair in itertools.pairwise(definition.body if isinstance(definition, ast.ClassDef) else ()):
        match pair:
            case (ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text)))):
                found[name] = " ".join(text.split())
    return found


def render() -> str:
    return "\n".join("\n".join(_section(table)) + "\n" for table in tables())


def _section(table: KeyTable) -> Iterator[str]:
    yield f"## [[{table.name}]]" if table.many and "." not in table.name else f"## [{table.name}]"
    yield ""
    yield table.text
    yield ""
    yield "| key | value | default | in force after | meaning |"
    yield "|---|---|---|---|---|"
    for key in table.keys:
        after = "restart" if {key.section, key.path}.isdisjoint(RELOADED) else "reload"
        yield f"| `{key.name}` | {key.expected} | {_default(key)} | {after} | {key.text} |"
    variables = [key.variable for key in table.keys if not (table.many or key.is_table)]
    if variables:
        yield ""
        yield "Environment: " + ", ".join(f"`{name}`" for name in variables) + "."


def _default(key: Key) -> str:
    if key.default is msgspec.NODEFAULT:
        return "**required**"
    if key.default in (None, "", (), {}):
        return "–"
    plain = str(key.default) if isinstance(key.default, Path) else key.default
    return f"`{msgspec.json.encode(plain).decode()}`"
