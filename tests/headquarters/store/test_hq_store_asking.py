"""What a box is asked to send again, how often, and what clocks and words that waited make of it. On both databases."""

from support.hq.store import NOW, open_findings, presence_word, take

from common.wire.instants import instant_text
from common.wire.presence import WantedClosures
from headquarters.core.checks import MAX_RANGES, MAX_TIMES, machine_of
from headquarters.core.wording import Fact

MINUTE = 60_000
HOUR, DAY = 60 * MINUTE, 1440 * MINUTE
YEAR = 365 * DAY


def say(store, box, at, **changes):
    [wanted] = store.presences.store([presence_word(box, box.presence(at=at, **changes))], now=at)
    return wanted


def lacking(store, box, *missing, of=6):
    """Closures are here but those; the box has closed all."""
    closures = [box.close() for _ in range(of)]
    take(store, box, *(closure for closure in closures if closure.z_number not in missing))
    return closures


def test_what_is_refused_for_good_is_not_asked_for_for_ever(store, box):
    """Z 3, which never comes, is asked for ten times, further and further apart, and alone; the finding stays."""
    lacking(store, box, 3)
    times = [NOW + (2**n - 1) * HOUR + minutes * MINUTE for n in range(13) for minutes in (-5, 0, 5)]
    answers = {at: say(store, box, at) for at in times[1:]}
    assert [wanted for wanted in answers.values() if wanted] == [[WantedClosures("live", 3, 3)]] * MAX_TIMES
    assert [(at - NOW) // HOUR for at in times[1:] if answers[at]] == [2**n - 1 for n in range(MAX_TIMES)]
    assert open_findings(store) == [("gap", 3, 3)]


def test_a_box_that_goes_on(store, box):
    """Its end of what is missing moves each day: asked no more often for that."""
    lacking(store, box, 5, 6)
    query = 0
    for day in range(60):
        box.close()
        query += bool(say(store, box, NOW + round(day * DAY)))
    assert query <= MAX_TIMES


def test_what_goes_missing_later_is_asked_for(store, box):
    """Also while nothing is asked any more for what came before."""
    lacking(store, box, 3)
    for day in (n * n / 4 for n in range(20)):
        say(store, box, NOW + round(day * DAY))
    closures = [box.close() for _ in range(3)]
    take(store, box, closures[0], closures[2])
    assert say(store, box, NOW + 101 * DAY) == [WantedClosures("live", 8, 8)]
    take(store, box, closures[1])
    assert say(store, box, NOW + 102 * DAY) == []


def test_a_new_key_asks_anew(store, box):
    """What was refused under another key may be taken now."""
    lacking(store, box, 3)
    for day in (n * n / 4 for n in range(20)):
        say(store, box, NOW + round(day * DAY))
    assert say(store, box, NOW + 101 * DAY) == []
    store.register.add(box.nim, box.key.public, now=NOW)
    assert say(store, box, NOW + 102 * DAY) == [WantedClosures("live", 3, 3)]


def test_many_gaps(store, box):
    """Every second one: so many in an answer as fit, the others in the next."""
    lacking(store, box, *range(1, 100, 2), of=100)
    first, second = say(store, box, NOW), say(store, box, NOW + 5 * MINUTE)
    assert [wanted.from_z for wanted in (*first, *second)] == list(range(1, 4 * MAX_RANGES, 2))


def test_our_clock_was_a_year_ahead(store, box):
    """For one closure and one word: the box is asked for what is missing, is late when it is silent, and its next word counts."""
    closures = [box.close() for _ in range(3)]
    take(store, box, closures[0], closures[2], now=NOW + YEAR)
    say(store, box, NOW + YEAR)
    assert say(store, box, NOW) == [WantedClosures("live", 2, 2)]
    assert store.presences.latest()[machine_of(box.nim)].received_at == NOW
    assert say(store, box, NOW + 2 * HOUR) == [WantedClosures("live", 2, 2)]


def test_a_box_whose_clock_was_a_year_ahead(store, box):
    """It is put right: the next word counts, and ends the finding of the clock; an older one that comes late does not."""
    say(store, box, NOW)
    store.presences.store([presence_word(box, box.presence(at=NOW + YEAR))], now=NOW + 5 * MINUTE)
    assert [finding[0] for finding in open_findings(store)] == ["clock"]
    word = presence_word(box, box.presence(at=NOW + MINUTE))
    store.presences.store(
        [type(word)(word.presence, word.content, word.key_id, -1, NOW + MINUTE)], now=NOW + 6 * MINUTE
    )
    assert [finding[0] for finding in open_findings(store)] == ["clock"]
    say(store, box, NOW + 10 * MINUTE)
    assert open_findings(store) == []
    assert store.presences.latest()[machine_of(box.nim)].received_at == NOW + 10 * MINUTE


def test_a_silent_box_that_spoke_while_our_clock_was_ahead(store, box):
    """Its last word was heard in a year's time: it is silent all the same."""
    say(store, box, NOW + YEAR)
    assert [silent.machine for silent in store.watching.silent(NOW - HOUR, NOW)] == [machine_of(box.nim)]


def test_a_finding_while_our_clock_was_ahead(store, box):
    """It was found, or claimed for a notification, in a year's time: it is sent now."""
    closures = [box.close() for _ in range(5)]
    take(store, box, closures[0], closures[2], now=NOW + YEAR)
    take(store, box, closures[4], now=NOW)
    assert len(store.findings.claim_notifications(older_than=NOW + YEAR, now=NOW + YEAR, lease=MINUTE, limit=1)) == 1
    result = store.findings.claim_notifications(older_than=NOW, now=NOW, lease=MINUTE)
    assert [finding.facts["first"] for finding in result] == [2, 4]


def test_an_acceptance_while_our_clock_was_ahead(store, box):
    """The ledger that was accepted last counts."""
    ids = [f"{n}0000000-0000-4000-8000-000000000000" for n in (1, 2)]
    store.register.accept_ledger(machine_of(box.nim), ids[0], "awa", NOW + YEAR)
    store.register.accept_ledger(machine_of(box.nim), ids[1], "awa", NOW)
    assert store.register.ledgers(machine_of(box.nim))[0].ledger_id == ids[1]


def test_a_word_that_waited(store, box):
    """It was said yesterday and is read now: the box is as silent as it was, the late finding stays, and its clock was right. Said now, it ends it."""
    machine = machine_of(box.nim)
    store.watching.settle_late({machine: Fact("late", "", {"what": "never", "day": "2025-12-06"})}, NOW)
    word = presence_word(box, box.presence(at=NOW - DAY))
    store.presences.store([type(word)(word.presence, word.content, word.key_id, -1, NOW - DAY)], now=NOW)
    assert store.presences.latest()[machine].received_at == NOW - DAY
    assert [finding[0] for finding in open_findings(store)] == ["late"]
    assert [silent.machine for silent in store.watching.silent(NOW - HOUR, NOW)] == [machine]
    say(store, box, NOW)
    assert open_findings(store) == []


def test_what_goes_on_grows(store, box):
    """A finding of days or hours says how many they are now; it is one finding."""
    for days in (5, 6, 20):
        say(store, box, NOW + days * DAY, tax_days=days)
        assert open_findings(store) == [("tax-server", days)]
    assert len(store.findings.listed()) == 1


def test_what_a_person_has_solved_and_goes_on_is_found_again_a_day_later(store, box):
    """The law leaves a sale 48 hours: who says that it is solved is not asked again in five minutes, but the next day."""
    waiting = instant_text(NOW - 40 * HOUR)
    say(store, box, NOW, sold=waiting)
    store.findings.solve(store.findings.listed()[0].id, "Awa", "by hand", NOW)
    for at, expected in (
        (5 * MINUTE, []),
        (23 * HOUR, []),
        (24 * HOUR, [("deferred", 64)]),
        (25 * HOUR, [("deferred", 65)]),
    ):
        say(store, box, NOW + at, sold=waiting)
        assert open_findings(store) == expected
