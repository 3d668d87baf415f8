"""What systemd wants to hear from a `Type=notify` service (sd_notify(3)); silent where nobody listens."""

from __future__ import annotations

import contextlib
import os
import socket


def tell(state: str) -> None:
    """`READY=1`, `WATCHDOG=1`, `STOPPING=1`."""
    address = os.environ.get("NOTIFY_SOCKET")
    if not address:
        return
    if address.startswith("@"):
        address = f"\0{address[1:]}"
    with (
        contextlib.suppress(OSError),
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as channel,
    ):
        channel.setblocking(False)
        channel.sendto(state.encode(), address)


def watchdog_seconds() -> float | None:
    """Between two calls: half of what the manager allows; None when it watches nobody."""
    allowed = os.environ.get("WATCHDOG_USEC", "")
    return int(allowed) / 2_000_000 if allowed.isdecimal() and int(allowed) else None
