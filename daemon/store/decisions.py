"""What an operator decides when the ledger and the machine do not agree."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from functools import partial

from daemon.core.audit import DAEMON, Actor
from daemon.core.events import CERTIFIED
from daemon.core.ledger.attempt import Outcome, Record
from daemon.core.ledger.book import Book
from daemon.core.ledger.decision import Case, Decision
from daemon.core.ledger.entries import Placed
from daemon.core.ledger.verdict import Evidence, strangers
from daemon.core.machine.state import Certified, MachineState
from daemon.store.access import LedgerAccess
from daemon.store.maintenance import numbers
from daemon.store.tables import audit
from daemon.store.tables.book import attempts, books, settlements, time_repair
from daemon.store.tables.book.settlements import Settlement


class OperatorDecisions(LedgerAccess):
    async def disputed(self, book: Book) -> Sequence[Record]:
        return await self._read(partial(attempts.unfinished, book=book, state="disputed"))

    async def case(self, book: Book) -> Case:
        """What there is to decide on."""
        state = self._snapshot(partial(books.book_state, book=book))
        disputed = await self.disputed(book)
        return Case(state, disputed[0] if disputed else None, await self.evidence(book))

    async def carry_out(self, case: Case, decision: Decision, *, reason: str, at: int, by: Actor = DAEMON) -> None:
        """Into the ledger. ValueError for one that has an obstacle: whoever asks has told it before."""
        if obstacle := case.obstacle(decision):
            raise ValueError(obstacle)
        book, attempt, word = case.state.book, case.attempt, case.certified()
        if decision == "not-certified" and attempt is not None:
            await self.abandoned(book, attempt.id, reason=reason, at=at, by=by)
        elif decision == "certified" and attempt is not None and word is not None:
            await self.certified(book, attempt.id, word, reason=reason, at=at, by=by)
        elif case.evidence is not None:
            await self.adopted(book, case.evidence.state, unexplained=case.foreign(), reason=reason, at=at, by=by)

    async def certified(
        self, book: Book, attempt_id: int, certified: Certified, *, reason: str, at: int, by: Actor = DAEMON
    ) -> Record:
        """Whatever else the machine has certified since the ledger last knew it stays unexplained."""

        def job(connection: sqlite3.Connection) -> Record:
            record = attempts.find_record(connection, book, attempt_id)
            known = books.book_state(connection, book).known or record.base
            others = strangers(record.invoice, known, certified.counters)
            outcome = Outcome(certified, record.invoice, record.total_ttc, at, unexplained=others, reason=reason)
            settled = settlements.settle_certified(connection, book, attempt_id, outcome)
            self._open.event_writer.write(connection, book, CERTIFIED, settled.ended_at, ref=settled.id)
            _note(connection, book, "certified", settled, reason=reason, at=at, by=by)
            return settled

        return await self._write(job)

    async def abandoned(self, book: Book, attempt_id: int, *, reason: str, at: int, by: Actor = DAEMON) -> Record:
        def job(connection: sqlite3.Connection) -> Record:
            settled = settlements.settle_abandoned(connection, book, attempt_id, reason, at)
            _note(connection, book, "not-certified", settled, reason=reason, at=at, by=by)
            return settled

        return await self._write(job)

    async def adopted(
        self, book: Book, state: MachineState, *, unexplained: int, reason: str, at: int, by: Actor = DAEMON
    ) -> Record | None:
        """For a ledger that is behind its machine: takes over the counters and the last invoice, which is the record."""

        def job(connection: sqlite3.Connection) -> Record | None:
            entered = settlements.adopt(connection, book, state, unexplained=unexplained, reason=reason, at=at)
            _note(connection, book, "adopt", entered, reason=reason, at=at, by=by)
            return entered

        return await self._write(job)

    async def evidence(self, book: Book) -> Evidence | None:
        """What the machine said last while the book was in attention."""
        return await self._read(partial(settlements.read_evidence, book=book))

    async def settlements(self, book: Book) -> Sequence[Settlement]:
        return await self._read(partial(settlements.settlements, book=book))

    # -- time (decision 21) -----------------------------------------------------------------------------------------------

    async def repair_time(self, book: Book, *, now: int, ahead: int, reason: str) -> Placed:
        """A book that a wrong clock has moved ahead ends at `now` again; NotFound when it has nothing that is still to come."""
        return await self._write(partial(time_repair.repair, book=book, now=now, ahead=ahead, reason=reason))

    async def accept_time(self, upto: int) -> None:
        """An operator has confirmed the box's clock, up to there (ms)."""
        await self._write(partial(books.accept_time, upto=upto))

    async def say_last_z(self, book: Book, z_number: int, *, at: int = 0, by: Actor = DAEMON) -> None:
        """The last Z that was given, from paper or from upstream (decision 30): the next one is after it. Lower than what the ledger has, it
        says that there was none since."""

        def job(connection: sqlite3.Connection) -> None:
            numbers.answer(connection, book, z_number, known_from="operator")
            when = max(at, books.book_state(connection, book).last_at)
            detail = {"z_number": str(z_number)}
            audit.add(connection, "z_number.said", f"{book.nim} {book.mode}", at=when, by=by, detail=detail)

        await self._write(job)

    async def hear_last_z(self, book: Book, z_number: int) -> bool:
        """The same from upstream, which says it unasked; whether it was wanted here."""
        return await self._write(partial(numbers.hear, book=book, given=z_number))


def _note(
    connection: sqlite3.Connection,
    book: Book,
    decision: str,
    record: Record | None,
    *,
    reason: str,
    at: int,
    by: Actor,
) -> None:
    """In the audit log, with the decision as it was given."""
    detail = {"decision": decision, "reason": reason} | ({"number": record.number} if record else {})
    audit.add(connection, "attempt.settled", f"{book.nim} {book.mode}", at=at, by=by, detail=detail)
