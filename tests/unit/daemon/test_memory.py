"""The memory of a daemon that has started: less work for the collector, large pages where there are any, nothing lost."""

import subprocess
import sys

from daemon.memory import HUGE, _large_parts

SETTLED = """
import gc
from daemon import memory
kept = [[number] for number in range(200_000)]
memory.settle()
assert gc.get_freeze_count() > 200_000
assert gc.get_threshold()[0] == memory.GC_THRESHOLD
assert sum(number for (number,) in kept) == 19_999_900_000
rest = [object() for _ in range(1000)]
print("settled")
"""


def test_what_is_there_stays_as_it_is():
    """Everything made before can be read afterwards, on a kernel with large pages and on one without."""
    done = subprocess.run([sys.executable, "-c", SETTLED], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "settled\n"), done.stderr


def test_only_what_fills_a_large_page():
    """Private memory of our own that can be written: no files, no shared memory, no stacks, and nothing beyond its ends."""
    end = 0x7F0000400000 + 123 * 4096
    maps = (
        f"{0x555500001000:x}-{0x555500001000 + 3 * HUGE:x} rw-p 00000000 00:00 0                          [heap]\n"
        f"{0x7F0000000000:x}-{end:x} rw-p 00000000 00:00 0 \n"
        f"{0x7E0000000000:x}-{0x7E0000000000 + HUGE - 4096:x} rw-p 00000000 00:00 0 \n"
        f"{0x7D0000000000:x}-{0x7D0000000000 + 9 * HUGE:x} rw-s 00000000 00:01 7 /dev/shm/wal\n"
        f"{0x7C0000000000:x}-{0x7C0000000000 + 9 * HUGE:x} rw-p 00000000 08:01 42 /usr/lib/libpython.so\n"
        f"{0x7B0000000000:x}-{0x7B0000000000 + 9 * HUGE:x} r-xp 00000000 00:00 0 \n"
        f"{0x7FFC00000000:x}-{0x7FFC00000000 + 9 * HUGE:x} rw-p 00000000 00:00 0                          [stack]\n"
    )
    assert list(_large_parts(maps)) == [(0x555500200000, 2 * HUGE), (0x7F0000000000, 2 * HUGE)]
