"""Numbers that must not be given twice after a restore (decision 30). The numbers of a replaced ledger go into the
high-water file. From there they return into the ledger at each start, at a machine's first connection and before each
Z, as an entry of the chain that `mcfd verify` accepts and shows."""

import contextlib
import sqlite3
import sys
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from itertools import starmap
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from common.language import Text
from common.wire.instants import now_millis
from daemon.core.errors import InvalidRequest
from daemon.core.ledger.book import Book, BookState
from daemon.core.ledger.entries import Gap
from daemon.core.machine.state import MachineState, same_machine, short_nim
from daemon.store.maintenance.housekeeping import BACKUP_AT, RESTORED_AT, mark_restored
from daemon.store.sqlite.file import UNREADABLE, load, open_to_read, transaction
from daemon.store.sqlite.high_water import (
    SUFFIX,
    HighWater,
    Mark,
    Marks,
    book_name,
    merged,
    names_of,
    read_marks,
    without_taxpayer,
    write_marks,
)
from daemon.store.tables.book import books, entries, uniqueness
from daemon.store.tables.book.calendar_closures import highest_numbers, numbers
from daemon.store.tables.meta import LEDGER_ID, read_meta, read_number, write_meta
from daemon.store.tables.people import end_all_sessions

LastZ = int | Mapping[str, int] | None
"""The last Z on paper by machine; a plain number where the ledger has one live book."""

_SQL = load(__name__)


LIVE: Final = "live"
"""Only live books ask for their last Z; the numbers of a sandbox may restart."""


MAX_SERIES: Final = 1000
"""Of the newest invoices; a till may send numbers that are no series."""


class LedgerNumbers(NamedTuple):
    """The numbers in a ledger's file. `questions`: by book name, that for the last Z, negative once answered there."""

    marks: Marks
    questions: dict[str, int]


def read_ledger_numbers(ledger: Path) -> LedgerNumbers | None:
    """Reads numbers and revoked keys from a ledger's file; None without a file, or if it cannot be read."""
    with contextlib.suppress(*UNREADABLE), closing(open_to_read(ledger)) as connection:
        rows = [
            (book_name(nim, mode, ifu), z, question)
            for nim, mode, ifu, z, question in connection.execute(_SQL["z_numbers"])
        ]
        revoked = frozenset(key_hash.hex() for (key_hash,) in connection.execute(_SQL["revoked"]))
        marks = Marks(revoked=revoked)
        ledger_id = read_meta(connection, LEDGER_ID)
        counted = frozenset({ledger_id} if ledger_id and not is_copied_by_hand(connection) else ())
        for name, z, question in rows:
            one = Marks({name: Mark(z, question=max(question, 0))}, ledgers={name: counted} if counted else {})
            marks = merged(marks, one)
        with contextlib.suppress(sqlite3.Error):  # a ledger of 0.1 knows no entries
            for nim, mode, ifu, months, years in connection.execute(_SQL["calendar_numbers"]):
                if months:
                    marks = merged(marks, Marks({book_name(nim, mode, ifu): Mark(months=months, years=years)}))
        return LedgerNumbers(marks, {name: question for name, _, question in rows})
    return None


def remember(replaced: Path) -> Marks | None:
    """Stores the numbers of `replaced` in the high-water file before a copy takes its place; None for none."""
    before, found = read_marks(replaced), read_ledger_numbers(replaced)
    if found is None:
        return before
    marks = merged(_without_cut_off(before or Marks(), found), found.marks)
    write_marks(replaced, marks)
    return marks


def _without_cut_off(marks: Marks, ledger: LedgerNumbers) -> Marks:
    """Drops reservations that the ledger decides: if it has all given numbers, it has the reserved Z too, or no ledger
    has it. Questions that were answered in it are closed."""
    by_name = {}
    for name, mark in marks.books.items():
        book = ledger.marks.books.get(name)
        reserved = 0 if book is not None and book.highest >= mark.highest else mark.reserved
        question = open_question(mark.question, ledger.questions.get(name, 0))
        by_name[name] = msgspec.structs.replace(mark, reserved=reserved, question=question)
    return msgspec.structs.replace(marks, books=by_name)


