"""Reads a PNG as shades of grey: the shop's logo, for printers that take dots. Written from the W3C's PNG specification; a library for
pictures would be larger than the rest of mcfd."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from typing import Final

import msgspec

from daemon.language import Text

LARGEST: Final = 512 * 1024
"""Bytes of the file."""
MOST_PIXELS: Final = 300_000
"""As 750 by 400: some tenths of a second of work, once."""

_SIGNATURE: Final = b"\x89PNG\r\n\x1a\n"
_GREY, _COLOUR, _PALETTE, _GREY_ALPHA, _COLOUR_ALPHA = 0, 2, 3, 4, 6
_CHANNELS: Final = {_GREY: 1, _COLOUR: 3, _PALETTE: 1, _GREY_ALPHA: 2, _COLOUR_ALPHA: 4}
_DEPTHS: Final = {
    _GREY: (1, 2, 4, 8, 16),
    _COLOUR: (8, 16),
    _PALETTE: (1, 2, 4, 8),
    _GREY_ALPHA: (8, 16),
    _COLOUR_ALPHA: (8, 16),
}
_IN_COLOUR: Final = (_COLOUR, _COLOUR_ALPHA)
_WITH_ALPHA: Final = (_GREY_ALPHA, _COLOUR_ALPHA)
_BYTE: Final = 8
WHITE: Final = 255


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


class _Head(msgspec.Struct, frozen=True):
    width: int
    height: int
    depth: int
    kind: int

    @property
    def pixel_bits(self) -> int:
        return self.depth * _CHANNELS[self.kind]

    @property
    def row_bytes(self) -> int:
        return (self.width * self.pixel_bits + 7) // 8


def read_png(data: bytes) -> Picture:
    """NotAPicture when it is none, damaged, interlaced, or too large."""
    if len(data) > LARGEST:
        raise NotAPicture(Text("it is larger than {limit} kB", limit=LARGEST // 1024))
    if not data.startswith(_SIGNATURE):
        raise NotAPicture(Text("it is no PNG"))
    chunks: dict[bytes, bytes] = {}
    for name, content in _chunks(data):
        chunks[name] = chunks.get(name, b"") + content
    head = _head(chunks.get(b"IHDR", b""))
    whole = head.height * (head.row_bytes + 1)
    try:
        pixels = zlib.decompressobj().decompress(chunks.get(b"IDAT", b""), whole + 1)
    except zlib.error:
        raise _damaged() from None
    if len(pixels) != whole:
        raise _damaged()
    shades = _palette(chunks) if head.kind == _PALETTE else None
    return Picture(head.width, head.height, tuple(_grey(row, head, shades) for row in _unfiltered(pixels, head)))


def _chunks(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    at = len(_SIGNATURE)
    while at + 12 <= len(data):
        (length,) = struct.unpack(">I", data[at : at + 4])
        name, content, end = data[at + 4 : at + 8], data[at + 8 : at + 8 + length], at + 12 + length
        if end > len(data) or zlib.crc32(name + content) != int.from_bytes(data[end - 4 : end], "big"):
            raise _damaged()
        yield name, content
        at = end


def _head(content: bytes) -> _Head:
    if len(content) != struct.calcsize(">IIBBBBB"):
        raise _damaged()
    width, height, depth, kind, compression, filtering, interlace = struct.unpack(">IIBBBBB", content)
    if not (width and height) or depth not in _DEPTHS.get(kind, ()) or compression or filtering:
        raise _damaged()
    if width * height > MOST_PIXELS:
        raise NotAPicture(Text("it has more than {limit} pixels; make it smaller, as 600 by 300", limit=MOST_PIXELS))
    if interlace:
        raise NotAPicture(Text("it is interlaced; save it without"))
    return _Head(width, height, depth, kind)


def _unfiltered(pixels: bytes, head: _Head) -> Iterator[bytes]:
    size, back = head.row_bytes, max(1, head.pixel_bits // 8)
    above = bytes(size)
    for start in range(0, len(pixels), size + 1):
        kind, row = pixels[start], bytearray(pixels[start + 1 : start + 1 + size])
        _undo(kind, row, above, back)
        above = bytes(row)
        yield above


def _undo(kind: int, row: bytearray, above: bytes, back: int) -> None:
    """One row of filter type `kind` in its place; `back` bytes to the pixel at the left."""
    match kind:
        case 0:
            return
        case 1:
            for at in range(back, len(row)):
                row[at] = (row[at] + row[at - back]) & 0xFF
        case 2:
            row[:] = bytes((a + b) & 0xFF for a, b in zip(row, above, strict=True))
        case 3:
            for at in range(len(row)):
                left = row[at - back] if at >= back else 0
                row[at] = (row[at] + (left + above[at]) // 2) & 0xFF
        case 4:
            for at in range(len(row)):
                left, corner = (row[at - back], above[at - back]) if at >= back else (0, 0)
                row[at] = (row[at] + _paeth(left, above[at], corner)) & 0xFF
        case _:
            raise _damaged()


def _paeth(left: int, up: int, corner: int) -> int:
    guess = left + up - corner
    far_left, far_up, far_corner = abs(guess - left), abs(guess - up), abs(guess - corner)
    if far_left <= far_up and far_left <= far_corner:
        return left
    return up if far_up <= far_corner else corner


def _palette(chunks: dict[bytes, bytes]) -> bytes:
    """The grey of each entry; those that a damaged picture names and does not have are white."""
    colours, alphas = chunks.get(b"PLTE", b""), chunks.get(b"tRNS", b"")
    shades = bytearray([WHITE] * 256)
    for index in range(min(len(colours) // 3, len(shades))):
        alpha = alphas[index] if index < len(alphas) else WHITE
        shades[index] = _over_white(_luma(*colours[3 * index : 3 * index + 3]), alpha)
    return bytes(shades)


def _grey(row: bytes, head: _Head, shades: bytes | None) -> bytes:
    values, channels = _samples(row, head), _CHANNELS[head.kind]
    if shades is not None:
        return values.translate(shades)
    if head.kind in _IN_COLOUR:
        grey = bytes(map(_luma, values[::channels], values[1::channels], values[2::channels]))
    else:
        most = min((1 << head.depth) - 1, WHITE)
        grey = bytes(value * WHITE // most for value in values[::channels])
    if head.kind in _WITH_ALPHA:
        grey = bytes(map(_over_white, grey, values[channels - 1 :: channels]))
    return grey


def _samples(row: bytes, head: _Head) -> bytes:
    """One byte each: of sixteen bits the upper ones."""
    if head.depth >= _BYTE:
        return row[:: head.depth // _BYTE]
    mask, each = (1 << head.depth) - 1, _BYTE // head.depth
    values = bytes(byte >> (_BYTE - head.depth * (place + 1)) & mask for byte in row for place in range(each))
    return values[: head.width]


def _luma(red: int, green: int, blue: int) -> int:
    return (299 * red + 587 * green + 114 * blue) // 1000


def _over_white(shade: int, alpha: int) -> int:
    return (shade * alpha + WHITE * (WHITE - alpha)) // WHITE


def _damaged() -> NotAPicture:
    return NotAPicture(Text("it is damaged"))
