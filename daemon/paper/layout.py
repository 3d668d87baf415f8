"""Elements of a document, independent of the output, and its layout as rows of a fixed number of columns. Templates
yield these elements; `layout`, `html` and `pdf` render them. Times have a precision of one second."""

import textwrap
from collections.abc import Iterator, Sequence
from datetime import datetime, tzinfo
from typing import Literal

import msgspec

from common.language import Language
from daemon.core.clock import machine_millis, millis, millis_text
from daemon.paper.logo import qr_blocks

_MOMENTS = {"fr": "%d/%m/%Y %H:%M:%S", "en": "%Y-%m-%d %H:%M:%S"}
Align = Literal["left", "center"]
WIDTHS = (32, 42, 48)
"""Columns of 58 mm paper, and of 80 mm paper in its two usual fonts."""
Width = Literal[32, 42, 48]
NARROWEST = 8
"""Minimum columns of text, however far it is indented."""
WIDEST_GAP = 3
"""Columns between two figures if there is room: with one column their thousands would seem joined."""


def machine_moment(digits: str, language: Language) -> str:
    """Formats the machine's 14 digits; returns an invalid time unchanged."""
    at = machine_millis(digits)
    return digits if at is None else _formatted(datetime.fromisoformat(millis_text(at)), language)


def moment(text: str, zone: tzinfo, language: Language) -> str:
    """Formats an RFC 3339 timestamp in the shop's time zone."""
    return _formatted(datetime.fromisoformat(text).astimezone(zone), language)


def last_moment(end: str) -> str:
    """The last millisecond before `end`, so that a range of days is shown with its last day."""
    return millis_text(millis(datetime.fromisoformat(end)) - 1)


def _formatted(at: datetime, language: Language) -> str:
    return at.strftime(_MOMENTS[language])


class Title(msgspec.Struct, frozen=True, tag=True):
    """Name of the document; centred, bold and tall."""

    text: str


class TextLine(msgspec.Struct, frozen=True, tag=True):
    """Text, wrapped between words; the empty string is an empty line."""

    text: str = ""
    align: Align = "left"
    bold: bool = False
    indent: int = 0


class Pair(msgspec.Struct, frozen=True, tag=True):
    """A name at the left edge and its value at the right edge; on two lines if both do not fit on one."""

    left: str
    right: str
    bold: bool = False
    indent: int = 0


class Table(msgspec.Struct, frozen=True, tag=True):
    """The first column is text, the others are figures. On narrow paper each row becomes pairs."""

    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


class Rule(msgspec.Struct, frozen=True, tag=True):
    """A line across the paper."""


class QrCode(msgspec.Struct, frozen=True, tag=True):
    content: str


class Logo(msgspec.Struct, frozen=True, tag=True):
    """A PNG; omitted in text output."""

    png: bytes


Element = Title | TextLine | Pair | Table | Rule | QrCode | Logo


class Document(msgspec.Struct, frozen=True):
    """`name` is the title for a browser's tab; `language` is a code such as `fr`."""

    name: str
    language: str
    elements: tuple[Element, ...]


class PaperRow(msgspec.Struct, frozen=True):
    """`text` has at most as many characters as the paper has columns."""

    text: str
    bold: bool = False
    tall: bool = False


def rows(document: Document, width: int) -> Iterator[PaperRow | QrCode | Logo]:
    for element in document.elements:
        yield from _rows(element, width)


def as_text(document: Document, width: int) -> str:
    """Plain text for a printer or screen. The QR code is drawn in block characters if the paper is wide enough,
    otherwise omitted."""
    lines: list[str] = []
    for row in rows(document, width):
        if isinstance(row, QrCode):
            lines += qr_blocks(row.content, width)
        elif isinstance(row, PaperRow):
            lines.append(row.text.rstrip())
    return "\n".join(lines) + "\n"


def _rows(element: Element, width: int) -> Iterator[PaperRow | QrCode | Logo]:
    match element:
        case Title(text):
            for line in _balanced(text, width):
                yield PaperRow(line.center(width).rstrip(), bold=True, tall=True)
        case TextLine():
            yield from _line(element, width)
        case Pair():
            yield from _pair(element, width)
        case Table():
            yield from _table(element, width)
        case Rule():
            yield PaperRow("-" * width)
        case QrCode() | Logo():
            yield element


def wrapped(text: str, width: int) -> list[str]:
    """Lines, broken between words but not at no-break spaces. A word longer than a line is cut, after a hyphen if it
    has one."""
    is_cut = any(len(word) > width for word in text.split(" "))
    return textwrap.wrap(text, width, break_on_hyphens=is_cut) or [""]


def _balanced(text: str, width: int) -> list[str]:
    """The same number of lines as `wrapped`, with similar lengths; a name and its value are separated between them."""
    lines = wrapped(text, width)
    name, colon, value = text.partition(": ")
    if len(lines) == 2 and colon and len(value) <= width:  # noqa: PLR2004  one for each
        return [name + ":", value]
    while len(lines) > 1 and width > NARROWEST and len(narrower := wrapped(text, width - 1)) == len(lines):
        lines, width = narrower, width - 1
    return lines


def _line(line: TextLine, width: int) -> Iterator[PaperRow]:
    indent = " " * min(line.indent, width - NARROWEST)
    if line.align == "center":
        for part in _balanced(line.text, width):
            yield PaperRow(part.center(width).rstrip(), bold=line.bold)
        return
    for part in wrapped(line.text, width - len(indent)):
        yield PaperRow(indent + part, bold=line.bold)


def _pair(pair: Pair, width: int) -> Iterator[PaperRow]:
    indent = " " * pair.indent
    left = indent + pair.left
    if len(left) + 1 + len(pair.right) <= width:
        yield PaperRow(left + pair.right.rjust(width - len(left)), bold=pair.bold)
        return
    *above, last = _line(TextLine(pair.left, bold=pair.bold, indent=pair.indent), width)
    yield from above
    if above and len(last.text) + 1 + len(pair.right) <= width:
        yield PaperRow(last.text + pair.right.rjust(width - len(last.text)), bold=pair.bold)
        return
    yield last
    for part in wrapped(pair.right, width):
        yield PaperRow(part.rjust(width), bold=pair.bold)


def _table(table: Table, width: int) -> Iterator[PaperRow]:
    lines, sizes = [table.head, *table.rows], sizes_of(table)
    gaps = len(sizes) - 1
    gap = min((width - sum(sizes)) // gaps, WIDEST_GAP)
    if gap < 1:
        for element in stacked(table):
            yield from _line(element, width) if isinstance(element, TextLine) else _pair(element, width)
        return
    sizes[0] = width - sum(sizes[1:]) - gap * gaps  # figures are right-aligned
    for line in lines:
        yield PaperRow(_cells(line, sizes, " " * gap), bold=line is table.head)


def sizes_of(table: Table) -> list[int]:
    """Number of characters of each column."""
    return [max(map(len, column)) for column in zip(table.head, *table.rows, strict=True)]


def _cells(cells: Sequence[str], sizes: Sequence[int], gap: str) -> str:
    first = cells[0].ljust(sizes[0])
    return gap.join([first, *(cell.rjust(size) for cell, size in zip(cells[1:], sizes[1:], strict=True))])


def stacked(table: Table) -> Iterator[TextLine | Pair]:
    """Each table row as pairs, for narrow paper."""
    for row in table.rows:
        yield TextLine(row[0], bold=True)
        yield from (Pair(name, value, indent=2) for name, value in zip(table.head[1:], row[1:], strict=True))
