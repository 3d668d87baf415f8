"""Commands and the daemon, over its socket: what is asked, by whom, and what comes back."""

import asyncio
import contextlib
import os
import resource
import socket
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from support.ledgers.ledger import NIM, START, Till, invoice, opened

from common.sockets import unix_address
from daemon.app.control import control_path, controlled
from daemon.core.errors import InvalidRequest, LedgerInUse, LedgerUnusable, McfdError, NotFound, StorageError
from daemon.core.keys import KeyTerms
from daemon.core.ledger.decision import DecisionRefused
from daemon.core.ledger.verdict import Evidence
from daemon.ledger_access import change
from daemon.operations import (
    CreateFirstPerson,
    CreateKey,
    CreateUser,
    NoteVerified,
    Operation,
    RepairTime,
    ReplayOutbox,
    RevokeKey,
    SetLastZ,
    Settle,
)
from daemon.settings import Settings, parse
from daemon.store.store import Store
from daemon.store.tables.audit import newest_entries
from daemon.store.tables.book.books import book_state
from daemon.store.tables.keys import create_key, list_keys
from daemon.store.tables.meta import read_damage
from daemon.store.tables.people import find_session


def settings_of(ledger: Path) -> Settings:
    toml = f'[storage]\npath = "{ledger}"\n[[machine]]\nnim = "{NIM}"\nport = "nowhere"\n'
    return parse(toml.encode(), ledger.parent / "mcfd.toml", {})


class Outboxes:
    """Where closures and events are sent from."""

    def __init__(self) -> None:
        self.woken = 0

    def wake_all(self) -> None:
        self.woken += 1


class Box(msgspec.Struct):
    """A daemon's store and its socket, without the rest of it."""

    store: Store
    settings: Settings
    control: Path
    outboxes: Outboxes

    async def ask(self, operation: Operation[Any]) -> Any:
        return await asyncio.to_thread(change, self.settings, operation)


@pytest.fixture
async def box(tmp_path: Path) -> AsyncIterator[Box]:
    folder = tmp_path / ("a long name of a folder " * 6)
    folder.mkdir()
    settings, outboxes = settings_of(folder / "ledger.sqlite3"), Outboxes()
    control = control_path(settings)
    async with opened(settings.storage.path, control=control) as store:
        async with controlled(store, settings, wakes=(outboxes.wake_all,)):
            yield Box(store, settings, control, outboxes)
        assert not control.exists()


async def test_what_a_command_asks_for_is_done_by_the_daemon(box: Box) -> None:
    """With its result, and the shell's user in the audit log; an address has more bytes than a Unix socket's may have."""
    assert len(str(box.control)) > 107
    key = await box.ask(CreateKey(NIM, "live", "till"))
    assert box.store.key_ring.find(key) is not None
    assert await box.ask(RevokeKey(1)) is None
    assert await box.ask(ReplayOutbox("upstream")) == 0
    assert box.outboxes.woken == 1
    assert await box.ask(CreateFirstPerson("awa", "hash", b"\1" * 32)) is True
    assert box.store.ledger.peek(find_session, b"\1" * 32) is not None
    assert await box.ask(CreateFirstPerson("ali", "hash")) is False
    await box.ask(NoteVerified((), ("entry 3 is damaged",)))
    assert box.store.retention.peek(read_damage).entries == ("entry 3 is damaged",)
    entries = await box.store.ledger.read(newest_entries, 10)
    assert {entry.action for entry in entries} >= {"key.created", "key.revoked", "user.created"}
    assert all(entry.actor.startswith("shell:") for entry in entries)


@pytest.mark.parametrize(
    ("terms", "field"),
    [
        (KeyTerms("technician", lane="relay"), "role"),
        (KeyTerms("technician", lane="relay", signed=True), "role"),
        (KeyTerms("seller", signed=True), "signed"),
        (KeyTerms("seller", rate=60), "rate"),
        (KeyTerms("seller", lane="relay", rate=6001), "rate"),
        (KeyTerms("seller", lane="relay", rate=-1), "rate"),
    ],
)
async def test_no_way_in_makes_a_key_that_cannot_be(box: Box, terms: KeyTerms, field: str) -> None:
    """A technician is at the box, and only a key for the relay signs: a request for another key is refused, and none is made."""
    with pytest.raises(InvalidRequest) as refused:
        await box.ask(CreateKey(NIM, "live", "ERP", terms))
    assert [fault.field for fault in refused.value.errors] == [field]
    with pytest.raises(InvalidRequest):
        await box.store.ledger.write(create_key, NIM, "live", "ERP", at=START, terms=terms)
    assert not await box.store.ledger.read(list_keys)
    await box.ask(CreateKey(NIM, "live", "ERP", KeyTerms("seller", lane="relay", rate=6000)))


