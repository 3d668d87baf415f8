"""The chain of the audit log, as anybody with a shell can compute it again."""

import hashlib

from daemon.core.audit import GENESIS, Actor, AuditEntry, Call, chain, first_broken

AWA = Actor("user:awa", "192.168.1.7")


def chained(*subjects: str, previous: bytes = GENESIS, last_id: int = 0) -> list[AuditEntry]:
    entries = []
    for number, subject in enumerate(subjects, start=last_id + 1):
        detail = {"role": "till", "name": "Éts Kaboré"}
        previous = chain(previous, at=5, actor=AWA, action="key.created", subject=subject, detail=detail)
        entries.append(AuditEntry(number, 5, AWA.name, AWA.address, "key.created", subject, detail, previous))
    return entries


def test_an_entry_is_hashed_with_the_one_before_it() -> None:
    """SHA-256 of the hash before and of the entry as JSON: keys sorted, no spaces, letters as they are in UTF-8. One that was taken out is missed, at the beginning and in the
    middle: the one after it is reported."""
    written = (
        '{"action":"key.created","actor":"user:awa","address":"192.168.1.7","at":5,'
        '"detail":{"name":"Éts Kaboré","role":"till"},"subject":"key 4"}'
    )
    (entry,) = chained("key 4")
    assert entry.hash == hashlib.sha256(hashlib.sha256(b"mcfd audit 1").digest() + written.encode()).digest()
    entries = chained("key 1", "key 2", "key 3")
    assert first_broken(entries) is first_broken([]) is None
    assert first_broken(entries[1:]) is entries[1]
    assert first_broken([entries[0], entries[2]]) is entries[2]


def test_an_idempotency_key_is_kept_as_half_a_hash() -> None:
    """The first sixteen bytes of its SHA-256, which a ledger keeps for a week and finds again after an upgrade; nothing without a key."""
    assert Call(key="Éts 7").key_hash == hashlib.sha256("Éts 7".encode()).digest()[:16]
    assert Call().key_hash == b""
