"""Idempotency-Key (decision 6): a repeated request gets the first answer, a different one with that key is refused.
Also the status of a request by its key, without any risk of certifying (decision 36)."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, Literal, NamedTuple, TypeVar

import msgspec

from common.language import Text
from daemon.core.audit import Call, key_hash_of
from daemon.core.errors import KeyReused, LineLost, MachineAttention, MachineBusy
from daemon.core.ledger.attempt import OPEN, Record
from daemon.core.ledger.book import Book, KeyUse
from daemon.core.ledger.deferred import DeferredSale, DeferredState
from daemon.core.ledger.phases import Phase
from daemon.core.ledger.take_over import NumberReserved, UnknownElsewhere
from daemon.store.tables.book import attempts, deferred, uniqueness
from daemon.usecases.worker.machine_worker import MachineWorker

T = TypeVar("T")

RequestStatus = Literal["waiting", "on_the_line", "in_doubt", "certified", "refused", "abandoned", "answered"]
_UNDER_WAY: dict[Phase, RequestStatus] = {
    Phase.INTENDING: "waiting",
    Phase.PREPARED: "waiting",
    Phase.ON_THE_LINE: "on_the_line",
    Phase.ENDING: "on_the_line",
}

_WAITING: dict[DeferredState, RequestStatus] = {"waiting": "waiting", "doubtful": "in_doubt"}
_ENDED: dict[DeferredState, RequestStatus] = {
    "begun": "in_doubt",
    "certified": "certified",
    "refused": "refused",
    "withdrawn": "abandoned",
}


class Answered(msgspec.Struct, Generic[T], frozen=True):
    """A use case's result; `replayed`: it is the answer to an earlier request."""

    value: T
    replayed: bool = False


async def once(
    worker: MachineWorker, call: Call, run: Callable[[], Awaitable[T]], replay: Callable[[KeyUse], T | None]
) -> Answered[T]:
    """Runs `run`, unless the ledger has an answer for the key, which `replay` reads.

    Waits for a running request with the same key. A request that failed without any change leaves no answer, so its
    retry runs again. Has to be called within `MachineWorker.run_to_end`: the key is reserved until the request has
    ended, even if the caller disconnects, and a retry waits for it."""
    key = call.key_hash
    if not key:
        return Answered(await run())
    deadline = asyncio.get_running_loop().time() + worker.limits.patience + worker.limits.doubt_patience
    book = worker.book
    while running := worker.attempts.of_key(key):
        check_same(worker, running.fingerprint, call)
        await _ended(running.done, deadline)
    worker.attempts.claim_key(key, call.fingerprint)
    try:
        use = worker.ledger.peek(uniqueness.find_key, book, key)
        if use is not None:
            check_same(worker, use.fingerprint, call)
            use = await _ended_use(worker, book, use, call)
        if use is None:
            worker.check_book(book)
            return Answered(await run())
        answer = replay(use)
        if answer is None:
            raise KeyReused
        return Answered(answer, replayed=True)
    finally:
        worker.attempts.release_key(key)


async def answered_once(
    worker: MachineWorker, call: Call, act: Callable[[], Awaitable[bytes]], name: str
) -> Answered[bytes]:
    """Runs `act`, whose effect is outside the ledger, and stores its answer under the key afterwards: if the daemon
    dies in between, a repetition runs it again. `name`: of the task."""

    async def run() -> bytes:
        answer = await act()
        if call.key:
            await worker.ledger.write(attempts.insert_answer, worker.book, call, at=worker.now(), answer=answer)
        return answer

    return await worker.run_to_end(once(worker, call, run, lambda use: use.answer or None), name)


async def _ended_use(worker: MachineWorker, book: Book, use: KeyUse, call: Call) -> KeyUse | None:
    """`use` after its attempt's end, which a crash or lost line may have left open; None if it failed."""
    if use.record is None or use.record.state == "certified":
        return use
    await outcome_of(worker, use.record.id)
    return worker.ledger.peek(uniqueness.find_key, book, call.key_hash)


async def outcome_of(worker: MachineWorker, attempt_id: int) -> Record:
    """The attempt after its end. LineLost if that takes too long, MachineAttention if an operator has to decide."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + worker.limits.doubt_patience
    owner, book = worker.worker_of(attempt_id), worker.book
    while True:
        record = worker.ledger.peek(attempts.find_record, book, attempt_id)
        if record.state not in OPEN:
            return record
        attention = owner.attention if owner else ""
        if attention or record.state == "disputed":
            kind = MachineAttention if owner is worker else NumberReserved
            raise kind(record.reason or attention)
        if owner is None or owner.closing or loop.time() >= deadline:
            unknown = LineLost if owner is worker else UnknownElsewhere
            raise unknown(
                Text("the outcome is not known yet; send the same request again with the same Idempotency-Key")
            )
        await asyncio.wait([owner.attempts.doubt(record).news], timeout=deadline - loop.time())


async def _ended(done: asyncio.Future[None], deadline: float) -> None:
    timeout = max(0.0, deadline - asyncio.get_running_loop().time())
    finished, _ = await asyncio.wait([done], timeout=timeout)
    if not finished:
        raise MachineBusy(Text("the first request with this Idempotency-Key is still running"))


def check_same(worker: MachineWorker, fingerprint: bytes, call: Call) -> None:
    if not call.is_request(fingerprint, (worker.book.nim, worker.configured_nim)):
        raise KeyReused


class FoundRequest(NamedTuple):
    """`record`: the attempt, once its intent is durable. `sale`: the deferred sale, if it is or was one."""

    status: RequestStatus
    record: Record | None = None
    sale: DeferredSale | None = None


async def find_request(worker: MachineWorker, key: str) -> FoundRequest | None:
    """The status of the request with that key; None if unknown, or refused without a change."""
    key_hash = key_hash_of(key)
    sale = worker.ledger.peek(deferred.by_key, worker.book, key_hash)
    if sale is not None and sale.state in _WAITING:
        return FoundRequest(_WAITING[sale.state], sale=sale)
    use = worker.ledger.peek(uniqueness.find_key, worker.book, key_hash, failed=True)
    if use is not None and use.sale is not None:  # its attempt is under way
        use = KeyUse(use.fingerprint, worker.ledger.peek(attempts.find_record, worker.book, use.sale.attempt_id))
    runs = worker.attempts.of_key(key_hash) is not None
    if use is None and sale is not None and not runs:
        record = worker.ledger.peek(attempts.find_record, worker.book, sale.attempt_id) if sale.attempt_id else None
        return FoundRequest(_ENDED[sale.state], record, sale)
    if use is None:
        return FoundRequest("waiting") if runs else None
    found = _of_use(worker, use, runs=runs)
    is_its = sale is not None and found.record is not None and found.record.id == sale.attempt_id
    return found._replace(sale=sale) if is_its else found


def _of_use(worker: MachineWorker, use: KeyUse, *, runs: bool) -> FoundRequest:
    record = use.record
    if record is None:
        return FoundRequest("answered")
    match record.state:
        case "certified":
            return FoundRequest("certified", record)
        case "refused" | "abandoned":
            return FoundRequest("waiting") if runs else FoundRequest(record.state, record)
    owner = worker.worker_of(record.id)
    live = owner.attempts.find(record.number) if owner else None
    return FoundRequest(_UNDER_WAY.get(live.phase, "in_doubt") if live else "in_doubt", record)
