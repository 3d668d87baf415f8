"""What the daemon's process and HAProxy, its child, use while it is under attack, and how regularly it says that it is well."""

from __future__ import annotations

import contextlib
import itertools
import os
import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

EVERY = 0.05


class Manager:
    """systemd's part: where the daemon sends its beats. `beats` are in seconds of `monotonic`."""

    def __init__(self, address: Path) -> None:
        self.beats: list[float] = []
        self.address = address
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(str(address))
        self._socket.settimeout(0.2)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._listen, name="manager")
        self._thread.start()

    def _listen(self) -> None:
        while not self._over.is_set():
            with contextlib.suppress(TimeoutError):
                if b"WATCHDOG=1" in self._socket.recv(4096):
                    self.beats.append(time.monotonic())

    def longest_gap(self, since: float, until: float) -> float:
        """Seconds without a beat, the one under way at `until` included."""
        heard = [beat for beat in self.beats if since <= beat <= until]
        moments = [since, *heard, until]
        return max(later - earlier for earlier, later in itertools.pairwise(moments))

    def close(self) -> None:
        self._over.set()
        self._thread.join()
        self._socket.close()


@dataclass
class Peak:
    """`resident` in MB, of daemon and HAProxy; `descriptors` as many as the daemon had open at once."""

    resident: float = 0.0
    descriptors: int = 0

    def look(self, pid: int) -> None:
        with contextlib.suppress(OSError):
            children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
            pages = [int(Path(f"/proc/{each}/statm").read_text().split()[1]) for each in (pid, *children)]
            self.resident = max(self.resident, sum(pages) * os.sysconf("SC_PAGE_SIZE") / 1e6)
            self.descriptors = max(self.descriptors, sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir()))


@contextlib.contextmanager
def watched(pid: int) -> Iterator[Peak]:
    """The peaks of that process, looked at every `EVERY` seconds until the end."""
    peak, over = Peak(), threading.Event()

    def watch() -> None:
        while not over.wait(EVERY):
            peak.look(pid)

    peak.look(pid)
    thread = threading.Thread(target=watch, name="watch")
    thread.start()
    try:
        yield peak
    finally:
        over.set()
        thread.join()
