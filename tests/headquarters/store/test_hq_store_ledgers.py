"""A ledger that was put back or lost: what the next one says of the numbers that are gone, and what a person may accept. On both databases."""

import pytest
from sqlalchemy import MetaData, select, text
from support.hq.first_version import make_tables, undo_names
from support.hq.in_process import BASE, pages
from support.hq.paper_box import DAY, EVENING, PaperBox
from support.hq.store import NOW, copy_of, evidence_of, open_findings, presence_word, take

from common.wire.closure import ZGap, read_closure
from common.wire.presence import WantedClosures
from headquarters.store.book.closures import StoreOutcome
from headquarters.store.database import Database
from headquarters.store.store import HqStore
from headquarters.store.tables import HEAD

LATER = EVENING + 30 * DAY


def another_ledger(box):
    """The same machine and key, and a ledger that begins anew."""
    return PaperBox(box.nim, key=box.key, seed="after the loss")


def say(store, box, now=LATER):
    """Its presence; what it is asked for."""
    presence = box.presence(at=now)
    [wanted] = store.presences.store([presence_word(box, presence)], now=now)
    return wanted


def restored_after(store, box, lost):
    """Two closures are here; those with the numbers `lost` died with the ledger before anybody had them."""
    take(store, box, box.close(), box.close())
    for _ in lost:
        box.close()
    box.forget(2)
    gaps = (ZGap(first=lost[0], last=lost[-1], known_from="high-water"),)
    take(store, box, box.close(z_number=lost[-1] + 1, gaps=gaps))


def test_numbers_that_are_gone_are_not_asked_for(store, box):
    """What a restored ledger says it never had is a finding of its own, which a person ends, and no box is asked for it again."""
    restored_after(store, box, [3, 4])
    assert open_findings(store) == [("gap", 3, 4, "gone")]
    assert say(store, box) == []
    [finding] = store.findings.listed(is_open=True)
    assert store.findings.solve(finding.id, "Awa", "typed in from paper", LATER)
    take(store, box, box.close(), now=LATER + 1)
    assert open_findings(store) == []
    assert say(store, box, LATER + DAY) == []


def test_numbers_that_are_gone_and_come_after_all(store, box):
    """They were on their way: the finding solves itself."""
    take(store, box, box.close(), box.close())
    late = box.close()
    box.forget(2)
    take(store, box, box.close(z_number=4, gaps=(ZGap(first=3, last=3),)))
    take(store, box, late)
    assert "gap" not in {kind for kind, *_ in open_findings(store)}


def test_a_gap_behind_what_is_gone_is_asked_for(store, box):
    """Only what the ledger has and headquarters has not."""
    restored_after(store, box, [3, 4])
    box.close()
    closure = box.close()
    take(store, box, closure)
    assert open_findings(store) == [("gap", 3, 4, "gone"), ("gap", 6, 6)]
    assert say(store, box) == [WantedClosures("live", 6, 6)]


def test_a_new_ledger_is_refused_until_somebody_accepts_it(store, box):
    """Its Z 1 is a fork; once accepted its closures are asked for and taken, and both ledgers' money counts."""
    take(store, box, *(box.close() for _ in range(3)))
    new = another_ledger(box)
    first, second = new.close(5), new.close(5)
    assert take(store, new, first) == [StoreOutcome.FORK]
    say(store, new)
    assert [kind for kind, *_ in open_findings(store)] == ["fork", "fork"]
    assert store.register.accept_ledger(new.nim.partition("-")[0], new.ledger, "awa", LATER)
    assert open_findings(store) == []
    assert say(store, new, LATER + 1) == [WantedClosures("live", 1, 2)]
    assert open_findings(store) == [("gap", 1, 2)]
    assert take(store, new, first, second) == [StoreOutcome.STORED] * 2
    assert open_findings(store) == []
    assert say(store, new, LATER + DAY) == []
    assert [line.z for line in store.figures.lines()] == [1, 1, 2, 2, 3]
    assert store.presences.last_z("EL02000015", "live") == 3
    assert sum(line.ttc for line in store.figures.lines()) == 8000 * (3 * 2 + 2 * 5)
    assert {finding.solved_by for finding in store.findings.listed() if finding.kind == "fork"} == {"awa"}


