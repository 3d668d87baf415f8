"""Certify an invoice or a credit note exactly once, or raise the reason why not."""

import asyncio
from functools import partial

from common.language import Text
from daemon.core.audit import Call
from daemon.core.errors import MachineAttention, MachineBusy
from daemon.core.invoice.intake import read_invoice
from daemon.core.invoice.invoice import Invoice
from daemon.core.invoice.number import Series
from daemon.core.ledger.attempt import DuplicateInvoice, Record
from daemon.core.ledger.deferred import NumberWaits
from daemon.core.ledger.phases import Phase, Step
from daemon.core.ledger.take_over import NumberReserved
from daemon.store.tables.book import attempts, deferred, uniqueness
from daemon.usecases.certification import numbers
from daemon.usecases.certification.attempt import AttemptRun, attempt
from daemon.usecases.certification.idempotency import Answered, once
from daemon.usecases.worker.attempts import LiveAttempt
from daemon.usecases.worker.machine_worker import MachineWorker
from daemon.usecases.worker.machine_workers import register_refusal


async def certify(
    worker: MachineWorker, body: object, call: Call, *, credit: bool = False, series: Series | None = None
) -> Answered[Record]:
    """`body` is the parsed JSON; `series`: of a number where the shop has none (`[numbering]`). Raises any error of
    `core.errors` except NotFound and those of the start.

    One task runs from the key to the end of the attempt, and continues when the caller disconnects."""
    arrived = asyncio.get_running_loop().time()

    async def run() -> Record:
        return await certify_body(worker, body, call, credit=credit, arrived=arrived, series=series)

    work = once(worker, call, run, lambda use: use.record)
    return await worker.run_to_end(work, "certify", partial(register_refusal, worker))


async def certify_body(
    worker: MachineWorker,
    body: object,
    call: Call,
    *,
    credit: bool = False,
    arrived: float,
    series: Series | None = None,
) -> Record:
    """Certifies under a key that this request owns; `arrived` in loop time."""
    deadline = arrived + worker.limits.patience
    while True:
        numbered, is_ours = numbers.numbered(worker, body, credit=credit, series=series)
        invoice = read_body(worker, numbered, call, credit=credit)
        try:
            original = numbers.number_of_original(numbered) if credit else ""
            return await certify_invoice(worker, invoice, call, arrived=arrived, deadline=deadline, original=original)
        except (DuplicateInvoice, NumberWaits):
            if not is_ours:
                raise  # a number of the box: another sale got it meanwhile, so the next one is tried


async def certify_invoice(
    worker: MachineWorker,
    invoice: Invoice,
    call: Call,
    *,
    arrived: float,
    deadline: float,
    deferred_id: int = 0,
    original: str = "",
) -> Record:
    """Certifies a parsed invoice, from the reservation of its number to its end. `deferred_id`: the row of a deferred
    sale, else 0. `original`: the number that a till sent of a credit note's sale. The caller runs it within
    `run_to_end`."""
    while other := worker.attempts.find(invoice.number):
        await number_decided(worker, other, deadline)
    live = worker.attempts.intend(invoice.number, call.key_hash)
    try:
        refuse_duplicate(worker, invoice, deferred_id)
        worker.check_in_use()
        worker.check_turn()
        await worker.ledger.check_free_space(worker.book)
        job = AttemptRun(worker, invoice, call, live, arrived, deadline, deferred_id, original)
        entry = worker.queue.join(job.begin)
    except BaseException:
        worker.attempts.step(live, Step.NOT_WRITTEN)
        raise
    return await attempt(job, entry)


async def dry_run(worker: MachineWorker, body: object, call: Call, *, credit: bool = False) -> Invoice:
    """The invoice with its totals and warnings as it would go to the machine, or the error that it would get. Nothing
    is stored or sent (decision 40)."""
    body, _ = numbers.numbered(worker, body, credit=credit)
    invoice = read_body(worker, body, call, credit=credit)
    refuse_duplicate(worker, invoice)
    return numbers.check(worker, invoice, numbers.number_of_original(body)) if invoice.is_credit else invoice


def read_body(worker: MachineWorker, body: object, call: Call, *, credit: bool) -> Invoice:
    rates = worker.rates
    if not rates and worker.first is not None:
        rates = worker.first.rates  # a spare that was never connected has the same taxpayer
    if not rates:
        worker.ready()  # raises: without the machine's rates nothing can be checked
    if credit:
        body = numbers.referenced(worker, body)
    invoice = read_invoice(body, defaults=worker.defaults, rates=rates, credit=credit, strict=call.strict)
    return numbers.name(worker, invoice, numbers.number_of_original(body) if credit else "")


async def number_decided(worker: MachineWorker, other: LiveAttempt, deadline: float) -> None:
    """Waits for news of another attempt with that number, which decides on a duplicate (decision 5)."""
    if other.phase is Phase.IN_DOUBT:
        worker.check_turn()  # raises if only the machine's return or an operator can end that doubt
    timeout = deadline - asyncio.get_running_loop().time()
    if timeout <= 0 or worker.closing:
        raise MachineBusy(Text("an invoice of this number is being certified; nothing was sent"))
    book = worker.book
    await asyncio.wait([other.news], timeout=timeout)
    worker.check_book(book)


def _reserved(worker: MachineWorker, record: Record) -> MachineBusy | NumberReserved:
    """The error for a number whose attempt at the other machine of the pair is under way or in doubt."""
    other = worker.worker_of(record.id)
    if other is not None and other.attempts.is_ours(record):
        return MachineBusy(Text("an invoice of this number is being certified; nothing was sent"))
    return NumberReserved(
        Text(
            "it is not known yet whether {nim} has certified invoice {number!r}: that machine says so when it answers again, or a person decides it",
            nim=record.nim,
            number=record.number,
        )
    )


def refuse_duplicate(worker: MachineWorker, invoice: Invoice, deferred_id: int = 0) -> None:
    if not worker.ledger.peek(uniqueness.is_reserved, worker.book, invoice.number):
        return
    taken, find = worker.defaults.numbers.taken_from(worker.now()), worker.ledger.peek
    record = find(attempts.find_number, worker.book, invoice.number, taken)
    elsewhere = None if record else find(attempts.find_elsewhere, worker.book, invoice.number, taken)
    if elsewhere is not None and elsewhere.state != "certified":
        raise _reserved(worker, elsewhere)
    record = record or elsewhere
    if record is None:
        if not deferred_id and worker.ledger.peek(deferred.is_number_in_use, worker.book, invoice.number):
            raise NumberWaits(invoice.number)
        return
    if record.state == "disputed":
        raise MachineAttention(record.reason)
    raise DuplicateInvoice(record)
