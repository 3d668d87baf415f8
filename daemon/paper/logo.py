"""The shop's logo (PNG) as dots for a receipt printer, and QR codes as pictures and as characters."""

from __future__ import annotations

import io
import struct
import warnings
import zlib
from collections.abc import Iterable
from functools import lru_cache
from typing import TYPE_CHECKING, Final, Literal

import msgspec

from common.language import Text

if TYPE_CHECKING:
    import segno

LARGEST: Final = 512 * 1024
"""Maximum size of the file in bytes."""
MAX_PIXELS: Final = 300_000
"""For example 750 by 400: some tenths of a second of work, once."""
WHITE: Final = 255

_SIGNATURE: Final = b"\x89PNG\r\n\x1a\n"
_WIDEST_PIXEL: Final = 8
"""Bytes of the largest pixel: four channels of 16 bits."""

PAPER_DOTS: Final = {32: 384, 42: 576, 48: 576}
"""Printable dots across the paper, by number of columns; 8 dots per millimetre."""
TALLEST: Final = 240
"""Maximum height in dots: 30 mm of paper."""
_THRESHOLD: Final = 128

DOTS_PER_MM: Final = 8
"""Resolution of a thermal printer (203 dpi); an 80 mm roll has a printable width of 72 mm."""
DOTS_PER_MODULE: Final = 6
"""A module is 0.75 mm; the 37 modules of a receipt with their margin are 34 mm wide and readable on worn paper."""
MODULE_MM: Final = DOTS_PER_MODULE / DOTS_PER_MM
QUIET_ZONE: Final = 4
DPI: Final = 203

_HALVES: Final = {(0, 0): " ", (1, 0): "\N{UPPER HALF BLOCK}", (0, 1): "\N{LOWER HALF BLOCK}", (1, 1): "\N{FULL BLOCK}"}


class NotAPicture(Exception):
    """The PNG cannot be read; the message is for the person who chose it."""


class Picture(msgspec.Struct, frozen=True):
    """`rows` have `width` bytes each, from 0 (black) to 255 (white); transparent pixels become white."""

    width: int
    height: int
    rows: tuple[bytes, ...]


