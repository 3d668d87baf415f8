"""Renders a document in ESC/POS, with a dozen commands that nearly every receipt printer supports.

Source: the makers' tables (Epson, "ESC/POS command reference"); `tests/support/paper/escpos.py` decodes them."""

import re
import unicodedata
from contextlib import suppress
from typing import Final, Literal

import msgspec

from daemon.paper.layout import Document, Logo, PaperRow, QrCode, rows
from daemon.paper.logo import raster

CodePage = Literal["cp858", "cp1252", "cp850"]

CODE_PAGES: Final[dict[CodePage, int]] = {"cp850": 2, "cp1252": 16, "cp858": 19}
"""Parameter of ESC t for each code page. All three contain every French letter except œ, which two of them lack."""

INITIALIZE: Final = b"\x1b@"
INTERNATIONAL_USA: Final = b"\x1bR\x00"  # so that # $ @ [ ] and the like print as in ASCII
BOLD: Final = {False: b"\x1bE\x00", True: b"\x1bE\x01"}
SIZE: Final = {False: b"\x1d!\x00", True: b"\x1d!\x01"}  # double height; the number of columns does not change
CENTER: Final = b"\x1ba\x01"
LEFT: Final = b"\x1ba\x00"
FEED_AND_CUT: Final = b"\x1dVB\x00"

MODULE_DOTS: Final = {32: 6, 42: 6, 48: 6}
"""Dots per QR module: at 8 dots per millimetre the 37 modules of a receipt are 28 mm wide and fit the narrowest
paper."""

_QR_MODEL_2: Final = bytes((0x31, 0x41, 0x32, 0x00))
_QR_ERROR_CORRECTION_M: Final = bytes((0x31, 0x45, 0x31))
_QR_PRINT: Final = bytes((0x31, 0x51, 0x30))

_PLAIN: Final = {
    **dict(zip("ɛƐɔƆɩƖʋƲŋŊɲƝɓƁɗƊƴƳ", "eEoOiIuUnNnNbBdDyY", strict=True)),
    **dict(zip("’‘ʼ“”–—‐−•⁄", "'''\"\"-----/", strict=True)),
    "œ": "oe",
    "Œ": "OE",
    "…": "...",
    "\N{NARROW NO-BREAK SPACE}": "\N{NO-BREAK SPACE}",
}
"""Replacements for characters that no code page of a receipt printer has, such as letters of Mooré, Dioula and
Fulfulde."""
_OE_OF_A_CAPITALIZED_WORD: Final = re.compile("Œ(?=[a-zà-ÿ])")


def as_escpos(document: Document, width: int, code_page: CodePage = "cp858") -> bytes:
    """Bytes for the printer: they begin with its initialization and end with a cut."""
    out = bytearray(INITIALIZE + INTERNATIONAL_USA + b"\x1bt" + bytes((CODE_PAGES[code_page],)))
    for row in rows(_printable(document, code_page), width):
        if isinstance(row, QrCode):
            out += _qr_code(row.content, MODULE_DOTS.get(width, 6))
        elif isinstance(row, Logo):
            out += _picture(raster(row.png, width))
        else:
            out += _row(row, code_page)
    return bytes(out + FEED_AND_CUT)


def _row(row: PaperRow, code_page: CodePage) -> bytes:
    text = row.text.encode(code_page) + b"\n"
    if not (row.bold or row.tall):
        return text
    return BOLD[row.bold] + SIZE[row.tall] + text + SIZE[False] + BOLD[False]


def _printable(document: Document, code_page: CodePage) -> Document:
    """Replaces characters that the code page lacks, before line breaking: some become two or three characters."""
    characters = _Characters(code_page)

    def printable(value: object) -> object:
        if isinstance(value, str):
            if characters[ord("Œ")] != "Œ":
                value = _OE_OF_A_CAPITALIZED_WORD.sub("Oe", value)
            return unicodedata.normalize("NFC", value).translate(characters)
        if isinstance(value, dict):
            return {name: printable(part) for name, part in value.items()}
        return [printable(part) for part in value] if isinstance(value, list | tuple) else value

    plain = printable(msgspec.to_builtins(document, builtin_types=(bytes,)))
    return msgspec.convert(plain, Document, builtin_types=(bytes,))


class _Characters(dict[int, str]):
    """Maps a code point to printable text. Control characters become spaces, so that no text of an invoice controls
    the printer."""

    def __init__(self, code_page: CodePage) -> None:
        self._code_page = code_page

    def __missing__(self, code: int) -> str:
        self[code] = found = self._find(chr(code))
        return found

    def _find(self, char: str) -> str:
        if ord(char) < ord(" ") or "\x7f" <= char <= "\x9f":
            return " "
        parts = unicodedata.normalize("NFKD", char)
        ascii_parts = "".join(_PLAIN.get(part, part) for part in parts).encode("ascii", "ignore").decode()
        for candidate in (char, _PLAIN.get(char), ascii_parts):
            with suppress(UnicodeEncodeError):
                if candidate and candidate.encode(self._code_page):
                    return candidate
        return "" if unicodedata.combining(char) else "?"


def _picture(dots: bytes) -> bytes:
    return CENTER + dots + b"\n" + LEFT if dots else b""


def _qr_code(content: str, dots: int) -> bytes:
    """GS ( k: model, size, error correction, content, print. The printer draws the code."""
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
