"""Invoice numbers of the box (SFE 2.18) and references of credit notes.

A new invoice gets the lowest number of the series that no attempt has, so that none is missing. The intent reserves it
durably; a refused or abandoned attempt frees it. A credit note names one sale and never exceeds it (409
CREDIT_EXCEEDS_ORIGINAL)."""

import re
from collections.abc import Callable
from functools import partial

import msgspec

from common.language.reasons import ORIGINAL_GUESSED, ORIGINAL_NOT_CHECKED, to_stored
from daemon.core.invoice.invoice import CREDITS, SALES, Invoice, Warn
from daemon.core.invoice.number import Series, number_key, read_reference
from daemon.core.invoice.taxes import withheld_anew
from daemon.core.ledger.original import FIELD, ORIGINAL_NUMBER, PossibleOriginal, one_reference, read_original_number
from daemon.core.machine.state import activation_of
from daemon.store.tables.book import attempts, originals, settlements, uniqueness
from daemon.store.tables.book.books import book_state
from daemon.usecases.worker.machine_worker import MachineWorker

NUMBER = "invoiceNumber"


def name(worker: MachineWorker, invoice: Invoice, original: str = "") -> Invoice:
    """The invoice with its reference in full. `original`: number of a credit note's sale, where the till sent it. If the
    configuration names the machine without its activation counter, a till may too, and means the present one.
    InvalidRequest for an activation that the machine never had."""
    reference = read_reference(invoice.reference)
    if reference is None:
        return invoice
    for each in (worker, worker.first, worker.spare):
        if reference.activation is None and each is not None and each.configured_nim == reference.machine:
            reference = reference._replace(activation=activation_of(each.book.nim))
    worker.ledger.peek(originals.places, worker.book.id, reference)
    return _withheld_as_sold(worker, msgspec.structs.replace(invoice, reference=str(reference)), original)


def _withheld_as_sold(worker: MachineWorker, invoice: Invoice, original: str) -> Invoice:
    """The credit note with the PSVB rates of its sale, which may be older than the present ones (CGI 200)."""
    if not invoice.withholdings:
        return invoice
    rates = worker.ledger.peek(originals.rates_withheld, worker.book, invoice, original)
    first, *more = withheld_anew(invoice, invoice.taxes, rates)
    return msgspec.structs.replace(invoice, psvb=first, more_psvb=tuple(more))


def referenced(worker: MachineWorker, body: object) -> object:
    """The request with the reference of the sale that `originalInvoiceNumber` names. InvalidRequest if no sale or
    several have that number, or if a reference in the request means another sale."""
    if not isinstance(body, dict) or not (original := number_of_original(body)):
        return body
    sales = worker.ledger.peek(attempts.sales_of_number, worker.book, original)
    found = [(sale.nim, sale.counters.fvc) for sale in sales if sale.counters]
    return {**body, FIELD: one_reference(found, body.get(FIELD))}


def number_of_original(body: object) -> str:
    """`originalInvoiceNumber` of a request; empty if the till sent none."""
    if not isinstance(body, dict) or body.get(ORIGINAL_NUMBER) is None:
        return ""
    return read_original_number(body)


async def claim(worker: MachineWorker, attempt_id: int, invoice: Invoice, original: str = "") -> Invoice:
    """The credit note, with a warning if its original is not in this ledger (from before mcfd, or of another shop), or
    was chosen among several exports.

    Runs during its turn at the machine, and is stored with the attempt: so two credit notes on one sale, at any
    machines, cannot both use the same remaining amount."""
    await worker.attempts.all_durable()
    return _warned(invoice, await worker.ledger.write(originals.claim, worker.book, attempt_id, invoice, original))


def check(worker: MachineWorker, invoice: Invoice, original: str = "") -> Invoice:
    """As `claim`, without a write."""
    return _warned(invoice, worker.ledger.peek(originals.find, worker.book, invoice, original))


