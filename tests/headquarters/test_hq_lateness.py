"""Who is late: learnt from when a shop usually closes, set by a person, and never said of a shop that is heard of."""

import time
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from zoneinfo import ZoneInfo

import pytest
from sqlalchemy import event, text
from support.hq.paper_box import DAY, PaperBox
from support.hq.store import presence_word, take

from common.wire.instants import instant_millis
from headquarters.core.lateness import Habit, learn, overdue_day
from headquarters.core.wording import Fact
from headquarters.notifiers import Findings
from headquarters.watch import Watch

UTC = ZoneInfo("Africa/Ouagadougou")
MINUTE = 60_000
HOUR = 60 * MINUTE


def at(text):
    return int(datetime.fromisoformat(f"{text}+00:00").timestamp() * 1000)


@pytest.fixture
def watch(store):
    return Watch(store, UTC, Findings(look_every=1, tell_after=0))


def a_shop(store, nim="EL02000015-1"):
    """That closes at 19:00."""
    box = PaperBox(nim)
    store.register.add(box.nim, box.key.public, now=1)
    store.register.change(box.nim[:10], 0, closes_at=19 * 60)
    return box


def days_late(store):
    return [finding.facts["day"] for finding in store.findings.listed(is_open=True)]


def test_habit_of_a_shop_that_rests_on_sunday():
    """Four weeks, Monday to Saturday between 19:00 and 19:50: it is the ninth of ten that counts, and Sunday is none."""
    evenings = [at("2026-03-02T19:00:00") + n * DAY + n * 2 * MINUTE for n in range(27) if (n + 1) % 7]
    habit = learn(evenings, UTC, at("2026-03-29T12:00:00"))
    assert habit.days == 0b0111111
    assert 15 * 60 + 40 <= habit.minute <= 15 * 60 + 52


def test_habit_across_midnight():
    """A bar that closes between 23:30 and 00:30 closes late on the same day, not early on the next."""
    evenings = [at("2026-03-02T23:30:00") + n * DAY + (n % 3) * 30 * MINUTE for n in range(10)]
    habit = learn(evenings, UTC, at("2026-03-14T12:00:00"))
    assert habit.minute == 20 * 60 + 30
    assert overdue_day(habit, evenings[-1], UTC, at("2026-03-12T01:00:00")) is None
    assert overdue_day(habit, evenings[-1], UTC, at("2026-03-13T01:31:00")) == "2026-03-12"


def test_a_clock_that_is_far_ahead_shows_no_habit_and_ends_none():
    """A closure of the last minute of 9999 by one box's clock: east of Greenwich that is no date, and no shop was late any more."""
    evenings = [at("2026-03-02T19:00:00") + n * DAY for n in range(10)]
    now, zone = at("2026-03-14T12:00:00"), ZoneInfo("Africa/Lagos")
    assert learn([*evenings, at("9999-12-31T23:59:00")], zone, now) == learn(evenings, zone, now)


def test_no_habit_from_four_closures():
    assert learn([at("2026-03-02T19:00:00") + n * DAY for n in range(4)], UTC, at("2026-03-06T00:00:00")) is None


@pytest.mark.parametrize(
    ("now", "expected"),
    [
        ("2026-03-03T19:59:00", None),
        ("2026-03-03T20:01:00", "2026-03-03"),
        ("2026-03-04T10:00:00", "2026-03-03"),
        ("2026-03-08T23:00:00", "2026-03-07"),
    ],
)
def test_overdue(now, expected):
    """One hour after the usual one, and on; a day of rest is not due, and the day before it stays due."""
    habit = Habit(15 * 60, 0b0111111)  # 19:00, Monday to Saturday
    assert overdue_day(habit, at("2026-03-02T19:00:00"), UTC, at(now)) == expected


