"""What the machine says of itself, and clearing an invoice that another program left open on it."""

import asyncio
import contextlib
from functools import partial
from typing import Annotated

import msgspec
from msgspec import Meta

from common.language import Text
from daemon.core.audit import Call
from daemon.core.clock import millis_text
from daemon.core.errors import LineLost, MachineError, NothingDone, StorageError
from daemon.core.ledger.book import Book
from daemon.core.report.machine_info import MachineInfo, machine_info
from daemon.core.report.report_parts import Letterhead, digest_of, letterhead_bytes, read_letterhead
from daemon.machines.adapter import ConnectedMachine
from daemon.store.ledger import Ledger
from daemon.store.tables import audit
from daemon.store.tables.book import calendar_closures
from daemon.store.tables.book.attempts import insert_answer
from daemon.usecases.certification.idempotency import Answered, once
from daemon.usecases.worker.machine_worker import MachineReading, MachineWorker

CACHE_SECONDS = 1.0


async def info(worker: MachineWorker) -> MachineInfo:
    """The machine as it answers now, or did within the last second."""
    reading = await read(worker)
    info = machine_info(
        worker.book,
        reading.state,
        reading.link,
        worker.taxpayer,
        drift=worker.time.drift,
        read_at=millis_text(reading.read_at),
        now=reading.read_at,
        test_mode=worker.in_test_mode,
    )
    return msgspec.structs.replace(
        info,
        stands_for=first.book.nim if (first := worker.stands_for) else msgspec.UNSET,
        spare=worker.spare.book.nim if worker.spare else msgspec.UNSET,
    )


async def read(worker: MachineWorker) -> MachineReading:
    """A reading no older than a second, so that polling screens do not take the line from tills; MachineOffline,
    MachineBusy, NothingDone or MachineNonsense when there is none."""
    clock = asyncio.get_running_loop().time
    async with worker.reading_lock:
        if worker.reading is not None and worker.connected and clock() - worker.reading.at < CACHE_SECONDS:
            return worker.reading
        try:
            return await worker.run_to_end(_read(worker), "info")
        except LineLost as error:
            raise NothingDone(error, Text("it could not be read")) from error


async def _read(worker: MachineWorker) -> MachineReading:
    clock = asyncio.get_running_loop().time
    worker.present()  # a machine that is away is not waited for
    with worker.queue.join() as entry:
        machine = await worker.turn(entry, clock() + worker.limits.patience, worker.present)
        state = await machine.state()
        worker.time.apply_machine(state.time)
        link = await machine.server_link_or_error()
        if link.state:
            worker.server_link = link
        if not worker.taxpayer:
            await read_taxpayer(worker, machine)
        worker.reading = MachineReading(state, link, clock(), worker.now())
        return worker.reading


async def read_taxpayer(worker: MachineWorker, machine: ConnectedMachine) -> None:
    """Name and address of the shop as the machine has them now (2Bh); what it refuses is empty."""
    worker.taxpayer = await machine.taxpayer()
    await load_letterhead(worker)


async def learn_taxpayer(worker: MachineWorker) -> None:
    """Asks the machine whose it is, once, while nothing waits for it: paper can do without, a till cannot wait for it."""
    if worker.taxpayer or worker.waiting:
        return
    with contextlib.suppress(MachineError):
        await read(worker)


class CancelAnswer(msgspec.Struct, frozen=True, rename="camel"):
    was_pending: Annotated[bool, Meta(description="Whether an invoice was open")]
    message: Annotated[str, Meta(description="For people")]


async def cancel_pending(worker: MachineWorker, call: Call) -> Answered[bytes]:
    """38h C, in turn: whatever mcfd itself is certifying has its turn to itself, so this never cancels that."""
    return await worker.run_to_end(
        once(worker, call, partial(_cancel, worker, call), lambda use: use.answer or None), "cancel pending"
    )


async def _cancel(worker: MachineWorker, call: Call) -> bytes:
    deadline = asyncio.get_running_loop().time() + worker.limits.patience
    worker.present()  # a machine that is away is not waited for
    if worker.book.mode == "test":  # its answer is written down; a live machine is freed whatever the disk says
        await worker.ledger.check_free_space(worker.book)
    with worker.queue.join() as entry:
        machine = await worker.turn(entry, deadline, worker.present)
        try:
            was_pending = await machine.cancel()
        except LineLost as error:
            raise NothingDone(error, Text("what is open on it is cancelled at its return")) from error
    if was_pending:
        await worker.ledger.write(audit.add_of_book, worker.book, "pending.cancelled", at=worker.now(), by=call.by)
    message = "the open invoice was cancelled" if was_pending else "no invoice was open"
    answer = msgspec.json.encode(CancelAnswer(was_pending, message))
    if call.key:
        await worker.ledger.write(insert_answer, worker.book, call, at=worker.now(), answer=answer)
    return answer


async def load_letterhead(worker: MachineWorker) -> None:
    """At the start, and once the machine's taxpayer is known. While the ledger takes nothing, the one before counts."""
    if worker.compose_letterhead is None:
        return
    with contextlib.suppress(StorageError):
        newest = await worker.ledger.read(calendar_closures.newest_letterhead, worker.book)
        worker.stored_taxpayer = worker.taxpayer or (read_letterhead(newest[1]).taxpayer if newest else ())
        content = letterhead_bytes(worker.compose_letterhead(worker.stored_taxpayer))
        digest = digest_of(content)
        if newest is None or newest[0] != digest:
            await worker.ledger.write(
                calendar_closures.store_letterhead, worker.book, digest, content, worker.clock.millis()
            )
        worker.defaults = msgspec.structs.replace(worker.defaults, letterhead=digest)


async def letterhead_of(ledger: Ledger, book: Book, digest: bytes) -> Letterhead | None:
    """None for what names none, and for one that is not in this ledger."""
    content = await ledger.read(calendar_closures.find_letterhead, book, digest) if digest else None
    return None if content is None else read_letterhead(content)
