"""The register of outages, its notifications, and the watch that writes it for one live machine. An outage begins when
a till was refused for it, or after some minutes; it ends when the machine can certify again.

No sale waits for this. An open outage is read from the ledger each time, so a restart continues it; the transaction of
a certification ends it too (`store.outages`). While the machine is in service a sign of life is stored every half
minute: from the last one to the next start the box was off."""

import asyncio
import contextlib
from dataclasses import dataclass, field
from functools import partial
from typing import Final

import msgspec
import structlog

from daemon.core.audit import Call
from daemon.core.errors import StorageError
from daemon.core.events import BACK, OUTAGE
from daemon.core.ledger.book import Book
from daemon.core.ledger.entries import OutageReason
from daemon.core.ledger.outage import Notice, Outage
from daemon.core.report.outages import OutageList, outage_data, outage_list, read_notice
from daemon.store.tables.book import outages
from daemon.store.tables.book.books import book_state
from daemon.store.tables.book.outages import outages_between
from daemon.usecases.certification.idempotency import Answered, once
from daemon.usecases.worker.machine_worker import MachineWorker
from daemon.usecases.worker.machine_workers import out_of_order

log = structlog.get_logger(__name__)

LOOK: Final = 0.25
"""Seconds between two checks of the machine."""
SIGN_EVERY: Final = 0.1
"""Interval of signs of life, as a fraction of `Limits.outage`; an outage `box_off` may begin early by that much."""


@dataclass
class OutOfOrder:
    """A machine that cannot certify, registered or not. `since` and `service` (last time in service) in ms of the book,
    `seen_at` in loop time."""

    reason: OutageReason
    since: int
    service: int
    seen_at: float
    incident: str = ""
    refused: bool = False
    """A till was refused meanwhile."""
    is_written: bool = False
    """Whether it is registered; then a certification may end it before the next check, and it must not begin again."""


