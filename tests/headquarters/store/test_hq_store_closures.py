"""One contract for both databases: each closure once, in its order, together with what it shows."""

import hashlib
import threading

import msgspec
import pytest
from sqlalchemy import event, inspect, select, text
from support.hq.first_version import make_tables, undo_names
from support.hq.paper_box import PaperBox
from support.hq.store import NOW, UTC, evidence_of, open_findings, presence_word, received, take

from common.wire.closure import CounterValues, TypeTotal
from common.wire.keys import PrivateKey
from headquarters.core.reception import KeysOfRevision, Message, receive
from headquarters.store import tables
from headquarters.store.book.closures import StoreOutcome
from headquarters.store.database import BadUrl, Database, StoreError, parse_url
from headquarters.store.revision import StaleRing
from headquarters.store.store import HqStore
from headquarters.store.stream_ranges import StreamMessages, missing
from headquarters.store.tables import STEPS


def create_all(database: Database) -> dict[str, object]:
    """Its tables, each with columns, keys and indexes, as the database says."""
    found = inspect(database.engine)
    return {
        name: (
            sorted((c["name"], str(c["type"]), c["nullable"], c["default"]) for c in found.get_columns(name)),
            found.get_pk_constraint(name)["constrained_columns"],
            sorted((one["name"], one["column_names"], one["unique"]) for one in found.get_indexes(name)),
        )
        for name in found.get_table_names()
    }


def test_migrations_make_the_tables(new_store):
    """A database of the first version has the tables of a new one after all steps, and to migrate again changes nothing."""
    database = new_store.database
    fresh = create_all(database)
    assert set(fresh) == {*tables.metadata.tables, "alembic_version"}
    with database.write() as connection:
        tables.metadata.drop_all(connection)
        connection.exec_driver_sql("DROP TABLE alembic_version")
        make_tables(connection, "0001")
    for _ in range(2):
        new_store.open()
        assert create_all(database) == fresh


def test_released_steps_never_change():
    """What has been made on somebody's server stays as it was made; a change is a step of its own. (Pinned.)"""
    released = {step: STEPS[step] for step in ("0001", "0002", "0003", "0004", "0005", "0006")}
    assert hashlib.sha256(repr(released).encode()).hexdigest()[:16] == "bddd4870cd4d0537"


def test_tables_of_a_newer_version(new_store):
    """A program that was put back does not touch them, and says why."""
    new_store.open()
    with new_store.database.write() as connection:
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = '9999'")
    with pytest.raises(StoreError, match="newer version"):
        new_store.open()


def test_two_instances_migrate_at_once(new_url):
    """Both open a new database in the same moment; both can use it."""
    stores = [HqStore(new_url) for _ in range(2)]
    threads = [threading.Thread(target=store.open) for store in stores]
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert [store.register.revision() for store in stores] == [0, 0]
    finally:
        for store in stores:
            store.close()


def test_once_by_id(store, box):
    """A closure that comes twice, in one batch or another, is one row; the second time it is known."""
    closure = box.close()
    assert take(store, box, closure, closure) == [StoreOutcome.STORED, StoreOutcome.DUPLICATE]
    assert take(store, box, closure) == [StoreOutcome.DUPLICATE]
    assert len(store.figures.lines()) == 1
    assert open_findings(store) == []


@pytest.mark.parametrize("subject", ["EL02000015-1", "EL02000015-2"])
def test_kept_with_its_proof(store, box, subject):
    """What came is kept byte for byte with its headers, and its figures beside it; also on the subject of another activation of the machine."""
    closure = box.close(3)
    headers, body = box.sent(closure)
    message = Message(via="nats", headers=headers, body=body, nim=subject, stream_seq=7)
    store.closures.store([receive(message, store.register.ring(), now=0, zone=UTC)], now=NOW)
    whole = store.figures.proven_closures("EL02000015", closure.report_id)
    assert (whole.headers, whole.body, whole.via, whole.key_id) == (headers, body, "nats", box.key.id)
    line = whole
    assert (line.z, line.certs, line.ttc, line.day, line.proven) == (1, 3, 24000, "2025-12-06", True)
    assert (line.groups, line.payments) == ((("B", 20340, 3660, 24000),), (("Espèces", 24000),))


