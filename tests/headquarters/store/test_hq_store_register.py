"""The register while somebody changes it: keys in memory and the copy beside the database. On both databases."""

import msgspec
import pytest
from support.hq.paper_box import PaperBox
from support.hq.store import NOW, copy_of

from headquarters.app.register_copy import RegisterCopy
from headquarters.store import register
from headquarters.store.store import HqStore

MACHINE = "EL02000015"


@pytest.fixture(params=["before", "after"])
def revoked_meanwhile(request, store, box, monkeypatch):
    """Another instance revokes the key at the moment that this one looks at the revision."""
    look = register.revision_of
    other = HqStore(store.url)

    def looked(connection):
        monkeypatch.setattr(register, "revision_of", look)
        found = look(connection) if request.param == "after" else None
        if connection.dialect.name == "postgresql":  # on SQLite a reader sees one moment, whatever it looks at first
            other.register.revoke(MACHINE, box.key.id, NOW)
        return found if found is not None else look(connection)

    monkeypatch.setattr(register, "revision_of", looked)
    yield
    other.close()


def test_keys_are_no_older_than_their_revision(store, revoked_meanwhile):
    """Keys that are read while one is revoked are without it, or are of a revision that is no longer the database's."""
    ring = store.register.ring()
    is_revoked = any(key.revoked_at for key in store.register.keys(MACHINE))
    assert not ring.keys_of(MACHINE) or ring.revision != store.register.revision() or not is_revoked


def test_a_copy_is_no_older_than_its_revision(store, revoked_meanwhile):
    """The same of the copy: one that lacks the change says so by its revision, and is written again."""
    copy = copy_of(store)
    assert store.register.revision() >= copy.revision
    if copy.revision == store.register.revision():
        keys = [msgspec.json.decode(row) for row in copy.rows["box_key"]]
        assert [bool(key["revoked_at"]) for key in keys] == [
            bool(key.revoked_at) for key in store.register.keys(MACHINE)
        ]


def test_a_copy_of_many_boxes(store, tmp_path, monkeypatch):
    """More rows than are in memory at a time come back as they were, in a database that is new; an older copy changes nothing."""
    monkeypatch.setattr(register, "READ_AT_ONCE", 3)
    boxes = [PaperBox(f"EL{number:08}-1") for number in range(10)]
    for box in boxes:
        store.register.add(box.nim, box.key.public, now=NOW, label=f"Café {box.nim[-4:]}")
    RegisterCopy(store.register, tmp_path / "copy.json").write()
    again = HqStore(f"sqlite:///{tmp_path}/again.sqlite3")
    again.open()
    copy = RegisterCopy(again.register, tmp_path / "copy.json")
    copy.heal()
    assert again.register.boxes() == store.register.boxes()
    assert [again.register.keys(box.machine) for box in again.register.boxes()] == [
        store.register.keys(box.machine) for box in store.register.boxes()
    ]
    again.register.revoke("EL00000003", boxes[3].key.id, NOW)
    copy.heal()
    assert again.register.ring().keys_of("EL00000003") == ()
    again.close()


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"Ouaga", b"\xff\xfe"),
        (b'[{"', b'[1,{"'),
        (b'"machine":"EL', b'"m":"EL'),
        (b'"rows":', b'"rows":' + b"[" * 5000),
    ],
)
def test_a_copy_that_is_damaged(store, box, tmp_path, before, after):
    """Headquarters starts without it, and what is left of it is put aside for a person."""
    store.register.add(box.nim, box.key.public, now=NOW, label="Ouaga")
    path = tmp_path / "register.json"
    RegisterCopy(store.register, path).write()
    damaged = path.read_bytes().replace(before, after, 1)
    path.write_bytes(damaged)
    other = HqStore(f"sqlite:///{tmp_path}/other.sqlite3")
    other.open()
    RegisterCopy(other.register, path).heal()
    assert other.register.boxes() == []
    other.close()
    assert path.with_suffix(".damaged").read_bytes() == damaged
