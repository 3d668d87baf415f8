"""API keys (decision 22): only a SHA-256 is stored."""

from __future__ import annotations

import sqlite3

import msgspec

from daemon.core.certification import Mode
from daemon.core.errors import NotFound
from daemon.core.keys import generate, hash_key, inspect
from daemon.store.faults import storage_error
from daemon.store.queries import load

_SQL = load("keys")


class ApiKey(msgspec.Struct, frozen=True):
    """Times in ms; `revoked_at` is 0 while the key works."""

    id: int
    nim: str
    mode: Mode
    label: str
    created_at: int
    revoked_at: int


class KeyRing:
    """Looks a key up on the loop's own thread, in the file each time: a few microseconds, and a key that another process has
    just revoked is refused at once."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def find(self, text: str) -> ApiKey | None:
        """The key as it is sent by a client; None when it is mistyped, unknown or revoked."""
        if inspect(text) is None:
            return None
        try:
            row = self._connection.execute(_SQL["by_hash"], (hash_key(text),)).fetchone()
        except sqlite3.Error as error:
            raise (storage_error(error) or error) from error
        return None if row is None else ApiKey(*row)


def create_key(connection: sqlite3.Connection, nim: str, mode: Mode, label: str, at: int) -> str:
    """The key itself: the only time that it is seen."""
    text = generate(mode)
    connection.execute(_SQL["insert"], (nim, mode, label, hash_key(text), at))
    return text


def list_keys(connection: sqlite3.Connection) -> list[ApiKey]:
    return [ApiKey(*row) for row in connection.execute(_SQL["list"])]


def revoke_key(connection: sqlite3.Connection, key_id: int, at: int) -> None:
    if connection.execute(_SQL["revoke"], (at, key_id)).rowcount != 1:
        raise NotFound(f"there is no working key {key_id}")