def test_late_until_it_closes(store, watch):
    """Late when it neither closed nor was heard of for an hour; solved by its closure, or by its word alone."""
    box = a_shop(store)
    now = at("2026-03-03T20:30:00")

    watch.check(now - HOUR)
    assert days_late(store) == ["2026-03-02"]
    store.findings.solve(store.findings.listed()[0].id, "Awa", "new shop", now)
    watch.check(now)
    assert days_late(store) == ["2026-03-03"]
    watch.check(now + MINUTE)
    assert len(store.findings.listed()) == 2
    presence = box.presence(at=now)
    store.presences.store([presence_word(box, presence)], now=now + 2 * MINUTE)
    assert days_late(store) == []
    watch.check(now + 30 * MINUTE)
    assert days_late(store) == []
    watch.check(now + 2 * HOUR)
    assert days_late(store) == ["2026-03-03"]
    assert instant_millis("2026-03-03T20:30:00Z", "") == now


def test_a_new_shop_that_falls_silent(store, watch):
    """It has no habit yet: late two days after its last sign, once, until the next one; a box that never spoke is not installed yet."""
    box, now = PaperBox(), at("2026-03-03T20:30:00")
    for nim in (box.nim, "EL02000016-1"):
        store.register.add(nim, box.key.public, now=1)
    store.presences.store([presence_word(box, box.presence(at=now))], now=now)

    def late_at(moment):
        watch.check(moment)
        return [(finding.nim, finding.facts["silent"]) for finding in store.findings.listed(is_open=True)]

    assert late_at(now + DAY) == late_at(now + 2 * DAY) == []
    assert late_at(now + 2 * DAY + HOUR) == late_at(now + 3 * DAY) == [(box.nim, "2026-03-03 20:30")]
    store.findings.solve(store.findings.listed()[0].id, "Awa", "the shop moves", now + 3 * DAY)
    assert late_at(now + 9 * DAY) == []
    store.presences.store([presence_word(box, box.presence(at=now + 9 * DAY))], now=now + 9 * DAY)
    assert late_at(now + 10 * DAY) == []
    assert late_at(now + 12 * DAY) == [(box.nim, "2026-03-12 20:30")]


def test_what_a_person_has_solved_stays_so(store, watch):
    """A shop on holiday: its lateness is not reported each minute; the next day it is late anew, and once it has closed, anew that evening."""
    box, now = a_shop(store), at("2026-03-03T20:30:00")

    def late_at(moment):
        watch.check(moment)
        return days_late(store)

    def solve():
        store.findings.solve(store.findings.listed()[0].id, "Awa", "on holiday", now)

    assert late_at(now) == ["2026-03-03"]
    solve()
    assert late_at(now + MINUTE) == late_at(now + HOUR) == []
    assert late_at(now + DAY) == late_at(now + DAY + HOUR) == ["2026-03-04"]
    solve()
    store.presences.store([presence_word(box, box.presence(at=now + DAY + HOUR))], now=now + DAY + HOUR)
    assert late_at(now + DAY + 3 * HOUR) == ["2026-03-04"]
    assert [finding.note for finding in store.findings.listed()] == [None, "on holiday", "on holiday"]


def test_a_chain_that_is_late_as_a_whole(store, watch):
    """Its network was down: the look takes no more statements than for one shop, and neither do the next day's and the end."""
    statements = []
    event.listen(store.database.engine, "before_cursor_execute", lambda *now: statements.append(now[2]))
    counted = {}
    for shops in (1, 40):
        boxes = [a_shop(store, f"EL02{shops:02}{number:04}-1") for number in range(shops)]
        now = at("2026-03-03T20:30:00")
        for moment in (now, now + DAY):
            statements.clear()
            watch.check(moment)
            counted.setdefault(shops, []).append(len(statements))
        assert len(store.findings.listed(is_open=True)) == shops
        store.presences.store([presence_word(box, box.presence(at=now + DAY)) for box in boxes], now=now + DAY)
    assert store.findings.listed(is_open=True) == []
    assert max(counted[40]) <= max(counted[1])