def _warned(invoice: Invoice, found: PossibleOriginal | None) -> Invoice:
    if read_reference(invoice.reference) is None or (found is not None and not found.is_guess):
        return invoice
    if found is None:
        warn = Warn("ORIGINAL_NOT_CHECKED", to_stored(ORIGINAL_NOT_CHECKED(reference=invoice.reference)))
    else:
        text = ORIGINAL_GUESSED(reference=invoice.reference, number=found.number)
        warn = Warn("ORIGINAL_GUESSED", to_stored(text), field=FIELD)
    return msgspec.structs.replace(invoice, warnings=(*invoice.warnings, warn))


def numbered(worker: MachineWorker, body: object, *, credit: bool, series: Series | None = None) -> tuple[object, bool]:
    """The request with a number, and whether the box gave it: the till sent none, and the shop has a series, or the
    caller."""
    series = worker.defaults.series or series
    if (
        series is None
        or not isinstance(body, dict)
        or body.get(NUMBER) not in (None, "")
        or body.get("invoiceType") not in (CREDITS if credit else SALES)
    ):
        return body, False
    type_ = str(body["invoiceType"])
    first = worker.first or worker  # a spare continues the series of the machine that it replaces
    prefix_of = partial(series.prefix, nim=first.configured_nim, at=worker.now())
    prefix = prefix_of(type_)
    floor = worker.series_floor.get(prefix)
    if floor is None:
        count, highest = worker.ledger.peek(uniqueness.count_numbers, worker.book, prefix, series.digits)
        floor = highest if count == highest else 0
    lowest_open, adopted = worker.ledger.peek(uniqueness.bounds, worker.book, prefix, series.digits)
    if lowest_open:
        floor = min(floor, lowest_open - 1)
    floor = max(floor, adopted, _missing(worker, prefix_of, type_, series.digits), _replaced(worker, prefix, series))
    floor = max(floor, _machine_place(worker, prefix_of, type_, series.digits))
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
    """Highest place that an invoice of that type may have which a restored ledger lacks; 0 for none."""
    name = f"{prefix_of(type_)} {worker.ledger.peek(settlements.decided, worker.book)}"  # changes with each decision
    floors = worker.series_floor
    if name not in floors:
        floors[name] = worker.ledger.peek(uniqueness.highest_missing, worker.book, type_, prefix_of, digits)
    return floors[name]


def _replaced(worker: MachineWorker, prefix: str, series: Series) -> int:
    """Highest place that was given in a ledger which a copy has replaced; 0 for none."""
    name, floors = f"{prefix} replaced", worker.series_floor
    if name not in floors:
        floors[name] = worker.ledger.peek(uniqueness.highest_replaced, worker.book, prefix, series.digits)
    return floors[name]


def _is_behind(worker: MachineWorker) -> bool:
    """Whether the ledger was restored or lost and has not been compared with its machine yet."""
    is_empty = bool(worker.attention) and worker.ledger.peek(book_state, worker.book).counters is None
    return worker.attempts.is_restored or is_empty


def _machine_place(worker: MachineWorker, prefix_of: Callable[[str], str], type_: str, digits: int) -> int:
    """Highest place in use by a machine that was not compared with a restored ledger yet: that of its last invoice, or
    the one that its counters leave room for. A sale may be accepted meanwhile, and must not get such a number. 0 for
    none; MachineOffline or MachineAttention until such a machine has been read."""
    highest, prefix, peek = 0, prefix_of(type_), worker.ledger.peek
    for each in (worker, worker.spare, worker.first):
        if each is None or not _is_behind(each):
            continue
        evidence = peek(settlements.read_evidence, each.book)
        if evidence is None:
            worker.ready()  # one that was declared lost is no reason
        elif (last := evidence.state.last) is not None:
            if place := re.fullmatch(rf"{re.escape(prefix)}([0-9]{{{digits}}})", number_key(last.number)):
                highest = max(highest, int(place[1]))
            now, before = evidence.state.counters, peek(book_state, each.book).counters
            if before is not None:
                machine = (last, now.fvc - before.fvc, now.frc - before.frc)
                missing = peek(uniqueness.highest_missing, worker.book, type_, prefix_of, digits, machine=machine)
                highest = max(highest, missing)
    return highest