def take_over_places(copy: sqlite3.Connection, replaced: Path) -> None:
    """The highest place of each series that `replaced` has given, and the copy lacks, goes into the copy, which
    continues after it: `replaced` may come back later, with sales that wait under such numbers."""
    found = uniqueness.read_places(copy)
    with contextlib.suppress(*UNREADABLE), closing(open_to_read(replaced)) as connection:
        for name, place in _places(copy, connection):
            if name in found or len(found) < MAX_SERIES:
                found[name] = max(found.get(name, 0), place)
    write_meta(copy, uniqueness.PLACES, msgspec.json.encode(found).decode())


def _places(copy: sqlite3.Connection, replaced: sqlite3.Connection) -> Iterator[tuple[str, int]]:
    """Of sales that wait in `replaced`, and of its invoices since the last one that both ledgers have, newest first."""
    yield from uniqueness.read_places(replaced).items()
    with contextlib.suppress(sqlite3.OperationalError):  # a ledger of 0.1 knows no sales that wait
        yield from filter(None, starmap(uniqueness.place_of, replaced.execute(_SQL["waiting"]).fetchall()))
    for id_, hash_, nim, number in replaced.execute(_SQL["newest"]):
        if hash_ is not None and copy.execute(_SQL["hash"], (id_,)).fetchone() == (hash_,):
            return
        if place := uniqueness.place_of(nim, number):
            yield place


# -- whether the last Z has to be entered -----------------------------------------------------------------------------------


def open_question(mark: int, book: int) -> int:
    """The open question for the last Z of a book, 0 for none. `mark`: the one in the high-water file, 0 for none.
    `book`: the one in the ledger, negative once answered, 0 if there never was one."""
    if book > 0:
        return book
    return 0 if mark == -book else mark


def is_counted_here(marks: Marks, name: str, ledger_id: str) -> bool:
    """Whether `marks` counts all numbers ever given in that ledger's book, unless its question is open."""
    names = names_of(marks, name) if name == without_taxpayer(name) else [name]
    return any(ledger_id in marks.ledgers.get(each, frozenset()) for each in names)


def question_after_restore(marks: Marks, name: str, ledger_id: str, book: int, new: int) -> int:
    """The question of a live book in a restored copy, 0 for none: `new` if its numbers were not counted here, else the
    one that is open here. `book`: the copy's own question (`open_question`), which the numbers counted here answer."""
    if not is_counted_here(marks, name, ledger_id):
        return new
    questions = (open_question(marks.books[each].question, min(book, 0)) for each in names_of(marks, name))
    return max((0, *questions))


def question_at_first_meeting(marks: Marks, *, is_remembered: bool, is_used: bool, new: int) -> int:
    """The question of a new live book, 0 for none: after the restore of an unknown ledger, the lost one may have had
    that book, unless the machine is unused."""
    return new if marks.incomplete and is_used and not is_remembered else 0


def new_question() -> int:
    """The id of a new question, unique across disks; 0, for none, once in so many."""
    return uuid.uuid4().int % sys.maxsize


def is_copied_by_hand(connection: sqlite3.Connection) -> bool:
    """Whether the ledger is a backup that was copied into place without `mcfd restore`."""
    backup_at, restored = (read_number(connection, name) for name in (BACKUP_AT, RESTORED_AT))
    return backup_at > restored


def is_in_use(state: BookState) -> bool:
    """Whether the book is in use: its machine was read, or it has a Z."""
    return state.counters is not None or state.z_number > 0


# -- a copy is put back -------------------------------------------------------------------------------------------------------


