"""Certify an invoice or a credit note: exactly once, or a clear word why not."""

from __future__ import annotations

import asyncio

from daemon.core.certification import Record
from daemon.core.errors import DuplicateInvoice, MachineAttention, MachineBusy
from daemon.core.idempotency import KeyUse
from daemon.core.intake import read_invoice
from daemon.core.invoice import Invoice
from daemon.usecases.attempt import Job, attempt
from daemon.usecases.call import Answered, Call
from daemon.usecases.desk import Desk
from daemon.usecases.once import once
from daemon.usecases.turns import Ticket


async def certify(desk: Desk, body: object, call: Call, *, credit: bool = False) -> Answered[Record]:
    """`body` is what the JSON parser gave. Every error of `core.errors` but NotFound and the start's own.

    Once an attempt has its place in the line it goes on to its end even when the caller goes away."""
    arrived = asyncio.get_running_loop().time()

    async def run() -> Record:
        return await _run(desk, body, call, credit=credit, arrived=arrived)

    return await once(desk, call, run, _replay)


def _replay(use: KeyUse) -> Record | None:
    return use.record


async def _run(desk: Desk, body: object, call: Call, *, credit: bool, arrived: float) -> Record:
    if not desk.rates:
        desk.ready()  # without the machine's rates nothing can be checked
    invoice = read_invoice(body, defaults=desk.defaults, rates=desk.rates, credit=credit)
    deadline = arrived + desk.limits.patience
    await _number_free(desk, invoice.number, deadline)
    ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    desk.numbers[invoice.number] = ended
    try:
        await _refuse_duplicate(desk, invoice)
        desk.ready()
        await desk.ledger.check_room()
        ticket = desk.turns.join()
    except BaseException:
        _release(desk, invoice.number, ended)
        raise
    job = Job(desk, invoice, call, arrived, deadline)
    return await desk.see_through(_attempt(job, ticket, ended), "certify")


async def _attempt(job: Job, ticket: Ticket, ended: asyncio.Future[None]) -> Record:
    try:
        return await attempt(job, ticket)
    finally:
        _release(job.desk, job.invoice.number, ended)


async def _number_free(desk: Desk, number: str, deadline: float) -> None:
    """Another attempt of the same number decides first whether this one is a duplicate (decision 5)."""
    while running := desk.numbers.get(number):
        timeout = max(0.0, deadline - asyncio.get_running_loop().time())
        done, _ = await asyncio.wait([running], timeout=timeout)
        if not done:
            raise MachineBusy("an invoice of this number is being certified; nothing was sent")


async def _refuse_duplicate(desk: Desk, invoice: Invoice) -> None:
    record = await desk.ledger.find_number(desk.book, invoice.number)
    if record is None:
        return
    if record.state == "disputed":
        raise MachineAttention(desk.attention or record.reason)
    raise DuplicateInvoice(record)


def _release(desk: Desk, number: str, ended: asyncio.Future[None]) -> None:
    if desk.numbers.get(number) is ended:
        del desk.numbers[number]
    if not ended.done():
        ended.set_result(None)
