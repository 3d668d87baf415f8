"""The file format of age (age-encryption.org/v1), so that a backup can also be opened by `age -d`, without mcfd.

Written from the format's specification (C2SP/age): a file key wrapped for X25519 recipients or by a passphrase (scrypt), and a payload in
pieces of 64 KiB, each authenticated with its place; a file that was cut or changed is never taken for whole."""

from __future__ import annotations

import base64
import hmac
import io
import os
from collections.abc import Iterator, Sequence
from typing import BinaryIO, Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.kdf.scrypt import Scrypt

from daemon.language import Text

VERSION: Final = b"age-encryption.org/v1\n"
RECIPIENT: Final = "age"
IDENTITY: Final = "age-secret-key-"
PIECE: Final = 64 * 1024
TAG: Final = 16
FILE_KEY: Final = 16
WORK: Final = 16
"""log2 of scrypt's cost: 64 MB and a quarter of a second on a small box."""
MOST_WORK: Final = 20
LONGEST_HEADER: Final = 64 * 1024
_NO_NONCE: Final = bytes(12)
_COLUMNS: Final = 64
_CHARSET: Final = "qpzry9x8gf2tvdw0s3jn54khce6mua7l"


class NotOpened(ValueError):
    """The file is none of age's, was changed or cut, or is for another key; the text says which."""


# -- keys -----------------------------------------------------------------------------------------------------------------


def read_recipient(text: str) -> bytes:
    """`age1…`; ValueError when it is none."""
    return _unbech32(text.strip(), RECIPIENT)


def read_identity(text: str) -> bytes:
    """`AGE-SECRET-KEY-1…`, alone or in a file as `age-keygen` writes it; ValueError when there is none."""
    for line in text.splitlines():
        if line.strip() and not line.startswith("#"):
            return _unbech32(line.strip().lower(), IDENTITY)
    raise ValueError("no identity")


def recipient_of(identity: bytes) -> str:
    return _bech32(RECIPIENT, X25519PrivateKey.from_private_bytes(identity).public_key().public_bytes_raw())


def generate() -> tuple[str, str]:
    """A new identity and its recipient, as text."""
    identity = X25519PrivateKey.generate().private_bytes_raw()
    return _bech32(IDENTITY, identity).upper(), recipient_of(identity)


# -- sealing ----------------------------------------------------------------------------------------------------------------


class Sealing(io.RawIOBase):
    """What is written into it goes encrypted to `target`; whole only once it is closed. Either `recipients` or `passphrase`."""

    def __init__(self, target: BinaryIO, *, recipients: Sequence[bytes] = (), passphrase: str = "") -> None:
        super().__init__()
        file_key, nonce = os.urandom(FILE_KEY), os.urandom(16)
        stanzas = [_wrap_x25519(file_key, recipient) for recipient in recipients]
        if not stanzas:
            stanzas = [_wrap_scrypt(file_key, passphrase)]
        head = VERSION + b"".join(stanzas) + b"---"
        mac = hmac.digest(_derive(file_key, b"", b"header"), head, "sha256")
        target.write(head + b" " + _b64(mac) + b"\n" + nonce)
        self._target = target
        self._cipher = ChaCha20Poly1305(_derive(file_key, nonce, b"payload"))
        self._left = bytearray()
        self._count = 0

    def writable(self) -> bool:
        return True

    def write(self, data: bytes, /) -> int:  # type: ignore[override]  # what tarfile hands over is bytes
        self._left += data
        while len(self._left) > PIECE:  # the last piece is never empty, and marked
            self._seal(bytes(self._left[:PIECE]), last=False)
            del self._left[:PIECE]
        return len(data)

    def close(self) -> None:
        if not self.closed:
            self._seal(bytes(self._left), last=True)
        super().close()

    def _seal(self, piece: bytes, *, last: bool) -> None:
        self._target.write(self._cipher.encrypt(_place(self._count, last=last), piece, None))
        self._count += 1


