"""Letterheads, by version; a digest names one of a book."""

from __future__ import annotations

from daemon.core.ledger.book import Book
from daemon.store.access import LedgerAccess
from daemon.store.tables.book import letterheads


class PaperAccess(LedgerAccess):
    async def keep_letterhead(self, book: Book, digest: bytes, content: bytes, *, at: int) -> None:
        await self.write(letterheads.keep, book=book, digest=digest, content=content, at=at)

    async def letterhead(self, book: Book, digest: bytes) -> bytes | None:
        return await self.read(letterheads.find, book=book, digest=digest)

    async def newest_letterhead(self, book: Book) -> tuple[bytes, bytes] | None:
        return await self.read(letterheads.newest, book=book)
