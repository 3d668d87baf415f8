"""Numbers that the box gives (SFE 2.18): the lowest of the series that no attempt has, so that none is missing. It is taken by the intent, durably; what is
refused or abandoned leaves it to the next."""

from __future__ import annotations

from daemon.core.invoice.invoice import CREDITS, SALES
from daemon.store.tables.book import request_keys as numbers
from daemon.usecases.worker.machine_worker import MachineWorker

FIELD = "invoiceNumber"


def numbered(worker: MachineWorker, body: object, *, credit: bool) -> tuple[object, bool]:
    """The request with a number, and whether it is ours: where the shop has a series and the till sent none."""
    series = worker.defaults.series
    if series is None or not isinstance(body, dict) or body.get(FIELD) not in (None, ""):
        return body, False
    type_ = body.get("invoiceType")
    if type_ not in (CREDITS if credit else SALES):
        return body, False
    first = worker.first or worker  # a spare goes on with the numbers of the machine for which it stands
    prefix = series.prefix(str(type_), first.configured_nim or first.book.nim, worker.now())
    floor = worker.series_floor.get(prefix)
    if floor is None:
        count, highest = worker.ledger.peek(numbers.count_numbers, worker.book, prefix, series.digits)
        floor = highest if count == highest else 0
    place, is_first = floor + 1, True
    while True:
        number = series.number(prefix, place)
        if worker.attempts.find(number) is not None:
            is_first = False
        elif not worker.ledger.peek(numbers.is_reserved, worker.book, number):
            break
        elif is_first:
            floor = place
        place += 1
    worker.series_floor[prefix] = floor
    return {**body, FIELD: number}, True
