"""A box signs its backups with an Ed25519 key beside the ledger, made with the first backup of the whole box. This
distinguishes them from others'; the daemon's user owns the key, so it proves nothing against that user."""

import contextlib
import hashlib
import os
import secrets
from collections.abc import Iterable
from pathlib import Path
from typing import Final, NamedTuple

import msgspec
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from common.files import write_whole
from common.wire.keys import PRIVATE, PUBLIC, BadKey, decode, encode, private_line
from daemon.owner import as_owner
from daemon.whole_box.verify_archive import CONTEXT as ARCHIVE_CONTEXT
from daemon.whole_box.verify_archive import fingerprint, signature_text

KEY_FILE: Final = "backup.key"
CONTEXT: Final = b"mcfd backup of a whole box 1\n"
SEED_BYTES: Final = 32
LONGEST_LINE: Final = 256


class NoKey(ValueError):
    """The key file has no key."""


class ArchiveEntry(NamedTuple):
    """One file of an archive in the signed form."""

    name: str
    size: int
    sha256: str


class Signature(msgspec.Struct, frozen=True):
    """The form in the archive, in base64."""

    key: str
    signature: str


class BoxKey:
    def __init__(self, seed: bytes) -> None:
        self._key = Ed25519PrivateKey.from_private_bytes(seed)
        self.public = self._key.public_key().public_bytes_raw()

    def sign(self, entries: Iterable[ArchiveEntry]) -> Signature:
        return Signature(PUBLIC + encode(self.public), encode(self._key.sign(_content(entries))))

    def sign_archive(self, manifest: bytes) -> bytes:
        """Signs a year's archive, for `verify_archive`."""
        return signature_text(
            self.public, hashlib.sha256(manifest).digest(), self._key.sign(ARCHIVE_CONTEXT + manifest)
        )


def key_file(ledger: Path) -> Path:
    return ledger.parent / KEY_FILE


def own_key(ledger: Path) -> BoxKey:
    """The box's key; made if there is none. Raises OSError, NoKey."""
    file = key_file(ledger)
    with as_owner(file.parent):
        if not file.exists():
            new = file.with_name(f"{file.name}.{secrets.token_hex(4)}")
            write_whole(new, private_line(os.urandom(SEED_BYTES)).encode() + b"\n", 0o600)
            with contextlib.suppress(FileExistsError):  # another backup was faster
                os.link(new, file)
            new.unlink()
        return _read(file)


def own_public(ledger: Path) -> bytes | None:
    """None if the box has no key. Raises OSError, NoKey."""
    file = key_file(ledger)
    with as_owner(file.parent):
        return _read(file).public if file.exists() else None


def signer(signature: Signature, entries: Iterable[ArchiveEntry]) -> bytes | None:
    """The public key that signed exactly these files; None if the signature is invalid."""
    try:
        public = decode(signature.key.removeprefix(PUBLIC))
        Ed25519PublicKey.from_public_bytes(public).verify(decode(signature.signature), _content(entries))
    except (BadKey, ValueError, InvalidSignature):
        return None
    return public


def is_named(public: bytes, text: str) -> bool:
    """Whether `text` is that key's fingerprint, with or without dashes, or the key itself (`whpk_…`)."""
    value = text.strip()
    if value.startswith(PUBLIC):
        return value == PUBLIC + encode(public)
    return value.replace("-", "").lower() == fingerprint(public).replace("-", "")


def _read(file: Path) -> BoxKey:
    with file.open() as opened:
        line = opened.read(LONGEST_LINE).strip()
    try:
        seed = decode(line.removeprefix(PRIVATE))[:SEED_BYTES] if line.startswith(PRIVATE) else b""
    except BadKey:
        seed = b""
    if len(seed) != SEED_BYTES:
        raise NoKey
    return BoxKey(seed)


def _content(entries: Iterable[ArchiveEntry]) -> bytes:
    return CONTEXT + b"".join(f"{each.sha256} {each.size} {each.name}\n".encode() for each in entries)