def test_what_the_lost_ledger_still_sends(store, box):
    """After the new one was accepted: money, and no part of its book; a second closure with a number of the lost one is a fork."""
    closures = [box.close() for _ in range(3)]
    take(store, box, closures[0])
    new = another_ledger(box)
    store.register.accept_ledger("EL02000015", new.ledger, "awa", NOW)
    assert take(store, new, new.close()) == [StoreOutcome.STORED]
    assert take(store, box, closures[2], closures[0]) == [StoreOutcome.STORED, StoreOutcome.DUPLICATE]
    box.forget(2)
    assert take(store, box, box.close(9)) == [StoreOutcome.FORK]
    assert take(store, new, new.close()) == [StoreOutcome.STORED]
    assert [kind for kind, *_ in open_findings(store)] == ["fork"]


def test_a_new_ledger_that_goes_on_with_the_numbers(store, box):
    """Somebody has told the box which Z was the last: after it was accepted, neither its numbers nor its chain are in question."""
    take(store, box, *(box.close() for _ in range(3)))
    new = another_ledger(box)
    fourth = new.close(z_number=4, gaps=(ZGap(first=1, last=3),))
    take(store, new, fourth)
    assert ("chain", 4, "previous", "0" * 16, box.closures[-1].chain_head[:16]) in open_findings(store)
    store.register.accept_ledger("EL02000015", new.ledger, "awa", LATER)
    take(store, new, new.close())
    assert [kind for kind, *_ in open_findings(store) if kind in ("gap", "chain", "fork")] == []
    assert say(store, new) == []


def test_an_accepted_ledger_is_lost_too(store, box):
    """A third ledger is a finding as the second was, is asked for once accepted, and so is a return of the first."""
    take(store, box, box.close())
    second, third = another_ledger(box), PaperBox(box.nim, key=box.key, seed="after the second loss")
    store.register.accept_ledger("EL02000015", second.ledger, "awa", NOW)
    say(store, second)
    assert open_findings(store) == []
    third.close()
    assert take(store, third, third.close()) == [StoreOutcome.STORED]
    say(store, third, LATER + 1)
    assert open_findings(store) == [("fork", 0, "ledger", third.ledger, second.ledger)]
    store.register.accept_ledger("EL02000015", third.ledger, "awa", LATER + 2)
    assert say(store, third, LATER + 3) == [WantedClosures("live", 1, 1)]
    take(store, third, third.closures[0])
    assert open_findings(store) == []
    say(store, box, LATER + DAY)
    assert open_findings(store) == [("fork", 2, "ledger", box.ledger, third.ledger)]


async def test_a_new_ledger_before_its_first_z(store, box):
    """The next taxpayer of a machine: the box names its ledger and has no Z in it yet. It is this ledger that an admin sees at the finding and accepts."""
    take(store, box, *(box.close() for _ in range(3)))
    say(store, box, LATER - DAY)
    new = another_ledger(box)
    say(store, new)
    async with pages(store, role="admin") as client:
        assert new.ledger in (await client.get("/ui/shops/EL02000015-1/ledger")).text
        own = {"origin": BASE, "sec-fetch-site": "same-origin"}
        answer = await client.post("/ui/shops/EL02000015-1/ledger", data={"ledger": new.ledger}, headers=own)
        assert answer.status_code == 303
    assert [row.ledger_id for row in store.register.ledgers("EL02000015")] == [new.ledger]
    assert open_findings(store) == []


