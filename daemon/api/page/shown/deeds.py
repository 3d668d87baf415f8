"""What stands in the audit log, in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from daemon.core.audit import Action
from daemon.language import Speaker, Text

DEEDS: Final[Mapping[Action, Text]] = {
    "key.created": Text("key made"),
    "key.revoked": Text("key revoked"),
    "user.created": Text("person added"),
    "user.password_changed": Text("password changed"),
    "user.disabled": Text("person disabled"),
    "user.logged_in": Text("logged in"),
    "user.logged_out": Text("logged out"),
    "closure.created": Text("day closed (Z)"),
    "cash.moved": Text("cash put in or taken out"),
    "pending.cancelled": Text("open invoice cancelled"),
    "attempt.settled": Text("doubt decided"),
    "z_number.said": Text("last Z said"),
    "backup.taken": Text("copy made"),
    "ledger.restored": Text("ledger put back from a copy"),
    "configuration.changed": Text("configuration changed"),
    "outbox.replayed": Text("refused closures sent again"),
    "authority.created": Text("certificate authority made"),
}


def who(actor: str, labels: Mapping[str, str], say: Speaker) -> str:
    """`user:awa`, `key:3`, `shell:root` or `mcfd` as people call them; `labels` has the till of each key."""
    kind, _, name = actor.partition(":")
    if kind == "key":
        return _till(name, labels, say)
    return say("{name} (terminal)", name=name) if kind == "shell" else name or actor


def whom(subject: str, labels: Mapping[str, str], say: Speaker) -> str:
    """What it was done to: `key 4`, `user awa`, `EL02000015-1 live`, a file (its name alone), or a name of its own."""
    if subject.startswith("/"):
        return subject.rpartition("/")[2]
    first, _, last = subject.rpartition(" ")
    if first == "key":
        return _till(last, labels, say)
    if last == "test":
        return f"{first} ({say('test')})"
    return last if first == "user" else first if last == "live" else subject


def _till(key: str, labels: Mapping[str, str], say: Speaker) -> str:
    return labels.get(key) or say("key {number}", number=key)
