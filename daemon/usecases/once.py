"""Idempotency-Key (decision 6): the same request again gets the first answer, a different one is told so."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from daemon.core.errors import KeyReused, LineLost, MachineAttention, MachineBusy
from daemon.core.idempotency import KeyUse
from daemon.usecases.call import Answered, Call
from daemon.usecases.desk import Desk, InFlight

T = TypeVar("T")


async def once(
    desk: Desk, call: Call, run: Callable[[], Awaitable[T]], replay: Callable[[KeyUse], T | None]
) -> Answered[T]:
    """Runs `run` unless the key already stands for an answer, which `replay` reads from the ledger's note of it.

    A key whose request runs now is waited for. One whose request failed without changing anything is not on record, so
    the retry is tried for real."""
    key = call.key_hash
    if not key:
        return Answered(await run())
    deadline = asyncio.get_running_loop().time() + desk.limits.patience + desk.limits.settle
    while running := desk.keys.get(key):
        _same(running.fingerprint, call)
        await _ended(running.done, deadline)
    mine = InFlight(call.fingerprint, asyncio.get_running_loop().create_future())
    desk.keys[key] = mine
    try:
        use = await desk.ledger.find_key(desk.book, key)
        if use is None:
            return Answered(await run())
        return Answered(await _replayed(desk, use, call, run, replay), replayed=True)
    finally:
        del desk.keys[key]
        mine.done.set_result(None)


async def _replayed(
    desk: Desk,
    use: KeyUse,
    call: Call,
    run: Callable[[], Awaitable[T]],
    replay: Callable[[KeyUse], T | None],
) -> T:
    _same(use.fingerprint, call)
    if use.record is not None and use.record.state == "begun":
        # Left over from before a crash or a lost line: `recover` settles it as soon as the machine answers.
        await settled(desk, use.record.id)
        again = await desk.ledger.find_key(desk.book, call.key_hash)
        if again is None:
            return await run()
        use = again
    if use.record is not None and use.record.state == "disputed":
        raise MachineAttention(desk.attention or use.record.reason)
    answer = replay(use)
    if answer is None:
        raise KeyReused
    return answer


async def settled(desk: Desk, attempt_id: int) -> None:
    """Waits, with a limit, until the outcome of an attempt is known; LineLost when it is not in time."""
    doubt = desk.doubts.get(attempt_id)
    if doubt is None:
        doubt = asyncio.get_running_loop().create_future()
        desk.doubts[attempt_id] = doubt
    done, _ = await asyncio.wait([doubt], timeout=desk.limits.settle)
    if not done:
        raise LineLost(
            "the machine stopped answering and the outcome is not known yet; "
            "send the same request again with the same Idempotency-Key"
        )


async def _ended(done: asyncio.Future[None], deadline: float) -> None:
    timeout = max(0.0, deadline - asyncio.get_running_loop().time())
    finished, _ = await asyncio.wait([done], timeout=timeout)
    if not finished:
        raise MachineBusy("the first request with this Idempotency-Key is still running")


def _same(fingerprint: bytes, call: Call) -> None:
    if fingerprint != call.fingerprint:
        raise KeyReused
