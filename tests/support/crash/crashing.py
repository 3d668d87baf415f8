"""The real daemon, started fast and killed where a test says: `python -m support.crash.crashing` has everything imported already and
forks a child that runs `mcfd run`. No hook for this is in the daemon: what the tests need is put around it here.

    {"do":"start","arguments":[…],"log":PATH,"environ":{…},"crash":PATH,"clock":SECONDS}  →  {"pid":N}
    {"do":"poll","pid":N}                                                                 →  {"code":null|N}

**crash**: while that file exists, it holds `{"commit":N,"when":"before"|"after"}`: SIGKILL at the N-th commit that writes something from
when the daemon first saw the file, with everything written and not committed, or committed and nobody told. The file is
removed first, so that the next start lives.

**clock**: unless it is null, the box's clock is wrong by so many seconds, or by those in the file `PATH.clock` once there is one.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

TESTS = Path(__file__).parents[2]
POLL_SECONDS = 0.002


class Nursery:
    """The test's side. Safe to use from several threads."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "support.crash.crashing"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": str(TESTS)},
        )
        self._turn = threading.Lock()

    def order(self, do: str, **fields: Any) -> dict[str, Any]:
        assert self._process.stdin
        assert self._process.stdout
        with self._turn:
            self._process.stdin.write(json.dumps({"do": do, **fields}) + "\n")
            self._process.stdin.flush()
            answer: dict[str, Any] = json.loads(self._process.stdout.readline())
            return answer

    def launch(
        self, arguments: list[str], log: Path, environ: Mapping[str, str], *, crash: Path, clock: float | None = None
    ) -> Child:
        fields = {"arguments": arguments, "log": str(log), "environ": dict(environ), "crash": str(crash)}
        return Child(self, self.order("start", clock=clock, **fields)["pid"])

    def close(self) -> None:
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.close()
        self._process.wait(timeout=10)
        self._process.stdout.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Child:
    """As much of `subprocess.Popen` as a shop uses."""

    def __init__(self, nursery: Nursery, pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self._nursery = nursery

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def poll(self) -> int | None:
        if self.returncode is None:
            self.returncode = self._nursery.order("poll", pid=self.pid)["code"]
        return self.returncode

    def wait(self, timeout: float) -> int:
        deadline = time.monotonic() + timeout
        while (code := self.poll()) is None:
            if time.monotonic() > deadline:
                raise subprocess.TimeoutExpired("mcfd", timeout)
            time.sleep(POLL_SECONDS)
        return code


# -- the nursery's own side -----------------------------------------------------------------------------------------------


def serve() -> None:
    import encodings.idna  # noqa: F401, PLC0415  everything that a start would spend its time on

    from litestar import Litestar, get  # noqa: PLC0415

    import daemon.cli.commands.box.run  # noqa: F401, PLC0415

    Litestar(
        [get("/")(_nothing)], openapi_config=None, logging_config=None
    )  # imports what is installed, at the first one
    gc.freeze()
    for line in sys.stdin:
        order = json.loads(line)
        answer = start(order) if order["do"] == "start" else poll(order["pid"])
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


async def _nothing() -> None: ...


def start(order: dict[str, Any]) -> dict[str, Any]:
    pid = os.fork()
    if pid == 0:
        become_daemon(order)
    return {"pid": pid}


def poll(pid: int) -> dict[str, Any]:
    with suppress(ChildProcessError):
        ended, status = os.waitpid(pid, os.WNOHANG)
        return {"code": os.waitstatus_to_exitcode(status) if ended else None}
    return {"code": None}


def become_daemon(order: dict[str, Any]) -> None:
    log = os.open(order["log"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.environ.update(order["environ"])
    sys.argv = ["mcfd", *order["arguments"]]
    crash = Path(order["crash"])
    arm_commits(crash)
    if order["clock"] is not None:
        shift_clock(order["clock"], crash.with_name(crash.name + ".clock"))
    from daemon.cli import main  # noqa: PLC0415

    code = 70
    try:
        code = main()
    except BaseException:  # noqa: BLE001  the child must not come back into the loop above
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def arm_commits(orders: Path) -> None:
    """Around the writer's transactions."""
    from daemon.store.sqlite import writer  # noqa: PLC0415

    real = writer._transact
    count = 0

    def strike(when: str) -> None:
        nonlocal count
        try:
            order = json.loads(orders.read_text())
        except FileNotFoundError:
            count = 0
            return
        count += when == "before"
        if (count, when) == (order["commit"], order["when"]):
            orders.unlink()
            os.kill(os.getpid(), signal.SIGKILL)

    def transact(jobs: list[Any], connection: sqlite3.Connection) -> tuple[list[Any], bool]:
        begun = connection.total_changes

        def last(connection: sqlite3.Connection) -> None:
            if connection.total_changes != begun:
                strike("before")

        outcomes, wrote = real([*jobs, last], connection)
        if wrote:
            strike("after")
        return outcomes[:-1], wrote

    writer._transact = transact


def shift_clock(seconds: float, orders: Path) -> None:
    """`time.time_ns` as the daemon sees it, with nobody to vouch for it; the monotonic clock stays what it is."""
    from daemon.app.upkeep import box_clock  # noqa: PLC0415

    async def nobody() -> bool:
        return False

    box_clock.is_synchronised = nobody
    real = time.time_ns

    def time_ns() -> int:
        shift = seconds
        with suppress(FileNotFoundError):
            shift = float(orders.read_text())
        return real() + int(shift * 1e9)

    time.time_ns = time_ns


if __name__ == "__main__":
    serve()
