"""Atomic writes: a file is written without a name, synced to the disk, then put in its place."""

import contextlib
import errno
import fcntl
import glob
import hashlib
import os
import secrets
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import BinaryIO

LARGEST = 64 * 1024
PIECE = 1024 * 1024
CREDENTIALS = "credentials"
"""Name of the folder whose files a service gets from systemd, as they were at its start (LoadCredential=)."""

PART = ".part"
"""End of the temporary names."""


def write_whole(path: Path, content: bytes, mode: int, *, uid: int = -1, gid: int = -1, is_new: bool = False) -> None:
    """Replaces `path`; after a power cut it has the old content or the new. `uid` and `gid` as for chown; `is_new` as of
    `replacing`."""
    with replacing(path, mode, uid, gid, is_new=is_new) as file:
        file.write(content)


def write_stream(path: Path, source: BinaryIO, mode: int) -> None:
    """The same for a stream of any size, read back; a link or file at `path` is replaced, never followed or written into."""
    with replacing(path, mode, reads_back=True) as file:
        shutil.copyfileobj(source, file)


@contextlib.contextmanager
def replacing(
    path: Path,
    mode: int,
    uid: int = -1,
    gid: int = -1,
    *,
    is_new: bool = False,
    reads_back: bool = False,
    access: Callable[[], AbstractContextManager[None]] = contextlib.nullcontext,
) -> Iterator[BinaryIO]:
    """A file that durably takes the place of `path` once it is written; on an error, or when the process is killed,
    nothing has changed. `is_new`: FileExistsError if there is one already; `reads_back`: OSError if the medium gives
    something else back. `access`: the context in which names in its folder are made and removed."""
    if is_new:
        _require_free(path)
    with access():
        file, temporary = _open_for(path)
    try:
        with file:
            yield file
            file.flush()
            if reads_back:
                _read_back(file)
            with access():
                os.fchmod(file.fileno(), mode)
                if (uid, gid) != (-1, -1):
                    os.fchown(file.fileno(), uid, gid)
                os.fsync(file.fileno())
                if temporary is None:
                    temporary = path if is_new else path.with_name(f".{path.name}.{secrets.token_hex(4)}{PART}")
                    _link(file, temporary)
                elif is_new:
                    _require_free(path)
                if temporary != path:
                    temporary.replace(path)
    except BaseException:
        if temporary not in (None, path):
            with access():
                temporary.unlink(missing_ok=True)
        raise
    with access():
        sync_path(path.parent)


def _read_back(file: BinaryIO) -> None:
    """Compares what was written with what a stick has of it: one that claims more room than it has takes everything."""
    digests = []
    for _ in range(2):
        digest = hashlib.sha256()
        file.seek(0)
        while piece := file.read(PIECE):
            digest.update(piece)
        digests.append(digest.digest())
        drop_from_memory(file.fileno())
    if digests[0] != digests[1]:
        raise OSError(errno.EIO, os.strerror(errno.EIO))


def _require_free(path: Path) -> None:
    if os.path.lexists(path):
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path))


def _open_for(path: Path) -> tuple[BinaryIO, Path | None]:
    """A file in the folder of `path` without a name; where the file system has no such files (vfat), with the temporary
    name that is returned. What killed processes have left under such names is removed."""
    for left in path.parent.glob(f".{glob.escape(path.name)}.????????{PART}"):
        with contextlib.suppress(OSError):
            # Nobody's link: to close one's own database would end SQLite's locks on it.
            found = os.open(left, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
            try:
                fcntl.flock(found, fcntl.LOCK_EX | fcntl.LOCK_NB)
                left.unlink()
            finally:
                os.close(found)
    name = None
    try:
        Path("/proc/self/fd").stat()  # for `_link`
        descriptor = os.open(path.parent, os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, 0o600)
    except OSError:
        descriptor, text = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=PART)
        name = Path(text)
    with contextlib.suppress(OSError):  # of a file system without locks
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    return os.fdopen(descriptor, "w+b"), name


def _link(file: BinaryIO, path: Path) -> None:
    """Gives a file without a name that one. FileExistsError."""
    descriptor = file.fileno()  # also as a folder: without one Python does not follow the link in /proc
    os.link(f"/proc/self/fd/{descriptor}", path, src_dir_fd=descriptor)


def drop_from_memory(descriptor: int) -> None:
    """Syncs the file; what is read of it next is from the medium."""
    os.fsync(descriptor)
    os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)


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
