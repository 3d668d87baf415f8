"""The shop's logo as shades of grey, for printers that take dots. pypng decodes; it bounds neither pixels nor decompression, so that is done before."""

from __future__ import annotations

import struct
import warnings
import zlib
from typing import Final

import msgspec
import png

from common.language import Text

LARGEST: Final = 512 * 1024
"""Bytes of the file."""
MOST_PIXELS: Final = 300_000
"""As 750 by 400: some tenths of a second of work, once."""
WHITE: Final = 255

_SIGNATURE: Final = b"\x89PNG\r\n\x1a\n"
_WIDEST_PIXEL: Final = 8
"""Bytes: four channels of 16 bits."""


class NotAPicture(Exception):
    """It cannot be read; in words for who chose it."""

    def __init__(self, text: Text) -> None:
        super().__init__(text)
        self.text = text


class Picture(msgspec.Struct, frozen=True):
    """`rows` of so many bytes as it is wide, 0 black to 255 white; what was transparent is white."""

    width: int
    height: int
    rows: tuple[bytes, ...]


def read_png(data: bytes) -> Picture:
    """NotAPicture when it is none, damaged, or too large."""
    if len(data) > LARGEST:
        raise NotAPicture(Text("it is larger than {limit} kB", limit=LARGEST // 1024))
    if not data.startswith(_SIGNATURE):
        raise NotAPicture(Text("it is no PNG"))
    try:
        _check_size(data)
        with warnings.catch_warnings(action="ignore"):  # of chunks in the wrong order
            width, height, rows, _ = png.Reader(bytes=data).asRGBA8()
            return Picture(width, height, tuple(_grey(bytes(row)) for row in rows))
    except NotAPicture:
        raise
    except Exception:  # noqa: BLE001  pypng raises errors of many kinds for bytes that are no picture
        raise NotAPicture(Text("it is damaged")) from None


def _check_size(data: bytes) -> None:
    """Pixels, and what the pixels' data unpack to: a file of 400 kB could stand for 400 MB."""
    width = height = 0
    packed = b""
    for name, content in png.Reader(bytes=data).chunks():
        if name == b"IHDR":
            width, height = struct.unpack(">II", content[:8])
        elif name == b"IDAT":
            packed += content
    if width * height > MOST_PIXELS:
        raise NotAPicture(Text("it has more than {limit} pixels; make it smaller, as 600 by 300", limit=MOST_PIXELS))
    most = _WIDEST_PIXEL * (width + 1) * (height + 1) + 4 * (width + height)  # interlaced, a row comes in parts
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
