"""When a box speaks, and what it does with the answer; with sleeps of the test's own."""

import asyncio
import random

import pytest
from msgspec import UNSET
from structlog.testing import capture_logs

from common.wire.presence import EVERY_SECONDS, PresenceAnswer, WantedClosures
from daemon.usecases.delivery.presence import FIRST_WITHIN, JITTER, LAST_Z, REPEATED_AFTER, Announcer, MachinePresence

NIM, OTHER = "EL02000015-1", "EL02000016-1"
SEED = 18
ENOUGH = 40


class Enough(Exception):
    """The test has seen what it wanted."""


class Rig:
    def __init__(self, answers=(), *, modes=frozenset({"live"}), dice=None, failing=0, again=(3,)):
        self.answers = list(answers)
        self.presences = []
        self.naps = []
        self.resent = []
        self.failing = failing
        self.again = list(again)
        own = {"learn_z": self.learn, "dice": dice or (lambda: 0.5), "sleep": self.sleep}
        self.announcer = Announcer(self, self.words, self.resend, modes=modes, **own)

    async def announce(self, presence, *, nim):
        self.presences.append((nim, presence))
        return self.answers.pop(0) if self.answers else PresenceAnswer()

    async def words(self):
        if self.failing:
            self.failing -= 1
            raise OSError("the disk is gone")
        return [MachinePresence(NIM, b"1"), MachinePresence(OTHER, b"2")]

    async def learn(self, nim, last_z):
        raise AssertionError(f"no answer here says a last Z: {nim} {last_z}")

    async def resend(self, nim, mode, from_z, to_z):
        self.resent.append((nim, mode, from_z, to_z))
        return self.again.pop(0) if len(self.again) > 1 else self.again[0]

    async def sleep(self, seconds):
        self.naps.append(seconds)
        if len(self.naps) >= ENOUGH:
            raise Enough

    async def run(self):
        with capture_logs() as logs, pytest.raises(Enough):
            await self.announcer.run()
        return [line["event"] for line in logs]


async def test_every_five_minutes_with_jitter():
    """The first within a minute, then every five minutes, a tenth earlier or later, and no two boxes the same."""
    naps = []
    for seed in range(20):
        rig = Rig(dice=random.Random(SEED + seed).random)
        await rig.run()
        naps.append(rig.naps)
    assert all(0 <= found[0] <= FIRST_WITHIN for found in naps)
    rest = [nap for found in naps for nap in found[1:]]
    assert min(rest) >= EVERY_SECONDS * (1 - JITTER)
    assert max(rest) <= EVERY_SECONDS * (1 + JITTER)
    assert max(rest) - min(rest) > EVERY_SECONDS * JITTER
    assert len({tuple(found) for found in naps}) == 20


async def test_trouble_ends_nothing():
    """A ledger that cannot be read for a while, and nobody who hears: told once, and said again."""
    rig = Rig([None] * 10, failing=3)
    logs = await rig.run()
    assert logs == ["presence.failed"] * 3 + ["presence.refused", "presence.accepted"]
    assert len(rig.presences) == 2 * (ENOUGH - 1 - 3)


@pytest.mark.parametrize("with_end", [True, False])
async def test_what_is_asked_for_each_hour_ends(monkeypatch, with_end):
    """Sent at once, after one hour, two, four, eight, sixteen, and no more, whatever its end; four weeks later it is new."""
    hours = [*range(70), 900]
    clock = [0.0]
    rig = Rig(
        [
            answer
            for hour in hours
            for answer in (
                PresenceAnswer((WantedClosures("live", 7, 9 + hour if with_end else UNSET),)),
                PresenceAnswer(),
            )
        ]
    )
    sent = []

    async def sleep(_):
        """Until the next hour."""
        if not hours:
            raise Enough
        clock[0] = hours.pop(0) * REPEATED_AFTER

    async def resend(*_):
        sent.append(round(clock[0] / REPEATED_AFTER))
        return 1

    rig.announcer.sleep, rig.announcer.resend = sleep, resend
    monkeypatch.setattr(asyncio.get_running_loop(), "time", lambda: clock[0], raising=False)
    await rig.run()
    assert sent == [0, 1, 3, 7, 15, 31, 900]


WANTED = PresenceAnswer((WantedClosures("live", 7, 9),))
OPEN_END = PresenceAnswer((WantedClosures("live", 3),))
SANDBOX = PresenceAnswer((WantedClosures("test", 1, 2),))


@pytest.mark.parametrize(
    ("answers", "more", "resent", "requests"),
    [
        ([WANTED, PresenceAnswer()] * 5 + [OPEN_END], {}, [(NIM, "live", 7, 9), (NIM, "live", 3, LAST_Z)], 2),
        ([WANTED, PresenceAnswer()] * 5, {"again": (0, 2)}, [(NIM, "live", 7, 9)] * 2, 1),
        ([SANDBOX], {}, [], 0),
        ([SANDBOX], {"modes": {"live", "test"}}, [(NIM, "test", 1, 2)], 1),
    ],
    ids=["within the hour", "nothing was sent for it", "sandbox", "with include_sandbox"],
)
async def test_what_headquarters_misses_is_sent_again(answers, more, resent, requests):
    """The named Z once within the hour; where nothing was sent the next request counts; the sandbox only where it is on."""
    rig = Rig(answers, **more)
    assert await rig.run() == ["closure.requested"] * requests
    assert rig.resent == resent
