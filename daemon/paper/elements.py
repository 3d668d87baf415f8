"""What a document is made of, whatever it is printed on. A template yields these; `layout`, `html` and `pdf` show them."""

from __future__ import annotations

from typing import Literal

import msgspec

Align = Literal["left", "center"]


class Title(msgspec.Struct, frozen=True, tag=True):
    """What the document is; centred, bold and tall."""

    text: str


class TextLine(msgspec.Struct, frozen=True, tag=True):
    """Text that is broken between words where it is too long; empty is an empty line."""

    text: str = ""
    align: Align = "left"
    bold: bool = False
    indent: int = 0


class Pair(msgspec.Struct, frozen=True, tag=True):
    """A name at the left and its value at the right edge; on two lines where one is too narrow."""

    left: str
    right: str
    bold: bool = False
    indent: int = 0


class Table(msgspec.Struct, frozen=True, tag=True):
    """The first column is text, the others are figures. Where the paper is too narrow each row becomes pairs."""

    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


class Rule(msgspec.Struct, frozen=True, tag=True):
    """A line from edge to edge."""


class QrCode(msgspec.Struct, frozen=True, tag=True):
    content: str


class Logo(msgspec.Struct, frozen=True, tag=True):
    """A PNG; a document as text has none."""

    png: bytes


Element = Title | TextLine | Pair | Table | Rule | QrCode | Logo


class Document(msgspec.Struct, frozen=True):
    """`name` for a browser's tab; `language` as `fr`."""

    name: str
    language: str
    elements: tuple[Element, ...]
