"""Root's access to the daemon's files, as the daemon's user (symlink attacks).

Only the effective user changes, and comes back: an operator's own files (a copy on a stick, a certificate for tills) are root's
business. What goes between the two goes through a private folder of the daemon's user.
"""

import contextlib
import fcntl
import functools
import os
import pwd
import shutil
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from common.files import is_on_read_only_disk, write_stream

LEFT = ".mcfd-private-"
"""How the names of private folders begin."""
ELSEWHERE = (Path("/tmp"), Path("/dev/shm"))  # noqa: S108  a folder that is made there is its owner's alone
"""Where a private folder is made if the owner's own disk is read-only, or has no room."""
MAX_LINKS = 40
"""As the kernel."""


@contextlib.contextmanager
def as_owner(folder: Path) -> Iterator[None]:
    """As the owner of `folder`, or of what leads to it; nothing changes for who is not root, or where all of it is root's."""
    user, group_of_user = _owner(folder)
    if not _is_misleading(folder):
        yield
        return
    groups, group = os.getgroups(), os.getegid()
    os.setgroups(_groups(user, group_of_user))
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
    """A path at which the owner of `folder` can read `file`: itself, or a copy in `folder`, gone afterwards. Who owns the folder that the
    file is in reads it: a link in there leads to nothing that they could not read themselves."""
    with as_owner(folder):
        readable = os.access(file, os.R_OK, effective_ids=True)
    if readable or not _is_misleading(folder):
        yield file
        return
    with private_folder(folder) as scratch:
        with as_owner(file.parent):
            source = file.open("rb")
        with source, new_file(scratch / "copy") as copy:
            shutil.copyfileobj(source, copy)
        yield scratch / "copy"


@contextlib.contextmanager
def by_owner(target: Path, folder: Path, room: int = 0) -> Iterator[Path]:
    """A path at which the owner of `folder` can write what is to stand at `target`: that itself, or one in a private folder from which it is
    put there by root, or by the owner of the target's folder. `room` as of `private_folder`."""
    with as_owner(folder):
        writable = os.access(target.parent, os.W_OK | os.X_OK, effective_ids=True)
    if writable or not _is_misleading(folder):
        yield target
        return
    with private_folder(folder, room) as scratch:
        temporary = scratch / target.name
        yield temporary
        with as_owner(folder):
            descriptor = os.open(temporary, os.O_RDONLY | os.O_NOFOLLOW)
        with os.fdopen(descriptor, "rb") as file:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise OSError(f"{temporary} is not a file")
            with as_owner(target.parent):
                write_stream(target, file, 0o640)


@contextlib.contextmanager
def private_folder(within: Path, room: int = 0) -> Iterator[Path]:
    """A folder inside of `within`, or of ELSEWHERE, for the owner of `within` alone, gone afterwards; one that a killed process has left goes
    first, here or at the next start of the daemon (`remove_leftovers`). What is decrypted lies nowhere else. `room`: bytes that are needed."""
    places = [each for each in (within, *ELSEWHERE) if not is_on_read_only_disk(each)] or [within]
    for each in (within, *ELSEWHERE):
        remove_leftovers(within, each)
    place = next((each for each in places if shutil.disk_usage(each).free >= room), places[0])
    with as_owner(within):
        lock = os.open(place, os.O_RDONLY | os.O_DIRECTORY)
    try:
        with contextlib.suppress(OSError):  # of a file system without locks
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        with as_owner(within):
            folder = Path(tempfile.mkdtemp(prefix=LEFT, dir=place))
        try:
            yield folder
        finally:
            with as_owner(within):
                shutil.rmtree(folder, ignore_errors=True)
    finally:
        os.close(lock)


def remove_leftovers(within: Path, place: Path | None = None) -> None:
    """What private folders of the owner of `within` killed processes have left in there, or in `place`; nothing while a process uses one."""
    place = place or within
    with as_owner(within):
        try:
            left = [*place.glob(f"{LEFT}*")]
        except OSError:
            return
        if not left:
            return
        lock = os.open(place, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            for each in left:
                shutil.rmtree(each, ignore_errors=True)
        except OSError:  # in use
            return
        finally:
            os.close(lock)


def new_file(path: Path) -> BinaryIO:
    """For its owner's eyes alone; the owner of its folder makes it."""
    with as_owner(path.parent):
        return open(path, "xb", opener=_private)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


@functools.cache
def _groups(user: int, group: int) -> list[int]:
    """All of the user's, as a service has them: a key may be for `ssl-cert` alone."""
    try:
        return os.getgrouplist(pwd.getpwuid(user).pw_name, group)
    except KeyError:
        return [group]


def _is_misleading(folder: Path) -> bool:
    return os.geteuid() == 0 != _owner(folder)[0]


def _owner(path: Path) -> tuple[int, int]:
    """User and group of the first folder or link on the way to `path` that is not root's: from there on it leads where they like. Links of
    root's are followed, as the kernel does: what they lead to may be in another's folder."""
    at, ahead, links = Path("/"), [*reversed(path.absolute().parts)], 0
    while ahead and links < MAX_LINKS:
        each = at / ahead.pop()
        try:
            found = each.lstat()
            if found.st_uid != 0:
                return found.st_uid, found.st_gid
            if stat.S_ISLNK(found.st_mode):
                ahead += reversed(each.readlink().parts)
                links += 1
            else:
                at = each.parent.parent if each.name == ".." else each
        except OSError:
            break
    return 0, 0
