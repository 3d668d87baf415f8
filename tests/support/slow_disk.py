"""The real daemon on a disk whose every fsync is counted, and takes longer if asked.

    python -m support.slow_disk COUNT_FILE MILLISECONDS run --config FILE

COUNT_FILE holds the count as eight bytes, to be read by others while the daemon runs.
"""

import mmap
import struct
import sys
import time
from pathlib import Path

from support.sqlite_vfs import Methods, PatchedVfs, Sync

COUNT = struct.Struct("=q")


class CountingDisk(PatchedVfs):
    """A sync counts, waits and then does what the usual one does."""

    def __init__(self, count_file: Path, delay: float) -> None:
        super().__init__()
        count_file.write_bytes(COUNT.pack(0))
        with count_file.open("r+b") as file:
            self._count = mmap.mmap(file.fileno(), COUNT.size)
        self._delay = delay
        self._syncs = 0

    def install(self) -> None:
        self.register(self.own)

    def patch(self, methods: Methods) -> None:
        sync = Sync(methods.sync)
        methods.sync = self.pointer(Sync(lambda file, flags: self.syncing() or sync(file, flags)))

    def syncing(self) -> int:
        """What SQLite is told of a sync that is not even tried; 0: it is."""
        self._syncs += 1
        COUNT.pack_into(self._count, 0, self._syncs)
        if self._delay:
            time.sleep(self._delay)
        return 0


def read_count(count_file: Path) -> int:
    return COUNT.unpack(count_file.read_bytes())[0]


def main() -> None:
    count_file, milliseconds, *arguments = sys.argv[1:]
    disk = CountingDisk(Path(count_file), float(milliseconds) / 1000)
    disk.install()
    from daemon.cli import main as mcfd  # noqa: PLC0415  # after its disk

    sys.argv = ["mcfd", *arguments]
    mcfd()


if __name__ == "__main__":
    main()
