"""What came under a key that was in the wrong hands is taken out of the table, kept as evidence, and asked for again. On both databases."""

import msgspec
import pytest
from support.hq.paper_box import DAY, PaperBox
from support.hq.store import NOW, copy_with_keys, evidence_of, open_findings, presence_word, received, take

from common.wire.keys import PrivateKey
from common.wire.presence import WantedClosures
from headquarters.core.reception import MessageRefused
from headquarters.store.book.closures import StoreOutcome

MACHINE = "EL02000015"
STOLEN_AT = NOW + DAY
LATER = NOW + 2 * DAY
NEW = PrivateKey(b"n" * 32)


def closures_of(store, mode="live"):
    """Numbers and totals of the closures in the table."""
    with store.database.read() as connection:
        query = "SELECT z, ttc FROM closure WHERE machine = %s AND mode = %s ORDER BY z"
        rows = connection.exec_driver_sql(query.replace("%s", "'{}'").format(MACHINE, mode)).all()
    return [tuple(row) for row in rows]


def samples(store):
    return [(one.reason, one.detail.partition(",")[0]) for one in store.evidence.samples()]


def renewed(store, box):
    """The box has another key, and the old one is revoked."""
    old, box.key = box.key, NEW
    store.register.add(box.nim, NEW.public, now=LATER)
    assert store.register.revoke(MACHINE, old.id, LATER)
    return old


@pytest.fixture
def forged(store, box):
    """Z 1 and 2 are the shop's; then its key is stolen, and the thief is first with a Z 3 of his own, half as large again."""
    take(store, box, box.close(), box.close())
    thief = PaperBox(box.nim, box.key, seed="thief")
    thief.closures, thief.ledger = list(box.closures), box.ledger
    assert take(store, thief, thief.close(3), thief.close(3), now=STOLEN_AT) == [StoreOutcome.STORED] * 2
    return thief


def test_what_was_read_from_the_stream_again(store, box):
    """A database that was put back has read it today; the stream had received it before the theft: it stays."""
    assert store.closures.store([received(box, box.close(), store, NOW)], now=LATER) == [StoreOutcome.STORED]
    old = renewed(store, box)
    assert store.register.withdraw(MACHINE, old.id, STOLEN_AT, LATER) == 0
    assert closures_of(store) == [(1, 16000)]


def test_a_revocation_by_a_wrong_clock(store, box):
    """Headquarters' clock was in the year 2100 then: the key is refused, whenever the stream has received what it signed."""
    assert received(box, box.close(), store, NOW)
    assert store.register.revoke(MACHINE, box.key.id, 4_102_444_800_000)
    with pytest.raises(MessageRefused):
        received(box, box.close(), store, NOW)


def test_what_the_thief_made_up_goes_and_what_the_shop_made_comes(store, box, forged):
    """His closures are out of table, sums and chain; the true ones, which were forks until then, are asked for and taken, and no finding is left."""
    true = [box.close(), box.close()]
    assert take(store, box, *true, now=STOLEN_AT + 1) == [StoreOutcome.FORK] * 2
    assert [kind for kind, *_ in open_findings(store)] == ["fork", "fork"]
    old = renewed(store, box)
    assert store.register.withdraw(MACHINE, old.id, STOLEN_AT, LATER) == 2
    assert closures_of(store) == [(1, 16000), (2, 16000)]
    assert open_findings(store) == []
    presence = presence_word(box, box.presence(at=LATER + 1))
    assert store.presences.store([presence], now=LATER + 1) == [[WantedClosures("live", 3, 4)]]
    assert take(store, box, *true, now=LATER + 2) == [StoreOutcome.STORED] * 2
    assert closures_of(store) == [(z, 16000) for z in (1, 2, 3, 4)]
    assert open_findings(store) == []


