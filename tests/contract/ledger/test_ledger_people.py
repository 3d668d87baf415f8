"""People, their sessions and the audit log (decision 28): who may log in, and what they did."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from support.ledgers.ledger import NIM, START, opened, tamper

from daemon.core.audit import Actor
from daemon.core.errors import InvalidRequest, NotFound
from daemon.core.keys import ApiKey, KeyTerms
from daemon.store.maintenance.verify import verify
from daemon.store.store import Store
from daemon.store.tables.audit import broken_entry, newest_entries
from daemon.store.tables.book.books import open_book
from daemon.store.tables.book.epochs import book_of_taxpayer
from daemon.store.tables.keys import create_key, note_uses, revoke_key
from daemon.store.tables.people import (
    create_person,
    disable_person,
    end_session,
    find_person,
    find_session,
    list_people,
    note_session_uses,
    open_session,
    set_password,
)

SHELL = Actor("shell:root")
SHOP = Actor("user:awa", "192.168.1.7")
DIGEST = b"\x01" * 32


async def test_a_person_and_their_session(store: Store) -> None:
    """Found by name with the hash; a name is taken once; a session is its digest's, with the role of its person."""
    await store.ledger.write(create_person, "awa", "manager", "scrypt$…", at=START, by=SHELL)
    with pytest.raises(InvalidRequest):
        await store.ledger.write(create_person, "awa", "seller", "scrypt$other", at=START, by=SHELL)
    found = store.ledger.peek(find_person, "awa")
    assert found is not None
    person, password = found
    assert (person.role, password) == ("manager", "scrypt$…")
    await store.ledger.write(open_session, person.id, person.name, DIGEST, at=START + 1, by=SHOP)
    session = store.ledger.peek(find_session, DIGEST)
    assert (session.name, session.role, session.used_at) == ("awa", "manager", START + 1)
    assert store.ledger.peek(find_session, b"\x02" * 32) is None
    for _ in range(2):  # the second time there is no person
        await store.ledger.write(end_session, DIGEST, at=START + 2, by=SHOP)
    assert store.ledger.peek(find_session, DIGEST) is None
    entries = [(entry.action, entry.subject, entry.at) for entry in await store.ledger.read(newest_entries, 2)]
    assert entries == [("user.logged_out", "user awa", START + 2), ("user.logged_in", "user awa", START + 1)]


@pytest.mark.parametrize("change", ["disable", "set_password"])
async def test_sessions_end_at_once(store: Store, change: str) -> None:
    """The very next request has no session."""
    await store.ledger.write(create_person, "awa", "manager", "old", at=START)
    await store.ledger.write(open_session, 1, "awa", DIGEST, at=START, by=SHOP)
    if change == "disable":
        await store.ledger.write(disable_person, "awa", at=START + 1)
        with pytest.raises(NotFound):
            await store.ledger.write(disable_person, "awa", at=START + 1)
        with pytest.raises(NotFound):
            await store.ledger.write(set_password, "awa", "new", at=START + 1)
    else:
        await store.ledger.write(set_password, "awa", "new", at=START + 1)
    assert store.ledger.peek(find_session, DIGEST) is None


async def test_one_who_was_disabled_comes_back(store: Store) -> None:
    """By `create`, with the new role and password, and the same entry in the list."""
    await store.ledger.write(create_person, "awa", "manager", "old", at=START)
    await store.ledger.write(disable_person, "awa", at=START + 1)
    gone, _ = store.ledger.peek(find_person, "awa") or pytest.fail("nobody")
    assert gone.disabled_at == START + 1
    await store.ledger.write(create_person, "awa", "seller", "new", at=START + 2)
    (person,) = await store.ledger.read(list_people)
    assert store.ledger.peek(find_person, "awa") == (person, "new")
    assert (person.role, person.disabled_at, person.created_at) == ("seller", 0, START)


async def test_idle_sessions_end(store: Store) -> None:
    """Those that were used since are kept, however old they are."""
    await store.ledger.write(create_person, "awa", "manager", "x", at=START)
    for digest in (DIGEST, b"\x02" * 32):
        await store.ledger.write(open_session, 1, "awa", digest, at=START, by=SHOP)
    await store.ledger.write(note_session_uses, {DIGEST: START + 5000}, idle_before=START + 1000)
    assert store.ledger.peek(find_session, DIGEST) is not None
    assert store.ledger.peek(find_session, b"\x02" * 32) is None


async def test_a_key_has_a_role_an_end_and_a_last_use(store: Store) -> None:
    """A key without a role is a manager's, as keys were; a use that is stored late does not go back."""
    plain = await store.ledger.write(create_key, NIM, "live", "", at=START)
    reader = await store.ledger.write(create_key, NIM, "live", "", at=START, terms=KeyTerms("reader", START + 10))
    await store.ledger.write(note_uses, {1: START + 7})
    await store.ledger.write(note_uses, {1: START + 3})
    found, other = store.key_ring.find(plain), store.key_ring.find(reader)
    assert found is not None
    usual = ApiKey(1, NIM, "live", "", START, 0, "manager", 0, START + 7, strict=False, lane="lan", public=b"", rate=0)
    assert found == usual
    assert (other.role, other.expires_at, other.used_at) == ("reader", START + 10, 0)


