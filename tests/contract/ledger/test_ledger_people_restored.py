"""A restore brings back no disabled person, no old password and no ended session: people are as they were decided on last (Y9)."""

import hashlib
from pathlib import Path

import pytest
from support.ledgers.ledger import NIM, START, opened, query

from daemon.core.audit import Actor
from daemon.store.maintenance.backup import backup, restore
from daemon.store.maintenance.people_since import Login, newer
from daemon.store.maintenance.verify import verify
from daemon.store.store import Store
from daemon.store.tables.audit import newest_entries
from daemon.store.tables.keys import create_key
from daemon.store.tables.people import (
    create_person,
    disable_person,
    find_person,
    find_session,
    open_session,
    set_password,
)

BY = Actor("user:owner")
DIGEST = hashlib.sha256(b"cookie").digest()


async def log_in(store: Store, name: str) -> None:
    person, _ = store.ledger.peek(find_person, name) or pytest.fail(name)
    await store.ledger.write(open_session, person.id, name, DIGEST, at=3, by=BY)


def people(path: Path) -> dict[str, tuple[str, bool]]:
    return {
        name: (password, bool(at))
        for name, password, at in query(path, "SELECT name, password, disabled_at FROM person")
    }


@pytest.fixture
async def copy(path: Path, tmp_path: Path) -> Path:
    """Of a ledger with three people, one of them logged in and one disabled."""
    async with opened(path) as store:
        for name in ("awa", "issa", "moussa"):
            await store.ledger.write(create_person, name, "manager", f"{name}-1", at=2, by=BY)
        await store.ledger.write(disable_person, "moussa", at=2, by=BY)
        await log_in(store, "awa")
    backup(path, tmp_path / "copy", at=START)
    return tmp_path / "copy"


async def test_what_was_decided_since_stays(path: Path, copy: Path) -> None:
    """Disabled, with another password, enabled again; the entries are in the audit log; no session is left, on a new disk neither."""
    async with opened(path) as store:
        await store.ledger.write(disable_person, "awa", at=1, by=BY)  # by a clock that was behind
        await store.ledger.write(set_password, "issa", "issa-2", at=1, by=BY)
        await store.ledger.write(create_person, "moussa", "seller", "moussa-2", at=1, by=BY)
        await store.ledger.write(create_person, "new", "seller", "new-1", at=1, by=BY)
    restore(copy, path, at=START)
    assert people(path) == {"awa": ("awa-1", True), "issa": ("issa-2", False), "moussa": ("moussa-2", False)}
    async with opened(path) as store:
        assert store.ledger.peek(find_session, DIGEST) is None
        entries = [(entry.action, entry.subject) for entry in await store.ledger.read(newest_entries, 4)]
    assert ("user.disabled", "user awa") in entries
    assert ("user.password_changed", "user issa") in entries
    restore(copy, new := path.with_name("new.sqlite3"), at=START)
    async with opened(new) as store:
        assert store.ledger.peek(find_session, DIGEST) is None
    assert verify(path).problems == ()


async def test_monday_s_copy_and_then_tuesday_s(path: Path, copy: Path, tmp_path: Path) -> None:
    """What Tuesday's copy has decided is not undone by Monday's, which was put back in between, nor the other way round."""
    async with opened(path) as store:
        await store.ledger.write(disable_person, "awa", at=4, by=BY)
    backup(path, tmp_path / "tuesday", at=START)
    async with opened(path) as store:
        await store.ledger.write(set_password, "issa", "issa-2", at=4, by=BY)
    expected = {"awa": ("awa-1", True), "issa": ("issa-2", False), "moussa": ("moussa-1", True)}
    for which in (copy, tmp_path / "tuesday", copy, copy, tmp_path / "tuesday"):
        restore(which, path, at=START)
        assert people(path) == expected
    new = tmp_path / "new.sqlite3"
    restore(copy, new, at=START)
    restore(tmp_path / "tuesday", new, at=START)
    assert people(new)["awa"] == ("awa-1", True)


async def test_a_person_who_was_enabled_in_the_copy_stays_enabled(path: Path, copy: Path, tmp_path: Path) -> None:
    """Monday's ledger has moussa disabled, but decided it before Tuesday's copy did otherwise."""
    async with opened(path) as store:
        await store.ledger.write(create_person, "moussa", "seller", "moussa-2", at=4, by=BY)
    backup(path, tmp_path / "tuesday", at=START)
    new = tmp_path / "new.sqlite3"
    restore(copy, new, at=START)
    restore(tmp_path / "tuesday", new, at=START)
    assert people(new)["moussa"] == ("moussa-2", False)


async def test_a_ledger_that_has_nothing_in_common_with_the_copy(path: Path, copy: Path, tmp_path: Path) -> None:
    """A new one on a new disk: who was disabled there, or in the copy, is disabled."""
    new = tmp_path / "new.sqlite3"
    async with opened(new) as store:
        await store.ledger.write(create_key, NIM, "live", "till", at=1)
        for name in ("awa", "moussa"):
            await store.ledger.write(create_person, name, "manager", f"{name}-9", at=9, by=BY)
        await store.ledger.write(disable_person, "awa", at=9, by=BY)
    restore(copy, new, at=START)
    found = people(new)
    assert (found["awa"][1], found["moussa"][1], found["issa"][1]) == (True, True, False)


def test_both_have_changed_a_person() -> None:
    """Disabled is disabled; of two passwords the one that worked here last."""
    enabled, other, disabled = Login("seller", "1", 0), Login("seller", "2", 0), Login("seller", "3", 5)
    for both in (False, True):
        assert newer(enabled, other, is_changed_in_both=both) == other
        assert newer(enabled, disabled, is_changed_in_both=both) == disabled
    assert newer(disabled, other, is_changed_in_both=True) == disabled
    assert newer(disabled, other, is_changed_in_both=False) == other