@pytest.mark.parametrize(("order", "size"), [((1, 2, 3, 4, 5), 1), ((5, 4, 3, 2, 1), 2), ((2, 5, 1, 4, 3), 5)])
def test_any_order_ends_the_same(store, box, order, size):
    """Closures in any order, in batches of any size: all kept, and no finding is left open."""
    closures = [box.close() for _ in range(5)]
    ordered = [closures[n - 1] for n in order]
    for start in range(0, 5, size):
        take(store, box, *ordered[start : start + size])
    assert [line.z for line in store.figures.lines()] == [1, 2, 3, 4, 5]
    assert open_findings(store) == []


def test_gap_opens_shrinks_and_solves_itself(store, box):
    """What is missing is a finding for each range; it shrinks as closures come, and is solved by itself."""
    closures = [box.close() for _ in range(9)]
    take(store, box, closures[0], closures[4], closures[8])
    assert open_findings(store) == [("gap", 2, 4), ("gap", 6, 8)]
    take(store, box, closures[2])
    assert open_findings(store) == [("gap", 2, 2), ("gap", 4, 4), ("gap", 6, 8)]
    take(store, box, closures[1], closures[3], *closures[5:8])
    assert open_findings(store) == []
    solved = store.findings.listed(is_open=False)
    assert {finding.solved_by for finding in solved} == {""}
    assert {finding.solved_at for finding in solved} == {NOW}


def test_same_number_twice_is_a_fork(store, box):
    """A ledger that was put back closes Z 3 again: the second is evidence, not in the table, and is not said to be delivered."""
    take(store, box, *(box.close() for _ in range(3)))
    box.forget(2)
    assert take(store, box, box.close(5)) == [StoreOutcome.FORK]
    assert [line.certs for line in store.figures.lines()] == [2, 2, 2]
    assert [kind for kind, *_ in open_findings(store)] == ["fork"]
    [sample] = store.evidence.samples()
    assert (sample.reason, sample.nim) == ("fork", box.nim)
    assert b'"certs_count":5' in evidence_of(store, sample.id)


def test_fork_in_one_batch(store, box):
    """Two closures with one number in the same batch: the first one stays."""
    first = box.close()
    box.forget(0)
    assert take(store, box, first, box.close(7)) == [StoreOutcome.STORED, StoreOutcome.FORK]


def test_an_id_that_is_known(store, box):
    """With other figures it was altered; from a box that got another label and key it is the same closure."""
    closure = box.close()
    take(store, box, closure)
    assert take(store, box, msgspec.structs.replace(closure, body="", total_ttc=1)) == [StoreOutcome.FORK]
    assert take(store, box, msgspec.structs.replace(closure, box="caisse-2", key_id="x")) == [StoreOutcome.DUPLICATE]
    assert store.figures.lines()[0].ttc == 16000


def test_two_that_follow_the_same_one_are_a_fork(store, box):
    """A box that was put back and goes on with a new number, as decision 30 wants, still shows by whom it follows."""
    take(store, box, *(box.close() for _ in range(4)))
    fourth = box.closures[3]
    box.forget(2)
    again = box.close(z_number=5)
    assert take(store, box, again) == [StoreOutcome.STORED]
    assert again.previous_report_id != fourth.report_id
    assert open_findings(store) == [("counters", 5, "down", "TC, FVC"), ("fork", 5, "again", 3)]


def total(store):
    lines = store.figures.lines()
    totals = store.figures.totals("2025-01-01", "2026-12-31")
    with store.figures.days_read("2025-01-01", "2026-12-31") as read:
        assert sum(line.ttc for line in read()) == sum(day.ttc for day in totals.values())
    assert sum(line.ttc for line in lines if line.replaced_by is None) == sum(day.ttc for day in totals.values())
    return sum(day.ttc for day in totals.values()), [line.z for line in lines if line.replaced_by is not None]


