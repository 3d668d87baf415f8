"""The files that keys stand in; what they sign, and how, is `common.wire.signing`'s, the same for every way out."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from common.wire.keys import KEY_BYTES, BadKey, PrivateKey, SharedKey, private_line, signing_key
from daemon.upstream.options import BadOptions, read_file

WRITTEN = 1_764_547_200
"""2025-12-01."""


def read_keys(paths: Sequence[Path]) -> list[SharedKey | PrivateKey]:
    """One key a line; two lines while a key is being replaced: both sign."""
    keys = []
    for path in paths:
        lines = read_file(path, "upstream key").split()
        if not lines:
            raise BadOptions(f"upstream key {path}: empty")
        keys += [parse_key(line, str(path)) for line in lines]
    return keys


def parse_key(line: str, where: str) -> SharedKey | PrivateKey:
    """`where` is what an error names; the key itself is never shown."""
    try:
        return signing_key(line)
    except BadKey as error:
        raise BadOptions(f"upstream key {where}: {error}") from None


def signing_time(now: float, since: int) -> int:
    """Seconds. `since` is when the event was made (ms). A clock that shows a time before this program was written has lost the date: then
    the time of the event is nearer to the truth. Any other clock is taken as it is, since an event may be from a day on which
    it was ahead."""
    return int(now) if now >= WRITTEN else max(WRITTEN, since // 1000)


def generate(path: Path) -> str:
    """Make a key pair, write the private key to `path` (0600, never over an existing file), give back the public one."""
    seed = os.urandom(KEY_BYTES)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="ascii") as file:
        file.write(private_line(seed) + "\n")
        file.flush()
        os.fsync(file.fileno())
    return PrivateKey(seed).public
