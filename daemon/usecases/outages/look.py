"""What the register of outages holds, and who was notified, noted once."""

from __future__ import annotations

from functools import partial

import msgspec
import structlog

from daemon.core.call import Call
from daemon.core.ledger.book import KeyUse
from daemon.core.ledger.outage import Notice, Outage
from daemon.core.report.outages import OutageList, outage_list, outage_word, read_notice
from daemon.store.tables.book import outages
from daemon.usecases.certification.idempotency import Answered, once
from daemon.usecases.worker.machine_worker import MachineWorker

log = structlog.get_logger(__name__)


def open_outage(worker: MachineWorker) -> Outage | None:
    """The one that lasts, of the live book."""
    return worker.ledger.peek(outages.open_outage, worker.book)


async def list_outages(worker: MachineWorker, start: int, end: int, after: int, limit: int) -> OutageList:
    """Those that lasted at some moment of `start <= t < end` (ms), oldest first, from the one after the number `after`."""
    found = await worker.ledger.outages_between(worker.book, start=start, end=end, after=after, limit=limit)
    return outage_list(worker.book.nim, start, end, found)


async def find_outage(worker: MachineWorker, number: int) -> Outage:
    """NotFound."""
    return await worker.ledger.read(outages.find_outage, worker.book, number)


async def note_notified(worker: MachineWorker, number: int, body: dict[str, object], call: Call) -> Answered[bytes]:
    """The outage as it is then, as JSON; the same person and reference are noted once. InvalidRequest, NotFound, StorageFull."""
    notice = read_notice(body, now=worker.now(), strict=call.strict)
    return await once(worker, call, partial(_note, worker, number, notice, call), _replay)


def _replay(use: KeyUse) -> bytes | None:
    return use.answer or None


async def _note(worker: MachineWorker, number: int, notice: Notice, call: Call) -> bytes:
    await worker.ledger.check_free_space(worker.book)
    result = await worker.see_through(
        worker.ledger.note_notified(
            worker.book,
            number,
            notice,
            at=worker.now(),
            call=call,
            answer=lambda outage: msgspec.json.encode(outage_word(outage)),
        ),
        "note notified",
    )
    log.info("outage.notified", **worker.names, outage=number, who=notice.who, request_id=call.request_id)
    return result
