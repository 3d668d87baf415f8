"""What a kind of headquarters has to do, and how one is opened."""

from __future__ import annotations

from importlib import import_module
from typing import Protocol

from common.wire.presence import PresenceAnswer
from daemon.core.delivery import Delivery
from daemon.core.upstream_kinds import KINDS
from daemon.upstream.options import BadOptions, Options


class UpstreamReceiver(Protocol):
    """As `usecases.delivery.replicate.UpstreamReceiver`: `deliver` ends in bounded time and does not raise for the other side's doing."""

    @property
    def key_id(self) -> str:
        """Of the key that signs first."""
        ...

    async def deliver(
        self, event: bytes, *, report_id: str, subject: str, nim: str, since: int = 0, last_sent: int = 0
    ) -> Delivery: ...
    async def announce(self, presence: bytes, *, nim: str) -> PresenceAnswer | None:
        """What headquarters asks for; None when nobody heard."""
        ...

    async def trial(self, event: bytes, *, event_id: str, nim: str) -> Delivery:
        """A message that says nothing (`common.wire.trial`), on the way of all others as far as it can go without being kept."""
        ...

    async def aclose(self) -> None: ...


def open_receiver(kind: str, options: Options) -> UpstreamReceiver:
    """BadOptions when it cannot be opened as configured; whether anybody answers there is found out at delivery."""
    if kind not in KINDS:
        raise BadOptions(f"upstream.kind: {kind!r} is none of {', '.join(KINDS)}")
    receiver: UpstreamReceiver = import_module(KINDS[kind].module).open_receiver(options)
    return receiver
