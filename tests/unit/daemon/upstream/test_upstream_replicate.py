"""The order of things between outbox and headquarters, with a clock and sleeps of the test's own."""

import asyncio
import contextlib
from collections import Counter

import pytest
from structlog.testing import capture_logs
from support.ledgers.outbox import START, LedgerOutbox
from support.receivers.headquarters import until

from common.language.reasons import from_stored
from common.turns import ended
from daemon.core.clock import DAY, HOUR
from daemon.core.delivery import Delivered, DeliveryRefused, RetryLater
from daemon.core.errors import StorageFull
from daemon.usecases.delivery.replicate import LONGEST_RETRY_AFTER, WIDEST_SPREAD, Backoff, Replicator

NIM, OTHER = "EL02000015-1", "EL02000016-1"
ENDS = ("closure.delivered", "closure.parked")


class Scripted:
    """A receiver that answers as told, per machine, and then takes everything."""

    def __init__(self, **answers):
        self.answers = {NIM: list(answers.get("answers", [])), OTHER: list(answers.get("other", []))}
        self.taken = []
        self.reports = []

    async def deliver(self, event, *, report_id, subject, nim, since, last_sent):
        assert (len(report_id), subject) == (36, "closure")
        self.reports.append((since, last_sent))
        answer = self.answers[nim].pop(0) if self.answers[nim] else Delivered()
        if isinstance(answer, Exception):
            raise answer
        if answer == Delivered():
            self.taken.append((nim, int(event)))
        return answer

    async def aclose(self):
        """Nothing is open."""


@pytest.fixture
async def ledger(tmp_path):
    async with LedgerOutbox.open(tmp_path / "mcfd.sqlite3") as opened:
        yield opened


class Rig:
    def __init__(self, ledger, receiver, **options):
        self.ledger = ledger
        self.receiver = receiver
        self.naps = []
        self.now = START
        outbox = options.pop("outbox", ledger.outbox)
        self.replicator = Replicator(
            outbox,
            outbox.waiting,
            receiver,
            options.pop("compose", lambda entry: str(entry.z_number).encode()),
            clock=lambda: self.now,
            backoff=Backoff(dice=lambda: 1.0),
            sleep=self.sleep,
            **options,
        )

    async def sleep(self, seconds):
        self.naps.append(seconds)
        self.now += round(seconds * 1000)
        await asyncio.sleep(0)

    @contextlib.asynccontextmanager
    async def running(self):
        task = asyncio.create_task(self.replicator.run())
        try:
            yield
        finally:
            await ended(task)

    async def until(self, condition):
        async with self.running():
            await until(condition, deadline=30, every=0)

    async def drain(self):
        """Until all that waits now has had its end, which the log tells last."""
        count = self.ledger.states().count("waiting")
        with capture_logs() as logs:
            await self.until(lambda: sum(line["event"] in ENDS for line in logs) == count)
        return logs


def test_backoff_doubles_up_to_the_most():
    """The ceiling doubles from one second to `most`, however many failures there were; a wait is anywhere between nothing and the ceiling."""
    for dice in (0.0, 0.25, 1.0):
        backoff = Backoff(most=300.0, dice=lambda dice=dice: dice)
        waits = [backoff.wait(n) for n in (*range(1, 12), 1_000_000)]
        assert waits == [dice * ceiling for ceiling in (1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300, 300)]


@pytest.mark.parametrize(
    ("query", "least", "most"),
    [
        (None, 0.0, 4.0),
        (0.0, 0.0, 4.0),
        (2.0, 2.0, 6.0),
        (7.5, 7.5, 15.0),
        (60.0, 60.0, 120.0),
        (7_200.0, 7_200.0, 7_200.0 + WIDEST_SPREAD),
        (float("inf"), LONGEST_RETRY_AFTER, LONGEST_RETRY_AFTER + WIDEST_SPREAD),
    ],
)
def test_retry_after_is_honoured(query, least, most):
    """What the receiver asks for counts, also beyond the most, with a random share on top; a mistake of years is cut to a day."""
    waits = [Backoff(most=300.0, dice=dice).wait(3, query) for dice in (lambda: 0.0, lambda: 1.0)]
    assert waits == [least, most]


