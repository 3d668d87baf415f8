"""What a stolen key has said is taken back when the key is revoked, and what others have said stays. On both databases."""

import threading

import pytest
from support.hq.paper_box import DAY, EVENING, PaperBox
from support.hq.store import NOW, copy_with_keys, open_findings, presence_word, take

from common.wire.keys import PrivateKey
from common.wire.presence import WantedClosures
from headquarters.store.revision import StaleRing

MACHINE = "EL02000015"
LATER = EVENING + 30 * DAY
HUGE = 1_000_000
STOLEN = PrivateKey(b"s" * 32)


def say(store, box, key, now=LATER, **changes):
    """A presence that this key has signed; what the box is asked for."""
    [wanted] = store.presences.store([presence_word(box, box.presence(at=now, **changes), key)], now=now)
    return wanted


@pytest.fixture
def stolen(store, box):
    """Two closures are here; another key of the box is the thief's, and has named a Z that was not made."""
    take(store, box, box.close(), box.close())
    store.register.add(box.nim, STOLEN.public, now=NOW)
    assert say(store, box, STOLEN, z=HUGE) == [WantedClosures("live", 3, HUGE)]
    assert open_findings(store) == [("gap", 3, HUGE)]
    return STOLEN


def test_what_a_revoked_key_said_is_taken_back(store, box, stolen):
    """The gap that it alone spoke of has solved itself, nothing is asked for, and no box that lost its last Z hears of it."""
    assert store.register.revoke(MACHINE, stolen.id, LATER + 1)
    assert open_findings(store) == []
    assert store.presences.last_z(MACHINE, "live") == 2
    assert store.presences.latest() == {}
    assert say(store, box, box.key, LATER + 2) == []
    assert open_findings(store) == []


def test_what_the_box_says_under_its_own_key_counts_again(store, box, stolen):
    """It has closed Z 3 meanwhile: that is missing, and no more; also while the thief's word was set far into the future."""
    say(store, box, stolen, LATER + 1000 * DAY, z=HUGE)
    store.register.revoke(MACHINE, stolen.id, LATER + 1)
    box.close()
    assert say(store, box, box.key, LATER + 2) == [WantedClosures("live", 3, 3)]
    assert open_findings(store) == [("gap", 3, 3)]


def test_a_key_that_is_replaced(store, box):
    """The box has said the same with its new key: nothing is taken back with the old one, and no finding is sent a second time."""
    take(store, box, box.close())
    box.close()
    say(store, box, box.key)
    [before] = store.findings.listed()
    new = PrivateKey(b"n" * 32)
    store.register.add(box.nim, new.public, now=NOW)
    say(store, box, new, LATER + 1)
    assert store.register.revoke(MACHINE, box.key.id, LATER + 2)
    assert store.findings.listed() == [before]
    assert store.presences.latest().keys() == {MACHINE}


def test_what_is_missing_between_closures_stays(store, box):
    """Z 2 is missing whatever any key has said."""
    first, _, third = (box.close() for _ in range(3))
    take(store, box, first, third)
    store.register.add(box.nim, STOLEN.public, now=NOW)
    say(store, box, STOLEN, z=HUGE)
    store.register.revoke(MACHINE, STOLEN.id, LATER + 1)
    assert open_findings(store) == [("gap", 2, 2)]


def test_an_older_database_does_not_know_who_said_it(store, box, stolen):
    """What was said before headquarters kept by which key goes with any key of that box: who is there says it again."""
    with store.database.write() as connection:
        connection.exec_driver_sql("UPDATE book SET last_z_key = NULL")
        connection.exec_driver_sql("UPDATE presence SET key_id = NULL")
    store.register.revoke(MACHINE, stolen.id, LATER + 1)
    assert (open_findings(store), store.presences.latest()) == ([], {})


def test_a_database_that_was_put_back(store, box, stolen):
    """It is of the time before the key was revoked; the register's copy is newer, and takes back what that key said."""
    copy = copy_with_keys(store, lambda key: key | {"revoked_at": LATER if key["key_id"] == stolen.id else None})
    assert store.register.from_copy(copy, LATER + 1)
    assert (open_findings(store), store.presences.latest()) == ([], {})


def test_revoked_while_its_word_is_on_its_way(store, box, stolen):
    """The second one waits for the other: a word that was looked at before is looked at again, never kept afterwards."""
    revision = store.register.revision()
    with store.database.write() as connection:
        connection.exec_driver_sql("UPDATE meta SET value = '77' WHERE name = 'revision'")
        outcome = []

        def late():
            try:
                store.presences.store(
                    [presence_word(box, box.presence(z=HUGE + 1), stolen)], now=LATER + 1, revision=revision
                )
            except StaleRing as stale:
                outcome.append(stale)

        thread = threading.Thread(target=late)
        thread.start()
        thread.join(0.2)
        assert thread.is_alive()
    thread.join(60)
    assert len(outcome) == 1
    assert open_findings(store) == [("gap", 3, HUGE)]


def test_another_box_keeps_what_it_said(store, box, stolen):
    """A key is revoked of one box alone, also when two boxes share it."""
    other = PaperBox("EL02000016-1")
    store.register.add(other.nim, stolen.public, now=NOW)
    other.close()
    say(store, other, stolen)
    store.register.revoke(MACHINE, stolen.id, LATER + 1)
    assert open_findings(store) == [("gap", 1, 1)]
    assert store.presences.latest().keys() == {"EL02000016"}