def test_an_accepted_ledger_outlives_the_database(store, box, tmp_path):
    """It is in the register's copy: read again in the order of the stream, the closures of both ledgers are all taken."""
    new = another_ledger(box)
    old, fresh = [box.close() for _ in range(3)], [new.close() for _ in range(2)]
    store.register.accept_ledger("EL02000015", new.ledger, "awa", NOW)
    copy = copy_of(store)
    again = HqStore(f"sqlite:///{tmp_path}/again.sqlite3")
    again.open()
    assert again.register.from_copy(copy, NOW)
    assert take(again, box, *old) == [StoreOutcome.STORED] * 3
    assert take(again, new, *fresh) == [StoreOutcome.STORED] * 2
    assert open_findings(again) == []
    again.close()


def test_who_has_no_such_ledger(store):
    """An unregistered machine, and an id that is none."""
    assert not store.register.accept_ledger("EL02000099", PaperBox().ledger, "awa", NOW)
    with pytest.raises(ValueError, match="not the id"):
        store.register.accept_ledger("EL02000099", "x", "awa", NOW)


@pytest.mark.parametrize("version", ["0001", "0004"])
def test_from_an_older_version_on(tmp_path, new_url, version):
    """A database as an older version has left it (0004 is that of 0.1.0), with a closure in it, is brought up to date at the start, and goes on."""
    store, box = HqStore(f"sqlite:///{tmp_path}/of_today.sqlite3"), PaperBox()
    store.open()
    store.register.add(box.nim, box.key.public, now=NOW)
    take(store, box, box.close())
    older = Database(new_url)
    with older.write() as connection:
        make_tables(connection, version)
        schema, source = MetaData(), MetaData()
        schema.reflect(connection)
        with store.database.write() as now:
            undo_names(now)
            source.reflect(now)
            for table in source.sorted_tables:
                rows = (
                    [dict(row) for row in now.execute(select(table)).mappings()]
                    if table.name in schema.tables.keys() - {"alembic_version"}
                    else []
                )
                for row in rows:
                    expected = {name: value for name, value in row.items() if name in schema.tables[table.name].c}
                    connection.execute(schema.tables[table.name].insert(), expected)
    older.close()
    store.close()
    again = HqStore(new_url)
    again.open()
    assert take(again, box, box.close(), box.closures[0]) == [StoreOutcome.STORED, StoreOutcome.DUPLICATE]
    assert [line.z for line in again.figures.lines()] == [1, 2]
    with again.database.read() as connection:
        assert connection.scalar(text("SELECT version_num FROM alembic_version")) == HEAD
    again.close()


def test_one_backup_put_back_twice(store, box):
    """Ledger, epoch and number are those of the first time: each closure is found as a fork and kept; what comes after is taken."""
    take(store, box, *(box.close() for _ in range(3)))
    box.forget(2)
    first = [box.close(z_number=4, gaps=(ZGap(first=3, last=3),)), box.close()]
    assert take(store, box, *first) == [StoreOutcome.STORED] * 2
    box.forget(2)
    box.epoch, box.seed = 1, "the second time"
    again = [box.close(9, z_number=4, gaps=(ZGap(first=3, last=3),)), box.close(9)]
    assert [(one.ledger_id, one.epoch, one.z_number) for one in again] == [
        (one.ledger_id, one.epoch, one.z_number) for one in first
    ]
    assert take(store, box, *again) == [StoreOutcome.FORK] * 2
    rows = [evidence_of(store, one.id) for one in store.evidence.samples() if one.reason == "fork"]
    assert {read_closure(body).data.chain_head for body in rows} >= {one.chain_head for one in again}
    say(store, box)
    assert take(store, box, box.close()) == [StoreOutcome.STORED]
    assert [line.z for line in store.figures.lines()] == [1, 2, 3, 4, 5, 6]
    found_rows = [(kind, *facts) for kind, *facts in open_findings(store) if kind in ("fork", "chain")]
    assert {(one[0], one[1], one[2]) for one in found_rows} >= {
        ("fork", 4, "number"),
        ("fork", 5, "number"),
        ("fork", 5, "head"),
    }
    assert any(one[1] == 6 for one in found_rows)