@pytest.mark.parametrize("is_late", [False, True])
def test_sales_that_a_restored_ledger_closes_again(store, box, is_late):
    """Z 5 has again the sales of Z 3 and 4, since the backup was made before them: totals count them once, in any order."""
    closures = [box.close() for _ in range(4)]
    box.forget(2)
    box.close(5, z_number=5)
    box.close(1)
    if is_late:
        take(store, box, closures[0], closures[1], box.closures[-1])
        take(store, box, closures[2], box.closures[-2], now=NOW + 1)
        take(store, box, closures[3], now=NOW + 2)
    else:
        take(store, box, *closures, *box.closures[-2:])
    assert total(store) == (8000 * (2 + 2 + 5 + 1), [3, 4])
    assert ("fork", 5, "replaced", 3) in open_findings(store)


def test_sales_that_a_restored_ledger_closed_again_before_the_upgrade(store, box):
    """Versions before 0.20 did not mark them: the totals of those months count them once from the first start on."""
    other = PaperBox("EL02000099-1")
    store.register.add(other.nim, other.key.public, now=1)
    take(store, box, *(box.close() for _ in range(3)))
    box.forget(2)
    take(store, box, box.close(5, z_number=4))
    take(store, other, *(other.close() for _ in range(3)))
    with store.database.write() as connection:
        connection.execute(tables.closure.update().values(replaced_by=None))
    twice, _ = total(store)
    with store.database.write() as connection:
        undo_names(connection)
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = '0009'")
    store.open()
    assert total(store) == (twice - 8000 * 2, [3])


def test_the_first_closures_of_a_restored_ledger(store, box):
    """The backup was made before the first Z."""
    take(store, box, box.close())
    box.forget(0)
    take(store, box, box.close(3, z_number=2))
    assert total(store) == (8000 * 3, [1])


@pytest.mark.parametrize("strangers", [1, 9])
def test_sales_of_which_a_restored_ledger_lacks_some(store, box, strangers):
    """Z 4 has sales of Z 3 again, and invoices that it does not explain: both count, which the finding says."""
    take(store, box, *(box.close() for _ in range(3)))
    box.forget(2)
    box.close(2, z_number=4, unexplained=strangers)
    counters = box.closures[-1].mcf_counters
    counters = CounterValues(tc=counters.tc + strangers, fvc=counters.fvc + strangers, frc=0)
    box.closures.pop()
    take(store, box, box.close(2, z_number=4, unexplained=strangers, mcf_counters=counters))
    assert total(store) == (8000 * 4 * 2, [])
    assert ("fork", 4, "again", 3) in open_findings(store)


def test_a_closure_counts_again_when_the_later_one_is_withdrawn(store, box):
    """It was signed with a stolen key."""
    machine, stolen = box.nim.partition("-")[0], PrivateKey(bytes(32))
    store.register.add(box.nim, stolen.public, now=1)
    take(store, box, *(box.close() for _ in range(3)))
    box.forget(2)
    forged = box.close(5, z_number=4)
    box.key, key = stolen, box.key
    take(store, box, forged)
    box.key = key
    assert total(store)[1] == [3]
    store.register.revoke(machine, stolen.id, NOW)
    store.register.withdraw(machine, stolen.id, 0, NOW)
    assert total(store) == (8000 * 3 * 2, [])


@pytest.mark.parametrize(("is_credit", "begins"), [(True, 0), (False, 1), (False, 0)])
def test_a_restored_ledger_that_lacks_the_sales_of_a_closure(store, box, is_credit, begins):
    """The backup was made after Z 2: Z 4 has later sales, or credit notes alone, so nothing is counted twice. A box whose ledger adopted the machine's last invoice has Z 4 begin with the FVC of that one."""
    take(store, box, *(box.close() for _ in range(3)))
    third = box.closures[2]
    box.forget(2)
    tc, fvc = third.mcf_counters.tc, third.mcf_counters.fvc
    after = CounterValues(tc=tc + 2, fvc=fvc, frc=2) if is_credit else CounterValues(tc=tc + 2, fvc=fvc + 2, frc=0)
    numbers = {"fvc_start": fvc + begins, "fvc_end": after.fvc}
    take(store, box, box.close(z_number=4, mcf_counters=after, unexplained=2, **numbers))
    assert ("fork", 4, "previous", 3) in open_findings(store)


