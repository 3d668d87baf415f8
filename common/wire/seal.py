"""Sealing a sale for the box that it is for, while the box is off: an age file for the box's key at NATS (Ed25519, as age takes a key of
OpenSSH). Neither a NATS server's disk nor another box reads it."""

from __future__ import annotations

import base64

from common.wire.keys import KEY_BYTES, BadKey, decode, encode

_KIND = b"ssh-ed25519"


class NotSealed(ValueError):
    """What came is not sealed for this key."""


def seal(content: bytes, public: bytes) -> bytes:
    """For the Ed25519 key with that public half."""
    import pyrage  # noqa: PLC0415  # 4 MB, for sales of boxes that are off

    blob = b"".join(len(part).to_bytes(4) + part for part in (_KIND, public))
    recipient = pyrage.ssh.Recipient.from_str(f"{_KIND.decode()} {base64.b64encode(blob).decode()}")
    sealed: bytes = pyrage.encrypt(content, [recipient])
    return sealed


def unseal(sealed: bytes, seed: bytes) -> bytes:
    """With the 32 bytes of the private key; NotSealed when it is for another one, or damaged."""
    import pyrage  # noqa: PLC0415  # see above
    from cryptography.hazmat.primitives import serialization  # noqa: PLC0415  # see common.wire.keys
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey  # noqa: PLC0415  # see above

    key = Ed25519PrivateKey.from_private_bytes(seed).private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.OpenSSH, serialization.NoEncryption()
    )
    try:
        content: bytes = pyrage.decrypt(sealed, [pyrage.ssh.Identity.from_buffer(key)])
    except pyrage.DecryptError as error:
        raise NotSealed(str(error)) from None
    return content


class LaneWord:
    """What a box says of the lane beside its presence, in the NATS header `Mcfd-Lane`: the public half of the key that sales are sealed for,
    and the ids of the keys that it knows, by which a stranger is told from a client while the box is off."""

    MOST_KEYS = 32

    def __init__(self, public: bytes, key_ids: tuple[str, ...]) -> None:
        self.public = public
        self.key_ids = key_ids

    def header(self) -> str:
        return " ".join((encode(self.public), *self.key_ids[: self.MOST_KEYS]))

    @classmethod
    def read(cls, text: str) -> LaneWord | None:
        """None for what is none: such a box takes no sales for later."""
        first, *key_ids = text.split(" ") if text else [""]
        try:
            public = decode(first)
        except BadKey:
            return None
        return cls(public, tuple(key_ids)) if len(public) == KEY_BYTES else None
