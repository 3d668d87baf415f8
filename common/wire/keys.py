"""Keys that sign or verify: a shared `whsec_…`, our own `whsk_…`, its public half `whpk_…`, a NATS user's `U…`. An nkey
of NATS is Ed25519 in base32 with a checksum and a prefix that appears as a letter; credentials are a `.creds` file of
`nsc` or an nkey's seed. Content for a box that is off is sealed for its key: an age file for an OpenSSH key."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult

from common.files import read_secret
from common.language import Text
from common.language.system import reason

USER, ACCOUNT, OPERATOR = 20 << 3, 0, 14 << 3
"""The prefixes that appear as U, A and O."""

_SEED = 18 << 3  # the prefix that appears as S
_SEED_BYTES = 36  # two of prefix, 32 of key, two of checksum
_PUBLIC_BYTES = 35  # one of prefix

SHARED = "whsec_"
PRIVATE = "whsk_"
PUBLIC = "whpk_"
KEY_BYTES = 32
SIGNATURE_BYTES = 64
SECRET_BYTES = range(24, 65)
"""Standard Webhooks' range for a shared secret: a shorter one can be guessed, a longer one is a mistake."""
ID_DIGITS = 16

_BLOCK = re.compile(r"-{3,}BEGIN ([A-Z ]+)-{3,}\s+(\S+)\s+-{3,}END [A-Z ]+-{3,}")

_KIND = b"ssh-ed25519"

DAMAGED = Text("damaged")


def encode_nkey(prefix: bytes, key: bytes) -> str:
    data = prefix + key
    data += binascii.crc_hqx(data, 0).to_bytes(2, "little")
    return base64.b32encode(data).decode("ascii").rstrip("=")


def encode_seed(seed: bytes, kind: int = USER) -> str:
    """The seed of a user, `SU…`, or of another `kind`."""
    return encode_nkey(_seed_prefix(kind), seed)


def decode_seed(text: str, kind: int = USER) -> bytes:
    """The 32 bytes in the seed of a user, or of another `kind`. Raises ValueError, which shows nothing of it."""
    data = _decode(text)
    if len(data) != _SEED_BYTES or data[:2] != _seed_prefix(kind):
        raise ValueError("not such a seed")
    return data[2:-2]


def _seed_prefix(kind: int) -> bytes:
    return bytes([_SEED | kind >> 5, kind << 3 & 0xFF])


def decode_public(text: str) -> bytes:
    """The 32 bytes of a user's public key, `U…`. Raises ValueError if it is none."""
    data = _decode(text)
    if len(data) != _PUBLIC_BYTES or data[0] != USER:
        raise ValueError("not the public key of a user")
    return data[1:-2]


def _decode(text: str) -> bytes:
    try:
        data = base64.b32decode(text + "=" * (-len(text) % 8))
    except binascii.Error:
        raise ValueError("not base32") from None
    if data[-2:] != binascii.crc_hqx(data[:-2], 0).to_bytes(2, "little"):
        raise ValueError("wrong checksum")
    return data


class BadKey(ValueError):
    """The fault of a key, a Text if a box can meet it; shows nothing of the key."""


class SharedKey:
    """Signs and verifies; `v1`."""

    def __init__(self, secret: bytes) -> None:
        self._secret = secret
        self.id = hmac.digest(secret, b"mcfd key id", hashlib.sha256).hex()[:ID_DIGITS]
        """Identifies the key without showing it: 16 hex digits, the same on both sides."""

    def sign(self, content: bytes) -> str:
        """As in the header: version, comma, base64."""
        return "v1," + encode(hmac.digest(self._secret, content, hashlib.sha256))

    def verifies(self, signature: str, content: bytes) -> bool:
        """Whether that signature, in the header's form, is by this key and of this content."""
        return hmac.compare_digest(signature.encode(), self.sign(content).encode())


class PrivateKey:
    """Signs; `v1a`."""

    def __init__(self, seed: bytes) -> None:
        public, self._signature = _key_pair(seed)
        self.public = PUBLIC + encode(public)
        """For headquarters."""
        self.id = _public_id(public)

    def sign(self, content: bytes) -> str:
        return "v1a," + encode(self._signature(content))


