"""The audit log: acts of people, keys and commands on the box, each entry chained to the previous one; and its texts,
for the page and `mcfd audit`."""

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from typing import Final

import msgspec

from common.language import Speaker, Text

LONGEST_REASON: Final = 200
GENESIS: Final = hashlib.sha256(b"mcfd audit 1").digest()
"""What the first entry is chained to."""
DEEDS: Final[Mapping[str, Text]] = {
    "key.created": Text("key made"),
    "key.revoked": Text("key revoked"),
    "user.created": Text("person added"),
    "user.password_changed": Text("password changed"),
    "user.disabled": Text("person disabled"),
    "user.logged_in": Text("logged in"),
    "user.logged_out": Text("logged out"),
    "closure.created": Text("day closed (Z)"),
    "calendar.closed": Text("month or year closed"),
    "sale.withdrawn": Text("waiting sale taken back"),
    "sale.released": Text("doubtful sale waits again"),
    "outage.notified": Text("notification of an outage noted"),
    "cash.moved": Text("cash put in or taken out"),
    "copy.made": Text("duplicate given out"),
    "report.given": Text("report given out"),
    "pending.cancelled": Text("open invoice cancelled"),
    "attempt.settled": Text("doubt decided"),
    "machine.taken_over": Text("spare took over"),
    "machine.taken_back": Text("taken back from the spare"),
    "z_number.said": Text("last Z said"),
    "backup.taken": Text("copy made"),
    "archive.made": Text("archive of a year made"),
    "ledger.restored": Text("ledger put back from a copy"),
    "configuration.changed": Text("configuration changed"),
    "outbox.replayed": Text("refused closures sent again"),
    "authority.created": Text("certificate authority made"),
    "upstream.joined": Text("headquarters joined"),
    "upstream.left": Text("headquarters left"),
}
"""Every action that the log knows."""
DETAILS: Final[Mapping[str, Text]] = {
    "all": Text("the whole box"),
    "amount": Text("Amount"),
    "aside": Text("put aside as"),
    "count": Text("how many"),
    "decision": Text("Decision"),
    "fingerprint": Text("fingerprint"),
    "from": Text("from the copy"),
    "from_z": Text("from Z"),
    "kind": Text("Movement"),
    "label": Text("Till"),
    "lane": Text("valid by"),
    "mode": Text("mode"),
    "number": Text("Number"),
    "period": Text("Period"),
    "outage": Text("Outage"),
    "reason": Text("Reason"),
    "reference": Text("Reference"),
    "role": Text("Role"),
    "sections": Text("sections"),
    "spare": Text("Spare"),
    "through": Text("typed by"),
    "total_ttc": Text("total TTC"),
    "year": Text("Year"),
    "counted": Text("counted in the drawer"),
    "who": Text("notified"),
    "z_number": Text("Z"),
}
"""The small facts beside a deed; one that is not here (NIM) is called the same everywhere."""
VALUES: Final[Mapping[tuple[str, str], Text]] = {
    ("all", "yes"): Text("yes"),
    ("kind", "deposit"): Text("put in"),
    ("kind", "withdrawal"): Text("taken out"),
    ("lane", "lan"): Text("the shop's network"),
    ("lane", "relay"): Text("the relay"),
    ("mode", "live"): Text("live"),
    ("mode", "test"): Text("test"),
    ("role", "seller"): Text("seller"),
    ("role", "reader"): Text("reader"),
    ("role", "manager"): Text("manager"),
    ("role", "technician"): Text("technician"),
    ("who", "administration"): Text("tax administration"),
    ("who", "distributor"): Text("distributor"),
}
"""Translated values; all others (a number, a name, an option of the command line) are shown unchanged."""
AMOUNTS: Final = frozenset({"amount", "total_ttc", "counted"})
NAMED: Final = Text("{name}: {found}")


class Actor(msgspec.Struct, frozen=True):
    """Who acted: `user:awa`, `key:3`, `shell:root` (Unix user of a command on the box) or `mcfd` (the daemon).
    `address`: of the peer, empty on the box itself."""

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
    fields = {
        "action": action,
        "actor": actor.name,
        "address": actor.address,
        "at": at,
        "detail": detail,
        "subject": subject,
    }
    canonical = json.dumps(fields, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(previous + canonical.encode()).digest()


def first_broken(entries: list[AuditEntry], previous: bytes = GENESIS, last_id: int = 0) -> AuditEntry | None:
    """The first entry that does not follow from the previous one, by hash or by an id without a gap; None if all do."""
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


def action_text(action: str, say: Speaker) -> str:
    """One that is not known, of another version, as it is called in the ledger."""
    return say(DEEDS[action]) if action in DEEDS else action


def value_text(name: str, value: str, say: Speaker) -> str:
    """What a field's value (a role, a movement of cash) is called; one that is no word of ours stands as it is."""
    return say(VALUES[name, value]) if (name, value) in VALUES else value


def details(found: Mapping[str, str], say: Speaker, money: Callable[[int], str] = str) -> str:
    """`money` writes whole francs."""
    pairs = (
        (_called(name, say), money(int(value)) if name in AMOUNTS else value_text(name, value, say))
        for name, value in found.items()
        if value
    )
    return " · ".join(say(NAMED(name=name, found=value)) for name, value in pairs)


def _called(name: str, say: Speaker) -> str:
    """Some of these words also stand within a sentence."""
    word = say(DETAILS[name]) if name in DETAILS else name.upper()
    return word[:1].upper() + word[1:]


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


def key_hash_of(key: str) -> bytes:
    """Of an Idempotency-Key, as the ledger has it."""
    return hashlib.sha256(key.encode()).digest()[:16]


class Call(msgspec.Struct, frozen=True):
    """`key` is the Idempotency-Key as sent, empty without one; `fingerprint` tells one request of a book from another
    (SHA-256 over method, path without the NIM, and the body's values, cut to 16 bytes); `by` is who asks, for the
    audit log."""

    request_id: str = ""
    key: str = ""
    fingerprint: bytes = b""
    by: Actor = DAEMON
    strict: bool = False
    """Whether unknown fields are refused (`Mcfd-Strict`, or a strict key)."""
    earlier: Callable[[Iterable[str]], Iterable[bytes]] | None = None
    """The fingerprints that earlier versions stored, over the body's bytes: 0.1.0's path had the NIM as it was sent, or
    as one of those given."""
    expires: float = 0.0
    """When nothing is sent to the machine for it any more (loop time, decision 46); 0 for never."""

    @property
    def key_hash(self) -> bytes:
        return key_hash_of(self.key) if self.key else b""

    def is_request(self, fingerprint: bytes, nims: Iterable[str] = ()) -> bool:
        """Whether a stored fingerprint is of this request; `nims` are the names of the book's machine."""
        return fingerprint == self.fingerprint or (self.earlier is not None and fingerprint in self.earlier(nims))


INTERNAL: Final = Call()
"""No request: the daemon itself, a tool, a test."""
