"""What an operator decides when the ledger and the machine do not agree."""

import sqlite3
from typing import NamedTuple

from common.language import Text
from common.language.reasons import SALE_RESTORED, SPARE_OF_OTHER_TAXPAYER
from daemon.core.audit import DAEMON, Actor
from daemon.core.events import CERTIFIED
from daemon.core.ledger.attempt import Outcome, Record
from daemon.core.ledger.book import Book
from daemon.core.ledger.decision import After, Case, Decision, DecisionRefused
from daemon.core.ledger.entries import SpareDecided
from daemon.core.ledger.paper import PaperInvoice
from daemon.core.ledger.take_over import TakeOverRefused
from daemon.core.ledger.verdict import Evidence, foreign_count
from daemon.core.machine.state import Certified, MachineState
from daemon.store.access import LedgerAccess
from daemon.store.maintenance import numbers
from daemon.store.tables import audit
from daemon.store.tables.book import attempts, books, deferred, entries, settlements, take_overs


class DecisionNote(NamedTuple):
    """Why, when (ms) and by whom. `as_printed`: what stands on paper was confirmed."""

    reason: str
    at: int
    by: Actor = DAEMON
    as_printed: bool = False


class OperatorDecisions(LedgerAccess):
    async def case(self, book: Book, fresh: Evidence | None = None) -> Case:
        """What there is to decide on; `fresh` is the machine's state just now, where it could be read."""
        return self.peek(self._case, book=book, fresh=fresh)

    async def open_cases(self) -> list[Case]:
        """What there is to decide in all books: one query while there is nothing, for each screen of an administrator."""
        found = [self.peek(self._case, book=book) for book in self.peek(books.books_perhaps_to_decide)]
        return [case for case in found if case.is_open]

    def _case(self, connection: sqlite3.Connection, book: Book, fresh: Evidence | None = None) -> Case:
        state = books.book_state(connection, book)
        open_ones = attempts.unfinished(connection, book, "disputed")
        in_doubt = [] if state.attention else self._in_doubt(connection, book)
        in_doubt = [each for each in in_doubt if take_overs.is_elsewhere(connection, book, each.begun_at)]
        open_ones += in_doubt
        evidence = fresh or settlements.read_evidence(connection, book)
        if evidence and book.mode == "live" and state.ifu and evidence.state.ifu not in ("", state.ifu):
            evidence = None  # the machine has another taxpayer now, and says nothing of this book
        last = evidence.state.last if evidence else None
        return Case(
            state,
            open_ones[0] if open_ones else None,
            evidence,
            attempts.compare_with_ledger(connection, book, last),
            settlements.decided(connection, book),
            bool(in_doubt) or take_overs.is_replaced(connection, book),
            take_overs.is_awaited(connection, book),
        )

    def _in_doubt(self, connection: sqlite3.Connection, book: Book) -> list[Record]:
        """What is begun, without what this process brings to its end itself."""
        is_under_way, begun = self._open.under_way.get(book.id), attempts.unfinished(connection, book)
        return [each for each in begun if is_under_way is None or not is_under_way(each)]

    async def carry_out(
        self,
        case: Case,
        decision: Decision,
        *,
        reason: str,
        at: int,
        by: Actor = DAEMON,
        paper: PaperInvoice | None = None,
    ) -> None:
        """Stores the decision; DecisionRefused if it has an obstacle, or if the case has changed since it was shown."""
        book, fresh = case.state.book, case.evidence

        def job(connection: sqlite3.Connection) -> None:
            if not case.is_still(self._case(connection, book)):
                raise DecisionRefused("changed")
            now = self._case(connection, book, fresh)
            is_taken = paper is not None and settlements.has_code(connection, paper.code)
            if obstacle := now.obstacle(decision, paper, is_taken=is_taken):
                raise DecisionRefused(obstacle)
            confirmed = paper is not None and paper.as_printed
            self._decide(connection, now, decision, paper, DecisionNote(reason, at, by, confirmed))

        await self.write(job)

    def _decide(
        self,
        connection: sqlite3.Connection,
        case: Case,
        decision: Decision,
        paper: PaperInvoice | None,
        note: DecisionNote,
    ) -> None:
        book, attempt, word = case.state.book, case.attempt, case.certified(paper)
        if decision == "not-certified" and attempt is not None:
            self.abandon(connection, book, attempt.id, note)
        elif decision == "certified" and attempt is not None and word is not None:
            after = None if paper is None or case.is_last else case.after(paper, attempt, word.counters)
            self.certify(connection, book, attempt.id, word, note=note, after=after)
        elif decision == "lost":
            _give_up(connection, book, note)
        elif case.evidence is not None:
            self.adopt(connection, book, case.evidence.state, case.foreign(), note)
        else:  # its machine has another taxpayer, and tells nothing of this one any more
            settlements.write_down(connection, book, "adopted", reason=note.reason, at=note.at)
            _note(connection, book, decision, None, note)

    def certify(
        self,
        connection: sqlite3.Connection,
        book: Book,
        attempt_id: int,
        word: Certified,
        *,
        note: DecisionNote,
        after: After | None = None,
    ) -> Record:
        """Other invoices that the machine certified since count as unexplained, unless `after` tells them."""
        record = attempts.find_record(connection, book, attempt_id)
        if after is None:
            before = books.book_state(connection, book).counters or record.base
            others = foreign_count(record.invoice, before, word.counters)
        else:
            others = after.others
        outcome = Outcome(word, record.invoice, record.total_ttc, note.at, unexplained=others, reason=note.reason)
        settled = settlements.settle_certified(
            connection, book, attempt_id, outcome, None if after is None else after.state
        )
        self._open.event_writer.write(connection, book, CERTIFIED, settled.ended_at, ref=settled.id)
        _note(connection, book, "certified", settled, note)
        return settled

    def abandon(self, connection: sqlite3.Connection, book: Book, attempt_id: int, note: DecisionNote) -> Record:
        settled = settlements.settle_abandoned(connection, book, attempt_id, note.reason, note.at)
        if found := take_overs.since(connection, book, settled.begun_at):
            entry = SpareDecided("not certified", found.first.nim, found.spare.nim, note.reason, number=settled.number)
            for each in found.pair:
                entries.append(connection, each, entry, note.at)
        _note(connection, book, "not-certified", settled, note)
        return settled

    def adopt(
        self, connection: sqlite3.Connection, book: Book, state: MachineState, unexplained: int, note: DecisionNote
    ) -> Record | None:
        """For a ledger behind its machine: takes over counters and last invoice; returns the latter's record."""
        if self._open.high_water is not None:  # where the book begins with it
            numbers.question_at_first_connection(connection, book, self._open.high_water, state)
        begun = self._in_doubt(connection, book)
        adoption = settlements.adopt(
            connection, book, state, begun, unexplained=unexplained, reason=note.reason, at=note.at
        )
        for record in adoption.found:
            self._open.event_writer.write(connection, book, CERTIFIED, record.ended_at, ref=record.id)
        _note(connection, book, "adopt", adoption.record, note)
        return adoption.record

    # -- the spare ------------------------------------------------------------------------------------------------------

    async def take_over(self, first: Book, spare: Book, *, reason: str, at: int, by: Actor = DAEMON) -> None:
        """From now on the spare certifies for the tills of `first`. A doubt there reserves its number until settled.
        TakeOverRefused."""

        def job(connection: sqlite3.Connection) -> None:
            if lasting := take_overs.lasting(connection, first) or take_overs.lasting(connection, spare):
                text = Text("{spare} stands for {nim} already", spare=lasting.spare.nim, nim=lasting.first.nim)
                raise TakeOverRefused(text)
            ours, theirs = (books.book_state(connection, book).ifu for book in (first, spare))
            if ours and theirs and ours != theirs:
                raise TakeOverRefused(SPARE_OF_OTHER_TAXPAYER)
            decided = SpareDecided("taken over", first.nim, spare.nim, reason)
            began_at = _note_take_over(connection, decided, (first, spare), at, by)
            take_overs.begin(connection, first, spare, at=began_at, reason=reason)

        await self.write(job)

    async def take_back(self, first: Book, *, reason: str, at: int, by: Actor = DAEMON) -> None:
        """The machine certifies for itself again; TakeOverRefused where no spare stands for it."""

        def job(connection: sqlite3.Connection) -> None:
            lasting = take_overs.lasting(connection, first)
            if lasting is None or lasting.first.id != first.id:
                raise TakeOverRefused(Text("no spare stands for {nim}", nim=first.nim))
            decided = SpareDecided("taken back", lasting.first.nim, lasting.spare.nim, reason)
            take_overs.end(connection, first, at=_note_take_over(connection, decided, lasting.pair, at, by))

        await self.write(job)

    # -- time (decision 21) -----------------------------------------------------------------------------------------------

    async def set_last_z(self, book: Book, z_number: int, *, at: int = 0, by: Actor = DAEMON) -> None:
        """Takes the last Z from paper or upstream (decision 30); the next one follows it. A number below the ledger's
        confirms that there was none since."""

        def job(connection: sqlite3.Connection) -> None:
            numbers.answer(connection, book, z_number, source="operator")
            when = max(at, books.book_state(connection, book).last_at)
            detail = {"z_number": str(z_number)}
            audit.add(connection, "z_number.said", f"{book.nim} {book.mode}", at=when, by=by, detail=detail)

        await self.write(job)


