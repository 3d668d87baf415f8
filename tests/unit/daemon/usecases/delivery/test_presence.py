"""When a box speaks, and what it does with the answer; with sleeps of the test's own."""

from __future__ import annotations

import asyncio
import random
from itertools import count

import pytest
from structlog.testing import capture_logs

from daemon.usecases.delivery.presence import FIRST_WITHIN, JITTER, REPEATED_AFTER, Announcer, Word
from exchange.presence import EVERY_SECONDS, Answer, Wanted

NIM, OTHER = "EL02000015-1", "EL02000016-1"
SEED = 18
ENOUGH = 40


class Enough(Exception):
    """The test has seen what it wanted."""


class Rig:
    def __init__(self, answers=(), *, modes=frozenset({"live"}), dice=None, failing=0, again=(3,)):
        self.answers = list(answers)
        self.said = []
        self.naps = []
        self.resent = []
        self.failing = failing
        self.again = list(again)
        self.announcer = Announcer(
            self, self.words, self.resend, modes=modes, dice=dice or (lambda: 0.5), sleep=self.sleep
        )

    async def announce(self, presence, *, nim):
        self.said.append((nim, presence))
        return self.answers.pop(0) if self.answers else Answer()

    async def words(self):
        if self.failing:
            self.failing -= 1
            raise OSError("the disk is gone")
        return [Word(NIM, b"1"), Word(OTHER, b"2")]

    async def resend(self, nim, mode, from_z):
        self.resent.append((nim, mode, from_z))
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


async def test_each_machine_speaks_for_itself():
    """A box with two machines says two words each time."""
    rig = Rig()
    await rig.run()
    assert rig.said[:4] == [(NIM, b"1"), (OTHER, b"2")] * 2


async def test_trouble_ends_nothing():
    """A ledger that cannot be read for a while, and nobody who hears: told once, and said again."""
    rig = Rig([None] * 10, failing=3)
    logs = await rig.run()
    assert logs == ["presence_failed"] * 3 + ["presence_not_heard", "presence_heard"]
    assert len(rig.said) == 2 * (ENOUGH - 1 - 3)


async def test_what_headquarters_misses_is_sent_again():
    """From the Z it names on, once, however often it asks within the hour while the closures are on their way."""
    wanted = Answer((Wanted("live", 7),))
    rig = Rig([wanted, Answer()] * 5 + [Answer((Wanted("live", 3),))])
    logs = await rig.run()
    assert rig.resent == [(NIM, "live", 7), (NIM, "live", 3)]
    assert logs == ["closures_asked_for"] * 2


async def test_what_was_still_on_its_way_is_asked_for_again_at_once():
    """Nothing was sent again for that request: the next one, five minutes later, is looked at anew."""
    rig = Rig([Answer((Wanted("live", 7),)), Answer()] * 5, again=(0, 2))
    logs = await rig.run()
    assert rig.resent == [(NIM, "live", 7)] * 2
    assert logs == ["closures_asked_for"]


@pytest.mark.parametrize(("apart", "resent"), [(REPEATED_AFTER, 3), (REPEATED_AFTER - 1, 2)])
async def test_it_may_ask_again_after_an_hour(monkeypatch, apart, resent):
    """What was lost once more is sent once more; a second before the hour is over it is not."""
    times = count(0.0, apart)
    monkeypatch.setattr(asyncio.get_running_loop(), "time", lambda: next(times), raising=False)
    rig = Rig([Answer((Wanted("live", 7),)), Answer()] * 3)
    await rig.run()
    assert rig.resent == [(NIM, "live", 7)] * resent


@pytest.mark.parametrize(("modes", "resent"), [({"live"}, []), ({"live", "test"}, [(NIM, "test", 1)])])
async def test_the_sandbox_is_sent_only_where_it_is_sent_anyway(modes, resent):
    """Headquarters asks for closures of the sandbox in vain where `include_sandbox` is off."""
    rig = Rig([Answer((Wanted("test", 1),))], modes=frozenset(modes))
    await rig.run()
    assert rig.resent == resent
