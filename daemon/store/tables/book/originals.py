"""Books credit notes on their originals (`core.ledger.original`), over all books of a mode and taxpayer. Functions on a
connection, for the writer or a reader."""

import contextlib
import sqlite3
from collections.abc import Sequence
from typing import NamedTuple

from daemon.core.errors import CreditExceedsOriginal, InvalidRequest, LedgerUnusable
from daemon.core.invoice.invoice import Invoice
from daemon.core.invoice.number import Reference, number_key, read_reference
from daemon.core.ledger.attempt import Mode
from daemon.core.ledger.book import Book
from daemon.core.ledger.original import Name, Place, PossibleOriginal, booked_on, choose, locate
from daemon.store.sqlite.file import load
from daemon.store.tables.book.codec import read_invoice, unpack

_SQL = load(__name__)

NONE = 0
"""A credit note on no sale of this ledger."""
TO_COME = -1
"""One under way, on a counter that its machine has not come to: the sale is found once it is there."""
AT_ONCE = 1000
"""Credit notes booked on nothing yet that are looked at in one go."""


class OriginalQuery(NamedTuple):
    """What a credit note says of its sale. `number`: the sale's own, where the till sent it: several exports may have
    one counter."""

    reference: Reference
    credit_type: str
    number: str = ""


def places(connection: sqlite3.Connection, book_id: int, reference: Reference) -> tuple[Place, ...]:
    """Where what a reference in that book names is looked for; InvalidRequest as `locate`."""
    machine = (book_id, reference.machine, f"{reference.machine}-*")
    rows = connection.execute(_SQL["names"], machine)
    return locate(reference, [Name(*row) for row in rows])


def claim(
    connection: sqlite3.Connection, book: Book, attempt_id: int, invoice: Invoice, number: str = ""
) -> PossibleOriginal | None:
    """Books a begun credit note on its sale, in the transaction that checks the limit, so that credit notes at other
    machines count. `number`: of the sale, where the till sent it. Returns that sale, if there is one; InvalidRequest,
    CreditExceedsOriginal, MachineBusy."""
    _resolve(connection, book.mode)
    found = find(connection, book, invoice, number, attempt_id)
    connection.execute(_SQL["claim"], (found.id if found else _none(connection, book.id, invoice), attempt_id))
    return found


def rates_withheld(connection: sqlite3.Connection, book: Book, invoice: Invoice, number: str = "") -> dict[str, int]:
    """PSVB rates (hundredths of a percent) of the credit note's sale, by group; empty without such a sale."""
    if (reference := read_reference(invoice.reference)) is None:
        return {}
    candidates = _candidates(connection, book.id, OriginalQuery(reference, invoice.type, number))
    sale = connection.execute(_SQL["payload"], (booked_on(invoice.type, invoice.total_ttc, candidates),))
    return {each.group: each.rate for (payload,) in sale for each in read_invoice(unpack(payload)).withholdings}


def find(
    connection: sqlite3.Connection, book: Book, invoice: Invoice, number: str = "", attempt_id: int = 0
) -> PossibleOriginal | None:
    """As `claim`, without a write. `attempt_id`: the credit note's own attempt, which takes nothing from itself."""
    if (reference := read_reference(invoice.reference)) is None:
        return None
    candidates = _candidates(connection, book.id, OriginalQuery(reference, invoice.type, number), attempt_id)
    named = bool(number)
    return choose(invoice.reference, invoice.type, invoice.total_ttc, candidates, leeway=invoice.leeway, is_named=named)


def check_agreed(connection: sqlite3.Connection, attempt_id: int, invoice: Invoice) -> None:
    """CreditExceedsOriginal where the machine's total, a franc off in HT mode, no longer fits."""
    sale = connection.execute(_SQL["claimed"], (attempt_id,)).fetchone()
    if sale is None:
        return
    original_id, total = sale
    _, claimed = taken(connection, original_id, attempt_id)
    if claimed + invoice.total_ttc > total:
        raise CreditExceedsOriginal(invoice.reference, total, claimed + invoice.total_ttc, total - claimed)


def _candidates(
    connection: sqlite3.Connection, book_id: int, sought: OriginalQuery, attempt_id: int = 0
) -> list[PossibleOriginal]:
    """By FVC; where none of its family has that one, by the counter that stands on an export's paper."""
    found = [(*place, sought.reference.counter) for place in places(connection, book_id, sought.reference)]
    by_fvc = _listed(connection, "sales", found, sought, attempt_id)
    if sought.credit_type != "EA" or any(each.is_credited_by("EA") for each in by_fvc):
        return by_fvc
    return _listed(connection, "exports", found, sought, attempt_id) or by_fvc


def _listed(
    connection: sqlite3.Connection,
    query: str,
    found: Sequence[tuple[int, int, int]],
    sought: OriginalQuery,
    attempt_id: int,
) -> list[PossibleOriginal]:
    """Candidates of the first epoch (`locate`) that has any of the family, else of the first that has any. If exports
    move TC alone, one right after an activation has the counter of the last sale before it."""
    key, listed = number_key(sought.number), []
    for place in found:
        rows: list[tuple[int, str, str, int, int]] = connection.execute(_SQL[query], place).fetchall()
        if rows := [sale for sale in rows if not key or number_key(sale[1]) == key]:
            listed.append([PossibleOriginal(*sale, *taken(connection, sale[0], attempt_id)) for sale in rows])
    of_family = (each for each in listed if any(sale.is_credited_by(sought.credit_type) for sale in each))
    return next(of_family, listed[0] if listed else [])


def taken_of(connection: sqlite3.Connection, sale_ids: Sequence[int]) -> list[int]:
    """Of each, what credit notes have taken, those under way included."""
    return [taken(connection, sale_id)[1] for sale_id in sale_ids]


def taken(connection: sqlite3.Connection, sale_id: int, attempt_id: int = 0) -> tuple[int, int]:
    """What credit notes other than `attempt_id` have taken of a sale: without those under way, and with them."""
    found: tuple[int, int] = connection.execute(_SQL["credited"], (sale_id, attempt_id)).fetchone()
    return found


def _none(connection: sqlite3.Connection, book_id: int, invoice: Invoice) -> int:
    """What stands for no sale of this ledger."""
    if (reference := read_reference(invoice.reference)) is None:
        return NONE
    found = places(connection, book_id, reference)
    is_to_come = any(connection.execute(_SQL["to_come"], (*place, reference.counter)).fetchone() for place in found)
    return TO_COME if is_to_come else NONE


def _resolve(connection: sqlite3.Connection, mode: Mode) -> None:
    """Books credit notes that came before their sale, and those that 0.1.0 had not booked, since their reference was
    spelled differently or names another machine of this box."""
    last = 0
    while rows := connection.execute(_SQL["unresolved"], (mode, last, AT_ONCE)).fetchall():
        for last, book_id, credit_type, total, payload in rows:
            booked = NONE
            # 0.1.0 took an activation that its machine never had; and a damaged row is reported by `mcfd verify`.
            with contextlib.suppress(InvalidRequest, LedgerUnusable):
                invoice = read_invoice(unpack(payload))
                if reference := read_reference(invoice.reference):
                    candidates = _candidates(connection, book_id, OriginalQuery(reference, credit_type), last)
                    booked = booked_on(credit_type, total, candidates) or _none(connection, book_id, invoice)
            connection.execute(_SQL["claim"], (booked, last))
