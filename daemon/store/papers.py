"""Letterheads, as the use cases see them (`usecases.ports.PapersPort`)."""

from __future__ import annotations

from functools import partial

from daemon.core.ledger.book import Book
from daemon.store.access import LedgerAccess
from daemon.store.tables.book import letterheads


class PaperAccess(LedgerAccess):
    async def keep_letterhead(self, book: Book, digest: bytes, content: bytes, *, at: int) -> None:
        await self._write(partial(letterheads.keep, book=book, digest=digest, content=content, at=at))

    async def letterhead(self, book: Book, digest: bytes) -> bytes | None:
        return await self._read(partial(letterheads.find, book=book, digest=digest))

    async def newest_letterhead(self, book: Book) -> tuple[bytes, bytes] | None:
        return await self._read(partial(letterheads.newest, book=book))
