"""The presence of a box: its state, sent to headquarters every five minutes, and the requests in the answer.

Only the newest presence counts: one that was not delivered is dropped. Nothing waits for it."""

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import NamedTuple

import structlog
from msgspec import UNSET

from common.turns import raise_if_cancelled
from common.wire.presence import EVERY_SECONDS, WantedClosures
from daemon.core.delivery import UpstreamReceiver
from daemon.core.ledger.attempt import Mode

FIRST_WITHIN = 60.0
"""Seconds: when the power comes back to a whole region, its boxes do not all speak at once."""
JITTER = 0.1
"""Share of the interval by which each one is earlier or later."""
REPEATED_AFTER = 3_600.0
"""Seconds until the same Z is sent again on a repeated request; the interval doubles each time."""
MAX_TIMES = 6
"""What headquarters asks for after so many times is refused there whenever it comes: it would only fill the stream."""
LAST_Z = 2**53 - 1
"""Of a headquarters of 0.1.0, which names no end."""
FORGOTTEN_AFTER = 28 * 86_400.0
"""Seconds after which a request is a new one."""

_dice = random.SystemRandom().random
_log = structlog.get_logger(__name__)
Resend = Callable[[str, Mode, int, int], Awaitable[int]]
"""What a book has from one Z to another, both included, waits again; how many."""
LearnZ = Callable[[str, int], Awaitable[None]]
"""Headquarters says the last Z of a live book."""


class MachinePresence(NamedTuple):
    """What there is to say of one machine: the JSON of `common.wire.presence.Presence`."""

    nim: str
    content: bytes


class Resent(NamedTuple):
    """How often the closures from one Z on were sent again, and when last, in seconds of the loop's clock."""

    times: int
    at: float

    def is_due(self, now: float) -> bool:
        return self.times < MAX_TIMES and now - self.at >= REPEATED_AFTER * 2 ** (self.times - 1)


@dataclass
class Announcer:
    """`run` until cancelled."""

    receiver: UpstreamReceiver
    words: Callable[[], Awaitable[Sequence[MachinePresence]]]
    resend: Resend
    _: KW_ONLY
    modes: frozenset[Mode]
    learn_z: LearnZ
    every: float = EVERY_SECONDS
    dice: Callable[[], float] = _dice
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    _heard: bool = field(default=True, init=False)
    _resent: dict[tuple[str, Mode, int], Resent] = field(default_factory=dict, init=False)

    async def run(self) -> None:
        await self.sleep(self.dice() * min(FIRST_WITHIN, self.every))
        while True:
            try:
                await self._publish()
            except Exception:  # noqa: BLE001  # sent again in five minutes; a ledger in trouble is reported elsewhere
                _log.exception("presence.failed")
            await self.sleep(self.every * (1 - JITTER + 2 * JITTER * self.dice()))

    async def _publish(self) -> None:
        for word in await self.words():
            answer = await self.receiver.announce(word.content, nim=word.nim)
            raise_if_cancelled()
            self._note(answer is not None)
            if answer is not None and answer.last_z is not UNSET:
                await self.learn_z(word.nim, answer.last_z)
            for wanted in answer.replay if answer else ():
                await self._answer(word.nim, wanted)

    async def _answer(self, nim: str, wanted: WantedClosures) -> None:
        now = asyncio.get_running_loop().time()
        self._resent = {key: last for key, last in self._resent.items() if now - last.at < FORGOTTEN_AFTER}
        key = (nim, wanted.mode, wanted.from_z)
        last = self._resent.get(key)
        if wanted.mode not in self.modes or (last is not None and not last.is_due(now)):
            return
        to_z = LAST_Z if wanted.to_z is UNSET else wanted.to_z
        count = await self.resend(nim, wanted.mode, wanted.from_z, to_z)
        if not count:  # still on its way, or never made here
            return
        self._resent[key] = Resent(1 if last is None else last.times + 1, now)
        _log.info("closure.requested", nim=nim, mode=wanted.mode, from_z=wanted.from_z, to_z=to_z, count=count)

    def _note(self, heard: bool) -> None:
        """Once per trouble: headquarters that takes no presence is no fault of the box."""
        if heard != self._heard:
            _log.info("presence.accepted" if heard else "presence.refused")
        self._heard = heard
