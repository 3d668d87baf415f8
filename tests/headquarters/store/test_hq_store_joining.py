"""Codes by which boxes join: for one box, its machines, a while, and after the database was put back. On both databases."""

import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import update
from support.hq.paper_box import PaperBox
from support.hq.store import NOW, copy_of

from common.wire.joining import new_code
from headquarters.store import tables
from headquarters.store.joining import JoinRefused

NIM, SECOND, OTHER = "EL02000015-1", "EL02000016-1", "EL02000017-1"
HOUR = 3_600_000


def a_box(seed: str = "one") -> PaperBox:
    return PaperBox(NIM, seed=seed)


def code_for(store, *nims, at=NOW, **named):
    return store.joining.make_code(nims, now=at, ends_at=at + HOUR, by="awa", **named)


def refused(store, code, box, *nims, at=NOW):
    with pytest.raises(JoinRefused) as error:
        store.joining.join(code, box.key.public, nims, at)
    return error.value.reason


def valid(store, nim=NIM):
    return [key.key_id for key in store.register.keys(nim.partition("-")[0]) if key.revoked_at is None]


def test_a_box_joins(store):
    """Its machines are in the register by the names that it gave, with the label and region of the code, and its key alone is valid."""
    box = a_box()
    store.joining.join(code_for(store, NIM, SECOND, label="Ouaga", region="Centre"), box.key.public, [NIM, SECOND], NOW)
    assert [(one.nim, one.label, one.region) for one in store.register.boxes()] == [
        (NIM, "Ouaga", "Centre"),
        (SECOND, "Ouaga", "Centre"),
    ]
    assert valid(store) == valid(store, SECOND) == [box.key.id]


def test_the_same_box_again(store):
    """After an answer that was lost, also when the code has ended meanwhile: the same answer, and nothing has changed."""
    box, code = a_box(), code_for(store, NIM, label="Ouaga")
    first = store.joining.join(code, box.key.public, [NIM], NOW)
    before = store.register.revision()
    assert store.joining.join(code, box.key.public, [NIM], NOW + 2 * HOUR) == first
    assert store.register.revision() == before


def test_two_boxes_at_once(store):
    """Of all that come with one code at the same moment one joins, and its key alone is valid."""
    boxes = [a_box(str(number)) for number in range(6)]
    code, together = code_for(store, NIM), threading.Barrier(len(boxes))

    def join(box):
        together.wait(10)
        try:
            return store.joining.join(code, box.key.public, [NIM], NOW).used_by
        except JoinRefused as error:
            return error.reason

    with ThreadPoolExecutor(len(boxes)) as pool:
        outcomes = Counter(pool.map(join, boxes))
    assert outcomes.pop("CODE_USED") == len(boxes) - 1
    (line,) = outcomes
    assert valid(store) == [box.key.id for box in boxes if box.key.public == line]


def test_a_code_that_has_ended(store):
    """It admits no box, and its refusal differs from that of an invented one."""
    code = code_for(store, NIM)
    assert refused(store, code, a_box(), NIM, at=NOW + HOUR) == "CODE_EXPIRED"
    assert refused(store, new_code(), a_box(), NIM) == "CODE_UNKNOWN"
    assert store.register.boxes() == []


def test_only_the_last_code_of_a_machine(store):
    """A new code withdraws the unused ones before it."""
    first, other, second = code_for(store, NIM, SECOND), code_for(store, OTHER), code_for(store, NIM, at=NOW + 1)
    assert refused(store, first, a_box(), NIM, at=NOW + 2) == "CODE_EXPIRED"
    assert [one.nims for one in store.joining.waiting(NOW + 2)] == [(OTHER,), (NIM,)]
    store.joining.join(second, a_box().key.public, [NIM], NOW + 2)
    store.joining.join(other, a_box("two").key.public, [OTHER], NOW + 2)
    assert store.joining.waiting(NOW + 2) == []


