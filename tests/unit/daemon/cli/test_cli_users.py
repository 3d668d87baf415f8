"""`mcfd users`, `mcfd audit`, and what `mcfd keys` says of roles and ends."""

import pytest
from support.cli.command import NIM, Command, terminal_output
from support.ledgers.ledger import opened
from support.shop import BIN

from common.passwords import fits
from daemon.core.keys import inspect
from daemon.store.tables.people import find_person


@pytest.fixture
def mcfd(tmp_path):
    return Command(tmp_path)


async def test_a_person_from_first_to_last(mcfd):
    """Made with a password from stdin, listed without it, given another one, disabled; and it stands in the audit log."""
    assert (
        mcfd.run("users", "create", "awa", "--role", "manager", "--password-stdin", stdin="mil et sorgho\n").returncode
        == 0
    )
    (person,) = mcfd.json("users", "list")
    assert (person["name"], person["role"], person["disabled_at"]) == ("awa", "manager", None)
    again = mcfd.run("users", "create", "awa", "--role", "seller", "--password-stdin", stdin="mil et sorgho\n")
    assert (again.returncode, again.stderr) == (1, "mcfd: awa exists already\n")
    assert mcfd.run("users", "passwd", "awa", "--password-stdin", stdin="riz et haricots\n").returncode == 0
    async with opened(mcfd.ledger) as store:
        found = store.ledger.peek(find_person, "awa")
        assert fits("riz et haricots", found[1])
    mcfd.ok("users", "disable", "awa")
    assert "no user awa" in mcfd.refused(1, "users", "disable", "awa")
    assert mcfd.json("users", "list")[0]["disabled_at"].endswith("Z")
    log = mcfd.json("audit")
    assert log["ok"] is True
    assert [entry["action"] for entry in log["entries"]] == [
        "user.created",
        "user.password_changed",
        "user.disabled",
    ]
    assert all(entry["actor"].startswith("shell:") for entry in log["entries"])


def test_a_password_typed_twice(mcfd):
    """At a terminal it is asked for; two that differ are asked for again, and nothing of it is shown."""
    lines = ("mil et sorgho", "mil et riz", "mil et sorgho", "mil et sorgho")
    text = terminal_output([BIN / "mcfd", "users", "create", "awa", "--role", "seller"], mcfd.environ(), lines)[1]
    assert "sorgho" not in text
    assert "awa may log in (seller)" in text
    assert mcfd.json("users", "list")[0]["role"] == "seller"


PERSON = ("users", "create")
KEY = ("keys", "create", "--nim", NIM)


@pytest.mark.parametrize(
    ("arguments", "stdin"),
    [
        ((*PERSON, "Awa", "--role", "seller", "--password-stdin"), "mil et sorgho\n"),
        ((*PERSON, "awa", "--role", "owner", "--password-stdin"), "mil et sorgho\n"),
        ((*PERSON, "awa", "--password-stdin"), "mil et sorgho\n"),
        ((*PERSON, "awa", "--role", "seller", "--password-stdin"), "short\n"),
        ((*PERSON, "awa", "--role", "seller", "--password-stdin"), ""),
        ((*PERSON, "awa", "--role", "seller"), "mil et sorgho\n"),
        (("keys", "create", "--nim", "XX"), ""),
        *(((*KEY, "--label", label), "") for label in ("x" * 61, "till\n1", "till \x1b[2J")),
        *(
            ((*KEY, f"--expires={end}"), "")
            for end in ("2020-01-01", "31.12.2090", "0d", "-3d", "d", "99999999999999d", "2200-01-01")
        ),
    ],
)
def test_what_is_no_person_or_no_key(mcfd, arguments, stdin):
    """A name, role, password or NIM that cannot be, no way to ask for one, an end that is past, unreadable or beyond all reason: exit 2, nothing made."""
    done = mcfd.run(*arguments, stdin=stdin)
    assert (done.returncode, done.stdout) == (2, "")
    assert not mcfd.ledger.exists()


async def test_revoked_at_once(mcfd):
    """A revoked key is no longer found by an open ledger, is listed only with --all, and cannot be revoked again."""
    key = mcfd.ok(*KEY).strip()
    async with opened(mcfd.ledger, opening="read") as store:
        assert store.key_ring.find(key).nim == NIM
        mcfd.ok("keys", "revoke", "1")
        assert store.key_ring.find(key) is None
    assert mcfd.json("keys", "list") == []
    assert mcfd.json("keys", "list", "--all")[0]["revoked_at"].endswith("Z")
    assert "1" in mcfd.refused(1, "keys", "revoke", "1")
    assert "99" in mcfd.refused(1, "keys", "revoke", "99")


def test_keys_with_a_role_and_an_end(mcfd):
    """As asked: a date counts to the end of that day in the shop's time zone. For a NIM that is not configured the key is made, with a note beside it."""
    mcfd.ok(*KEY, "--role", "reader", "--expires", "2090-03-31")
    mcfd.ok(*KEY)
    other = mcfd.run("keys", "create", "--nim", "EL02000099-1")
    assert inspect(other.stdout.strip()) == "live"
    assert "EL02000099-1 is not in the configuration" in other.stderr
    first, second = mcfd.json("keys", "list", "--nim", NIM)
    assert (first["role"], first["expires_at"], first["used_at"]) == ("reader", "2090-04-01T00:00:00.000Z", None)
    assert (second["role"], second["expires_at"]) == ("manager", None)