def _key_pair(seed: bytes) -> tuple[bytes, Callable[[bytes], bytes]]:
    """The public half, and the function that signs: by OpenSSL, which a box has for its certificates, or by libsodium,
    which headquarters has for its checks. The bytes are the same."""
    # Imported here: without private keys a box saves its 6 MB.
    try:
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey  # noqa: PLC0415  # see above
    except ImportError:
        from nacl.bindings import crypto_sign, crypto_sign_seed_keypair  # noqa: PLC0415  # see above

        public, secret = crypto_sign_seed_keypair(seed)
        return public, lambda content: crypto_sign(content, secret)[:SIGNATURE_BYTES]
    key = Ed25519PrivateKey.from_private_bytes(seed)
    return key.public_key().public_bytes_raw(), key.sign


class PublicKey:
    """Verifies; `v1a`. Headquarters stores tens of thousands of them: only these bytes each. libsodium, from the extra
    `hq`, takes half the time of OpenSSL and lets other threads run meanwhile."""

    __slots__ = ("_public", "id")

    def __init__(self, public: bytes) -> None:
        self._public = public
        self.id = _public_id(public)

    def verifies(self, signature: str, content: bytes) -> bool:
        # A box only signs, and does not have libsodium.
        from nacl.bindings import crypto_sign_open  # noqa: PLC0415  # see above
        from nacl.exceptions import BadSignatureError  # noqa: PLC0415  # see above

        version, _, value = signature.partition(",")
        if version != "v1a":
            return False
        try:
            found = decode(value)
            if len(found) != SIGNATURE_BYTES:
                return False
            crypto_sign_open(found + content, self._public)
        except (BadSignatureError, BadKey):
            return False
        return True


SigningKey = SharedKey | PrivateKey
VerifyingKey = SharedKey | PublicKey


def signing_key(line: str) -> SigningKey:
    """From one line of a key file."""
    if line.startswith(SHARED):
        return _shared(line)
    if line.startswith(PRIVATE):
        # 32 bytes of seed; other tools append the 32 of the public key
        seed = decode(line.removeprefix(PRIVATE))
        if len(seed) not in (KEY_BYTES, 2 * KEY_BYTES):
            raise BadKey(DAMAGED)
        return PrivateKey(seed[:KEY_BYTES])
    raise BadKey(Text("neither {one} nor {other}", one=f"{SHARED}…", other=f"{PRIVATE}…"))


def verifying_key(line: str) -> VerifyingKey:
    """The key of a box at headquarters: the shared secret, or its public half as written by keygen or NATS."""
    if line.startswith(SHARED):
        return _shared(line)
    if line.startswith(PUBLIC):
        public = decode(line.removeprefix(PUBLIC))
        if len(public) != KEY_BYTES:
            raise BadKey(DAMAGED)
        return PublicKey(public)
    try:
        return PublicKey(decode_public(line))
    except ValueError:
        raise BadKey(f"neither {SHARED}… nor {PUBLIC}… nor a user's key of NATS (U…)") from None


def private_line(seed: bytes) -> str:
    """A private key as in its file: seed and public key, as other tools of Standard Webhooks write it."""
    return PRIVATE + encode(seed + decode(PrivateKey(seed).public.removeprefix(PUBLIC)))