def test_chain_that_does_not_continue(store, box):
    """A closure that names another head than the one before it has, whichever of the two comes first."""
    first, second = box.close(), box.close(previous_chain_head="ab" * 32)
    take(store, box, second)
    take(store, box, first)
    assert [kind for kind, *_ in open_findings(store)] == ["chain"]


def test_head_that_is_not_its_own(store, box):
    """A closure whose head is not the hash of its figures is kept, and found."""
    closure = box.close()
    assert take(store, box, msgspec.structs.replace(closure, chain_head="cd" * 32)) == [StoreOutcome.STORED]
    assert open_findings(store) == [("chain", 1, "head", "cd" * 8)]
    assert store.figures.lines()[0].proven is False


def test_counters(store, box):
    """Counters that went down, that do not add up, and FVC ranges that do not join."""
    box.close()
    box.close(mcf_counters=CounterValues(tc=3, fvc=3, frc=0), opening_counters=None)
    box.close(opening_counters=None, fvc_start=40, fvc_end=41)
    box.close(unexplained=2)
    take(store, box, *box.closures)
    found = open_findings(store)
    assert ("counters", 2, "down", "TC, FVC") in found
    assert ("counters", 3, "fvc", 40, 14) in found
    assert ("unexplained", 4, 2) in found
    assert ("counters", 4, "sum", 2, 4) in found


def test_a_sale_that_was_entered_after_a_later_one(store, box):
    """A person enters from paper the sale before the first of the period: the range begins at FVC 16, and all invoices are explained."""
    box.close()
    take(store, box, *box.closures, box.close(fvc_start=16))
    assert open_findings(store) == []


def test_exports_that_a_machine_counts_in_tc_alone(store, box):
    """It is such a machine, or it is not: neither is a finding. What they do not explain is one."""
    box.close()
    by_type = tuple(TypeTotal(invoice_type=kind, count=1, total_ttc=8000) for kind in ("EV", "FV"))
    end = CounterValues(tc=14, fvc=13, frc=0)
    box.close(by_type=by_type, mcf_counters=end, fvc_end=13)
    take(store, box, *box.closures)
    assert open_findings(store) == []
    take(store, box, box.close(by_type=by_type, opening_counters=end, mcf_counters=end, fvc_start=13, fvc_end=13))
    assert open_findings(store) == [("counters", 3, "sum", 0, 2)]


def test_foreign_exports_that_a_machine_counts_in_tc_alone(store, box):
    """An invoice of another program may be an export: as many as TC has more are no finding of the counters."""
    box.close()
    box.close(unexplained=1, mcf_counters=CounterValues(tc=15, fvc=14, frc=0))
    take(store, box, *box.closures)
    assert open_findings(store) == [("unexplained", 2, 1)]


def test_counters_that_begin_again_with_an_activation(store, box):
    """In the middle of a period: its end is of another count than its beginning."""
    box.close()
    box.nim = "EL02000015-2"
    take(store, box, *box.closures, box.close(mcf_counters=CounterValues(tc=1, fvc=1, frc=0), fvc_start=1, fvc_end=1))
    assert open_findings(store) == []


def test_another_shop_cannot_take_an_id(store, box):
    """A shop that sends the id of another's closure first does not keep that closure out."""
    thief = PaperBox("EL02000099-1")
    store.register.add(thief.nim, thief.key.public, now=NOW)
    closure = box.close()
    stolen = thief.close(report_id=closure.report_id)
    assert take(store, thief, stolen) == [StoreOutcome.STORED]
    assert take(store, box, closure) == [StoreOutcome.STORED]


def test_revoked_between_look_and_commit(store, box):
    """Signatures that were looked at with keys of yesterday are looked at again."""
    closure = box.close()
    ring = store.register.ring()
    one = received(box, closure, store)
    assert store.register.revoke("EL02000015", box.key.id, NOW)
    with pytest.raises(StaleRing):
        store.closures.store([one], now=NOW, revision=ring.revision)
    assert len(store.figures.lines()) == 0
    assert isinstance(store.register.ring(), KeysOfRevision)
    assert store.register.ring().keys_of("EL02000015") == ()


