"""The audit log: what people, keys and commands did to the box, each entry chained to the one before it."""

from __future__ import annotations

import hashlib
import json
from typing import Final, Literal, TypeAlias

import msgspec

Action: TypeAlias = Literal[
    "key.created",
    "key.revoked",
    "user.created",
    "user.password_changed",
    "user.disabled",
    "user.logged_in",
    "user.logged_out",
    "closure.created",
    "calendar.closed",
    "sale.withdrawn",
    "sale.released",
    "outage.notified",
    "cash.moved",
    "copy.made",
    "report.given",
    "pending.cancelled",
    "attempt.settled",
    "machine.taken_over",
    "machine.taken_back",
    "z_number.said",
    "backup.taken",
    "archive.made",
    "ledger.restored",
    "configuration.changed",
    "outbox.replayed",
    "authority.created",
]

GENESIS: Final = hashlib.sha256(b"mcfd audit 1").digest()
"""What the first entry is chained to."""


class Actor(msgspec.Struct, frozen=True):
    """Who did it: `user:awa`, `key:3`, `shell:root` (the name of the Unix user, for a command on the box), `mcfd` for the daemon itself.
    `address` is the peer's, empty for what was done on the box."""

    name: str
    address: str = ""


DAEMON: Final = Actor("mcfd")


class AuditEntry(msgspec.Struct, frozen=True):
    """`subject` is what it was done to ("key 4", "EL02000015-1 live"); `detail` small facts beside it, as text."""

    id: int
    at: int
    actor: str
    address: str
    action: str
    subject: str
    detail: dict[str, str]
    hash: bytes


def chain(previous: bytes, *, at: int, actor: Actor, action: str, subject: str, detail: dict[str, str]) -> bytes:
    """SHA-256(previous hash ‖ canonical JSON): sorted keys, no spaces, UTF-8. `at` in ms."""
    told = {
        "action": action,
        "actor": actor.name,
        "address": actor.address,
        "at": at,
        "detail": detail,
        "subject": subject,
    }
    canonical = json.dumps(told, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(previous + canonical.encode()).digest()


def first_broken(entries: list[AuditEntry], previous: bytes = GENESIS, last_id: int = 0) -> AuditEntry | None:
    """The first of them, in their order, that does not follow from the one before; None when all do. Ids have no gaps."""
    for entry in entries:
        expected = chain(
            previous,
            at=entry.at,
            actor=Actor(entry.actor, entry.address),
            action=entry.action,
            subject=entry.subject,
            detail=entry.detail,
        )
        if entry.hash != expected or entry.id != last_id + 1:
            return entry
        previous, last_id = entry.hash, entry.id
    return None
