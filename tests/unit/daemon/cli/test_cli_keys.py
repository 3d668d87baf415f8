import pytest
from support.cli.command import NIM, Command
from support.ledgers.ledger import opened

from daemon.core.keys import inspect


@pytest.fixture
def mcfd(tmp_path):
    return Command(tmp_path)


async def test_revoked_at_once(mcfd):
    """A revoked key is no longer found by an open ledger, is listed only with --all, and cannot be revoked again."""
    key = mcfd.ok("keys", "create", "--nim", NIM).strip()
    async with opened(mcfd.ledger, opening="read") as store:
        assert store.key_ring.find(key).nim == NIM
        mcfd.ok("keys", "revoke", "1")
        assert store.key_ring.find(key) is None
    assert mcfd.json("keys", "list") == []
    assert mcfd.json("keys", "list", "--all")[0]["revoked_at"].endswith("Z")
    assert "1" in mcfd.refused(1, "keys", "revoke", "1")
    assert "99" in mcfd.refused(1, "keys", "revoke", "99")


def test_a_nim_that_is_none_and_one_that_is_not_configured(mcfd):
    """The first is refused; for the second the key is made, with a note beside it."""
    wrong = mcfd.run("keys", "create", "--nim", "XX")
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert not mcfd.ledger.exists()
    other = mcfd.run("keys", "create", "--nim", "EL02000099-1")
    assert inspect(other.stdout.strip()) == "live"
    assert "EL02000099-1 is not in the configuration" in other.stderr
    assert mcfd.json("keys", "list", "--nim", NIM) == []
