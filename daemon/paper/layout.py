"""A document on paper of a fixed number of columns: rows of characters, and where the QR code stands."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from typing import Literal

import msgspec

from daemon.paper.elements import Document, Element, Line, Logo, Pair, QrCode, Rule, Table, Title

WIDTHS = (32, 42, 48)
"""Columns of 58 mm paper, and of 80 mm paper in its two usual fonts."""
Width = Literal[32, 42, 48]

NARROWEST = 8
"""Columns that text keeps however far it is indented."""


class Row(msgspec.Struct, frozen=True):
    """At most as many characters as the paper has columns."""

    text: str
    bold: bool = False
    tall: bool = False


def rows(document: Document, width: int) -> Iterator[Row | QrCode | Logo]:
    for element in document.elements:
        yield from _rows(element, width)


def as_text(document: Document, width: int) -> str:
    """For a printer or a screen that takes characters; the QR code is told as the text in it."""
    lines: list[str] = []
    for row in rows(document, width):
        if isinstance(row, QrCode):
            lines += _broken(row.content, width)
        elif isinstance(row, Row):
            lines.append(row.text.rstrip())
    return "\n".join(lines) + "\n"


def _rows(element: Element, width: int) -> Iterator[Row | QrCode | Logo]:
    match element:
        case Title(text):
            for line in wrapped(text, width):
                yield Row(line.center(width).rstrip(), bold=True, tall=True)
        case Line():
            yield from _line(element, width)
        case Pair():
            yield from _pair(element, width)
        case Table():
            yield from _table(element, width)
        case Rule():
            yield Row("-" * width)
        case QrCode() | Logo():
            yield element


def wrapped(text: str, width: int) -> list[str]:
    """Broken between words; a no-break space is no place to break, a word that is longer than a line is cut."""
    return textwrap.wrap(text, width, break_on_hyphens=False) or [""]


def _broken(text: str, width: int) -> list[str]:
    return [text[at : at + width] for at in range(0, len(text), width)]


def _line(line: Line, width: int) -> Iterator[Row]:
    indent = " " * min(line.indent, width - NARROWEST)
    for part in wrapped(line.text, width - len(indent)):
        text = part.center(width).rstrip() if line.align == "center" else indent + part
        yield Row(text, bold=line.bold)


def _pair(pair: Pair, width: int) -> Iterator[Row]:
    indent = " " * pair.indent
    left = indent + pair.left
    if len(left) + 1 + len(pair.right) <= width:
        yield Row(left + pair.right.rjust(width - len(left)), bold=pair.bold)
        return
    yield from _line(Line(pair.left, bold=pair.bold, indent=pair.indent), width)
    for part in wrapped(pair.right, width):
        yield Row(part.rjust(width), bold=pair.bold)


def _table(table: Table, width: int) -> Iterator[Row]:
    lines = [table.head, *table.rows]
    sizes = [max(len(line[column]) for line in lines) for column in range(len(table.head))]
    if sum(sizes) + len(sizes) - 1 > width:
        yield from _stacked(table, width)
        return
    sizes[0] += width - sum(sizes) - (len(sizes) - 1)  # figures stand at the right edge
    for line in lines:
        yield Row(_cells(line, sizes), bold=line is table.head)


def _cells(cells: Sequence[str], sizes: Sequence[int]) -> str:
    first = cells[0].ljust(sizes[0])
    return " ".join([first, *(cell.rjust(size) for cell, size in zip(cells[1:], sizes[1:], strict=True))])


def _stacked(table: Table, width: int) -> Iterator[Row]:
    for row in table.rows:
        yield from _line(Line(row[0], bold=True), width)
        for name, value in zip(table.head[1:], row[1:], strict=True):
            yield from _pair(Pair(name, value, indent=2), width)