@dataclass
class OutageWatch:
    """Call `begin`, then `run`, which runs until cancelled."""

    worker: MachineWorker
    _book: Book = field(init=False)
    _found: OutOfOrder | None = field(default=None, init=False)
    _late: list[OutOfOrder] = field(default_factory=list, init=False)
    """Not registered before the machine certified again."""
    _is_begun: bool = field(default=False, init=False)
    _signed_at: float = field(default=float("-inf"), init=False)
    _failure: str = field(default="", init=False)

    def __post_init__(self) -> None:
        self._book = self.worker.book
        self.worker.register_outage = self.register

    async def begin(self) -> None:
        """Continues what the previous daemon has left, before the machine is connected."""
        with contextlib.suppress(StorageError):  # `run` goes on with it
            await self._resume()

    async def run(self) -> None:
        while True:
            await asyncio.sleep(LOOK)
            try:
                await self.step()
                self._failure = ""
            except StorageError as error:  # stored when there is room
                if self._failure != str(error):
                    log.warning("outage.not_stored", **self.worker.names, cause=str(error))
                self._failure = str(error)
            except Exception:
                log.exception("outage.failed", **self.worker.names)

    async def register(self, reason: OutageReason) -> int:
        """A till is refused or its sale deferred: begins an outage if none is open; returns its number, 0 for a machine
        that was never in service."""
        if not self._was_met():
            return 0
        if self._lasting() is None:
            found = self._found = self._seen(reason)
            found.refused = True
            await self._write_late()
            await self._write(found)
        last = self.worker.ledger.peek(outages.last_outage, self.worker.book)
        return last.number if last else 0

    async def step(self) -> None:
        worker = self.worker
        if worker.closing:
            return
        if not self._is_begun:
            await self._resume()
        if worker.book.id != self._book.id:
            await self._end(self._book)  # of the former taxpayer
            self._book, self._found = worker.book, None
        if worker.first is not None and not worker.is_in_use:
            self._found = None  # an idle spare need not be connected
            await self._end(worker.book)
            return
        reason = await self._reason()
        is_back = reason is None and worker.connected and not worker.obstacle  # else `recover` is at work
        if reason is not None and self._was_met():
            self._found = self._seen(reason)
        await self._write_late()
        lasting = self._lasting()
        if self._found is not None and lasting is None and self._is_due(self._found, is_back=is_back):
            await self._write(self._found, is_over=is_back and self._found.reason != "blocked")
            lasting = self._lasting()
        if is_back:
            await self._back(lasting)

    # -- what is found ------------------------------------------------------------------------------------------------

    async def _resume(self) -> None:
        worker, book = self.worker, self.worker.book
        state = worker.ledger.peek(book_state, book)
        if state.is_restored:
            # Nothing is known of the time since the copy: the machine may have certified.
            await worker.ledger.end_outage(book, at=state.last_at, until=state.last_at)
        elif sign := worker.ledger.peek(outages.sign_of_life, book):
            service = worker.ledger.peek(outages.last_service, book)
            self._found = OutOfOrder("box_off", sign, service, asyncio.get_running_loop().time())
        self._is_begun = True

    async def _reason(self) -> OutageReason | None:
        try:
            await self.worker.ledger.check_free_space(self.worker.book)
        except StorageError:
            return "disk"
        return out_of_order(self.worker)

    def _seen(self, reason: OutageReason) -> OutOfOrder:
        """The state as found before, unless the machine has certified since."""
        service = self.worker.ledger.peek(outages.last_service, self.worker.book)
        if (found := self._found) is not None:
            if found.service == service:
                return found
            if found.refused and not found.is_written:  # the disk was full
                self._late.append(found)
        worker, now = self.worker, self.worker.now()
        since = worker.offline_since if not worker.connected and worker.offline_since is not None else now
        incident = worker.note_incident("outage") if worker.attempts.met_machine else ""
        return OutOfOrder(reason, min(since, now), service, asyncio.get_running_loop().time(), incident)

    def _is_due(self, found: OutOfOrder, *, is_back: bool) -> bool:
        """Whether it has to be registered. `blocked` is known only while tills try, so it needs a refused till.
        `box_off` is measured by clocks, which are right once the machine was connected."""
        if found.refused and not found.is_written:
            return True
        if not self._was_met() or found.reason == "blocked" or found.is_written:
            return False
        limit, now = self.worker.limits.outage, self.worker.now()
        if is_back and found.reason == "box_off":
            return now - found.since >= limit * 1000
        return asyncio.get_running_loop().time() - found.seen_at >= limit

    def _was_met(self) -> bool:
        """Whether the machine was ever in service; before that it cannot be out of order."""
        return self.worker.attempts.met_machine or bool(self.worker.ifu)

    def _lasting(self) -> Outage | None:
        return self.worker.ledger.peek(outages.open_outage, self.worker.book)

    # -- what is written ----------------------------------------------------------------------------------------------

    async def _write_late(self) -> None:
        """Before a later one, which would hide them. StorageError: they are written at the next check."""
        while self._late:
            found = self._late.pop(0)
            try:
                await self._write(found)
            except StorageError:
                self._late.insert(0, found)
                raise

    async def _write(self, found: OutOfOrder, *, is_over: bool = False) -> None:
        worker, now = self.worker, self.worker.now()
        begun = await worker.ledger.begin_outage(
            worker.book,
            found.reason,
            at=now,
            lasted=max(0, now - max(found.since, found.service)),
            refused=found.refused,
            incident=found.incident,
            is_over=is_over,
        )
        found.is_written = True
        if begun is None:
            return
        log.warning("outage.begun", **worker.names, outage=begun.number, reason=begun.reason)
        worker.publish(OUTAGE, ref=begun.number)
        if not begun.is_open:
            self._ended(begun)

    async def _back(self, lasting: Outage | None) -> None:
        """Ends the outage, except `blocked`, which only a certification ends."""
        self._found = None
        if lasting is None:
            await self._store_sign_of_life()
        elif lasting.reason != "blocked":
            await self._end(self.worker.book)

    async def _end(self, book: Book) -> None:
        worker, now = self.worker, self.worker.now()
        if worker.ledger.peek(outages.open_outage, book) is None:
            return
        ended = await worker.ledger.end_outage(book, at=now, until=now)
        if ended is not None:
            self._ended(ended)

    def _ended(self, outage: Outage) -> None:
        self._signed_at = float("-inf")
        seconds = (outage.until - outage.since) // 1000
        log.info("outage.ended", **self.worker.names, outage=outage.number, seconds=seconds)
        self.worker.publish(BACK, ref=outage.number)

    async def _store_sign_of_life(self) -> None:
        now = asyncio.get_running_loop().time()
        if now - self._signed_at < SIGN_EVERY * self.worker.limits.outage:
            return
        await self.worker.ledger.write(outages.store_sign_of_life, self.worker.book, self.worker.now())
        self._signed_at = now


async def list_outages(worker: MachineWorker, start: int, end: int, after: int, limit: int) -> OutageList:
    """Outages that lasted at some time of `start <= t < end` (ms), oldest first, after the number `after`."""
    found = await worker.ledger.read(outages_between, worker.book, start=start, end=end, after=after, limit=limit)
    return outage_list(worker.book.nim, start, end, found)


async def note_notified(worker: MachineWorker, number: int, body: dict[str, object], call: Call) -> Answered[bytes]:
    """Stores a notification and returns the outage as JSON; the same recipient and reference are stored once.
    InvalidRequest, NotFound, StorageFull."""
    since = worker.ledger.peek(outages.find_outage, worker.book, number).since
    notice = read_notice(body, since=since, now=worker.now(), strict=call.strict)
    return await once(worker, call, partial(_note, worker, number, notice, call), lambda use: use.answer or None)


async def _note(worker: MachineWorker, number: int, notice: Notice, call: Call) -> bytes:
    await worker.ledger.check_free_space(worker.book)

    def answer(outage: Outage) -> bytes:
        return msgspec.json.encode(outage_data(outage))

    work = worker.ledger.write(
        outages.note_notified, worker.book, number, notice, at=worker.now(), call=call, answer=answer
    )
    result = await worker.run_to_end(work, "note notified")
    log.info("outage.notified", **worker.names, outage=number, who=notice.who, request_id=call.request_id)
    return result
