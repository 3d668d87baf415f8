"""A database that is put back, or fails over to an older one, under a running program: what was revoked stays revoked. On both databases."""

import threading

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import delete, select
from support.hq.paper_box import PaperBox
from support.hq.store import NOW, copy_of

from common.wire.keys import PrivateKey
from headquarters.app.register_copy import RegisterCopy
from headquarters.core.register_merge import MERGED
from headquarters.store import tables
from headquarters.store.register import RegisterContent
from headquarters.store.revision import MAX_TRAIL, StaleRing, lock_revision
from headquarters.store.store import HqStore

pytestmark = pytest.mark.long

MACHINE = "EL02000015"
STOLEN = PrivateKey(b"s" * 32)


def content(store):
    """All rows, as a backup has them."""
    with store.database.read() as connection:
        return {
            table: [dict(row) for row in connection.execute(select(table)).mappings()]
            for table in tables.metadata.sorted_tables
        }


def put_back(store, rows):
    with store.database.write() as connection:
        for table, stored in rows.items():
            connection.execute(delete(table))
            if stored:
                connection.execute(table.insert(), stored)


@pytest.fixture
def box(store):
    return with_two_keys(store)


def with_two_keys(store):
    """The second is the thief's."""
    box = PaperBox()
    store.register.add(box.nim, box.key.public, now=NOW, label="Ouaga")
    store.register.add(box.nim, STOLEN.public, now=NOW)
    return box


@pytest.fixture
def other(store):
    """Of an operator who works on the database while no program of ours looks."""
    other = HqStore(store.url)
    yield other
    other.close()


@pytest.fixture(params=["file", "memory"])
def running(request, store, box, tmp_path):
    """The register as a running program has it."""
    copy = RegisterCopy(store.register, tmp_path / "copy.json" if request.param == "file" else None)
    copy.heal()
    return copy


def test_what_was_revoked_stays_so(store, box, running):
    """A stolen key, a key of the API, a disabled person, an old password and a session that was ended, from the next question on, without a restart."""
    people = store.people
    key = people.create_key("admin", "", NOW)
    people.create("Awa", "her hash", "admin", NOW)
    people.create("Issa", "his first hash", "admin", NOW)
    tokens = [people.begin(name, NOW) for name in ("Awa", "Issa", "Issa")]
    backup = content(store)
    store.register.revoke(MACHINE, STOLEN.id, NOW)
    people.revoke_key(people.api_keys()[0].id, NOW)
    people.change("Awa", NOW, disabled=True)
    people.change("Issa", NOW, password="his second hash")  # noqa: S106  # a test's
    people.end(tokens[2])
    assert STOLEN.id not in {key.id for key in store.register.ring().keys_of(MACHINE)}
    put_back(store, backup)
    assert people.role_of_key(key) is None
    assert people.password("Awa") is None
    assert people.password("Issa") == "his second hash"
    assert [people.of_session(token, NOW) for token in tokens] == [None] * 3
    assert [key.id for key in store.register.ring().keys_of(MACHINE)] == [box.key.id]
    assert [key.revoked_at for key in store.register.keys(MACHINE) if key.key_id == STOLEN.id] == [NOW]


@pytest.mark.parametrize("commands", [0, 1, 5, MAX_TRAIL + 5])
@pytest.mark.parametrize("is_running", [True, False])
def test_commands_between(store, other, tmp_path, commands, is_running):
    """However many commands come between the restore and the next look, also one that adds the stolen key: no counter decides."""
    box, path = with_two_keys(store), tmp_path / "copy.json"
    copy = RegisterCopy(store.register, path)
    copy.heal()
    backup = content(store)
    store.register.revoke(MACHINE, STOLEN.id, NOW)
    copy.write()
    put_back(store, backup)
    for number in range(commands):
        other.register.change(MACHINE, NOW + number, closes_at=number)
        other.register.add(box.nim, STOLEN.public, now=NOW + number)
    other.register.add("EL02000016-1", PrivateKey(b"o" * 32).public, now=NOW)
    program = store if is_running else other
    if not is_running:
        RegisterCopy(other.register, path).heal()
    assert [key.id for key in program.register.ring().keys_of(MACHINE)] == [box.key.id]
    assert len(program.register.ring().keys_of("EL02000016")) == 1
    assert program.register.box(MACHINE).closes_at == (commands - 1 if commands else None)
    data = msgspec.json.decode(path.read_bytes(), type=RegisterContent)
    assert b'"revoked_at":%d' % NOW in b"".join(bytes(row) for row in data.rows["box_key"])


def test_an_old_copy_brings_nothing_back(store, other, box, tmp_path):
    """A second server that was off for a month comes with its own copy: what was revoked, renamed and closed since stays so, here and there."""
    old = RegisterCopy(other.register, tmp_path / "old.json")
    old.heal()
    other.register.settled.look = None
    new = RegisterCopy(store.register, tmp_path / "new.json")
    new.heal()
    store.register.revoke(MACHINE, STOLEN.id, NOW)
    store.register.add("EL02000016-1", PrivateKey(b"o" * 32).public, now=NOW)
    store.register.retire("EL02000016", NOW + 1)
    store.register.add(box.nim, box.key.public, now=NOW + 1, label="Bobo")
    new.write()
    before = content(store)
    again = RegisterCopy(other.register, tmp_path / "old.json")
    again.heal()
    again.write()
    assert store.register.box(MACHINE).label == "Bobo"
    assert {tuple(row.items()) for row in content(store)[tables.box_key]} == {
        tuple(row.items()) for row in before[tables.box_key]
    }
    assert b'"revoked_at":%d' % NOW in (tmp_path / "old.json").read_bytes()


