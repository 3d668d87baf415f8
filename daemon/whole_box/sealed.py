"""Encrypted backups: files of age (age-encryption.org/v1), by pyrage. A recovery key streams, whatever the ledger's size; a passphrase works
in memory, so it is for small ledgers."""

from __future__ import annotations

import io
import os
import re
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from errno import EPIPE
from typing import BinaryIO, Final

import pyrage

from common.language import Text

VERSION: Final = b"age-encryption.org/v1\n"
SCRYPT: Final = re.compile(rb"-> scrypt [A-Za-z0-9+/]{22} ([1-9][0-9]?)\n")
MOST_WORK: Final = 19
"""log2 of scrypt's cost: 512 MB at the most are spent before anything in the file is authenticated. mcfd 0.1.0 used 16."""
MOST_BY_PASSPHRASE: Final = 256 * 1024 * 1024
MOST_READ_BY_PASSPHRASE: Final = 1024 * 1024 * 1024

NOT_AGE: Final = Text("this is no encrypted backup (age)")
CHANGED: Final = Text("the backup was changed, or its end is missing")


class NotOpened(ValueError):
    """The file is none of age's, was changed or cut, or is for another key; the text says which."""


class TooMuchToSeal(ValueError):
    """More than a passphrase can encrypt."""


def check_recipient(text: str) -> None:
    """`age1…`; ValueError when it is none."""
    _recipient(text)


def check_identity(text: str) -> str:
    """`AGE-SECRET-KEY-1…`, alone or in a file as `age-keygen` writes it; ValueError when there is none."""
    for line in map(str.strip, text.splitlines()):
        if line and not line.startswith("#"):
            identity = line.upper()
            _identity(identity)
            return identity
    raise ValueError("no identity")


def new_identity() -> tuple[str, str]:
    """A recovery key and its public half."""
    identity = pyrage.x25519.Identity.generate()
    return str(identity), str(identity.to_public())


@contextmanager
def sealed(target: BinaryIO, *, recipients: Sequence[str] = (), passphrase: str = "") -> Iterator[BinaryIO]:
    """What is written into it goes to `target` encrypted, whole only once this ends without an error. Either `recipients` or `passphrase`;
    OSError when the target does not take it."""
    if not recipients:
        plain = io.BytesIO()
        yield plain
        if plain.tell() > MOST_BY_PASSPHRASE:
            raise TooMuchToSeal
        target.write(pyrage.passphrase.encrypt(plain.getvalue(), passphrase))
        return
    keys, sink = [_recipient(each) for each in recipients], _Sink(target)
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
    """Where pyrage writes to; it passes on no more than the text of an error."""

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


def is_by_passphrase(source: BinaryIO) -> bool:
    """Of an encrypted backup; NotOpened when it is none, or would take more memory than a stranger's file may. Goes back to the beginning."""
    head = source.read(len(VERSION) + 64)
    source.seek(0)
    if not head.startswith(VERSION):
        raise NotOpened(NOT_AGE)
    stanza = head.removeprefix(VERSION)
    if not stanza.startswith(b"-> scrypt"):
        return False
    found = SCRYPT.match(stanza)
    if found is None or int(found[1]) > MOST_WORK:
        raise NotOpened(Text("the backup asks for more memory than mcfd gives a passphrase, or was changed"))
    return True


@contextmanager
def opened(source: BinaryIO, *, identity: str = "", passphrase: str = "") -> Iterator[BinaryIO]:
    """What is in it; NotOpened, at the latest when this ends: what was read counts only then. `is_by_passphrase` says which of the two."""
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
                    _check(done)  # what the reader met comes from there
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
        if error.errno is not None:  # the medium's, not pyrage's
            raise
        raise NotOpened(CHANGED) from None


def _decrypted(source: BinaryIO, passphrase: str) -> bytes:
    content = source.read(MOST_READ_BY_PASSPHRASE + 1)
    if len(content) > MOST_READ_BY_PASSPHRASE:
        raise NotOpened(Text("the backup is too large for a passphrase"))
    try:
        plain: bytes = pyrage.passphrase.decrypt(content, passphrase)
    except pyrage.DecryptError as error:
        raise _not_opened(error) from None
    return plain


def _not_opened(error: pyrage.DecryptError) -> NotOpened:
    """What it is, pyrage says in words alone."""
    if str(error) in {"No matching keys found", "Decryption failed"}:
        return NotOpened(Text("the passphrase is wrong, or the backup is for another key"))
    return NotOpened(CHANGED)


def _recipient(text: str) -> pyrage.x25519.Recipient:
    try:
        return pyrage.x25519.Recipient.from_str(text.strip())
    except pyrage.RecipientError as error:
        raise ValueError(str(error)) from None


def _identity(text: str) -> pyrage.x25519.Identity:
    try:
        return pyrage.x25519.Identity.from_str(text)
    except pyrage.IdentityError as error:
        raise ValueError(str(error)) from None
