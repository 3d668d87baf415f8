"""API keys (decision 22): shown once, stored as a hash, revoked at once."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.ledgers.ledger import NIM, START, opened, query

from daemon.core.errors import NotFound
from daemon.core.keys import hash_key, inspect


async def test_a_key_is_found_by_what_was_shown(tmp_path: Path) -> None:
    """With its NIM, mode and label; mistyped, unknown and empty ones are nobody's."""
    path = tmp_path / "ledger.sqlite3"
    async with opened(path) as store:
        live = await store.api_keys.create(NIM, "live", "caisse 1", at=START)
        test = await store.api_keys.create(NIM, "test", "", at=START)
        found = store.key_ring.find(live)
        assert found is not None
        assert (found.nim, found.mode, found.label, found.created_at, found.revoked_at) == (
            NIM,
            "live",
            "caisse 1",
            START,
            0,
        )
        assert inspect(test) == "test"
        assert store.key_ring.find(test) != found
        for wrong in ("", live[:-1], live[:-1] + ("a" if live[-1] != "a" else "b"), "ak_live_" + "x" * 38):
            assert store.key_ring.find(wrong) is None
        assert [key.label for key in await store.api_keys.list_keys()] == ["caisse 1", ""]
        told = [(entry.action, entry.subject, entry.at) for entry in await store.audit.newest()]
        assert told == [("key.created", "key 2", START), ("key.created", "key 1", START)]


async def test_only_the_hash_is_in_the_file(tmp_path: Path) -> None:
    """Who has the file, or a backup of it, has no key."""
    path = tmp_path / "ledger.sqlite3"
    async with opened(path) as store:
        text = await store.api_keys.create(NIM, "live", "", at=START)
    assert query(path, "SELECT hash FROM api_key") == [(hash_key(text),)]
    everything = b"".join(file.read_bytes() for file in tmp_path.iterdir())  # noqa: ASYNC240  # local files
    assert text.encode() not in everything


async def test_revoking_takes_effect_at_once(tmp_path: Path) -> None:
    """The very next request is refused, the other key goes on working."""
    async with opened(tmp_path / "ledger.sqlite3") as store:
        old = await store.api_keys.create(NIM, "live", "old", at=START)
        new = await store.api_keys.create(NIM, "live", "new", at=START)
        found = store.key_ring.find(old)
        assert found is not None
        await store.api_keys.revoke(found.id, at=START + 1)
        assert store.key_ring.find(old) is None
        assert store.key_ring.find(new) is not None
        with pytest.raises(NotFound):
            await store.api_keys.revoke(found.id, at=START + 2)
        assert [key.revoked_at for key in await store.api_keys.list_keys()] == [START + 1, 0]
