"""Atomic writes: a file is written beside its place, synced to the disk, then renamed into place."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import BinaryIO

LARGEST = 64 * 1024
CREDENTIALS = "credentials"
"""Name of the folder whose files a service gets from systemd, as they were at its start (LoadCredential=)."""


def write_whole(path: Path, content: bytes, mode: int, *, uid: int = -1, gid: int = -1) -> None:
    """Replaces `path`; after a power cut it has the old content or the new. `uid` and `gid` as for chown."""
    with replacing(path, mode, uid, gid) as file:
        file.write(content)


def write_stream(path: Path, source: BinaryIO, mode: int) -> None:
    """The same for a stream of any size; a link or file at `path` is replaced, never followed or written into."""
    with replacing(path, mode) as file:
        shutil.copyfileobj(source, file)


@contextlib.contextmanager
def replacing(path: Path, mode: int, uid: int = -1, gid: int = -1) -> Iterator[BinaryIO]:
    """A file that durably replaces `path` once it is written; on an error nothing has changed."""
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
            file.flush()
            os.fchmod(descriptor, mode)
            if (uid, gid) != (-1, -1):
                os.fchown(descriptor, uid, gid)
            os.fsync(descriptor)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    sync_path(path.parent)


def sync_path(path: Path) -> None:
    """Syncs a file, or the names in a folder, to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def real_path(path: Path) -> Path:
    """The path without symbolic links: other files are looked for beside the file itself."""
    return Path(os.path.realpath(path))


def is_on_read_only_disk(path: Path) -> bool:
    """Whether nothing can be written there, by any user. Raises OSError."""
    return bool(os.statvfs(path).f_flag & os.ST_RDONLY)


def runtime_folder(environ: Mapping[str, str] = os.environ) -> Path | None:
    """What systemd has made in /run for this service alone (RuntimeDirectory=); None without systemd."""
    name = environ.get("RUNTIME_DIRECTORY", "").partition(":")[0]
    return Path(name) if name else None


def read_file(path: Path, most: int = -1, *, may_be_pipe: bool = False) -> bytes:
    """The content of a file, up to `most` bytes. OSError also for a pipe, unless it `may_be_pipe`: a read would wait
    until something writes to it."""
    with open(path, "rb", opener=None if may_be_pipe else _no_pipe) as file:
        return file.read(most)


def _no_pipe(path: str, flags: int) -> int:
    descriptor = os.open(path, flags | os.O_NONBLOCK)
    if stat.S_ISFIFO(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.ESPIPE, os.strerror(errno.ESPIPE), path)
    return descriptor


def secret_path(path: Path, environ: Mapping[str, str] = os.environ) -> Path:
    """The file itself, or its systemd credential. With `LoadCredential=upstream.secret:…` the credential has the file's
    name. For a whole directory systemd names it `<id>_<name>`; the id is expected to be the directory's name."""
    if directory := environ.get("CREDENTIALS_DIRECTORY"):
        for name in (path.name, f"{path.parent.name}_{path.name}"):
            credential = Path(directory, name)
            if credential.is_file():
                return credential
    return path


def read_secret(path: Path, environ: Mapping[str, str] = os.environ, *, may_be_pipe: bool = False) -> bytes:
    """The content without surrounding white space. Raises OSError."""
    return read_file(secret_path(path, environ), LARGEST, may_be_pipe=may_be_pipe).strip()
