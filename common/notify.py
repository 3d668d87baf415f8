"""Messages of a `Type=notify` service to systemd (sd_notify(3)); none without NOTIFY_SOCKET."""

import asyncio
import atexit
import os
import socket
import time

_channel: socket.socket | None = None
"""Stays open: a watchdog message must not need a new descriptor when they have run out."""


def _send(state: str) -> None:
    global _channel  # noqa: PLW0603  one for the process
    address = os.environ.get("NOTIFY_SOCKET")
    if not address:
        return
    if address.startswith("@"):
        address = f"\0{address[1:]}"  # Linux's abstract namespace
    try:
        if _channel is None:
            _channel = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC)
            atexit.register(_channel.close)
            _channel.setblocking(False)  # the event loop calls this
        _channel.sendto(state.encode(), address)
    except OSError:
        # An unreachable manager must not stop certification; its watchdog restarts the service.
        return


def has_manager() -> bool:
    """Whether a service manager started this process and listens."""
    return bool(os.environ.get("NOTIFY_SOCKET"))


def ready() -> None:
    _send("READY=1")


def still_starting(seconds: float) -> None:
    """Extends the start's time limit to `seconds` from now; repeat it before they are over."""
    _send(f"EXTEND_TIMEOUT_USEC={round(seconds * 1_000_000)}")


def reloading() -> None:
    """Until the next `ready`. systemd 253 and newer needs the time with it."""
    _send(f"RELOADING=1\nMONOTONIC_USEC={time.monotonic_ns() // 1000}")


def watchdog() -> None:
    _send("WATCHDOG=1")


async def run_watchdog() -> None:
    """Runs for ever; returns at once if the manager does not watch."""
    while (every := watchdog_interval()) is not None:
        watchdog()
        await asyncio.sleep(every)


def stopping() -> None:
    _send("STOPPING=1")


def status(text: str) -> None:
    """One line for `systemctl status`; line breaks become spaces, since they would begin another variable."""
    _send(f"STATUS={' '.join(text.splitlines())}")


def watchdog_interval() -> float | None:
    """Seconds between two calls of `watchdog`: half of the manager's limit; None if it does not watch this process."""
    allowed = os.environ.get("WATCHDOG_USEC", "")
    if not allowed.isdecimal() or int(allowed) == 0:
        return None
    if os.environ.get("WATCHDOG_PID", str(os.getpid())) != str(os.getpid()):
        return None
    return int(allowed) / 2_000_000