def _give_up(connection: sqlite3.Connection, book: Book, note: DecisionNote) -> None:
    """What waits may be among what the lost machine has certified: a person decides on each."""
    take_overs.lost(connection, book, note.at)
    deferred.doubt(connection, book, SALE_RESTORED)
    others = take_overs.sharing(connection, book)
    entries.append(connection, book, SpareDecided("lost", book.nim, others[0].nim, note.reason), note.at)
    for other in others:
        entries.append(connection, other, SpareDecided("lost", book.nim, other.nim, note.reason), note.at)
    _note(connection, book, "lost", None, note)


def _note_take_over(
    connection: sqlite3.Connection, decided: SpareDecided, pair: tuple[Book, Book], at: int, by: Actor
) -> int:
    """In the chains of both books, and in the audit log; the time (ms) that it has in the first of them."""
    decided_at, _ = (entries.append(connection, book, decided, at).at for book in pair)
    action = "machine.taken_over" if decided.step == "taken over" else "machine.taken_back"
    detail = {"spare": decided.spare, "reason": decided.reason}
    audit.add(connection, action, f"{decided.nim} live", at=at, by=by, detail=detail)
    return decided_at


def _note(connection: sqlite3.Connection, book: Book, decision: str, record: Record | None, note: DecisionNote) -> None:
    """In the audit log, with the decision as it was given."""
    detail = {"decision": decision, "reason": note.reason} | ({"number": record.number} if record else {})
    if note.as_printed:
        detail["as_printed"] = "yes"
    audit.add(connection, "attempt.settled", f"{book.nim} {book.mode}", at=note.at, by=note.by, detail=detail)