def test_a_look_while_late_shops_speak(store):
    """Both settle the same findings: the second one waits at the first of them, and neither is ended as a deadlock."""
    if store.database.is_sqlite:
        pytest.skip("there a transaction that writes is alone")
    first, second = [PaperBox(f"EL0200001{number}-1") for number in range(2)]
    now, never = at("2026-03-03T20:30:00"), Fact("late", "", {"what": "never", "day": "2026-03-03"})
    for box in (second, first):
        store.register.add(box.nim, box.key.public, now=1)
    store.watching.settle_late({"EL02000011": never}, now)
    store.watching.settle_late({"EL02000010": never, "EL02000011": never}, now)
    ids = {finding.machine: finding.id for finding in store.findings.listed(is_open=True)}
    words = [presence_word(box, box.presence(at=now)) for box in (first, second)]
    with ThreadPoolExecutor(1) as thread:
        with store.database.write() as connection:
            one = "UPDATE finding SET note = 'seen' WHERE id = {}"
            connection.exec_driver_sql(one.format(ids["EL02000010"]))
            speaking = thread.submit(store.presences.store, words, now=now)
            waiting = text("SELECT count(*) FROM pg_locks WHERE NOT granted")
            while not connection.scalar(waiting):
                time.sleep(0.01)
            connection.exec_driver_sql(one.format(ids["EL02000011"]))
        speaking.result(60)
    assert store.findings.listed(is_open=True) == []


def test_late_after_a_closure_of_a_clock_that_was_ahead(store, watch):
    """By twelve years: it has closed when headquarters got it."""
    box = a_shop(store)
    take(store, box, box.close(at=at("2038-03-02T18:00:00")), now=at("2026-03-02T18:00:00"))
    for hour, days in (("2026-03-02T20:30:00", []), ("2026-03-03T20:30:00", ["2026-03-03"])):
        watch.check(at(hour))
        assert days_late(store) == days


def test_learnt_in_the_store(store, watch):
    """From closures alone, without a person: ten evenings, then silence."""
    box = PaperBox()
    store.register.add(box.nim, box.key.public, now=1)
    evenings = [at("2026-03-02T19:00:00") + n * DAY for n in range(10)]
    take(store, box, *(box.close(at=evening) for evening in evenings))
    watch.check(at("2026-03-12T19:30:00"))
    assert store.findings.listed(is_open=True) == []
    watch.check(at("2026-03-12T20:30:00"))
    assert [finding.kind for finding in store.findings.listed(is_open=True)] == ["late"]
    [rest] = store.register.boxes()
    assert (rest.usual_at, rest.usual_days) == (15 * 60, 0b1111111)


def test_a_shop_that_is_closed_for_good(store, watch):
    """It is never late, its key is refused, no list has it; its closures stay. Adding it again opens it again."""
    box, others = PaperBox(), [PaperBox(f"EL020001{number:02}-1") for number in range(3)]
    for one in (box, *others):
        store.register.add(one.nim, one.key.public, now=1, label=one.nim[-4:])
    store.register.change("EL02000015", 0, closes_at=19 * 60)
    take(store, box, box.close())
    now = at("2026-03-03T20:30:00")
    watch.check(now)
    assert [finding.machine for finding in store.findings.listed(is_open=True)] == ["EL02000015"]
    assert store.register.retire("EL02000015", now)
    assert not store.register.retire("EL02000015", now)
    assert not store.register.retire("EL99999999", now)
    watch.check(now + MINUTE)
    assert store.findings.listed(is_open=True) == []
    assert store.register.ring().keys_of("EL02000015") == ()
    assert [line.z for line in store.figures.lines()] == [1]
    assert [one.machine for one in store.register.some(None, 0, 2)[0]] == ["EL02000100", "EL02000101"]
    assert store.register.some(None, 10**9, 2)[1:] == (3, 1)
    assert store.register.some(None, 0, 9, now)[1] == 4
    assert store.register.box("EL02000015").label == "15-1"
    store.register.add(box.nim, box.key.public, now=now + 1)
    assert len(store.register.ring().keys_of("EL02000015")) == 1
    assert store.register.some(None, 0, 9)[1] == 4