def test_nothing_is_thrown_away(store, box, forged):
    """Each closure that was withdrawn is among the evidence, whole, as the forks are."""
    old = renewed(store, box)
    store.register.withdraw(MACHINE, old.id, STOLEN_AT, LATER)
    assert samples(store) == [("withdrawn", "Z 4"), ("withdrawn", "Z 3")]
    newest = store.evidence.samples()[0]
    assert msgspec.json.decode(evidence_of(store, newest.id))["data"]["total_ttc"] == 24000


def test_what_the_shop_sent_meanwhile_comes_back(store, box):
    """The key is the same: its closures go too, and the box signs them anew with its new one."""
    take(store, box, box.close())
    after = [box.close(), box.close()]
    take(store, box, *after, now=STOLEN_AT)
    old = renewed(store, box)
    assert store.register.withdraw(MACHINE, old.id, STOLEN_AT, LATER) == 2
    assert take(store, box, *after, now=LATER + 1) == [StoreOutcome.STORED] * 2
    assert [z for z, _ in closures_of(store)] == [1, 2, 3]
    assert open_findings(store) == []


def test_in_the_middle_of_a_book(store, box, forged):
    """What came after his under the new key stays; what is missing before it is a gap until the box has sent it."""
    box.close()
    box.close()
    old = renewed(store, box)
    fifth = box.close()
    take(store, box, fifth, now=LATER)
    assert open_findings(store)[0][:3] == ("chain", 5, "previous")
    store.register.withdraw(MACHINE, old.id, STOLEN_AT, LATER + 1)
    assert open_findings(store) == [("gap", 3, 4)]
    assert take(store, box, *box.closures[2:4], now=LATER + 2) == [StoreOutcome.STORED] * 2
    assert open_findings(store) == []


def test_true_trouble_is_found_again(store, box, forged):
    """A finding of the thief's closure is over with it; the same one of the shop's own is a new one."""
    forged.close(2, unexplained=1)
    take(store, forged, forged.closures[-1], now=STOLEN_AT + 1)
    [before] = [one for one in store.findings.listed(is_open=True) if one.kind == "unexplained"]
    old = renewed(store, box)
    store.register.withdraw(MACHINE, old.id, STOLEN_AT, LATER)
    [solved] = [one for one in store.findings.listed() if one.id == before.id]
    assert (solved.solved_at, solved.note) == (LATER, f"withdrawn with key {old.id}")
    take(store, box, box.close(), box.close(), box.close(2, unexplained=1), now=LATER + 1)
    assert [kind for kind, *_ in open_findings(store)].count("unexplained") == 1


def test_another_key_and_another_box_keep_theirs(store, box, forged):
    """Withdrawn is what that key has signed for that machine, and nothing when it is not revoked or is not there."""
    other = PaperBox("EL02000016-1", box.key)
    store.register.add(other.nim, other.key.public, now=NOW)
    take(store, other, other.close(), now=STOLEN_AT)
    assert store.register.withdraw(MACHINE, box.key.id, STOLEN_AT, LATER) is None
    old = renewed(store, box)
    assert store.register.withdraw(MACHINE, "0" * 16, STOLEN_AT, LATER) is None
    assert store.register.withdraw(MACHINE, old.id, LATER, LATER) == 0
    assert len(closures_of(store)) == 4
    store.register.withdraw(MACHINE, old.id, 0, LATER)
    assert closures_of(store) == []
    assert store.presences.last_z("EL02000016", "live") == 1


def test_a_database_that_was_put_back(store, box, forged):
    """It is of the time before the theft was known, and has the thief's closures again: the register's copy is newer, and withdraws them."""
    copy = copy_with_keys(store, lambda key: key | {"revoked_at": LATER, "stolen_since": STOLEN_AT})
    assert len(closures_of(store)) == 4
    assert store.register.from_copy(copy, LATER)
    assert [z for z, _ in closures_of(store)] == [1, 2]


def test_a_copy_of_an_older_version(store, box, forged):
    """It does not say that a key was stolen: nothing is withdrawn."""
    without = copy_with_keys(store, lambda key: {name: key[name] for name in key if name != "stolen_since"})
    assert store.register.from_copy(without, LATER)
    assert len(closures_of(store)) == 4
