"""Encrypted backups: age files (age-encryption.org/v1), by pyrage. With a recovery key they are streamed, whatever the
ledger's size; with a passphrase they are in memory, so the ledger must be small."""

from __future__ import annotations

import io
import os
import re
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from errno import EPIPE
from pathlib import Path
from typing import BinaryIO, Final

import pyrage

from common.language import Text

VERSION: Final = b"age-encryption.org/v1\n"
SCRYPT: Final = re.compile(rb"-> scrypt [A-Za-z0-9+/]{22} ([1-9][0-9]?)\n")
IDENTITY: Final = re.compile("AGE-SECRET-KEY-1[A-Z0-9]{58}")
MAX_WORK: Final = 22
"""log2 of scrypt's cost, as the program age has it: at most 4 GB are used before anything in the file is authenticated.
pyrage writes what its processor does in a second: 17 on a box, 20 on a fast PC. mcfd 0.1.0 wrote 16."""
MAX_BY_PASSPHRASE: Final = 256 * 1024 * 1024
MAX_READ_BY_PASSPHRASE: Final = 1024 * 1024 * 1024

NOT_AGE: Final = Text("this is no backup of a whole box (age); a copy of the ledger is restored without --all")
CHANGED: Final = Text("the backup was changed, or its end is missing")


class NotOpened(ValueError):
    """The file is not age's, was changed or cut, or is for another key; the text says which."""


class TooMuchToSeal(ValueError):
    """Too large for a passphrase."""


def read_recipient(text: str) -> pyrage.x25519.Recipient:
    """Raises ValueError unless it is `age1…`."""
    try:
        return pyrage.x25519.Recipient.from_str(text.strip())
    except pyrage.RecipientError as error:
        raise ValueError(str(error)) from None


def check_identity(text: str) -> str:
    """`AGE-SECRET-KEY-1…` as typed from paper, in groups and lines, or the first in a file of `age-keygen`. Raises
    ValueError if there is none."""
    typed = "".join(line for line in text.upper().splitlines() if not line.lstrip().startswith("#"))
    if (found := IDENTITY.search("".join(typed.split()))) is None:
        raise ValueError("no identity")
    _identity(found[0])
    return found[0]


def new_identity() -> tuple[str, str]:
    """A recovery key and its public half."""
    identity = pyrage.x25519.Identity.generate()
    return str(identity), str(identity.to_public())


@contextmanager
def sealed(target: BinaryIO, *, recipients: Sequence[str] = (), passphrase: str = "") -> Iterator[BinaryIO]:
    """A file whose content goes to `target` encrypted; it is complete only after an end without error. Either
    `recipients` or `passphrase`. Raises OSError of the target."""
    if not recipients:
        plain = io.BytesIO()
        yield plain
        if plain.tell() > MAX_BY_PASSPHRASE:
            raise TooMuchToSeal
        target.write(pyrage.passphrase.encrypt(plain.getvalue(), passphrase))
        return
    keys, sink = [read_recipient(each) for each in recipients], _Sink(target)
    reading, writing = os.pipe()
    with ThreadPoolExecutor(1) as thread:
        done, file = thread.submit(_encrypt, reading, sink, keys), os.fdopen(writing, "wb")
        try:
            yield file
            file.close()
        except BrokenPipeError:
            _result(done, sink)
            raise
        finally:
            with suppress(OSError):
                file.close()
        _result(done, sink)


def _encrypt(reading: int, sink: _Sink, keys: list[pyrage.x25519.Recipient]) -> None:
    with os.fdopen(reading, "rb") as plain:
        pyrage.encrypt_io(plain, sink, keys)


def _result(done: Future[None], sink: _Sink) -> None:
    error = done.exception()
    if error is not None:
        raise sink.error or error


class _Sink:
    """pyrage's target; stores the error, of which pyrage passes on only the text."""

    def __init__(self, target: BinaryIO) -> None:
        self._target = target
        self.error: OSError | None = None

    def write(self, data: bytes) -> int:
        try:
            return self._target.write(data)
        except OSError as error:
            self.error = error
            raise

    def flush(self) -> None:
        self._target.flush()


def is_sealed(file: Path) -> bool:
    """Whether it is age's. Raises OSError."""
    with file.open("rb") as source:
        return source.read(len(VERSION)) == VERSION


def is_by_passphrase(source: BinaryIO) -> bool:
    """Whether it is for a passphrase; rewinds. NotOpened: no backup, or more memory than a foreign file may need."""
    head = source.read(len(VERSION) + 64)
    source.seek(0)
    if not head.startswith(VERSION):
        raise NotOpened(NOT_AGE)
    stanza = head.removeprefix(VERSION)
    if not stanza.startswith(b"-> scrypt"):
        return False
    found = SCRYPT.match(stanza)
    if found is None or int(found[1]) > MAX_WORK:
        raise NotOpened(Text("the backup asks for more memory than mcfd gives a passphrase, or was changed"))
    return True


@contextmanager
def opened(source: BinaryIO, *, identity: str = "", passphrase: str = "") -> Iterator[BinaryIO]:
    """The decrypted content; it counts only after the end. Raises NotOpened. `is_by_passphrase` tells which key."""
    if not identity:
        yield io.BytesIO(_decrypted(source, passphrase))
        return
    reading, writing = os.pipe()
    with ThreadPoolExecutor(1) as thread:
        done = thread.submit(_decrypt, source, writing, _identity(identity))
        with os.fdopen(reading, "rb") as file:
            try:
                yield file
            except Exception:
                file.close()
                if getattr(done.exception(), "errno", None) != EPIPE:
                    _check(done)  # the cause of the reader's error
                raise
            while file.read(io.DEFAULT_BUFFER_SIZE):
                pass
        _check(done)


def _decrypt(source: BinaryIO, writing: int, identity: pyrage.x25519.Identity) -> None:
    with os.fdopen(writing, "wb", buffering=0) as file:
        pyrage.decrypt_io(source, file, [identity])


def _check(done: Future[None]) -> None:
    try:
        done.result()
    except pyrage.DecryptError as error:
        raise _not_opened(error) from None
    except OSError as error:
        if error.errno is not None:  # of the medium, not of pyrage
            raise
        raise NotOpened(CHANGED) from None


def _decrypted(source: BinaryIO, passphrase: str) -> bytes:
    content = source.read(MAX_READ_BY_PASSPHRASE + 1)
    if len(content) > MAX_READ_BY_PASSPHRASE:
        raise NotOpened(Text("the backup is too large for a passphrase"))
    try:
        plain: bytes = pyrage.passphrase.decrypt(content, passphrase)
    except pyrage.DecryptError as error:
        raise _not_opened(error) from None
    return plain


def _not_opened(error: pyrage.DecryptError) -> NotOpened:
    """By pyrage's message, its only information."""
    if str(error) in {"No matching keys found", "Decryption failed"}:
        return NotOpened(Text("the passphrase is wrong, or the backup is for another key"))
    return NotOpened(CHANGED)


def _identity(text: str) -> pyrage.x25519.Identity:
    try:
        return pyrage.x25519.Identity.from_str(text)
    except pyrage.IdentityError as error:
        raise ValueError(str(error)) from None
