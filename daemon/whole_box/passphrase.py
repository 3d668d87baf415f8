"""age files (age-encryption.org/v1) for a passphrase, at the same cost on every machine. pyrage would choose the cost that
takes its processor a second: a fast PC's backup could then be opened neither by mcfd itself nor by a smaller box."""

from __future__ import annotations

import hashlib
import hmac
import os
from base64 import b64encode
from typing import Final

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

VERSION: Final = b"age-encryption.org/v1\n"
WORK: int = 17
"""log2 of scrypt's cost: 128 MB of memory; half a second on a PC, some seconds on a box."""
CHUNK: Final = 64 * 1024


def encrypted(content: bytes, passphrase: str) -> bytes:
    """A whole file (C2SP/age: scrypt stanza, header MAC, STREAM of ChaCha20-Poly1305)."""
    file_key, salt, nonce = (os.urandom(16) for _ in range(3))
    wrapped = ChaCha20Poly1305(_stretched(passphrase, salt)).encrypt(bytes(12), file_key, None)
    head = VERSION + b"-> scrypt %b %d\n%b\n---" % (_base64(salt), WORK, _base64(wrapped))
    mac = hmac.digest(_derived(file_key, b"", b"header"), head, "sha256")
    cipher = ChaCha20Poly1305(_derived(file_key, nonce, b"payload"))
    last = max(len(content) - 1, 0) // CHUNK
    chunks = (
        cipher.encrypt(at.to_bytes(11, "big") + bytes([at == last]), content[at * CHUNK : (at + 1) * CHUNK], None)
        for at in range(last + 1)
    )
    return b"".join((head, b" ", _base64(mac), b"\n", nonce, *chunks))


def _stretched(passphrase: str, salt: bytes) -> bytes:
    salt = b"age-encryption.org/v1/scrypt" + salt
    memory = 2 ** (WORK + 10) + 2**20  # a little more than scrypt needs
    return hashlib.scrypt(passphrase.encode(), salt=salt, n=2**WORK, r=8, p=1, maxmem=memory, dklen=32)


def _derived(secret: bytes, salt: bytes, info: bytes) -> bytes:
    return HKDF(hashes.SHA256(), 32, salt, info).derive(secret)


def _base64(data: bytes) -> bytes:
    return b64encode(data).rstrip(b"=")
