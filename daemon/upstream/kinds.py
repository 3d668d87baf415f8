"""The kinds of headquarters: one module each, imported only when configured, with `open_receiver(options)`."""

from __future__ import annotations

from importlib import import_module
from typing import Protocol

from daemon.core.delivery import Delivery
from daemon.upstream.options import BadOptions, Options

KINDS = {
    "https": "daemon.upstream.https",
    "nats": "daemon.upstream.nats",
}


class Receiver(Protocol):
    """As `usecases.replicate.Receiver`: `deliver` ends in bounded time and does not raise for the other side's doing."""

    async def deliver(self, event: bytes, *, report_id: str, subject: str, nim: str) -> Delivery: ...
    async def aclose(self) -> None: ...


def open_receiver(kind: str, options: Options) -> Receiver:
    """BadOptions when it cannot be opened as configured; whether anybody answers there is found out at delivery."""
    if kind not in KINDS:
        raise BadOptions(f"upstream.kind: {kind!r} is none of {', '.join(KINDS)}")
    receiver: Receiver = import_module(KINDS[kind]).open_receiver(options)
    return receiver
