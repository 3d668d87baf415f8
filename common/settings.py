"""A program's configuration: a TOML file read into msgspec structs. An error is one line with key and reason."""

import difflib
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Final, TypeVar

import msgspec

from common.files import read_file
from common.language import Text, tr
from common.language.system import reason
from common.one_line import NOT_BLANK, ONE_LINE

Port = Annotated[int, msgspec.Meta(ge=0, le=65535)]
_LONGEST_VALUE: Final = 80
"""Characters of a wrong value in a message, at most."""
_LINES: Final = (ONE_LINE, NOT_BLANK)
_STEP: Final = re.compile(r"[^.\[\]]+|\.\.\.")
_INDEX: Final = re.compile(r"\[.*?\]")
_MESSAGE: Final = re.compile(r"(?P<what>.*?)(?: - at `\$\.?(?P<path>.*)`)?", re.DOTALL)
_MISSING: Final = re.compile(r"Object missing required field `(?P<name>\w+)`")
_UNKNOWN: Final = re.compile(r"Object contains unknown field `(?P<name>.*)`", re.DOTALL)


class Section(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One table of the file; an unknown key is an error. The docstring below a field describes it."""


S = TypeVar("S", bound=Section)


class SettingsError(Exception):
    """The configuration cannot be used; one line with the place, the key, and the reason."""

    def __init__(self, source: object, key: str, reason: object) -> None:
        self.source = str(source)
        self.key = key
        self.reason = " ".join(str(reason).split())
        super().__init__(": ".join(part for part in (self.source, key, self.reason) if part))


def read_toml(content: bytes, file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(content.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise SettingsError(file, "", tr("is not UTF-8 (line {line}): save it in that encoding", line=line)) from None
    except (ValueError, RecursionError) as error:
        raise SettingsError(file, "", tr("is not TOML: {why}", why=error)) from None


def load(file: Path, kind: type[S]) -> S:
    """Raises SettingsError if the file cannot be read, or anything in it is wrong or unknown."""
    try:
        content = read_file(file)
    except OSError as error:
        raise SettingsError(file, "", tr("cannot be read: {why}", why=reason(error))) from None
    return convert(read_toml(content, file), kind, file)


def convert(
    tables: dict[str, Any],
    kind: type[S],
    file: Path,
    *,
    sources: Mapping[str, str] | None = None,
) -> S:
    """Relative paths are relative to the file's directory. `sources`: keys from elsewhere, with their origin."""
    base = file.absolute().parent

    def decode(path: type, value: object) -> object:
        if not isinstance(value, str) or not value or "\0" in value:
            raise ValueError("Expected `path`")
        return path(value if path is not Path and "://" in value else base / value)

    try:
        return msgspec.convert(tables, kind, dec_hook=decode)
    except msgspec.ValidationError as error:
        path, reason = _explain(str(error), tables, kind)
    if source := (sources or {}).get(_INDEX.sub("", path)):
        raise SettingsError(source, "", reason)
    raise SettingsError(file, path, reason)


def misspelt(name: str, names: Iterable[str], problem: str) -> str:
    """The problem, with the most similar existing name, if any."""
    if best := difflib.get_close_matches(name, list(names), n=1):
        return tr("{problem} (did you mean {best}?)", problem=problem, best=best[0])
    return problem


def named_paths(section: Section, within: str = "") -> Iterator[tuple[str, Path]]:
    """Each path in a configuration, with its key, for example `webhook[0].secret_file`."""
    for name in section.__struct_fields__:
        value, key = getattr(section, name), f"{within}{name}"
        if isinstance(value, Path):
            yield key, value
        elif isinstance(value, Section):
            yield from named_paths(value, f"{key}.")
        elif isinstance(value, tuple):
            for index, each in enumerate(value):
                if isinstance(each, Section):
                    yield from named_paths(each, f"{key}[{index}].")


def describe_type(kind: msgspec.inspect.Type) -> Text:
    """The values that a type allows, in words."""
    text = Text("a path")
    match plain_type(kind):
        case msgspec.inspect.StructType():
            text = Text("a section […]")
        case msgspec.inspect.VarTupleType(item_type=msgspec.inspect.StructType()):
            text = Text("sections [[…]]")
        case msgspec.inspect.VarTupleType(item_type=item):
            text = Text("a list, each {item}", item=describe_type(item))
        case msgspec.inspect.DictType(value_type=item):
            text = Text("a table, each value {item}", item=describe_type(item))
        case msgspec.inspect.LiteralType(values=values):
            *others, last = map(str, values)
            text = Text("{choices} or {last}", choices=", ".join(others), last=last) if others else Text(last)
        case msgspec.inspect.StrType() as string:
            text = _text(string)
        case msgspec.inspect.BoolType():
            text = Text("true or false")
        case msgspec.inspect.IntType() | msgspec.inspect.FloatType() as number:
            text = _number(number)
        case msgspec.inspect.CustomType(cls=cls):
            text = getattr(cls, "EXPECTED", text)
    return text


def plain_type(kind: msgspec.inspect.Type) -> msgspec.inspect.Type:
    """The type without `| None`."""
    if isinstance(kind, msgspec.inspect.UnionType):
        return next(each for each in kind.types if not isinstance(each, msgspec.inspect.NoneType))
    return kind


def _text(kind: msgspec.inspect.StrType) -> Text:
    if kind.pattern in _LINES and kind.max_length:
        return Text("one line of {least} to {most} characters", least=kind.min_length or 0, most=kind.max_length)
    return Text("text, not empty") if kind.min_length else Text("text")


def _number(kind: msgspec.inspect.IntType | msgspec.inspect.FloatType) -> Text:
    what = Text("a whole number") if isinstance(kind, msgspec.inspect.IntType) else Text("a number")
    if kind.gt is not None:
        return Text("{kind} above {least}, at most {most}", kind=what, least=kind.gt, most=kind.le)
    return Text("{kind} from {least} to {most}", kind=what, least=kind.ge, most=kind.le)


def _explain(message: str, tables: dict[str, Any], kind: type[Section]) -> tuple[str, str]:
    """The key as in the file, and a sentence, from msgspec's message."""
    match = _MESSAGE.fullmatch(message)
    what, path = (match["what"], match["path"] or "") if match else (message, "")
    prefix = f"{path}." if path else ""
    if missing := _MISSING.fullmatch(what):
        return prefix + missing["name"], tr("is missing")
    if unknown := _UNKNOWN.fullmatch(what):
        parent = _type_at(kind, path)
        names = [field.encode_name for field in parent.fields] if isinstance(parent, msgspec.inspect.StructType) else []
        problem = tr("unknown key") if path else tr("unknown section")
        return prefix + unknown["name"], misspelt(unknown["name"], names, problem)
    found = _type_at(kind, path)
    expected = describe_type(found)
    if isinstance(getattr(found, "item_type", found), msgspec.inspect.StructType):
        return path, tr("must be {expected}", expected=expected)  # a section may contain secrets
    value = _quoted(_value_at(tables, path))
    return path, tr("{value} is not allowed: it must be {expected}", value=value, expected=expected)


def _type_at(kind: type[Section], path: str) -> msgspec.inspect.Type:
    """Type of the value at a path, for example `machine[1].nim` or `reports.payment_labels[...]`."""
    found = msgspec.inspect.type_info(kind)
    for step in _STEP.findall(path):
        match found:
            case msgspec.inspect.StructType(fields=fields):
                found = next(field.type for field in fields if field.encode_name == step)
            case msgspec.inspect.VarTupleType(item_type=item) | msgspec.inspect.DictType(value_type=item):
                found = item
        found = plain_type(found)
    return found


def _value_at(value: Any, path: str) -> Any:
    """The value at that path, or of its nearest existing parent."""
    for step in _STEP.findall(path):
        if isinstance(value, dict) and step in value:
            value = value[step]
        elif isinstance(value, list) and step.isdigit():
            value = value[int(step)]
    return value


def _quoted(value: object) -> str:
    try:
        text = msgspec.json.encode(value).decode()
    except TypeError:  # TOML's local dates
        text = str(value)
    return text if len(text) <= _LONGEST_VALUE else text[:_LONGEST_VALUE] + "…"