def read_png(data: bytes) -> Picture:
    """Decodes a PNG. Raises NotAPicture if it is invalid, damaged or too large."""
    if len(data) > LARGEST:
        raise NotAPicture(Text("it is larger than {limit} kB", limit=LARGEST // 1024))
    if not data.startswith(_SIGNATURE):
        raise NotAPicture(Text("it is no PNG"))
    import png  # noqa: PLC0415  a start takes 25 ms longer with it, and most boxes have no logo

    try:
        _check_size(png.Reader(bytes=data).chunks())
        with warnings.catch_warnings(action="ignore"):  # about chunks in the wrong order
            width, height, rows, _ = png.Reader(bytes=data).asRGBA8()
            return Picture(width, height, tuple(_grey(bytes(row)) for row in rows))
    except NotAPicture:
        raise
    except Exception:  # noqa: BLE001  pypng raises errors of many kinds for bytes that are no picture
        raise NotAPicture(Text("it is damaged")) from None


def _check_size(chunks: Iterable[tuple[bytes, bytes]]) -> None:
    """Limits the number of pixels and the size of the decompressed data: 400 kB could expand to 400 MB."""
    width = height = 0
    packed = b""
    for name, content in chunks:
        if name == b"IHDR":
            width, height = struct.unpack(">II", content[:8])
        elif name == b"IDAT":
            packed += content
    if width * height > MAX_PIXELS:
        raise NotAPicture(Text("it has more than {limit} pixels; make it smaller, as 600 by 300", limit=MAX_PIXELS))
    most = _WIDEST_PIXEL * (width + 1) * (height + 1) + 4 * (width + height)  # interlaced rows come in parts
    unpacking = zlib.decompressobj()
    unpacking.decompress(packed, most)
    if unpacking.unconsumed_tail:
        raise NotAPicture(Text("it is damaged"))


def _grey(row: bytes) -> bytes:
    return bytes(map(_over_white, map(_luma, row[::4], row[1::4], row[2::4]), row[3::4]))


def _luma(red: int, green: int, blue: int) -> int:
    return (299 * red + 587 * green + 114 * blue) // 1000


def _over_white(shade: int, alpha: int) -> int:
    return (shade * alpha + WHITE * (WHITE - alpha)) // WHITE


@lru_cache(maxsize=4)
def raster(png: bytes, columns: int) -> bytes:
    """GS v 0 with the picture, at most two thirds of the paper wide. Empty if the PNG is unreadable: the document is
    printed without it, and `mcfd doctor` reports the reason."""
    try:
        picture = read_png(png)
    except NotAPicture:
        return b""
    rows = _dithered(_fitted(picture, PAPER_DOTS[columns] * 2 // 3))
    across = len(rows[0])
    return b"\x1dv0\x00" + across.to_bytes(2, "little") + len(rows).to_bytes(2, "little") + b"".join(rows)


def _fitted(picture: Picture, widest: int) -> list[list[int]]:
    """Scales down to the maximum size; each dot is the mean of its pixels. Never scales up."""
    width = min(picture.width, widest, max(1, TALLEST * picture.width // picture.height))
    height = max(1, min(picture.height * width // picture.width, TALLEST))
    if (width, height) == (picture.width, picture.height):
        return [list(row) for row in picture.rows]
    columns = [_share(at, width, picture.width) for at in range(width)]
    narrow = [[sum(row[a:b]) // (b - a) for a, b in columns] for row in picture.rows]
    found = []
    for at in range(height):
        first, last = _share(at, height, picture.height)
        found.append([sum(values) // (last - first) for values in zip(*narrow[first:last], strict=True)])
    return found


def _share(at: int, parts: int, whole: int) -> tuple[int, int]:
    first = at * whole // parts
    return first, max(first + 1, (at + 1) * whole // parts)


def _dithered(rows: list[list[int]]) -> list[bytes]:
    """Dithers to black and white (Floyd-Steinberg). Eight dots per byte, leftmost first; the last byte is padded with
    white."""
    width = len(rows[0])
    packed = []
    errors = [0] * (width + 2)  # in sixteenths, for the next row; one extra at each side
    for row in rows:
        current, errors = errors, [0] * (width + 2)
        dots, carried = 0, 0
        for at, shade in enumerate(row):
            wanted = shade + (current[at + 1] + carried) // 16
            is_black = wanted < _THRESHOLD
            dots = dots << 1 | is_black
            error = wanted - (0 if is_black else WHITE)
            carried = 7 * error
            errors[at] += 3 * error
            errors[at + 1] += 5 * error
            errors[at + 2] += error
        padding = -width % 8
        packed.append((dots << padding).to_bytes((width + padding) // 8, "big"))
    return packed


def _qr(content: str, error: Literal["l", "m"] = "m") -> segno.QRCode:
    import segno  # noqa: PLC0415  uses half a megabyte that most boxes never need

    return segno.make_qr(content, error=error)


def qr_modules(content: str) -> list[list[bool]]:
    """Rows of modules, dark or light, without the quiet zone."""
    return [[bool(module) for module in row] for row in _qr(content).matrix]


def qr_for_terminal(content: str, error: Literal["l", "m"] = "m", *, compact: bool = True) -> str:
    """`compact` uses half blocks, if the terminal has them; `error` is the level of error correction."""
    text = io.StringIO()
    _qr(content, error).terminal(text, compact=compact)
    return text.getvalue()


def draw_qr(content: str, kind: Literal["svg", "png"] = "svg") -> bytes:
    """Takes some milliseconds: call it in a thread if a till may wait for it."""
    code = _qr(content)
    image = io.BytesIO()
    if kind == "svg":
        code.save(image, kind=kind, scale=MODULE_MM, unit="mm", border=QUIET_ZONE, light="white", xmldecl=False)
    else:
        code.save(image, kind=kind, scale=DOTS_PER_MODULE, dpi=DPI, border=QUIET_ZONE)
    return image.getvalue()


def qr_blocks(content: str, width: int) -> list[str]:
    """Centred rows of block characters, a module being one column wide and half a row high. Empty if the code with a
    margin of two modules is wider than `width`."""
    code = _qr(content)
    border = min(QUIET_ZONE, (width - len(code.matrix)) // 2)
    if border < QUIET_ZONE // 2:
        return []
    rows = [list(row) for row in code.matrix_iter(border=border)]
    rows += [[0] * len(rows)] * (len(rows) % 2)
    lines = (
        "".join(map(_HALVES.__getitem__, zip(*pair, strict=True))) for pair in zip(rows[::2], rows[1::2], strict=True)
    )
    return [line.center(width).rstrip() for line in lines]
