"""What a command does as root with files that are not root's, as Python's audit events tell it: each could be led elsewhere by a link.

`watch` is called in the process of the command before its `main`. SQLite is seen when it is asked to open a ledger; libraries in C that
open files by themselves are not, nor is who only looks which names there are.
"""

import os
import stat
import sys
from pathlib import Path
from types import FrameType
from typing import Any

PATHS = {
    "open": (0,),
    "os.chmod": (0,),
    "os.chown": (0,),
    "os.link": (0, 1),
    "os.mkdir": (0,),
    "os.remove": (0,),
    "os.rename": (0, 1),
    "os.rmdir": (0,),
    "os.symlink": (1,),
    "os.truncate": (0,),
    "os.utime": (0,),
    "sqlite3.connect": (0,),
}


def watch(expected: str) -> None:
    """Writes a line to the file `expected` for each such event."""
    log = os.open(expected, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
    busy = False

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal busy
        places = PATHS.get(event)
        if places is None or busy or os.geteuid() != 0:
            return
        busy = True
        try:
            for place in places:
                path = arguments[place]
                if isinstance(path, str | bytes | os.PathLike) and (name := os.fsdecode(path)) and is_misleading(name):
                    os.write(log, f"{event} {name} {_who(sys._getframe(1))}\n".encode())
        finally:
            busy = False

    sys.addaudithook(hook)


def is_misleading(name: str) -> bool:
    """Whether somebody who is not root may decide where that leads: a folder or a link on the way is theirs, or the end of it is."""
    path = Path(name).absolute()
    for each in reversed((path, *path.parents)):
        try:
            found = each.lstat()
        except OSError:
            return False
        if found.st_uid != 0 and not stat.S_ISCHR(found.st_mode):
            return True
    return False


def _who(frame: FrameType | None) -> list[str]:
    """Where in our own code that was, innermost first."""
    found = []
    while frame is not None:
        if "/daemon/" in frame.f_code.co_filename:
            found.append(f"{Path(frame.f_code.co_filename).name} {frame.f_code.co_name}")
        frame = frame.f_back
    return found