def prepare_copy(connection: sqlite3.Connection, target: Path, marks: Marks | None, last_z: LastZ) -> tuple[str, ...]:
    """Prepares a copy (`connection`) that will replace `target`, whose numbers are in `marks`. Live books whose numbers
    were not counted here ask for their last Z, unless `last_z` gives it. Returns the NIMs of books that ask.
    InvalidRequest if `last_z` names no book of the copy, or a Z before its last."""
    marks, ledger_id = marks or Marks(), read_meta(connection, LEDGER_ID)
    states = [books.book_state(connection, book) for book in books.all_books(connection) if book.mode == LIVE]
    last_numbers = _stated_numbers(connection, states, last_z)
    restored_at, before = read_number(connection, RESTORED_AT), marks
    for state in states:
        book = state.book
        if is_in_use(state) and not is_counted_here(marks, name_of(state), ledger_id):
            most = Mark(**highest_numbers(connection, book, restored_at)._asdict())
            marks = merged(marks, Marks({name_of(state): most}))
        if book.id in last_numbers:
            skip_to(connection, book, last_numbers[book.id], source="operator")
            answered = (
                marks.books.get(name_of(state), Mark()).question or abs(_question(connection, book)) or new_question()
            )
            _write_question(connection, book, -answered)
        elif is_in_use(state):
            own = _question(connection, book)
            question = question_after_restore(marks, name_of(state), ledger_id, own, new_question())
            _write_question(connection, book, question or -abs(own))
    marks = _after_copy(marks, ledger_id)
    if marks != before:
        write_marks(target, marks)
    return tuple(state.book.nim for state in states if _question(connection, state.book) > 0)


def _after_copy(marks: Marks, ledger_id: str) -> Marks:
    """The marks after the restore of a copy of that ledger."""
    is_here = any(ledger_id in counted for counted in marks.ledgers.values())
    return marks if is_here else msgspec.structs.replace(marks, incomplete=True)


def _stated_numbers(connection: sqlite3.Connection, states: Sequence[BookState], last_z: LastZ) -> dict[int, int]:
    """The given numbers by book id; a machine means the book of its present taxpayer."""
    if last_z is None:
        return {}
    if isinstance(last_z, int):
        if len(states) != 1:
            names = ", ".join(sorted({state.book.nim for state in states}))
            raise InvalidRequest.at("last_z", Text("has to name the machine ({names}), as NIM=3", names=names))
        last_z = {states[0].book.nim: last_z}
    last_numbers = {}
    for nim, number in last_z.items():
        if not any(same_machine(state.book.nim, nim) for state in states):
            raise InvalidRequest.at("last_z", Text("the backup has no book of {nim}", nim=nim))
        book = books.open_book(connection, nim, LIVE)
        check_last_z(books.book_state(connection, book), number)
        last_numbers[book.id] = number
    return last_numbers


def check_last_z(state: BookState, number: int) -> None:
    """InvalidRequest if the ledger itself has a later Z: the number is mistyped, and the next Z could be given twice."""
    if number < state.z_number:
        raise InvalidRequest.at(
            "last_z",
            Text(
                "{number} cannot be the last Z of {nim}: the ledger has Z {last}; enter {last} if paper has none after it",
                number=number,
                nim=state.book.nim,
                last=state.z_number,
            ),
        )


# -- an open ledger -----------------------------------------------------------------------------------------------------------


def restore_numbers(connection: sqlite3.Connection, ledger: Path) -> HighWater:
    """At a start: numbers given after this copy was made become a gap in it, and revoked keys stay revoked. A number
    that this ledger only reserved belongs to a Z that a crash interrupted, and its retry gets it; one that another
    ledger reserved may be on paper and counts as given."""
    states = [books.book_state(connection, book) for book in books.all_books(connection)]
    marks, ledger_id = read_marks(ledger), read_meta(connection, LEDGER_ID)
    if marks is None and any(state.z_number and state.book.mode == LIVE for state in states):
        # The file was copied without its high-water file: from here on it is marked as a copy, durably.
        write_meta(connection, BACKUP_AT, str(max(now_millis(), read_number(connection, RESTORED_AT) + 1)))
    if by_hand := is_copied_by_hand(connection):
        write_marks(ledger, _after_copy(marks or Marks(), ledger_id))
    water = HighWater(ledger, ledger_id)
    z_numbers = {name_of(state): state.z_number for state in states}
    for name, mark in water.marks.books.items():
        if mark.reserved and z_numbers.get(name, -1) < mark.highest:
            water.count_number(name, mark.reserved)
    with transaction(connection):
        if by_hand:
            _take_in(connection, states, water)
        for state in states:
            catch_up(connection, state.book, water)
        for key_hash in water.marks.revoked:
            connection.execute(_SQL["revoke"], (bytes.fromhex(key_hash),))
    for state in (books.book_state(connection, state.book) for state in states):
        if is_in_use(state):  # another taxpayer's name until the machine has sent its own
            name = name_of(state)
            water.count_number(name, state.z_number)
            water.count(name, *numbers(connection, state.book))
            water.enter(name)
            water.ask(name, max(_question(connection, state.book), 0))
    return water