def test_a_key_that_was_revoked_by_mistake(store, box, running):
    """Adding it again, knowing that it was revoked, makes it valid again, also where an older copy comes along; revoked again, it is revoked."""
    before = copy_of(store)
    store.register.revoke(MACHINE, STOLEN.id, NOW)
    revoked = copy_of(store)
    store.register.add(box.nim, STOLEN.public, now=NOW)
    for copy in (revoked, before):
        store.register.from_copy(copy, NOW)
    assert len(store.register.ring().keys_of(MACHINE)) == 2
    store.register.revoke(MACHINE, STOLEN.id, NOW)
    for copy in (revoked, before):
        store.register.from_copy(copy, NOW)
    assert [key.id for key in store.register.ring().keys_of(MACHINE)] == [box.key.id]


def test_a_copy_and_a_database_of_the_first_version(store, box, tmp_path):
    """They have a counter alone, and rows without the columns of today: what the copy says to be revoked is."""
    copy = copy_of(store)
    rows = {name: [msgspec.json.decode(row) for row in rows] for name, rows in copy.rows.items()}
    for row in (row for rows_of in rows.values() for row in rows_of):
        for name in ("changed_at", "retired_at", "restored"):
            row.pop(name, None)
    for key in rows["box_key"]:
        key["revoked_at"] = NOW if key["key_id"] == STOLEN.id else None
    (tmp_path / "copy.json").write_bytes(msgspec.json.encode({"revision": 55, "rows": rows}))
    with store.database.write() as connection:
        connection.exec_driver_sql("UPDATE meta SET value = '57' WHERE name = 'revision'")
        connection.exec_driver_sql("DELETE FROM meta WHERE name = 'trail'")
    RegisterCopy(store.register, tmp_path / "copy.json").heal()
    assert [key.id for key in store.register.ring().keys_of(MACHINE)] == [box.key.id]


times = st.none() | st.integers(1, 5)
key_rows = st.fixed_dictionaries({"added_at": st.integers(1, 5), "revoked_at": times, "restored": times})


@given(rows=st.lists(key_rows, min_size=1, max_size=5), data=st.data())
def test_copies_in_any_order(rows, data):
    """Copies of a key that meet in any order give the same; a revocation is never undone by one that does not know of it."""

    def met(order):
        first, *others = order
        for other in others:
            first = MERGED["box_key"](first, other)
        return MERGED["box_key"](first, first)

    one = met(rows)
    assert met(data.draw(st.permutations(rows + rows[:2]))) == one
    revoked = max(row["revoked_at"] or 0 for row in rows)
    assert (one["revoked_at"] is not None) == (revoked > max(row["restored"] or 0 for row in rows))


def test_revoking_while_closures_flow(store, other, box):
    """Transactions that overlap each other without an end do not keep a revocation from being made: it waits for those that were begun before."""
    if store.database.is_sqlite:
        pytest.skip("there a transaction that writes is alone")
    revision = store.register.revision()
    first_is_in, first_may_end, later_may_end = (threading.Event() for _ in range(3))
    stale = []

    def closures(is_in, may_end):
        try:
            with store.database.write() as connection:
                lock_revision(connection, revision)
                is_in.set()
                may_end.wait(60)
        except StaleRing as error:
            stale.append(error)

    def waits():
        with other.database.read() as connection:
            return connection.exec_driver_sql("SELECT count(*) FROM pg_locks WHERE NOT granted").scalar()

    threads = [
        threading.Thread(target=closures, args=(first_is_in, first_may_end)),
        threading.Thread(target=store.register.revoke, args=(MACHINE, STOLEN.id, NOW)),
        threading.Thread(target=closures, args=(threading.Event(), later_may_end)),
    ]
    try:
        for number, thread in enumerate(threads):
            thread.start()
            first_is_in.wait(60)
            while thread.is_alive() and waits() < number and not (number == 2 and waits() == 1):
                pass
        first_may_end.set()
        threads[1].join(15)
        assert not threads[1].is_alive(), "the revocation is still waiting"
    finally:
        first_may_end.set()
        later_may_end.set()
        for thread in threads:
            thread.join(60)
    assert len(stale) == 1


@pytest.mark.usefixtures("running")
def test_who_has_logged_out_stays_so(store):
    """Nothing else of the register has changed since the copy; the others log in again."""
    store.people.create("Awa", "her hash", "admin", NOW)
    token = store.people.begin("Awa", NOW)
    before = content(store)
    store.people.end(token)
    assert store.people.of_session(token, NOW) is None
    put_back(store, before)
    assert store.people.of_session(token, NOW) is None
    assert store.people.of_session(store.people.begin("Awa", NOW), NOW) is not None