def _wrap_x25519(file_key: bytes, recipient: bytes) -> bytes:
    ephemeral = X25519PrivateKey.generate()
    share = ephemeral.public_key().public_bytes_raw()
    shared = ephemeral.exchange(X25519PublicKey.from_public_bytes(recipient))
    key = _derive(shared, share + recipient, b"age-encryption.org/v1/X25519")
    return _stanza([b"X25519", _b64(share)], ChaCha20Poly1305(key).encrypt(_NO_NONCE, file_key, None))


def _wrap_scrypt(file_key: bytes, passphrase: str) -> bytes:
    salt = os.urandom(16)
    key = _stretched(passphrase, salt, WORK)
    body = ChaCha20Poly1305(key).encrypt(_NO_NONCE, file_key, None)
    return _stanza([b"scrypt", _b64(salt), b"%d" % WORK], body)


def _stanza(arguments: list[bytes], body: bytes) -> bytes:
    text = _b64(body)
    lines = [text[at : at + _COLUMNS] for at in range(0, len(text) + 1, _COLUMNS)]
    return b"-> " + b" ".join(arguments) + b"\n" + b"\n".join(lines) + b"\n"


# -- opening ----------------------------------------------------------------------------------------------------------------


class Opened(io.RawIOBase):
    """Reads what `Sealing` wrote; each piece is checked before a byte of it is given. NotOpened."""

    def __init__(self, source: BinaryIO, *, identities: Sequence[bytes] = (), passphrase: str = "") -> None:
        super().__init__()
        head, stanzas, mac = _read_head(source)
        file_key = _unwrapped(stanzas, identities, passphrase)
        if not hmac.compare_digest(hmac.digest(_derive(file_key, b"", b"header"), head, "sha256"), mac):
            raise NotOpened(Text("the backup was changed"))
        self._cipher = ChaCha20Poly1305(_derive(file_key, source.read(16), b"payload"))
        self._pieces = self._open(source)
        self._left = b""

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1, /) -> bytes:
        found = bytearray()
        while size < 0 or len(found) < size:
            if not self._left:
                self._left = next(self._pieces, b"")
                if not self._left:
                    break
            wanted = len(self._left) if size < 0 else size - len(found)
            found += self._left[:wanted]
            self._left = self._left[wanted:]
        return bytes(found)

    def _open(self, source: BinaryIO) -> Iterator[bytes]:
        count, piece = 0, source.read(PIECE + TAG)
        while True:
            following = source.read(PIECE + TAG)
            try:
                yield self._cipher.decrypt(_place(count, last=not following), piece, None)
            except (InvalidTag, ValueError):
                raise NotOpened(Text("the backup was changed, or its end is missing")) from None
            if not following:
                return
            count, piece = count + 1, following


Stanza = tuple[list[bytes], bytes]


def _read_head(source: BinaryIO) -> tuple[bytes, list[Stanza], bytes]:
    """The header as it is authenticated, its stanzas, and its code."""
    if source.readline(len(VERSION)) != VERSION:
        raise NotOpened(Text("this is no encrypted backup (age)"))
    head, stanzas = bytearray(VERSION), list[Stanza]()
    while len(head) < LONGEST_HEADER:
        line = source.readline(LONGEST_HEADER)
        if line.startswith(b"--- "):
            return bytes(head + b"---"), stanzas, _unb64(line[4:].rstrip(b"\n"))
        head += line
        if not line:
            break
        if line.startswith(b"-> "):
            stanzas.append((line[3:].split(), b""))
        elif stanzas:
            arguments, body = stanzas[-1]
            stanzas[-1] = (arguments, body + line.rstrip(b"\n"))
        else:
            break
    raise NotOpened(Text("this is no encrypted backup (age)"))


def _unwrapped(stanzas: Sequence[Stanza], identities: Sequence[bytes], passphrase: str) -> bytes:
    for arguments, text in stanzas:
        body = _unb64(text)
        keys: list[bytes] = []
        if arguments[0] == b"X25519" and len(arguments) == 2:  # noqa: PLR2004  its name and the share
            keys = [_agreed(identity, _unb64(arguments[1])) for identity in identities]
        elif arguments[0] == b"scrypt" and len(arguments) == 3 and passphrase:  # noqa: PLR2004  name, salt, cost
            keys = [_stretched(passphrase, _unb64(arguments[1]), _cost(arguments[2]))]
        for key in keys:
            try:
                return ChaCha20Poly1305(key).decrypt(_NO_NONCE, body, None)
            except InvalidTag:
                continue
    raise NotOpened(Text("the passphrase is wrong, or the backup is for another key"))


