"""The ledger as screens, commands and housekeeping see it: the journal, events, keys, settlements, pruning."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncGenerator, Collection, Sequence
from functools import partial

from daemon.core.certification import Certified, MachineState, Mode, Record
from daemon.core.closure import Book, Closure
from daemon.core.events import CERTIFIED, Event
from daemon.core.journal import Page
from daemon.core.settlement import Evidence
from daemon.store import attempts, books, closures, events, housekeeping, journal, keys, outbox, settlement
from daemon.store.base import Base
from daemon.store.housekeeping import Kept
from daemon.store.keys import ApiKey
from daemon.store.settlement import Settlement

VERIFIED_AT = "verified_at"


class Office(Base):
    # -- the journal ----------------------------------------------------------------------------------------------------

    async def books(self) -> Sequence[Book]:
        return await self._read(books.all_books)

    async def journal(self, book: Book, page: Page) -> Sequence[Record]:
        """Newest first; go on with `before_seq` = the seq of the last one."""
        return await self._read(partial(journal.journal, book=book, page=page))

    async def iterate(self, book: Book, start: int, end: int) -> AsyncGenerator[Record, None]:
        """What ended in `start <= t < end` (ms), oldest first, in flat memory."""
        after = 0
        while records := await self._read(partial(journal.chunk, book=book, start=start, end=end, after_seq=after)):
            for record in records:
                yield record
            after = records[-1].seq

    async def by_code(self, book: Book, code: str) -> Record | None:
        return await self._read(partial(journal.by_code, book=book, code=code))

    async def periods(self, book: Book, records: Sequence[Record]) -> Sequence[int]:
        """The same for many records that come one after the other, in either direction."""
        return await self._read(partial(closures.periods, book=book, records=records))

    async def period_of(self, book: Book, record: Record) -> int:
        """The number of the Z that a record is in; 0 while it is in the open period."""
        return await self._read(partial(closures.period_of, book=book, seq=record.seq))

    async def closure(self, book: Book, z_number: int) -> Closure:
        return await self._read(partial(closures.find_closure, book=book, z_number=z_number))

    # -- events -----------------------------------------------------------------------------------------------------------

    async def add_event(self, book: Book, kind: str, *, at: int, ref: int = 0, detail: str = "") -> None:
        """For what the ledger does not do itself: a machine that comes and goes, an alert."""
        tell = self._parts.teller.tell
        await self._write(lambda connection: tell(connection, book, kind, at, ref=ref, detail=detail))

    async def events_after(self, book: Book, event_id: int, limit: int = 100) -> Sequence[Event]:
        return self._look(partial(events.events_after, book=book, event_id=event_id, limit=limit))

    async def find_event(self, book: Book, event_id: int) -> Event | None:
        return self._look(partial(events.find_event, book=book, event_id=event_id))

    async def last_told(self, book: Book, kind: str) -> int:
        """When an event of that kind was last written (ms), 0 when none is kept."""
        return self._look(partial(events.last_told, book=book, type_=kind))

    async def newest_event(self) -> int:
        return self._look(events.newest_event)

    # -- keys of clients ----------------------------------------------------------------------------------------------

    async def create_key(self, nim: str, mode: Mode, label: str, *, at: int) -> str:
        """The key itself: the only time that it is seen."""
        return await self._write(partial(keys.create_key, nim=nim, mode=mode, label=label, at=at))

    async def list_keys(self) -> Sequence[ApiKey]:
        return await self._read(keys.list_keys)

    async def revoke_key(self, key_id: int, *, at: int) -> None:
        await self._write(partial(keys.revoke_key, key_id=key_id, at=at))

    # -- what an operator settles ---------------------------------------------------------------------------------------

    async def disputed(self, book: Book) -> Sequence[Record]:
        return await self._read(partial(attempts.unfinished, book=book, state="disputed"))

    async def settle_certified(
        self, book: Book, attempt_id: int, certified: Certified, *, reason: str, at: int
    ) -> Record:
        """Whatever else the machine has certified since the ledger last knew it stays unexplained."""

        def job(connection: sqlite3.Connection) -> Record:
            record = attempts.find_record(connection, book, attempt_id)
            known, now = books.book_state(connection, book).known or record.base, certified.counters
            others = max(0, now.fvc - known.fvc + now.frc - known.frc - 1)
            outcome = attempts.Outcome(
                certified, record.invoice, record.total_ttc, at, unexplained=others, reason=reason
            )
            settled = settlement.settle_certified(connection, book, attempt_id, outcome)
            self._parts.teller.tell(connection, book, CERTIFIED, settled.ended_at, ref=settled.id)
            return settled

        return await self._write(job)

    async def settle_abandoned(self, book: Book, attempt_id: int, *, reason: str, at: int) -> Record:
        job = partial(settlement.settle_abandoned, book=book, attempt_id=attempt_id, reason=reason, at=at)
        return await self._write(job)

    async def adopt(self, book: Book, state: MachineState, *, unexplained: int, reason: str, at: int) -> Record | None:
        """For a ledger that is behind its machine: takes over the counters and the last invoice, which is the record."""
        job = partial(settlement.adopt, book=book, state=state, unexplained=unexplained, reason=reason, at=at)
        return await self._write(job)

    async def clear_attention(self, book: Book, *, reason: str, at: int) -> None:
        await self._write(partial(settlement.clear_attention, book=book, reason=reason, at=at))

    async def evidence(self, book: Book) -> Evidence | None:
        """What the machine said last while the book was in attention."""
        return await self._read(partial(settlement.read_evidence, book=book))

    async def settlements(self, book: Book) -> Sequence[Settlement]:
        return await self._read(partial(settlement.settlements, book=book))

    # -- housekeeping -----------------------------------------------------------------------------------------------------

    async def prune(self, now: int) -> int:
        """Lets go of what is older than its time (`housekeeping`), a little at a time; how many rows."""
        total = 0
        while gone := await self._write(partial(housekeeping.prune, now=now)):
            total += gone
        return total

    async def forget_destinations(self, *, but: Collection[str]) -> int:
        """Lets go of the rows of receivers of events that are no longer configured; how many were never sent. What goes
        upstream stays."""
        return await self._write(partial(outbox.forget_destinations, but=but))

    async def note_verified(self, *, at: int) -> None:
        """`mcfd verify` has found the whole ledger sound."""
        await self._write(lambda connection: housekeeping.write_meta(connection, VERIFIED_AT, str(at)))

    async def verified_at(self) -> int:
        """When that was last so (ms), 0 for never."""
        return int(self._look(lambda connection: housekeeping.read_meta(connection, VERIFIED_AT)) or 0)

    async def size(self) -> Kept:
        return self._look(housekeeping.measure)

    @property
    def commits(self) -> int:
        """Commits since the ledger was opened; each is one fsync."""
        return self._parts.writer.commits