def test_other_machines(store):
    """A box joins with machines of the code alone; fewer of them are right, and a suffix of another activation is no other machine."""
    code = code_for(store, NIM, SECOND)
    assert refused(store, code, a_box(), OTHER) == "OTHER_MACHINES"
    assert refused(store, code, a_box(), NIM, OTHER) == "OTHER_MACHINES"
    store.joining.join(code, a_box().key.public, ["EL02000015-2"], NOW)
    assert [one.nim for one in store.register.boxes()] == ["EL02000015-2"]


def test_a_second_machine_by_the_same_code(store):
    """A box that has one machine more, of those in its code, asks again while the code lasts; afterwards it takes another code."""
    code, box = code_for(store, NIM, SECOND), a_box()
    store.joining.join(code, box.key.public, [NIM], NOW)
    assert refused(store, code, box, NIM, SECOND, at=NOW + HOUR) == "CODE_EXPIRED"
    store.joining.join(code, box.key.public, [NIM, SECOND], NOW + 1)
    assert valid(store, SECOND) == [box.key.id]


def test_a_revoked_key(store):
    """It is not let in by any code, also by the one that it has joined with."""
    box, code = a_box(), code_for(store, NIM, SECOND)
    store.joining.join(code, box.key.public, [NIM], NOW)
    assert store.register.revoke_box("EL02000015", NOW + 1) == [box.key.id]
    assert refused(store, code, box, NIM) == "KEY_REVOKED"
    assert refused(store, code_for(store, SECOND), box, SECOND) == "KEY_REVOKED"


def test_a_shop_that_was_closed(store):
    """A code opens it again, as `boxes add` does; what is open stays in one list."""
    store.joining.join(code_for(store, NIM), a_box().key.public, [NIM], NOW)
    store.register.retire("EL02000015", NOW + 1)
    store.joining.join(code_for(store, NIM), a_box("new").key.public, [NIM], NOW + 2)
    assert [one.retired_at for one in store.register.boxes()] == [None]


def test_a_database_put_back(store):
    """To before the code was used, or withdrawn: it stays so, and admits no other box."""
    box, code, withdrawn = a_box(), code_for(store, NIM), code_for(store, OTHER)
    store.joining.join(code, box.key.public, [NIM], NOW + 1)
    code_for(store, OTHER, at=NOW + 1)
    copy = copy_of(store)
    with store.database.write() as connection:
        connection.exec_driver_sql("UPDATE join_code SET used_by = NULL, used_at = NULL")
        connection.execute(update(tables.join_code).values(ends_at=NOW + HOUR))
        connection.exec_driver_sql("DELETE FROM box_key")
    store.register.from_copy(copy, NOW + 2)
    assert refused(store, code, a_box("thief"), NIM, at=NOW + 3) == "CODE_USED"
    assert refused(store, withdrawn, a_box("thief"), OTHER, at=NOW + 3) == "CODE_EXPIRED"
    assert valid(store) == [box.key.id]


def test_what_is_kept(store):
    """Hashes; the code itself is in no row."""
    code = code_for(store, NIM)
    with store.database.read() as connection:
        rows = connection.exec_driver_sql("SELECT * FROM join_code").all()
    assert rows
    assert code not in str(rows)


def test_users_of_nats(store):
    """A key is revoked as a user of NATS when none of its machines is left, or one is another box's by now."""
    box, moved = a_box(), a_box("moved")
    store.joining.join(code_for(store, NIM, SECOND), box.key.public, [NIM, SECOND], NOW)
    assert [len(users) for users in store.joining.nats_users()] == [1, 0]
    store.register.retire("EL02000015", NOW + 1)
    assert [len(users) for users in store.joining.nats_users()] == [1, 0]
    store.joining.join(code_for(store, NIM), moved.key.public, [NIM], NOW + 2)
    users = store.joining.nats_users()
    assert [len(users.valid), len(users.revoked)] == [1, 1]
    store.register.revoke_box("EL02000016", NOW + 3)
    assert store.joining.nats_users() == users