async def test_a_decision_is_taken_for_the_case_that_was_shown(box: Box) -> None:
    """With what the command has read from the machine itself; another case is refused by its name, and the last Z is said the same way."""
    till = await Till.of(box.store)
    attempt_id = await till.begin(invoice("D-1"))
    await box.store.ledger.dispute(till.book, attempt_id, "unknown", at=till.at)
    fresh = Evidence(till.at, till.state(invoice("D-1")))
    case = await box.store.decisions.case(till.book, fresh)
    settle = Settle(till.book, fresh, case.fingerprint, "certified", "seen", till.at, None)
    with pytest.raises(DecisionRefused, match="changed"):
        await box.ask(msgspec.structs.replace(settle, fingerprint="another"))
    with pytest.raises(DecisionRefused, match="its last"):
        await box.ask(msgspec.structs.replace(settle, decision="not-certified"))
    await box.ask(settle)
    with pytest.raises(DecisionRefused, match="changed"):
        await box.ask(settle)
    assert (box.store.ledger.peek(book_state, till.book)).attention == ""
    await box.ask(SetLastZ(till.book, 7))
    assert [entry.action for entry in await box.store.ledger.read(newest_entries, 2)] == [
        "z_number.said",
        "attempt.settled",
    ]


async def test_an_error_is_the_same_over_the_socket(box: Box) -> None:
    """By its class, so that the command says it in its own words; what needs a stopped daemon is not asked at all."""
    await box.ask(CreateUser("awa", "seller", "hash"))
    with pytest.raises(InvalidRequest):
        await box.ask(CreateUser("awa", "seller", "hash"))
    with pytest.raises(NotFound, match="99"):
        await box.ask(RevokeKey(99))
    till = await Till.of(box.store)
    with pytest.raises(LedgerInUse):
        await box.ask(RepairTime(till.book, START, 0, "x"))


def _send_line(box: Box, line: bytes) -> bytes:
    with socket.socket(socket.AF_UNIX) as connection, unix_address(box.control) as address:
        connection.connect(address)
        with contextlib.suppress(OSError):
            connection.sendall(line)
            connection.shutdown(socket.SHUT_WR)
        with contextlib.suppress(OSError), connection.makefile("rb") as answers:
            return answers.readline()
    return b""


async def test_who_says_something_else_changes_nothing(box: Box) -> None:
    """A command of another version, one that is for a stopped daemon, rubbish, too much of it, nothing at all: the daemon goes on."""
    for line, words in (
        (b'{"operation":{"operation":"cats.feed"}}\n', b"does not understand"),
        (b'{"operation":{"operation":"keys.revoke","key_id":"one"}}\n', b"key_id"),
        (b"rubbish\n", b"does not understand"),
        (b"x" * 1_000_000, b""),
        (b"", b""),
    ):
        assert words in await asyncio.to_thread(_send_line, box, line), line
    offline = b'{"operation":{"operation":"time.repair","book":{"id":1,"nim":"","mode":"live"},"right":1,"ahead":1,"reason":""}}\n'
    assert b"has to be stopped" in await asyncio.to_thread(_send_line, box, offline)
    assert await box.ask(CreateKey(NIM, "live", "till"))


async def test_only_root_and_the_daemon_s_user_may_ask(box: Box, monkeypatch: pytest.MonkeyPatch) -> None:
    """Others by the file's mode; and other users who get there, by what the kernel says of the other end."""
    assert box.control.stat().st_mode & 0o777 == 0o660
    monkeypatch.setattr("daemon.app.control.peer_user", lambda _: os.geteuid() + 1)
    with pytest.raises(McfdError, match="only root and the daemon's own user"):
        await box.ask(RevokeKey(1))


async def test_commands_are_served_again_once_descriptors_are_free(box: Box) -> None:
    """A moment without a free descriptor does not end the socket for good."""
    usual, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with socket.socket(socket.AF_UNIX) as client, unix_address(box.control) as address, contextlib.ExitStack() as taken:
        resource.setrlimit(resource.RLIMIT_NOFILE, (client.fileno() + 64, most))
        taken.callback(resource.setrlimit, resource.RLIMIT_NOFILE, (usual, most))
        with contextlib.suppress(OSError):
            while True:
                taken.callback(os.close, os.dup(client.fileno()))
        client.connect(address)
        await asyncio.sleep(0.05)
    assert await box.ask(CreateKey(NIM, "live", "till"))


async def test_a_command_asks_the_ledger_s_owner_alone(box: Box, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who may write beside the ledger could name any socket: root says nothing to a stranger."""
    monkeypatch.setattr("daemon.ledger_access.peer_user", lambda _: os.geteuid() + 1)
    with pytest.raises(StorageError, match="does not answer"):
        await box.ask(RevokeKey(1))


async def test_a_daemon_that_starts_is_waited_for(tmp_path: Path) -> None:
    """It has the ledger, and listens a little later."""
    settings = settings_of(tmp_path / "ledger.sqlite3")
    async with opened(settings.storage.path, control=control_path(settings)) as store:
        task = asyncio.create_task(asyncio.to_thread(change, settings, CreateKey(NIM, "live", "till")))
        async with controlled(store, settings):
            assert store.key_ring.find(await task) is not None


async def test_a_daemon_that_never_listens_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As one whose start has failed so far."""
    monkeypatch.setattr("daemon.ledger_access.START_PATIENCE", 0.0)
    settings = settings_of(tmp_path / "ledger.sqlite3")
    async with opened(settings.storage.path, control=control_path(settings)):
        with pytest.raises(LedgerUnusable, match="in use by another mcfd"):
            await asyncio.to_thread(change, settings, RevokeKey(1))
