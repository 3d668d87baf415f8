"""Sales that are certified later, each decision in one transaction."""

from __future__ import annotations

import sqlite3

import msgspec

from common.language.reasons import INVOICE_IN_PROGRESS, from_stored, to_stored
from daemon.core.audit import Action, Actor
from daemon.core.errors import MachineBusy
from daemon.core.events import DEFERRED
from daemon.core.invoice.number import TakenFrom
from daemon.core.ledger.attempt import DuplicateInvoice
from daemon.core.ledger.book import Book
from daemon.core.ledger.deferred import DeferredSale, NumberWaits
from daemon.core.ledger.entries import SaleDecided, SaleDeferred
from daemon.store.access import LedgerAccess
from daemon.store.tables import audit
from daemon.store.tables.book import attempts, deferred, entries
from daemon.store.tables.book.codec import invoice_bytes


class DeferredAccess(LedgerAccess):
    async def defer(self, book: Book, sale: DeferredSale, reason: str, taken: TakenFrom) -> DeferredSale:
        """Row, entry of the chain and event in one transaction; with its time as the book has it. `taken`: which holders of its number count."""

        def job(connection: sqlite3.Connection) -> DeferredSale:
            holder = attempts.find_holder(connection, book, sale.number, taken)
            if holder is not None and holder.state != "certified":
                raise MachineBusy(INVOICE_IN_PROGRESS(number=sale.number))
            if holder is not None:
                raise DuplicateInvoice(holder)
            if deferred.is_number_in_use(connection, book, sale.number):
                raise NumberWaits(sale.number)
            digest = deferred.digest_of(sale.key, sale.fingerprint, invoice_bytes(sale.invoice)) if sale.invoice else ""
            entry = SaleDeferred(sale.number, sale.type, sale.total_ttc, sale.sold_at, reason, sale.outage, digest)
            at = entries.append(connection, book, entry, sale.sold_at).at
            stored = msgspec.structs.replace(sale, id=deferred.insert(connection, book, sale))
            self._open.event_writer.write(connection, book, DEFERRED, at, ref=stored.id)
            return stored

        return await self.write(job)

    async def refuse_sale(self, book: Book, sale: DeferredSale, why: str, *, at: int) -> None:
        """NotWaiting where it was taken back meanwhile."""

        def job(connection: sqlite3.Connection) -> None:
            deferred.end(connection, book, sale.id, "refused", why=why, at=at)
            entries.append(connection, book, SaleDecided(sale.number, "refused", to_stored(why)), at)

        await self.write(job)

    async def withdraw_sale(self, book: Book, sale: DeferredSale, reason: str, *, at: int, by: Actor) -> None:
        """NotWaiting where it has ended, or an attempt is under way."""

        def job(connection: sqlite3.Connection) -> None:
            deferred.end(connection, book, sale.id, "withdrawn", why=reason, at=at)
            _note(connection, book, sale, SaleDecided(sale.number, "withdrawn", to_stored(reason)), at=at, by=by)

        await self.write(job)

    async def release_sale(self, book: Book, sale: DeferredSale, reason: str, *, at: int, by: Actor) -> None:
        """A doubtful one was not certified: it waits again."""

        def job(connection: sqlite3.Connection) -> None:
            deferred.release(connection, book, sale.id)
            _note(connection, book, sale, SaleDecided(sale.number, "released", to_stored(reason)), at=at, by=by)

        await self.write(job)


def _note(
    connection: sqlite3.Connection, book: Book, sale: DeferredSale, decided: SaleDecided, *, at: int, by: Actor
) -> None:
    placed = entries.append(connection, book, decided, at)
    if book.mode == "live":
        detail = {"number": sale.number, "total_ttc": str(sale.total_ttc), "reason": str(from_stored(decided.reason))}
        action: Action = "sale.withdrawn" if decided.decision == "withdrawn" else "sale.released"
        audit.add(connection, action, f"{book.nim} live", at=placed.at, by=by, detail=detail)
