"""A document for a receipt printer: the dozen commands of ESC/POS that nearly every one of them knows.

Written from the makers' tables (Epson, "ESC/POS command reference"); `tests/support/paper/escpos.py` reads them back."""

from __future__ import annotations

import unicodedata
from functools import lru_cache
from typing import Final, Literal

from daemon.paper.layout import Document, Logo, PaperRow, QrCode, rows
from daemon.paper.logo import raster

CodePage = Literal["cp858", "cp1252", "cp850"]

CODE_PAGES: Final[dict[CodePage, int]] = {"cp850": 2, "cp1252": 16, "cp858": 19}
"""The number that ESC t takes; all three have every letter of French but œ, which two of them lack."""

INITIALIZE: Final = b"\x1b@"
INTERNATIONAL_USA: Final = b"\x1bR\x00"  # so that # $ @ [ ] and the like are what ASCII says
BOLD: Final = {False: b"\x1bE\x00", True: b"\x1bE\x01"}
SIZE: Final = {False: b"\x1d!\x00", True: b"\x1d!\x01"}  # twice as high: as many columns as before
CENTER: Final = b"\x1ba\x01"
LEFT: Final = b"\x1ba\x00"
FEED_AND_CUT: Final = b"\x1dVB\x00"

MODULE_DOTS: Final = {32: 6, 42: 6, 48: 6}
"""Dots of one module: with 8 dots a millimetre the 37 modules of a receipt are 28 mm wide, on the narrowest paper too."""

_QR_MODEL_2: Final = bytes((0x31, 0x41, 0x32, 0x00))
_QR_ERROR_CORRECTION_M: Final = bytes((0x31, 0x45, 0x31))
_QR_PRINT: Final = bytes((0x31, 0x51, 0x30))

_PLAIN: Final = str.maketrans(
    {
        "œ": "oe",
        "Œ": "OE",
        "’": "'",
        "‘": "'",
        "“": '"',
        "”": '"',
        "–": "-",
        "—": "-",
        "…": "...",
        "•": "-",
        "\N{NARROW NO-BREAK SPACE}": "\N{NO-BREAK SPACE}",
        "ɛ": "e",
        "Ɛ": "E",
        "ɔ": "o",
        "Ɔ": "O",
        "ɩ": "i",
        "Ɩ": "I",
        "ʋ": "u",
        "Ʋ": "U",
        "ŋ": "n",
        "Ŋ": "N",
        "ɲ": "n",
        "Ɲ": "N",
        "ɓ": "b",
        "Ɓ": "B",
        "ɗ": "d",
        "Ɗ": "D",
        "ƴ": "y",
        "Ƴ": "Y",
    }
)
"""What no code page of a receipt printer has, the letters of Mooré, Dioula and Fulfulde among it."""


def as_escpos(document: Document, width: int, code_page: CodePage = "cp858") -> bytes:
    """Bytes to send to the printer as they are: they begin by setting it up, whatever was printed before, and end with a cut."""
    out = bytearray(INITIALIZE + INTERNATIONAL_USA + b"\x1bt" + bytes((CODE_PAGES[code_page],)))
    for row in rows(document, width):
        if isinstance(row, QrCode):
            out += _qr_code(row.content, MODULE_DOTS.get(width, 6))
        elif isinstance(row, Logo):
            out += _picture(raster(row.png, width))
        else:
            out += _row(row, code_page)
    return bytes(out + FEED_AND_CUT)


def _row(row: PaperRow, code_page: CodePage) -> bytes:
    text = encoded(row.text, code_page) + b"\n"
    if not (row.bold or row.tall):
        return text
    return BOLD[row.bold] + SIZE[row.tall] + text + SIZE[False] + BOLD[False]


def encoded(text: str, code_page: CodePage) -> bytes:
    """As many characters as the printer has of it; never a control character, so that no name on an invoice commands it."""
    out = bytearray()
    for char in text:
        out += _character(char, code_page)
    return bytes(out)


@lru_cache(maxsize=1024)
def _character(char: str, code_page: CodePage) -> bytes:
    if ord(char) < ord(" ") or "\x7f" <= char <= "\x9f":
        return b" "
    for candidate in (
        char,
        char.translate(_PLAIN),
        unicodedata.normalize("NFKD", char).encode("ascii", "ignore").decode(),
    ):
        try:
            if candidate:
                return candidate.encode(code_page)
        except UnicodeEncodeError:
            continue
    return b"" if unicodedata.combining(char) else b"?"


def _picture(dots: bytes) -> bytes:
    return CENTER + dots + b"\n" + LEFT if dots else b""


def _qr_code(content: str, dots: int) -> bytes:
    """GS ( k: model, size, error correction, content, print; drawn by the printer itself."""
    data = content.encode()
    return b"".join(
        (
            CENTER,
            _command(_QR_MODEL_2),
            _command(bytes((0x31, 0x43, dots))),
            _command(_QR_ERROR_CORRECTION_M),
            _command(b"1P0" + data),
            _command(_QR_PRINT),
            b"\n",
            LEFT,
        )
    )


def _command(parameters: bytes) -> bytes:
    return b"\x1d(k" + len(parameters).to_bytes(2, "little") + parameters
