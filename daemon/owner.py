"""What root does with the daemon's files, it does as the daemon's user: a name in there may lead anywhere.

Only the effective user changes, and comes back: an operator's own files (a copy on a stick, a certificate for tills) are root's
business. What goes between the two goes through a folder that nobody else can put anything into.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

from daemon.files import write_stream

SCRATCH = Path("/var/tmp")  # noqa: S108  a folder with a random name is made in it


@contextlib.contextmanager
def as_owner(folder: Path) -> Iterator[None]:
    """As the owner of `folder`, or of what leads to it; nothing changes for who is not root, or where all of it is root's."""
    user, group_of_user = _owner(folder)
    if not _is_misleading(folder):
        yield
        return
    groups, group = os.getgroups(), os.getegid()
    os.setgroups([group_of_user])
    os.setegid(group_of_user)
    os.seteuid(user)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(group)
        os.setgroups(groups)


@contextlib.contextmanager
def for_owner(file: Path, folder: Path) -> Iterator[Path]:
    """A path at which the owner of `folder` can read `file`: itself, or a copy by root, gone afterwards."""
    with as_owner(folder):
        readable = os.access(file, os.R_OK, effective_ids=True)
    if readable or not _is_misleading(folder):
        yield file
        return
    with _scratch() as scratch:
        copy = scratch / "copy"
        with file.open("rb") as source, copy.open("xb") as target:
            shutil.copyfileobj(source, target)
            os.fchown(target.fileno(), *_owner(folder))
        _give(scratch, folder)  # last: from now on they may put anything into it
        yield copy


@contextlib.contextmanager
def by_owner(target: Path, folder: Path) -> Iterator[Path]:
    """A path at which the owner of `folder` can write what is to stand at `target`: that itself, or one from which it is put there
    by root, or by whoever else the target's folder belongs to."""
    with as_owner(folder):
        writable = os.access(target.parent, os.W_OK | os.X_OK, effective_ids=True)
    if writable or not _is_misleading(folder):
        yield target
        return
    with _scratch() as scratch:
        _give(scratch, folder)
        made = scratch / target.name
        yield made
        with as_owner(folder):
            descriptor = os.open(made, os.O_RDONLY | os.O_NOFOLLOW)
        with os.fdopen(descriptor, "rb") as file:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise OSError(f"{made} is not a file")
            with as_owner(target.parent):
                write_stream(target, file, 0o640)


@contextlib.contextmanager
def _scratch() -> Iterator[Path]:
    """Root's alone, until it is given away; what is found there at the end is deleted without following anything (`shutil.rmtree`)."""
    with tempfile.TemporaryDirectory(prefix="mcfd-", dir=SCRATCH) as name:
        yield Path(name)


def _give(path: Path, folder: Path) -> None:
    os.chown(path, *_owner(folder), follow_symlinks=False)


def _is_misleading(folder: Path) -> bool:
    return os.geteuid() == 0 != _owner(folder)[0]


def _owner(path: Path) -> tuple[int, int]:
    """User and group of the first folder or link on the way to `path` that is not root's: from there on it leads where they like."""
    for each in reversed((path.absolute(), *path.absolute().parents)):
        try:
            found = each.lstat()
        except OSError:
            break
        if found.st_uid != 0:
            return found.st_uid, found.st_gid
    return 0, 0