def test_a_batch_is_all_or_nothing(store, box):
    """A transaction that ends before its commit leaves no closure, no finding, no position; then it is made again."""
    closures = [box.close() for _ in range(3)]
    batch = [received(box, closure, store) for closure in (closures[0], closures[2])]

    class Cut(Exception):
        pass

    def cut(connection):
        raise Cut

    event.listen(store.database.engine, "commit", cut)
    with pytest.raises(Cut):
        store.closures.store(batch, now=NOW, messages=StreamMessages("CLOSURES", "2026", [8, 9]))
    event.remove(store.database.engine, "commit", cut)
    assert (len(store.figures.lines()), open_findings(store), lacks(store)) == (0, [], [(1, 9)])
    assert (
        store.closures.store(batch, now=NOW, messages=StreamMessages("CLOSURES", "2026", [8, 9]))
        == [StoreOutcome.STORED] * 2
    )
    assert (open_findings(store), lacks(store)) == ([("gap", 2, 2)], [(1, 7)])


def test_two_instances_with_closures_of_one_shop(store, box):
    """Each takes every second closure of one shop, at the same time, in batches: all are kept and no gap is left."""
    closures = [box.close() for _ in range(40)]
    other = HqStore(store.url)
    batches = [[received(box, closure, store) for closure in closures[half::2]] for half in range(2)]
    errors = []

    def run(store, batch):
        try:
            for start in range(0, len(batch), 3):
                store.closures.store(batch[start : start + 3], now=NOW)
        except StoreError as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=pair) for pair in zip((store, other), batches, strict=True)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    other.close()
    assert errors == []
    assert len(store.figures.lines()) == 40
    assert open_findings(store) == []


def test_no_look_reads_every_closure(store, box):
    """Whatever is asked of the closures while some are kept, and while a box speaks, goes by an index: ten million are no slower."""
    closures = [box.close() for _ in range(6)]
    batch = [received(box, closure, store) for closure in (closures[0], closures[2], closures[5])]
    calls = []

    def note(connection, cursor, statement, parameters, *rest):
        if "closure" in statement and statement.lstrip().startswith("SELECT"):
            calls.append((statement, parameters))

    event.listen(store.database.engine, "before_cursor_execute", note)
    store.closures.store(batch, now=NOW)
    presence = box.presence(at=NOW)
    store.presences.store([presence_word(box, presence)], now=NOW)
    event.remove(store.database.engine, "before_cursor_execute", note)
    assert len(calls) > 3
    is_sqlite = store.database.is_sqlite
    with store.database.read() as connection:
        if not is_sqlite:
            connection.exec_driver_sql("SET LOCAL enable_seqscan = off")
        for statement, parameters in calls:
            plan = connection.exec_driver_sql(f"EXPLAIN {'QUERY PLAN ' * is_sqlite}{statement}", parameters).fetchall()
            lines = [str(row[-1]) for row in plan]
            assert not [
                line for line in lines if line.strip(" ->").startswith(("SCAN closure", "Seq Scan on closure"))
            ], lines


def test_what_was_taken_of_a_stream(store):
    """In any order: what is between the batches is missing. A stream made anew has other messages; one that was restored is forgotten."""
    for numbers in ([5, 6], [1], [5], [2], [9, 8]):
        store.closures.store([], now=NOW, messages=StreamMessages("CLOSURES", "2026", numbers))
    assert lacks(store) == [(3, 4), (7, 7)]
    assert missing(store.stream_ranges.ranges("CLOSURES", "2026"), 3) == [(3, 3)]
    assert missing(store.stream_ranges.ranges("CLOSURES", "2027"), 4) == [(1, 4)]
    store.stream_ranges.forget("CLOSURES", "2026")
    assert lacks(store) == [(1, 9)]
    store.stream_ranges.add("CLOSURES", "2026", 1, 9)
    assert lacks(store) == []


