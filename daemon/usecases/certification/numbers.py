"""Numbers that the box gives (SFE 2.18): the lowest of the series that no attempt has, so that none is missing. It is taken by the intent, durably; what is
refused or abandoned leaves it to the next. Credit notes name one sale by its number, and never exceed it (409 CREDIT_EXCEEDS_ORIGINAL)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import msgspec

from common.language.reasons import ORIGINAL_NOT_CHECKED, to_stored
from daemon.core.invoice.invoice import CREDITS, SALES, Invoice, Warn
from daemon.core.invoice.number import number_key, read_reference
from daemon.core.ledger.original import (
    FIELD,
    ORIGINAL_NUMBER,
    one_reference,
    read_original_number,
)
from daemon.core.machine.state import activation_of
from daemon.store.tables.book import attempts, originals, settlements, uniqueness
from daemon.store.tables.book.books import book_state
from daemon.usecases.worker.machine_worker import MachineWorker

NUMBER = "invoiceNumber"


def name(worker: MachineWorker, invoice: Invoice) -> Invoice:
    """The invoice with its reference in full: where the shop's configuration names the machine without its activation counter, a till may as well,
    and the present one is meant. InvalidRequest for an activation that its machine never had."""
    reference = read_reference(invoice.reference)
    if reference is None:
        return invoice
    for each in (worker, worker.first, worker.spare):
        if reference.activation is None and each is not None and each.configured_nim == reference.machine:
            reference = reference._replace(activation=activation_of(each.book.nim))
    worker.ledger.peek(originals.places, worker.book.mode, reference)
    return msgspec.structs.replace(invoice, reference=str(reference))


def referenced(worker: MachineWorker, body: object) -> object:
    """The request with the reference of the sale whose number it gives; InvalidRequest where no sale has it, several have, or the two mean two."""
    if not isinstance(body, dict) or body.get(ORIGINAL_NUMBER) is None:
        return body
    sales = worker.ledger.peek(attempts.sales_of_number, worker.book.mode, read_original_number(body))
    found = [(sale.nim, sale.counters.fvc) for sale in sales if sale.counters]
    return {**body, FIELD: one_reference(found, body.get(FIELD))}


async def claim(worker: MachineWorker, attempt_id: int, invoice: Invoice) -> Invoice:
    """The invoice, with a warning when its original is none of this ledger's (from before mcfd, or of a machine of elsewhere).

    Done at the machine, in turn, and written down with the attempt: of two credit notes on one sale, at whichever machines, not both are the last
    that fits."""
    await worker.attempts.all_durable()
    is_ours = await worker.ledger.write(originals.claim, worker.book, attempt_id, invoice)
    return invoice if is_ours or read_reference(invoice.reference) is None else _unchecked(invoice)


def check(worker: MachineWorker, invoice: Invoice) -> Invoice:
    """As `claim`, and nothing is written down."""
    is_ours = worker.ledger.peek(originals.exists, worker.book, invoice)
    return invoice if is_ours or read_reference(invoice.reference) is None else _unchecked(invoice)


def _unchecked(invoice: Invoice) -> Invoice:
    text = ORIGINAL_NOT_CHECKED(reference=invoice.reference)
    return msgspec.structs.replace(invoice, warnings=(*invoice.warnings, Warn("ORIGINAL_NOT_CHECKED", to_stored(text))))


def numbered(worker: MachineWorker, body: object, *, credit: bool) -> tuple[object, bool]:
    """The request with a number, and whether it is ours: where the shop has a series and the till sent none."""
    series = worker.defaults.series
    if series is None or not isinstance(body, dict) or body.get(NUMBER) not in (None, ""):
        return body, False
    type_ = body.get("invoiceType")
    if type_ not in (CREDITS if credit else SALES):
        return body, False
    first = worker.first or worker  # a spare goes on with the numbers of the machine for which it stands
    prefix_of = partial(series.prefix, nim=first.configured_nim or first.book.nim, at=worker.now())
    prefix = prefix_of(str(type_))
    floor = worker.series_floor.get(prefix)
    if floor is None:
        count, highest = worker.ledger.peek(uniqueness.count_numbers, worker.book, prefix, series.digits)
        floor = highest if count == highest else 0
    lowest_open, adopted = worker.ledger.peek(uniqueness.bounds, worker.book, prefix, series.digits)
    if lowest_open:
        floor = min(floor, lowest_open - 1)
    floor = max(floor, adopted, _missing(worker, prefix_of, str(type_), series.digits))
    floor = max(floor, _machine_place(worker, prefix_of, str(type_), series.digits))
    place, is_first = floor + 1, True
    while True:
        number = series.number(prefix, place)
        if place == lowest_open or worker.attempts.find(number) is not None:
            is_first = False
        elif not worker.ledger.peek(uniqueness.is_reserved, worker.book, number):
            break
        elif is_first:
            floor = place
        place += 1
    worker.series_floor[prefix] = floor
    return {**body, NUMBER: number}, True


def _missing(worker: MachineWorker, prefix_of: Callable[[str], str], type_: str, digits: int) -> int:
    """Up to which place invoices of that type may have numbers that an older ledger lacks."""
    name = f"{prefix_of(type_)} {worker.ledger.peek(settlements.decided, worker.book)}"  # a decision tells of them
    floors = worker.series_floor
    if name not in floors:
        floors[name] = worker.ledger.peek(uniqueness.highest_missing, worker.book, type_, prefix_of, digits)
    return floors[name]


def _is_behind(worker: MachineWorker) -> bool:
    """Whether an older ledger, or an empty one in the place of another, was not compared with its machine yet."""
    is_empty = bool(worker.attention) and worker.ledger.peek(book_state, worker.book).counters is None
    return worker.attempts.is_restored or is_empty


def _machine_place(worker: MachineWorker, prefix_of: Callable[[str], str], type_: str, digits: int) -> int:
    """The highest place that a machine has told which was not compared yet with an older ledger, or that its counters leave room for: what that lacks may
    have all before it, and a sale may be accepted meanwhile. 0 without one; MachineOffline or MachineAttention while such a machine has told nothing."""
    highest, prefix, peek = 0, prefix_of(type_), worker.ledger.peek
    for each in (worker, worker.spare, worker.first):
        if each is None or not _is_behind(each):
            continue
        evidence = peek(settlements.read_evidence, each.book)
        if evidence is None:
            worker.ready()  # one that was declared lost is no reason
        elif (last := evidence.state.last) is not None:
            number = number_key(last.number)
            end = number.removeprefix(prefix)
            if number != end and len(end) == digits and end.isdecimal():
                highest = max(highest, int(end))
            now, before = evidence.state.counters, peek(book_state, each.book).counters
            if before is not None:
                machine = (last, now.fvc - before.fvc, now.frc - before.frc)
                missing = peek(uniqueness.highest_missing, worker.book, type_, prefix_of, digits, machine=machine)
                highest = max(highest, missing)
    return highest