async def test_refused_is_parked_and_passed(ledger):
    """Parked with its reason, and those behind it go at once; each start offers all that is parked once."""
    receiver = Scripted(answers=[Delivered(), DeliveryRefused("unknown shop")])
    await ledger.add(NIM, 3)
    rig = Rig(ledger, receiver)
    logs = await rig.drain()
    assert receiver.taken == [(NIM, 1), (NIM, 3)]
    assert ledger.states() == ["sent", "parked", "sent"]
    assert rig.naps == []
    (parked,) = [line for line in logs if line["event"] == "closure.parked"]
    assert (parked["nim"], parked["z_number"], parked["error"]) == (NIM, 2, "unknown shop")
    await ledger.add(NIM)
    receiver = Scripted(answers=[DeliveryRefused("still unknown"), DeliveryRefused("unknown too")])
    await Rig(ledger, receiver).until(lambda: ledger.states() == ["sent", "parked", "sent", "parked"])
    assert receiver.taken == []
    receiver = Scripted(answers=[DeliveryRefused("still unknown"), Delivered()])
    await Rig(ledger, receiver).until(lambda: ledger.states() == ["sent", "parked", "sent", "sent"])
    assert receiver.taken == [(NIM, 4)]


async def test_what_was_refused_is_offered_again_after_a_delivery(ledger):
    """When later ones are taken, what was wrong over there may be right again: it is offered anew, an hour later at the soonest."""
    await ledger.add(NIM, 2)
    receiver = Scripted(answers=[DeliveryRefused("a fault over there")])
    rig = Rig(ledger, receiver)

    async def after(pause, expected):
        rig.now += pause
        await ledger.add(NIM)
        rig.replicator.wake(NIM, "live")
        await until(lambda: ledger.states().count("sent") == len(expected), deadline=30, every=0)
        assert sorted(number for _, number in receiver.taken) == expected

    async with rig.running():
        await until(lambda: ledger.states() == ["parked", "sent"], deadline=30, every=0)
        await after(HOUR // 2, [2, 3])
        assert ledger.states() == ["parked", "sent", "sent"]
        await after(HOUR, [1, 2, 3, 4])
    assert ledger.states() == ["sent"] * 4


async def test_a_wake_of_all_is_heard_at_once_and_nothing_is_read_before_it(ledger, monkeypatch):
    """By the queue of a known book and by what looks for unknown ones. So is a reload, which offers again what was refused."""
    looks = Counter()

    def counted(name):
        read = getattr(ledger.outbox, name)

        def reading(*values):
            looks[name] += 1
            return read(*values)

        monkeypatch.setattr(ledger.outbox, name, reading)

    counted("backlog")
    counted("waiting")
    await ledger.add(NIM)
    rig = Rig(ledger, Scripted(other=[DeliveryRefused("unknown shop")]), poll=float(HOUR))
    async with rig.running():
        await until(lambda: ledger.states() == ["sent"], deadline=5, every=0)
        await asyncio.sleep(0.05)
        assert (looks["backlog"], looks["waiting"]) == (1, 2)
        for nim in (NIM, OTHER):
            await ledger.add(nim)
        rig.replicator.wake_all()
        await until(lambda: ledger.states() == ["sent", "sent", "parked"], deadline=5, every=0)
        await asyncio.sleep(0.05)
        reads = looks["waiting"]
        await asyncio.sleep(0.05)
        assert looks["waiting"] == reads
        rig.replicator.offer_parked()
        await until(lambda: ledger.states() == ["sent"] * 3, deadline=5, every=0)


async def test_a_try_knows_when_its_event_was_made(ledger):
    """And whether it was delivered before: a clock without a date signs no 1970, a replay is no repetition."""
    await ledger.add(NIM)
    receiver = Scripted()
    await Rig(ledger, receiver).drain()
    await ledger.outbox.replay(nim=None, from_z=1, at=START)
    await Rig(ledger, receiver).drain()
    created_at = START + DAY
    assert receiver.reports == [(created_at, 0), (created_at, START)]


async def test_a_damaged_row_is_parked(ledger):
    """A row that no event can be made of is parked; it holds up nobody."""

    def compose(entry):
        if entry.z_number == 1:
            raise ValueError("no JSON")
        return str(entry.z_number).encode()

    receiver = Scripted()
    await ledger.add(NIM, 2)
    rig = Rig(ledger, receiver, compose=compose)
    await rig.drain()
    assert receiver.taken == [(NIM, 2)]
    assert str(from_stored(ledger.rows()[0]["last_error"])) == "no event can be made of it: no JSON"


async def test_the_sandbox_stays_at_home(ledger):
    """Closures of the sandbox are sent only where that is configured, and then in an order of their own."""
    await ledger.add(NIM)
    await ledger.add(NIM, 2, mode="test")
    receiver = Scripted()
    rig = Rig(ledger, receiver)
    await rig.until(lambda: ledger.states() == ["sent", "waiting", "waiting"])
    await Rig(ledger, receiver, sandbox=True).drain()
    assert receiver.taken == [(NIM, 1), (NIM, 1), (NIM, 2)]


class FullDisk:
    """Twice nothing can be written, and once nothing can be read."""

    def __init__(self, outbox):
        self.outbox = outbox
        self.faults, self.blind = 2, True

    def __getattr__(self, name):
        return getattr(self.outbox, name)

    async def mark_sent(self, outgoing_id, *, at):
        if self.faults:
            self.faults -= 1
            raise StorageFull("no room")
        await self.outbox.mark_sent(outgoing_id, at=at)

    async def backlog(self):
        if self.blind:
            self.blind = False
            raise StorageFull("no room")
        return await self.outbox.backlog()


async def test_a_full_disk_is_survived(ledger, monkeypatch):
    """What cannot be noted as sent is sent again when the disk is back; nothing is lost, nothing is overtaken."""
    monkeypatch.setattr("daemon.usecases.delivery.replicate.BOOKKEEPING", 0.0)
    await ledger.add(NIM, 2)
    receiver = Scripted()
    await Rig(ledger, receiver, outbox=FullDisk(ledger.outbox)).drain()
    assert receiver.taken == [(NIM, 1), (NIM, 1), (NIM, 1), (NIM, 2)]


async def test_trouble_is_told_once(ledger):
    """One line for one trouble and one for its end; a mistake of an adapter is tried as slowly; Retry-After becomes the nap."""
    receiver = Scripted(
        answers=[RetryLater("no route to host")] * 7 + [RuntimeError("bug")] * 2 + [RetryLater("busy", 120.0)]
    )
    await ledger.add(NIM)
    rig = Rig(ledger, receiver)
    logs = await rig.drain()
    events = [line["event"] for line in logs]
    postponed = [line for line in logs if line["event"] == "closure.postponed"]
    assert [(line["nim"], line["z_number"], line["error"]) for line in postponed] == [(NIM, 1, "no route to host")]
    assert events.count("replication.failed") == 2
    assert rig.naps == [1, 2, 4, 8, 16, 32, 64, 128, 256, 420]
    (row,) = ledger.rows()
    assert (row["last_error"], row["next_at"]) == ("busy", START + sum(rig.naps) * 1000)
    (delivered,) = [line for line in logs if line["event"] == "closure.delivered"]
    assert (delivered["tries"], row["tries"]) == (11, 9)


async def test_an_hour_and_a_day_behind(ledger, monkeypatch):
    """The logs say when the oldest waiting closure passes an hour, and then a day: once each, and anew after a recovery."""
    monkeypatch.setattr("daemon.usecases.delivery.replicate.BOOKKEEPING", 0.0)
    await ledger.add(NIM)
    (entry,) = await ledger.outbox.waiting(NIM, "live", 1)
    backlog, looks = ledger.outbox.backlog, 0

    async def counted():
        nonlocal looks
        looks += 1
        return await backlog()

    monkeypatch.setattr(ledger.outbox, "backlog", counted)
    rig = Rig(ledger, Scripted(answers=[RetryLater("down")] * 1_000_000))

    async def hold(seconds):
        await asyncio.Event().wait()

    rig.replicator.sleep = hold

    async def reports(age):
        rig.now = entry.created_at + age
        before = looks
        with capture_logs() as logs:
            await until(lambda: looks >= before + 4, deadline=30, every=0)
        return [line["oldest_hours"] for line in logs if line["event"] == "closure.behind"]

    ages = (0, HOUR - 1, HOUR, 2 * HOUR, DAY - 1, DAY, 9 * DAY)
    async with rig.running():
        assert [await reports(age) for age in ages] == [[], [], [1], [], [], [24], []]
        await ledger.outbox.mark_sent(entry.id, at=START)
        assert await reports(DAY) == []
        await ledger.outbox.replay(nim=None, from_z=1, at=START)
        assert await reports(HOUR) == [1]
