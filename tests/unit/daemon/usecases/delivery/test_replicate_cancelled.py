"""Replication ends when it is told to, also when a library on the way swallows the telling."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass, field

import pytest

from daemon.core.delivery import Again, Backlog, Delivered
from daemon.usecases.delivery.replicate import Replicator

NIM = "EL02000015-1"


@dataclass
class Entry:
    id: int
    nim: str = NIM
    mode: str = "live"
    report_id: str = "r"
    created_at: int = 0
    last_sent: int = 0
    names: dict[str, str] = field(default_factory=dict)


class OneBook:
    """Two closures wait; what happens to them is written down."""

    def __init__(self) -> None:
        self.left = [Entry(1), Entry(2)]
        self.done: list[tuple[str, int]] = []

    async def backlog(self):
        return [
            Backlog(
                nim=NIM, mode="live", waiting=2, parked=0, oldest_at=0, last_error="", last_error_at=0, last_sent_at=0
            )
        ]

    async def waiting(self, *_):
        return list(self.left)

    async def mark_sent(self, outgoing_id, **_):
        self.done.append(("sent", outgoing_id))
        self.left.pop(0)

    async def mark_failed(self, outgoing_id, *_, **__):
        self.done.append(("failed", outgoing_id))

    async def offer_again(self, *_, **__):
        return 0


class Deaf:
    """Delivers, and swallows the cancellation that comes meanwhile, as nats-py does in a flush."""

    def __init__(self, delivery) -> None:
        self.began = asyncio.Event()
        self._delivery = delivery

    async def deliver(self, *_, **__):
        self.began.set()
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
        return self._delivery

    async def aclose(self): ...


@pytest.mark.parametrize(
    ("delivery", "done"),
    [(Delivered(), [("sent", 1)]), (Again("nobody there", retry_after=3600), [])],
    ids=["delivered", "again"],
)
async def test_a_swallowed_cancellation_is_heeded(delivery, done) -> None:
    """What was delivered is written down, nothing more is sent, and it ends; it does not sleep through the end either."""
    outbox, receiver = OneBook(), Deaf(delivery)
    replicator = Replicator(outbox, receiver, lambda _: b"{}", clock=lambda: 0)
    task = asyncio.create_task(replicator.run())
    await receiver.began.wait()
    task.cancel()
    finished, _ = await asyncio.wait([task], timeout=20)
    assert finished
    assert task.cancelled()
    assert outbox.done == done
