import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from common import notify


@pytest.fixture(params=["path", "abstract"])
def manager(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[socket.socket]:
    """The listening end, as systemd holds it, at a path and in the abstract namespace."""
    abstract = request.param == "abstract"
    name = f"mcfd-notify-{os.getpid()}" if abstract else str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
        listener.bind(f"\0{name}" if abstract else name)
        listener.settimeout(60)
        monkeypatch.setenv("NOTIFY_SOCKET", f"@{name}" if abstract else name)
        yield listener


def test_each_call_is_one_datagram_of_the_protocol(manager: socket.socket) -> None:
    """systemd reads READY, WATCHDOG, STATUS and STOPPING, each in a message of its own. A machine's text with a line break in it stays one status."""
    notify.ready()
    notify.watchdog()
    notify.status("E:04\nREADY=1\r\nMAINPID=1")
    notify.stopping()
    expected = [b"READY=1", b"WATCHDOG=1", b"STATUS=E:04 READY=1 MAINPID=1", b"STOPPING=1"]
    assert [manager.recv(4096) for _ in expected] == expected


@pytest.mark.parametrize("address", [None, "", "/nowhere/notify", "@mcfd-nobody-listens"])
def test_without_a_manager_nothing_happens(address: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Started by hand, or under a manager that has gone, the daemon just runs."""
    if address is None:
        monkeypatch.delenv("NOTIFY_SOCKET", raising=False)
    else:
        monkeypatch.setenv("NOTIFY_SOCKET", address)
    notify.ready()
    notify.watchdog()


@pytest.mark.parametrize(
    ("usec", "pid", "expected"),
    [
        ("30000000", None, 15.0),
        ("30000000", "own", 15.0),
        ("30000000", "1", None),
        (None, None, None),
        ("0", None, None),
        ("soon", None, None),
    ],
)
def test_the_interval_is_half_of_what_is_allowed(
    usec: str | None, pid: str | None, expected: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """WATCHDOG_USEC counts only when it is a number above 0 and meant for this process."""
    for name, value in (("WATCHDOG_USEC", usec), ("WATCHDOG_PID", str(os.getpid()) if pid == "own" else pid)):
        if value is None:
            monkeypatch.delenv(name, raising=False)
        else:
            monkeypatch.setenv(name, value)
    assert notify.watchdog_interval() == expected
