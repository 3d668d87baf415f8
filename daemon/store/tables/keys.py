"""API keys (decisions 22 and 28): only a SHA-256 is stored."""

import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any

from common.language import Text
from common.one_line import fault_of_line
from common.wire.instants import now_millis
from common.wire.keys import ID_DIGITS
from daemon.core.audit import DAEMON, Actor
from daemon.core.errors import InvalidRequest, NotFound
from daemon.core.keys import (
    LONGEST_LABEL,
    USUAL_TERMS,
    ApiKey,
    KeyTerms,
    check_terms,
    has_key_shape,
    hash_key,
    is_key_id,
    make_key,
)
from daemon.core.ledger.attempt import Mode
from daemon.core.machine.state import same_machine
from daemon.store.sqlite.disk_failure import storage_faults
from daemon.store.sqlite.file import load
from daemon.store.tables import audit

_SQL = load(__name__)


class ApiKeyRing:
    """Looks a key up in the file each time, on the loop's thread: it takes a few microseconds, and a key that another
    process has revoked is refused at once."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def find(self, text: str) -> ApiKey | None:
        """The API key for the text that a client has sent; None if invalid, unknown or revoked. It may have expired."""
        if not has_key_shape(text):
            return None
        with storage_faults():
            return next(map(_key, self._connection.execute(_SQL["by_hash"], (hash_key(text),))), None)

    def find_signer(self, key_id: str) -> ApiKey | None:
        """The key whose public half has that id; None when it is unknown or revoked. It may have come to its end."""
        if not is_key_id(key_id):
            return None
        start = bytes.fromhex(key_id)
        with storage_faults():
            found = self._connection.execute(_SQL["by_start_of_hash"], (start, start + b"\xff" * 25))
            return next(map(_key, found), None)

    def relay_key_ids(self, nim: str) -> Sequence[str]:
        """Of the keys for the relay that work, newest first: 16 hex digits of each one's hash."""
        with storage_faults():
            rows, former = self._relay_keys(), of_another_taxpayer(self._connection)
        return [
            hashed.hex()[:ID_DIGITS]
            for key_id, hashed, of, end in rows
            if same_machine(of, nim) and key_id not in former and not 0 < end <= now_millis()
        ]

    def is_on_relay(self, nim: str) -> bool:
        """Whether there is a key for the relay that was not revoked; if it has ended, the box says so itself."""
        with storage_faults():
            return any(same_machine(of, nim) for _, _, of, _ in self._relay_keys())

    def _relay_keys(self) -> list[tuple[int, bytes, str, int]]:
        return self._connection.execute(_SQL["of_the_relay"]).fetchall()


def create_key(
    connection: sqlite3.Connection,
    nim: str,
    mode: Mode,
    label: str,
    *,
    at: int,
    terms: KeyTerms = USUAL_TERMS,
    by: Actor = DAEMON,
) -> str:
    """The key itself: the only time that it is seen. InvalidRequest for terms that no key has, or a label that is not one line."""
    check_terms(terms)
    if fault := fault_of_line(label, LONGEST_LABEL, may_be_blank=True):
        raise InvalidRequest.at("label", fault)
    key = make_key(mode, signed=terms.signed)
    row = {"nim": nim, "mode": mode, "label": label, "at": at}
    key_id = connection.execute(_SQL["insert"], terms._asdict() | key._asdict() | row).lastrowid
    detail = {"nim": nim, "mode": mode, "label": label, "role": terms.role, "lane": terms.lane}
    audit.add(connection, "key.created", f"key {key_id}", at=at, by=by, detail=detail)
    return key.text


def list_keys(connection: sqlite3.Connection) -> list[ApiKey]:
    """Oldest first, those that were revoked included."""
    return [_key(row) for row in connection.execute(_SQL["list"])]


def of_another_taxpayer(connection: sqlite3.Connection) -> frozenset[int]:
    """Ids of keys that were not revoked and do not work, since their machine has another taxpayer (decision 33)."""
    return frozenset(number for (number,) in connection.execute(_SQL["of_another_taxpayer"]))


def _key(row: tuple[Any, ...]) -> ApiKey:
    number, nim, mode, label, created_at, revoked_at, role, expires_at, used_at, strict, lane, public, rate = row
    times = (expires_at, used_at)
    return ApiKey(
        number, nim, mode, label, created_at, revoked_at, role, *times, bool(strict), lane, public or b"", rate
    )


def revoke_key(connection: sqlite3.Connection, key_id: int, *, at: int, by: Actor = DAEMON) -> None:
    """NotFound when there is no such key, or it works no more."""
    if connection.execute(_SQL["revoke"], (at, key_id)).rowcount != 1:
        raise NotFound(Text("there is no working key {key_id}", key_id=key_id))
    audit.add(connection, "key.revoked", f"key {key_id}", at=at, by=by)


def note_uses(connection: sqlite3.Connection, uses: Mapping[int, int]) -> None:
    """When each key (by its id) was used last, in ms."""
    connection.executemany(_SQL["used"], [(at, key_id) for key_id, at in uses.items()])