def lacks(store):
    """Of the first nine messages."""
    return missing(store.stream_ranges.ranges("CLOSURES", "2026"), 9)


def test_findings_are_told_once_and_once_more(store, box):
    """One instance tells it, another does not; a claim that was never told goes to the next; and once more when it is solved."""
    closures = [box.close() for _ in range(3)]
    take(store, box, closures[0], closures[2])
    claim = store.findings.claim_notifications
    assert claim(older_than=NOW - 1, now=NOW, lease=1000) == []
    [mine] = claim(older_than=NOW, now=NOW, lease=1000)
    assert claim(older_than=NOW, now=NOW, lease=1000) == []
    [mine] = claim(older_than=NOW, now=NOW + 1000, lease=1000)
    store.findings.mark_notified([mine])
    assert claim(older_than=NOW, now=NOW + 5000, lease=1000) == []
    take(store, box, closures[1])
    [solved] = claim(older_than=NOW, now=NOW + 6000, lease=1000)
    assert solved.solved_at == NOW
    store.findings.mark_notified([solved])
    assert claim(older_than=NOW, now=NOW + 60_000, lease=1000) == []


def test_gap_that_was_short_is_never_told(store, box):
    """Two closures that came in the wrong order are no finding."""
    closures = [box.close() for _ in range(3)]
    take(store, box, closures[0], closures[2])
    take(store, box, closures[1])
    assert store.findings.claim_notifications(older_than=NOW + 1000, now=NOW + 1000, lease=1) == []


def test_a_person_sees_and_solves(store, box):
    """A finding is seen by one person and solved by another with a note; it does not come again when the closure does."""
    closure = box.close(unexplained=1)
    take(store, box, closure)
    [finding] = store.findings.listed(is_open=True)
    assert store.findings.mark_seen(finding.id, "Awa", NOW)
    assert not store.findings.mark_seen(finding.id, "Issa", NOW)
    assert store.findings.solve(finding.id, "Issa", "a test invoice", NOW + 5)
    take(store, box, closure)
    [solved] = store.findings.listed()
    assert (solved.seen_by, solved.solved_by, solved.note) == ("Awa", "Issa", "a test invoice")


def test_a_gap_that_a_person_has_solved(store, box):
    """The box was burnt: the gap does not come again with each closure of the next one; another gap does, and so does this one once it had passed."""
    closures = [box.close() for _ in range(5)]
    for number in (0, 2):
        take(store, box, closures[number])
    store.findings.solve(store.findings.listed()[0].id, "Awa", "burnt", NOW)
    take(store, box, closures[4])
    assert open_findings(store) == [("gap", 4, 4)]
    take(store, box, closures[3])
    assert open_findings(store) == []
    take(store, box, closures[1])
    assert store.register.withdraw(box.nim[:10], box.key.id, NOW, NOW) is None
    store.register.revoke(box.nim[:10], box.key.id, NOW + 1)
    with store.database.write() as connection:
        connection.execute(text("UPDATE closure SET received_at = received_at + 10 WHERE z = 2"))
    assert store.register.withdraw(box.nim[:10], box.key.id, NOW + 5, NOW + 9) == 1
    assert open_findings(store) == [("gap", 2, 2)]


def test_database_that_is_away(new_store):
    """An error of the database comes out as StoreError, without SQL in it."""
    store, box = new_store, PaperBox()
    store.register.add(box.nim, box.key.public, now=NOW)
    with store.database.write() as connection:
        connection.execute(text("DROP TABLE book"))
    with pytest.raises(StoreError) as error:
        take(store, box, box.close())
    assert "SELECT" not in str(error.value)
    with store.database.read() as connection:
        assert connection.scalar(select(tables.closure.c.id)) is None


@pytest.mark.parametrize("url", ["mysql://x/y", "sqlite://", "sqlite:///:memory:", "nonsense", "postgresql://h:port/d"])
def test_bad_urls(url):
    """Only what headquarters can use, and a reason that shows no password."""
    with pytest.raises(BadUrl):
        parse_url(url)
    assert parse_url("postgresql://u:p@h/d").drivername == "postgresql+psycopg"
