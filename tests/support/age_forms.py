"""Files of age, written from the format's specification (C2SP/age) by hand: a second reading beside the library that
mcfd uses. What mcfd 0.1.0 wrote is among them."""

import base64
import hmac
import os

import pyrage
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.kdf.scrypt import Scrypt

VERSION = b"age-encryption.org/v1\n"
CHUNK = 64 * 1024
FILE_KEY = bytes(range(16))
CHARSET = "qpzry9x8gf2tvdw0s3jn54khce6mua7l"


def b64(data: bytes) -> bytes:
    return base64.b64encode(data).rstrip(b"=")


def derive(secret: bytes, salt: bytes, info: bytes) -> bytes:
    return HKDF(hashes.SHA256(), 32, salt, info).derive(secret)


def public_bytes(recipient: str) -> bytes:
    """The 32 bytes in `age1…`, whose checksum pyrage has looked at."""
    pyrage.x25519.Recipient.from_str(recipient)
    bits = "".join(f"{CHARSET.index(char):05b}" for char in recipient.removeprefix("age1")[:-6])
    return int(bits[:256], 2).to_bytes(32, "big")


def for_recipient(recipient: str) -> bytes:
    public, ephemeral = public_bytes(recipient), X25519PrivateKey.generate()
    share = ephemeral.public_key().public_bytes_raw()
    shared = ephemeral.exchange(X25519PublicKey.from_public_bytes(public))
    key = derive(shared, share + public, b"age-encryption.org/v1/X25519")
    body = ChaCha20Poly1305(key).encrypt(bytes(12), FILE_KEY, None)
    return b"-> X25519 " + b64(share) + b"\n" + b64(body) + b"\n"


def by_passphrase(passphrase: str, work: int = 16) -> bytes:
    """`work` above 18 is written without being done."""
    salt = os.urandom(16)
    key = Scrypt(b"age-encryption.org/v1/scrypt" + salt, 32, 2 ** min(work, 16), 8, 1).derive(passphrase.encode())
    body = ChaCha20Poly1305(key).encrypt(bytes(12), FILE_KEY, None)
    return b"-> scrypt " + b64(salt) + b" %d\n" % work + b64(body) + b"\n"


def age_file(stanzas: bytes, content: bytes) -> bytes:
    """A whole file."""
    head = VERSION + stanzas + b"---"
    mac = hmac.digest(derive(FILE_KEY, b"", b"header"), head, "sha256")
    nonce = os.urandom(16)
    cipher = ChaCha20Poly1305(derive(FILE_KEY, nonce, b"payload"))
    chunks = [content[at : at + CHUNK] for at in range(0, len(content), CHUNK)] or [b""]
    sealed = (
        cipher.encrypt(at.to_bytes(11, "big") + bytes([at == len(chunks) - 1]), chunk, None)
        for at, chunk in enumerate(chunks)
    )
    return head + b" " + b64(mac) + b"\n" + nonce + b"".join(sealed)