def _take_in(connection: sqlite3.Connection, states: Sequence[BookState], water: HighWater) -> None:
    """A copy that was put here by hand is treated as one that was put back, except that its numbers are believed to be
    counted here where the high-water file has its books and as many numbers."""
    for state in states:
        mark = water.marks.books.get(name_of(state))
        if state.book.mode == LIVE and is_in_use(state) and (mark is None or mark.highest < state.z_number):
            _write_question(connection, state.book, new_question())
            water.count(name_of(state), *highest_numbers(connection, state.book, now_millis()))
    mark_restored(connection, read_number(connection, BACKUP_AT))
    end_all_sessions(connection)


def name_of(state: BookState) -> str:
    return book_name(state.book.nim, state.book.mode, state.ifu)


def catch_up(connection: sqlite3.Connection, book: Book, water: HighWater) -> BookState:
    """Skips numbers that another ledger gave in this book, once its taxpayer is known, and raises another ledger's open
    question. Returns the book's state afterwards."""
    state = books.book_state(connection, book)
    name = name_of(state)
    own = _question(connection, book)
    skip_to(connection, book, water.highest(name), source="ledger" + SUFFIX)
    if book.mode == LIVE and (question := open_question(water.question(name), own)) != max(own, 0):
        _write_question(connection, book, question)
    return books.book_state(connection, book)


def question_at_first_connection(
    connection: sqlite3.Connection, book: Book, water: HighWater, machine: MachineState
) -> None:
    """Raises the question for the last Z, before the book takes over the machine's counters."""
    state = books.book_state(connection, book)
    if book.mode == LIVE and not is_in_use(state) and not _question(connection, book):
        counters = machine.counters
        question = question_at_first_meeting(
            water.marks,
            is_remembered=water.contains(book_name(book.nim, book.mode, machine.ifu)),
            is_used=bool(counters.tc or counters.fvc or counters.frc),
            new=new_question(),
        )
        _write_question(connection, book, question)


def skip_to(connection: sqlite3.Connection, book: Book, z_number: int, *, source: str) -> None:
    """Skips the Z numbers up to `z_number`, with a Gap entry; the next Z follows it."""
    state = books.book_state(connection, book)
    if z_number > state.z_number:
        import structlog  # noqa: PLC0415  a command that only reads logs nothing and starts faster without it

        log = structlog.get_logger(__name__)
        if structlog.is_configured():  # a daemon; a command prints it
            log.warning("closure.gap", nim=book.nim, mode=book.mode, first=state.z_number + 1, last=z_number)
        entries.append(connection, book, Gap(state.z_number + 1, z_number, source), state.last_at)
        connection.execute(_SQL["skip"], (z_number, book.id))


def answer(connection: sqlite3.Connection, book: Book, z_number: int, *, source: str) -> None:
    """Takes the last Z that a person has entered: the next one follows it, and the question is closed."""
    skip_to(connection, book, z_number, source=source)
    _write_question(connection, book, -abs(_question(connection, book)))


def apply_last_z(connection: sqlite3.Connection, book: Book, z_number: int) -> bool:
    """Takes the last Z from headquarters; returns whether it was needed. It is if the book asks for it, or has no Z yet
    and is its machine's only book (a further taxpayer's book rightly begins with Z 1)."""
    state = books.book_state(connection, book)
    of_machine = [
        one for one in books.all_books(connection) if (one.mode, short_nim(one.nim)) == (book.mode, short_nim(book.nim))
    ]
    is_wanted = state.needs_last_z or (not state.z_number and len(of_machine) == 1)
    if is_wanted:
        answer(connection, book, z_number, source="upstream")
    return is_wanted


def _question(connection: sqlite3.Connection, book: Book) -> int:
    question: int = connection.execute(_SQL["question"], (book.id,)).fetchone()[0]
    return question


def _write_question(connection: sqlite3.Connection, book: Book, question: int) -> None:
    connection.execute(_SQL["ask"], (question, book.id))