def is_by_passphrase(source: BinaryIO) -> bool:
    """Of an encrypted backup; NotOpened when it is none. Reads from the beginning and goes back there."""
    source.seek(0)
    _, stanzas, _ = _read_head(source)
    source.seek(0)
    return any(arguments[0] == b"scrypt" for arguments, _ in stanzas)


def _agreed(identity: bytes, share: bytes) -> bytes:
    own = X25519PrivateKey.from_private_bytes(identity)
    try:
        shared = own.exchange(X25519PublicKey.from_public_bytes(share))
    except ValueError:
        raise NotOpened(Text("the backup was changed")) from None
    return _derive(shared, share + own.public_key().public_bytes_raw(), b"age-encryption.org/v1/X25519")


def _cost(text: bytes) -> int:
    cost = int(text) if text.isdigit() and len(text) <= 2 else 0  # noqa: PLR2004  digits
    if not 1 <= cost <= MOST_WORK:
        raise NotOpened(Text("the backup was changed"))
    return cost


# -- arithmetic -------------------------------------------------------------------------------------------------------------


def _derive(secret: bytes, salt: bytes, info: bytes) -> bytes:
    return HKDF(hashes.SHA256(), 32, salt, info).derive(secret)


def _stretched(passphrase: str, salt: bytes, cost: int) -> bytes:
    return Scrypt(b"age-encryption.org/v1/scrypt" + salt, 32, 2**cost, 8, 1).derive(passphrase.encode())


def _place(count: int, *, last: bool) -> bytes:
    return count.to_bytes(11, "big") + bytes([last])


def _b64(data: bytes) -> bytes:
    return base64.b64encode(data).rstrip(b"=")


def _unb64(text: bytes) -> bytes:
    try:
        return base64.b64decode(text + b"=" * (-len(text) % 4), validate=True)
    except ValueError:
        raise NotOpened(Text("the backup was changed")) from None


def _bech32(prefix: str, data: bytes) -> str:
    values = _regrouped(data, 8, 5)
    check = _polymod([*_expanded(prefix), *values, *([0] * 6)]) ^ 1
    values += [(check >> 5 * (5 - at)) & 31 for at in range(6)]
    return f"{prefix}1" + "".join(_CHARSET[value] for value in values)


def _unbech32(text: str, prefix: str) -> bytes:
    start, _, rest = text.rpartition("1")
    if start != prefix or not set(rest) <= set(_CHARSET):
        raise ValueError(f"does not begin with {prefix}1")
    values = [_CHARSET.index(char) for char in rest]
    data = bytes(_regrouped(values[:-6], 5, 8, pad=False))
    if _polymod([*_expanded(prefix), *values]) != 1 or len(data) != 32:  # noqa: PLR2004  bytes of a key
        raise ValueError("is mistyped")
    return data


def _expanded(prefix: str) -> list[int]:
    return [*(ord(char) >> 5 for char in prefix), 0, *(ord(char) & 31 for char in prefix)]


def _polymod(values: Sequence[int]) -> int:
    check = 1
    for value in values:
        top = check >> 25
        check = (check & 0x1FFFFFF) << 5 ^ value
        for at, part in enumerate((0x3B6A57B2, 0x26508E6D, 0x1EA119FA, 0x3D4233DD, 0x2A1462B3)):
            check ^= part if top >> at & 1 else 0
    return check


def _regrouped(data: Sequence[int], width: int, into: int, *, pad: bool = True) -> list[int]:
    buffer = bits = 0
    found = []
    for value in data:
        buffer, bits = buffer << width | value, bits + width
        while bits >= into:
            bits -= into
            found.append(buffer >> bits & (1 << into) - 1)
    if pad and bits:
        found.append(buffer << (into - bits) & (1 << into) - 1)
    return found
