"""TLS whose records are looked at one by one: OpenSSL reads on and on while they hold nothing for us.

A wish for new keys (RFC 8446, 4.6.3) is 27 bytes, needs no API key and makes two keys and an answer; 50 000 of them a second, from one
connection, took 60 % of a processor and 3.6 s of a sale. OpenSSL 3 counts none of them, and handles all that have arrived in one call. So it
gets one record at a time here, and a connection with too many that brought no data is over. So is one whose records hold next to nothing: a
byte in each, 85 000 of them a second on 250 connections, held a sale up for ten seconds; or that come in crumbs, each of which wakes us.
"""

from __future__ import annotations

import ssl
import time
from collections.abc import Callable
from typing import Any, Final

from edge.admission import Bucket

BARREN: Final = 64
"""Records without data that a connection may send in its life; a handshake has five, and keys are renewed after gigabytes."""
THIN: Final = 64
"""Bytes of data; a record with fewer costs more than it brings, and so does a piece of one."""
THIN_RECORDS: Final = (20.0, 64.0)
"""A second, and at once after a pause; a till that writes its request line by line needs a dozen for a sale."""
HEADER: Final = 5
"""Bytes: kind, version, and in the last two the length of what follows."""


class TooManyRecords(ssl.SSLError):
    """The peer keeps us busy with TLS itself."""


class RecordReader(ssl.SSLObject):
    """Made by `RecordContext.wrap_bio` alone."""

    _arrived: ssl.MemoryBIO
    """what the peer sent"""
    _given: ssl.MemoryBIO
    """what OpenSSL may see of it"""

    def feed(self, arrived: ssl.MemoryBIO, given: ssl.MemoryBIO) -> None:
        """Where records come from, and where OpenSSL reads them."""
        self._arrived, self._given = arrived, given
        self._header = b""
        self._missing = 0
        self._barren = 0
        self._is_counted = False  # the record that was given last is among the barren ones
        self._thin = Bucket(THIN_RECORDS)

    def do_handshake(self) -> None:
        self._as_far_as_it_goes(super().do_handshake)

    def read(self, len: int = 1024, buffer: Any = None) -> Any:  # noqa: A002  as Python calls it
        while True:
            is_new = not self.pending() and self._give()
            try:
                data = super().read(len, buffer)
            except ssl.SSLWantReadError:
                if not is_new:
                    raise
            else:
                if self._is_counted:
                    self._barren -= 1
                    self._is_counted = False
                    if _size(data) < THIN:
                        self._count_thin()
                return data

    def unwrap(self) -> None:
        self._as_far_as_it_goes(super().unwrap)

    def _as_far_as_it_goes(self, step: Callable[[], object]) -> None:
        """SSLWantReadError when all that has arrived is not enough for it."""
        while True:
            try:
                step()
            except ssl.SSLWantReadError:
                if not self._give():
                    raise
            else:
                return

    def _give(self) -> bool:
        """More of one record, as far as it is there; False when nothing is."""
        if not self._arrived.pending:
            return False
        if not self._missing:
            self._header += self._arrived.read(HEADER - len(self._header))
            if len(self._header) < HEADER:
                return False
            self._count()
            self._missing = int.from_bytes(self._header[3:], "big")
            self._given.write(self._header)
            self._header = b""
        piece = self._arrived.read(self._missing)
        self._missing -= len(piece)
        self._given.write(piece)
        if self._missing and len(piece) < THIN:
            self._count_thin()
        return True

    def _count(self) -> None:
        self._barren += 1
        self._is_counted = True
        if self._barren > BARREN:
            raise TooManyRecords(f"more than {BARREN} TLS records without data")

    def _count_thin(self) -> None:
        now = time.monotonic()
        self._thin.reserve(now)
        if self._thin.wait(now):
            raise TooManyRecords(f"too many TLS records with less than {THIN} bytes of data, or pieces of one")


def _size(read: bytes | int) -> int:
    """Of what `SSLObject.read` gives: the data, or how much of it is in the caller's buffer."""
    return read if isinstance(read, int) else len(read)


class RecordContext(ssl.SSLContext):
    """As any context of a server, but for what reads from its connections."""

    sslobject_class = RecordReader

    def wrap_bio(
        self,
        incoming: ssl.MemoryBIO,
        outgoing: ssl.MemoryBIO,
        server_side: bool = False,
        server_hostname: str | bytes | None = None,
        session: ssl.SSLSession | None = None,
    ) -> RecordReader:
        given = ssl.MemoryBIO()
        made = super().wrap_bio(given, outgoing, server_side, server_hostname, session)
        assert isinstance(made, RecordReader)  # noqa: S101  the class above
        made.feed(incoming, given)
        return made
