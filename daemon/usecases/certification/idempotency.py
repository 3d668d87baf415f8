"""Idempotency-Key (decision 6): the same request again gets the first answer, a different one is told so."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

import msgspec

from common.language import Text
from daemon.core.call import Call
from daemon.core.errors import KeyReused, LineLost, MachineAttention, MachineBusy
from daemon.core.ledger.attempt import OPEN, Record
from daemon.core.ledger.book import KeyUse
from daemon.core.ledger.take_over import NumberReserved, UnknownElsewhere
from daemon.store.tables.book import attempts, request_keys
from daemon.usecases.worker.machine_worker import MachineWorker

T = TypeVar("T")


class Answered(msgspec.Struct, Generic[T], frozen=True):
    """Whether the answer is a first one."""

    value: T
    replayed: bool = False


async def once(
    worker: MachineWorker, call: Call, run: Callable[[], Awaitable[T]], replay: Callable[[KeyUse], T | None]
) -> Answered[T]:
    """Runs `run` unless the key already stands for an answer, which `replay` reads from the ledger's note of it.

    A key whose request runs now is waited for. One whose request failed without changing anything is not on record, so
    the retry is tried for real. To be run by `MachineWorker.see_through`: the key stands for this request until it has ended, also when the
    caller goes away before, and its retry waits for it."""
    key = call.key_hash
    if not key:
        return Answered(await run())
    deadline = asyncio.get_running_loop().time() + worker.limits.patience + worker.limits.doubt_patience
    while running := worker.attempts.of_key(key):
        check_same(worker, running.fingerprint, call)
        await _ended(running.done, deadline)
    worker.attempts.claim_key(key, call.fingerprint)
    try:
        use = worker.ledger.peek(request_keys.find_key, worker.book, key)
        if use is not None:
            check_same(worker, use.fingerprint, call)
            use = await _ended_use(worker, use, call)
        if use is None:
            return Answered(await run())
        answer = replay(use)
        if answer is None:
            raise KeyReused
        return Answered(answer, replayed=True)
    finally:
        worker.attempts.release_key(key)


async def _ended_use(worker: MachineWorker, use: KeyUse, call: Call) -> KeyUse | None:
    """The same once its attempt has ended, which it may not have before a crash or a lost line; None when it failed."""
    if use.record is None or use.record.state == "certified":
        return use
    await outcome_of(worker, use.record.id)
    return worker.ledger.peek(request_keys.find_key, worker.book, call.key_hash)


async def outcome_of(worker: MachineWorker, attempt_id: int) -> Record:
    """The attempt once it has ended. LineLost when that is not in time, MachineAttention when only an operator can tell."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + worker.limits.doubt_patience
    owner = worker.worker_of(attempt_id)
    while True:
        record = worker.ledger.peek(attempts.find_record, worker.book, attempt_id)
        if record.state not in OPEN:
            return record
        attention = owner.attention if owner else ""
        if attention or record.state == "disputed":
            kind = MachineAttention if owner is worker else NumberReserved
            raise kind(attention or record.reason)
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
