"""A client of TLS 1.3 that says what no library lets one say: a record of its own making, under the keys of a real handshake (RFC 8446, 5 and 7)."""

import hmac
import ssl
import tempfile

from bench.siege.target import Streams

APPLICATION_DATA = 23
HANDSHAKE = 22
KEY_UPDATE = b"\x18\x00\x00\x01"
"""The message without its last byte: 1 asks the other side to do the same."""


class Sender:
    """What is sent in one direction, as records; each `update` is the last under its key."""

    def __init__(self, secret: bytes, suite: str) -> None:
        self._hash = "sha384" if suite.endswith("384") else "sha256"
        self._key_size = 16 if "128" in suite else 32
        self._is_chacha = "CHACHA20" in suite
        self._use(secret)

    def record(self, content: bytes, kind: int = APPLICATION_DATA) -> bytes:
        head = bytes((APPLICATION_DATA, 3, 3)) + (len(content) + 1 + 16).to_bytes(2, "big")
        nonce = (int.from_bytes(self._iv, "big") ^ self._number).to_bytes(12, "big")
        self._number += 1
        return head + self._cipher.encrypt(nonce, content + bytes((kind,)), head)

    def update(self, *, answered: bool) -> bytes:
        record = self.record(KEY_UPDATE + bytes((answered,)), HANDSHAKE)
        self._use(self._derived(b"traffic upd", len(self._secret)))
        return record

    def _use(self, secret: bytes) -> None:
        from cryptography.hazmat.primitives.ciphers import aead  # noqa: PLC0415  of this attack alone

        self._secret = secret
        key = self._derived(b"key", self._key_size)
        self._cipher = aead.ChaCha20Poly1305(key) if self._is_chacha else aead.AESGCM(key)
        self._iv = self._derived(b"iv", 12)
        self._number = 0

    def _derived(self, label: bytes, size: int) -> bytes:
        name = b"tls13 " + label
        info = size.to_bytes(2, "big") + bytes((len(name),)) + name + b"\0\1"
        return hmac.digest(self._secret, info, self._hash)[:size]


async def shaken(streams: Streams) -> Sender:
    """Shakes hands over a connection without TLS, as any client would; what is sent from then on is the caller's."""
    reader, writer = streams
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    with tempfile.NamedTemporaryFile("r") as log:  # the only way that Python tells the keys of a connection
        context.keylog_filename = log.name
        tls = context.wrap_bio(incoming, outgoing)
        while True:
            try:
                tls.do_handshake()
                break
            except ssl.SSLWantReadError:
                writer.write(outgoing.read())
                received = await reader.read(1 << 16)
                if not received:
                    raise EOFError from None
                incoming.write(received)
        secrets = {name: secret for name, _, secret in (line.split() for line in log if line[0] != "#")}
    writer.write(outgoing.read())
    suite = tls.cipher()
    return Sender(bytes.fromhex(secrets["CLIENT_TRAFFIC_SECRET_0"]), suite[0])