def encode(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def decode(text: str) -> bytes:
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
    except (binascii.Error, ValueError):
        raise BadKey(DAMAGED) from None


def _shared(line: str) -> SharedKey:
    secret = decode(line.removeprefix(SHARED))
    if not secret:
        raise BadKey(DAMAGED)
    if len(secret) not in SECRET_BYTES:
        least, most = SECRET_BYTES.start, SECRET_BYTES.stop - 1
        raise BadKey(
            Text(
                "a shared secret has {least} to {most} bytes, this one {found}",
                least=least,
                most=most,
                found=len(secret),
            )
        )
    return SharedKey(secret)


def _public_id(public: bytes) -> str:
    return hashlib.sha256(public).hexdigest()[:ID_DIGITS]


class BadCredentials(Exception):
    """Names the key of the configuration, the file and the fault; shows nothing of the file."""


class Credentials:
    """`public` is the user's public nkey, `U…`; `jwt` is empty if the server knows the public key itself."""

    def __init__(self, jwt: str, seed: bytes) -> None:
        self.jwt = jwt
        self.seed = seed
        """Opens content sealed for this key (`common.wire.keys`)."""
        self.signing_key = PrivateKey(seed)
        """The same key for signatures: headquarters has its public half already."""
        self.public = encode_nkey(bytes([USER]), decode(self.signing_key.public.removeprefix(PUBLIC)))

    def sign(self, nonce: str) -> bytes:
        return self.signing_key.sign(nonce.encode()).partition(",")[2].encode()


def read_credentials(path: Path, option: str) -> Credentials:
    """`option`: the key of the configuration that names the file, for BadCredentials."""
    try:
        text = read_secret(path).decode("ascii")
    except OSError as error:
        raise BadCredentials(Text("{what} {path}: {why}", what=option, path=path, why=reason(error))) from None
    except UnicodeDecodeError:
        raise BadCredentials(Text("{what} {path}: not text", what=option, path=path)) from None
    try:
        return credentials_of(text)
    except ValueError:
        raise BadCredentials(Text("{what} {path}: no NATS credentials in it", what=option, path=path)) from None


def credentials_of(text: str) -> Credentials:
    """From the content of such a file. Raises ValueError."""
    blocks = dict(_BLOCK.findall(text))
    return Credentials(blocks.get("NATS USER JWT", ""), decode_seed(blocks.get("USER NKEY SEED", text)))


def credentials_text(jwt: str, seed: str) -> str:
    """The credentials file of a user with that seed, `SU…`."""
    blocks = (("NATS USER JWT", jwt), ("USER NKEY SEED", seed))
    return "\n".join(f"-----BEGIN {name}-----\n{text}\n------END {name}------\n" for name, text in blocks)


def introduction(
    url: SplitResult, signer: Credentials | None, info: Mapping[str, Any], name: str
) -> dict[str, str | bool | int]:
    """The fields of CONNECT: the client authenticates by user and password or token of the address, or by its key."""
    fields: dict[str, str | bool | int] = {
        "verbose": False,
        "pedantic": False,
        "echo": False,
        "headers": True,
        "no_responders": True,
        "lang": "python",
        "version": "1",
        "protocol": 1,
        "name": name,
    }
    if url.password is not None:
        fields |= {"user": url.username or "", "pass": url.password}
    elif url.username:
        fields["auth_token"] = url.username
    if signer is not None:
        fields["sig"] = signer.sign(str(info.get("nonce", ""))).decode()
        fields |= {"jwt": signer.jwt} if signer.jwt else {"nkey": signer.public}
    return fields


class NotSealed(ValueError):
    """The content is not sealed for this key."""


def seal(content: bytes, public: bytes) -> bytes:
    """Seals for the Ed25519 key with that public half."""
    import pyrage  # noqa: PLC0415  # 4 MB, for sales of boxes that are off

    blob = b"".join(len(part).to_bytes(4) + part for part in (_KIND, public))
    recipient = pyrage.ssh.Recipient.from_str(f"{_KIND.decode()} {base64.b64encode(blob).decode()}")
    sealed: bytes = pyrage.encrypt(content, [recipient])
    return sealed


def unseal(sealed: bytes, seed: bytes) -> bytes:
    """Opens with the 32 bytes of the private key. Raises NotSealed if it is for another key, or damaged."""
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


class LaneHeader:
    """The NATS header `Mcfd-Lane` beside a presence: the public key that sales are sealed for, and the ids of the keys
    that the box accepts, by which the relay recognises a client while the box is off."""

    MAX_KEYS = 32

    def __init__(self, public: bytes, key_ids: tuple[str, ...]) -> None:
        self.public = public
        self.key_ids = key_ids

    def header(self) -> str:
        return " ".join((encode(self.public), *self.key_ids[: self.MAX_KEYS]))

    @classmethod
    def read(cls, text: str) -> LaneHeader | None:
        """None for anything else: such a box takes no deferred sales."""
        first, *key_ids = text.split(" ") if text else [""]
        try:
            public = decode(first)
        except BadKey:
            return None
        return cls(public, tuple(key_ids)) if len(public) == KEY_BYTES else None
