"""Files that are never half there: written beside, made durable, then put in place."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO


def write_whole(path: Path, content: bytes, mode: int, *, uid: int = -1, gid: int = -1) -> None:
    """Replaces `path`; after a power cut it holds the old content or the new. `uid` and `gid` as for chown, -1 leaves them."""
    with replacing(path, mode, uid, gid) as file:
        file.write(content)


def write_stream(path: Path, source: BinaryIO, mode: int) -> None:
    """The same with what can be read from `source`, however large; nothing that stands at `path` is followed or written into."""
    with replacing(path, mode) as file:
        shutil.copyfileobj(source, file)


@contextlib.contextmanager
def replacing(path: Path, mode: int, uid: int = -1, gid: int = -1) -> Iterator[BinaryIO]:
    """A file that takes the place of `path` once it is written, durably; on an error nothing has changed."""
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
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