async def test_a_key_is_found_by_the_id_of_its_public_half(store: Store) -> None:
    """Among others, and only while it works; the ids of those of the relay, the newest first, of one machine."""
    lanes = [("till", NIM), ("relay", "EL02000099-1"), ("relay", NIM), ("relay", NIM)]
    for at, (lane, nim) in enumerate(lanes):
        terms = KeyTerms(lane=lane, signed=True) if lane == "relay" else KeyTerms()
        await store.ledger.write(create_key, nim, "live", str(at), at=START + at, terms=terms)
    ring = store.key_ring
    ids = ring.relay_key_ids(NIM)
    labels = [(found.label if (found := ring.find_signer(each)) else "") for each in (*ids, "0" * 16, "", "x" * 16)]
    assert labels == ["3", "2", "", "", ""]
    await store.ledger.write(revoke_key, 4, at=START + 9)
    assert ring.find_signer(ids[0]) is None
    assert ring.relay_key_ids(NIM) == ids[1:]


async def test_the_relay_is_named_only_keys_that_work(store: Store) -> None:
    """Sales that wait for a box that is off are accepted for these alone: of one that has ended, or is of a former taxpayer, none would be certified.
    The box listens all the same, and says why it refuses."""
    terms = KeyTerms(lane="relay")
    await store.ledger.write(create_key, NIM, "live", "", at=START, terms=terms._replace(expires_at=START))
    assert (store.key_ring.relay_key_ids(NIM), store.key_ring.is_on_relay(NIM)) == ([], True)
    await store.ledger.write(create_key, NIM, "live", "", at=START, terms=terms)
    assert len(store.key_ring.relay_key_ids(NIM)) == 1
    book = await store.ledger.write(open_book, NIM, "live")
    for ifu in ("00012345A", "00099999Z"):
        book = await store.ledger.write(book_of_taxpayer, book, NIM, ifu)
    assert (store.key_ring.relay_key_ids(NIM), store.key_ring.is_on_relay(NIM)) == ([], True)
    await store.ledger.write(create_key, NIM, "live", "", at=START, terms=terms)
    assert len(store.key_ring.relay_key_ids(NIM)) == 1


async def test_everything_is_in_the_audit_log(store: Store, path: Path) -> None:
    """Who, from where, what, on what; newest first; and `mcfd verify` finds it whole."""
    await store.ledger.write(create_key, NIM, "live", "caisse 1", at=START, by=SHELL)
    await store.ledger.write(revoke_key, 1, at=START + 1, by=SHOP)
    await store.ledger.write(create_person, "awa", "manager", "x", at=START + 2, by=SHELL)
    await store.ledger.write(disable_person, "awa", at=START + 3, by=SHELL)
    entries = await store.ledger.read(newest_entries, 100)
    assert [(entry.action, entry.subject, entry.actor, entry.address) for entry in entries] == [
        ("user.disabled", "user awa", "shell:root", ""),
        ("user.created", "user awa", "shell:root", ""),
        ("key.revoked", "key 1", "user:awa", "192.168.1.7"),
        ("key.created", "key 1", "shell:root", ""),
    ]
    assert entries[-1].detail == {"nim": NIM, "mode": "live", "label": "caisse 1", "role": "manager", "lane": "lan"}
    assert [entry.id for entry in await store.ledger.read(newest_entries, limit=2, before=3)] == [2, 1]
    assert await store.ledger.read(broken_entry) is None
    assert verify(path).clean


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE audit SET actor = 'user:other' WHERE id = 2",
        "UPDATE audit SET at = at + 1 WHERE id = 2",
        "UPDATE audit SET detail = '{}' WHERE id = 2",
        "DELETE FROM audit WHERE id = 2",
        "UPDATE audit SET id = 9 WHERE id = 3",
    ],
)
async def test_an_audit_log_that_was_changed(tmp_path: Path, damage: str) -> None:
    """An entry changed, taken out or renumbered behind the program's back: the first that does not follow is named."""
    path = tmp_path / "ledger.sqlite3"
    async with opened(path) as store:
        for label in "abc":
            await store.ledger.write(create_key, NIM, "live", label, at=START, by=SHELL)
    with closing(sqlite3.connect(path)) as ledger, ledger:
        ledger.execute(damage)
    problems = verify(path).problems
    assert len(problems) == 1
    assert problems[0].startswith("audit log: entry ")


async def test_a_change_that_fails_leaves_no_entry(store: Store) -> None:
    """What was not done is not logged."""
    with pytest.raises(NotFound):
        await store.ledger.write(revoke_key, 1, at=START, by=SHELL)
    assert list(await store.ledger.read(newest_entries, 100)) == []


@pytest.mark.parametrize("batch", [1, 2, 3, 5])
async def test_a_long_audit_log_is_read_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, batch: int) -> None:
    """Each follows from the one before it, wherever a piece ends; so does the first that does not."""
    monkeypatch.setattr("daemon.store.tables.audit.BATCH", batch)
    path = tmp_path / "ledger.sqlite3"
    async with opened(path) as store:
        for label in "abcde":
            await store.ledger.write(create_key, NIM, "live", label, at=START, by=SHELL)
        assert await store.ledger.read(broken_entry) is None
        tamper(path, "UPDATE audit SET at = at + 1 WHERE id = 4")
        broken = await store.ledger.read(broken_entry)
        assert broken.id == 4
