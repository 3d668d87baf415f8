"""Where the body of a request ends (RFC 9112, 6 and 7): bytes in, content out, at a price that goes with the bytes.

llhttp reads heads only. A chunked body that it reads calls back for each chunk, and what looks like the end of a request in the
middle of one had to be looked at piece by piece; here a chunk is a slice, and one that is hardly more than its frame is refused.
"""

from __future__ import annotations

import re
from enum import Enum, auto
from typing import Final, Protocol

LONGEST_LINE: Final = 256
"""Bytes of a chunk's size with its extensions, or of one trailer."""
FREE_CHUNKS: Final = 1024
BYTES_OF_A_CHUNK: Final = 64
"""So many chunks may be as small as they like; from then on the mean of the body has to be at least this."""
MOST_TRAILERS: Final = 32

_SIZE = re.compile(rb"([0-9A-Fa-f]{1,8})[ \t]*(?:;[\t -~\x80-\xff]*)?")
_TRAILER = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+:[\t -~\x80-\xff]*")


class BadChunk(Exception):
    """This is no chunked body, or one that is too dear to read; its text says which."""


class Body(Protocol):
    @property
    def complete(self) -> bool: ...

    def take(self, buffer: bytes, at: int) -> tuple[bytes, int]:
        """The content that `buffer` holds from `at` on, and where it is read up to; BadChunk."""
        ...


class SizedBody:
    """With a Content-Length; without any body that is 0."""

    __slots__ = ("missing",)

    def __init__(self, length: int) -> None:
        self.missing = length

    @property
    def complete(self) -> bool:
        return not self.missing

    def take(self, buffer: bytes, at: int) -> tuple[bytes, int]:
        content = buffer[at : at + self.missing]
        self.missing -= len(content)
        return content, at + len(content)


class _Next(Enum):
    SIZE = auto()
    CONTENT = auto()
    END_OF_CHUNK = auto()
    TRAILER = auto()
    NOTHING = auto()


class ChunkedBody:
    __slots__ = ("_chunks", "_content", "_missing", "_next", "_trailers")

    def __init__(self) -> None:
        self._next = _Next.SIZE
        self._missing = 0
        self._chunks = self._content = self._trailers = 0

    @property
    def complete(self) -> bool:
        return self._next is _Next.NOTHING

    def take(self, buffer: bytes, at: int) -> tuple[bytes, int]:
        pieces = []
        while at < len(buffer) and self._next is not _Next.NOTHING:
            if self._next is _Next.CONTENT:
                piece = buffer[at : at + self._missing]
                at += len(piece)
                self._count(len(piece))
                pieces.append(piece)
                continue
            end = buffer.find(b"\r\n", at, at + LONGEST_LINE + 2)
            if end < 0:
                if len(buffer) - at > LONGEST_LINE + 1:
                    raise BadChunk("a line of the chunked body is too long")
                break
            self._read(buffer[at:end])
            at = end + 2
        return b"".join(pieces), at

    def _count(self, size: int) -> None:
        self._missing -= size
        self._content += size
        if not self._missing:
            self._next = _Next.END_OF_CHUNK

    def _read(self, line: bytes) -> None:
        match self._next:
            case _Next.SIZE:
                self._begin(line)
            case _Next.END_OF_CHUNK:
                if line:
                    raise BadChunk("a chunk is longer than it says")
                self._next = _Next.SIZE
            case _:
                self._end(line)

    def _begin(self, line: bytes) -> None:
        size = _SIZE.fullmatch(line)
        if size is None:
            raise BadChunk("a chunk's size cannot be read")
        self._missing = int(size[1], 16)
        self._next = _Next.CONTENT if self._missing else _Next.TRAILER
        self._chunks += 1
        if self._chunks > FREE_CHUNKS + self._content // BYTES_OF_A_CHUNK:
            raise BadChunk("the body comes in too many small chunks")

    def _end(self, line: bytes) -> None:
        """Trailers are nobody's headers: read over."""
        if not line:
            self._next = _Next.NOTHING
            return
        self._trailers += 1
        if self._trailers > MOST_TRAILERS or not _TRAILER.fullmatch(line):
            raise BadChunk("the trailers of the chunked body cannot be read")
