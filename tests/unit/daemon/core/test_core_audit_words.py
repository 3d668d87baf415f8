"""The audit log as people read it."""

from typing import get_args

import pytest

from common.language import Speaker
from daemon.core.audit import action_text, details, value_text, who, whom
from daemon.core.ledger.entries import CashKind
from daemon.core.people import ROLES

LABELS = {"3": "Caisse 1"}


WHO = {"user:awa": "awa", "key:3": "Caisse 1", "key:4": "clé 4", "shell:root": "root (terminal)", "mcfd": "mcfd"}


@pytest.mark.parametrize(("actor", "expected"), WHO.items())
def test_who_did_it(actor: str, expected: str) -> None:
    """A person by name, a till by that of its key, a command on the box, or the daemon itself."""
    assert who(actor, LABELS, Speaker("fr")) == expected


@pytest.mark.parametrize(
    ("subject", "expected"),
    [
        ("user awa", "awa"),
        ("key 3", "Caisse 1"),
        ("key 9", "clé 9"),
        ("EL02000015-1 live", "EL02000015-1"),
        ("EL02000015-1 test", "EL02000015-1 (essai)"),
        ("/var/backups/my copy.sqlite3", "my copy.sqlite3"),
        ("mcfd.toml", "mcfd.toml"),
    ],
)
def test_what_it_was_done_to(subject: str, expected: str) -> None:
    """The sandbox is marked, a file is its name; what is none of ours stays as it is."""
    assert whom(subject, LABELS, Speaker("fr")) == expected


def test_what_was_done_has_words() -> None:
    """Every role and movement there is; an action or one of another version as it is written."""
    say = Speaker("fr")
    assert (action_text("user.logged_in", say), action_text("box.painted", say)) == ("connexion", "box.painted")
    assert all(value_text("role", role, say) != role for role in ROLES)
    assert all(value_text("kind", kind, say) != kind for kind in get_args(CashKind))
    assert value_text("role", "painter", say) == "painter"


def test_the_facts_beside_it() -> None:
    """In words where they are ours, each with its capital, as they are where they are a name, a number or of another version; what is empty is left out."""
    found = {"nim": "EL02000015", "mode": "test", "label": "role", "role": "manager", "reason": "", "paint": "red"}
    result = details(found, Speaker("fr")).replace("\N{NO-BREAK SPACE}", " ").replace("\N{NARROW NO-BREAK SPACE}", " ")
    assert result == "NIM : EL02000015 · Mode : essai · Caisse : role · Rôle : gérant · PAINT : red"
    moved = details({"amount": "20000", "kind": "withdrawal"}, Speaker("en"), lambda francs: f"{francs:,} F")
    assert moved == "Amount: 20,000 F · Movement: taken out"
