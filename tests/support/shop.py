"""A shop for tests: simulated machines and the daemon as real processes, the till's side of HTTP, and what to compare.

with Shop(tmp_path) as shop:
    shop.start()
    answer = shop.certify(invoice("F-1"))
"""

import asyncio
import inspect
import json
import os
import signal
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from datetime import UTC
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self, TypeVar

import httpx
from support.nursery import First, pause, warm
from support.ports import free_port
from support.simulator.control import ordered

from daemon.core.ledger.attempt import Mode
from daemon.ledger_access import change
from daemon.operations import CreateKey, Operation
from daemon.settings import load
from daemon.store.store import Store

T = TypeVar("T")

NIM = "EL02000015-1"
IFU = "00084440Y"
PATIENCE = 60.0
COMMAND_SECONDS = 60.0
BIN = Path(sys.executable).parent
PLAIN = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""For a client that talks without TLS: httpx would read all authorities of this machine for each, which takes 20 ms of a processor."""
INSTALLED: tuple[str, ...] = (str(BIN / "mcfd"),)


def wait_for(condition: Callable[[], Any], what: str = "the condition", patience: float = PATIENCE) -> Any:
    """What `condition` gives once it is true. Asked for every 10 ms at first, then the less often the longer it takes: on a busy box the
    asking is what keeps it busy."""
    began = time.monotonic()
    while True:
        value = condition()
        if value:
            return value
        waited = time.monotonic() - began
        if waited > patience:
            raise AssertionError(f"{what} did not come true within {patience} s")
        time.sleep(pause(0.01, waited))


def invoice(number: str, *prices: int, **changes: Any) -> dict[str, Any]:
    """A sale of one item per price (default one of 15 000 F), paid in cash."""
    prices = prices or (15000,)
    items = [
        {"name": f"Article {at}", "taxGroup": "B", "unitPrice": price, "quantity": 1} for at, price in enumerate(prices)
    ]
    body = {
        "invoiceNumber": number,
        "invoiceType": "FV",
        "items": items,
        "payments": [{"method": "E", "amount": sum(prices)}],
    }
    return {**body, **changes}


class Process(Protocol):
    """What a test needs of a process."""

    pid: int
    returncode: int | None

    def send_signal(self, number: int, /) -> None: ...
    def poll(self) -> int | None: ...
    def wait(self, timeout: float) -> int: ...


def start_program(
    name: str, arguments: list[str], log_file: Path, environ: Mapping[str, str], first: First | None = None
) -> Process:
    """One of ours, its output appended to that file: from the nursery where there is one, else as it is installed. Only a nursery knows of `first`."""
    if nursery := warm(name):
        return nursery.start(name, arguments, environ, stdout=log_file, stderr=log_file, first=first)
    assert first is None
    with log_file.open("ab") as log:
        return subprocess.Popen([str(BIN / name), *arguments], stderr=log, stdout=log, env=environ)


def run_program(
    name: str,
    arguments: list[str],
    environ: Mapping[str, str],
    *,
    stdin: str | None = None,
    first: First | None = None,
) -> subprocess.CompletedProcess[str]:
    """One of ours to its end, in the same way; only a nursery knows of `first`."""
    if nursery := warm(name):
        return nursery.run(name, arguments, environ, stdin=stdin, timeout=COMMAND_SECONDS, first=first)
    assert first is None
    return subprocess.run(
        [str(BIN / name), *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=COMMAND_SECONDS,
        env=environ,
        input=stdin or "",
    )


class Machine:
    """`mcf-simulator` as a process, and its control socket. FiscalCounters and last invoice survive `kill` and `start`, unless
    `lasting` is false: then its memory makes no fsyncs beside those of the daemon. What it says is in `log`."""

    def __init__(self, folder: Path, nim: str = NIM, ifu: str = IFU, *options: str, lasting: bool = True) -> None:
        self.nim = nim
        self.link = folder / f"machine-{nim}"
        self._control = folder / f"control-{nim}"
        self.log = folder / f"machine-{nim}.log"
        self._arguments = [
            *("--nim", nim, "--ifu", ifu, "--link", str(self.link)),
            *(("--state", str(folder / f"state-{nim}.json")) if lasting else ()),
            *("--control", str(self._control), "--baud", "0"),
            *options,
        ]
        self._process: Process | None = None

    def start(self, *options: str) -> Self:
        self.log.write_text("")
        self._process = start_program("mcf-simulator", [*self._arguments, *options], self.log, os.environ)
        wait_for(self._has_spoken, "the simulator's start")
        assert self.log.read_text().startswith("ready"), self.log.read_text()
        return self

    def _has_spoken(self) -> bool:
        assert self._process
        return self.log.read_text().endswith("\n") or self._process.poll() is not None

    def stop(self, number: int = signal.SIGTERM) -> None:
        if self._process is not None:
            self._process.send_signal(number)
            self._process.wait(timeout=PATIENCE)
            self._process = None

    @property
    def pid(self) -> int:
        assert self._process
        return self._process.pid

    @property
    def is_running(self) -> bool:
        return self._process is not None

    def kill(self) -> None:
        """As pulled out: the port is gone, before another machine's gets its number."""
        self.link.unlink(missing_ok=True)
        self.stop(signal.SIGKILL)

    def order(self, do: str, **fields: Any) -> dict[str, Any]:
        """One order and its answer (docs/simulator.md)."""
        return ordered(self._control, do, **fields)

    def certified(self, since: int = 0) -> list[dict[str, Any]]:
        """What this process of the machine has certified, oldest first."""
        log: list[dict[str, Any]] = self.order("snapshot", since=since)["log"]
        return log

    @property
    def counters(self) -> tuple[int, int, int]:
        state = self.order("snapshot", log=False)["state"]
        return state["tc"], state["fvc"], state["frc"]

    def is_stopped(self) -> bool:
        """Whether it stands at a `pause-at` point."""
        return bool(self.order("snapshot", log=False)["held"])


class Shop:
    """`config` is merged into the written configuration, section by section, `per_machine` into every `[[machine]]`;
    `environ` goes to the daemon, `first` is done in its process before it becomes one."""

    def __init__(
        self,
        folder: Path,
        *,
        machines: tuple[Machine, ...] | None = None,
        config: Mapping[str, Mapping[str, Any]] | None = None,
        environ: Mapping[str, str] | None = None,
        per_machine: Mapping[str, Any] | None = None,
        first: First | None = None,
    ) -> None:
        self.folder = folder
        self.machines = (Machine(folder),) if machines is None else machines
        self.config_file = folder / "mcfd.toml"
        self.ledger = folder / "mcfd.sqlite3"
        self.log_file = folder / "mcfd.log"
        self.environ = {**os.environ, **(environ or {})}
        self.command = INSTALLED
        self.port = free_port()
        self._config = config or {}
        self._per_machine = per_machine or {}
        self.more_config = ""
        """Further sections, as text."""
        self.first_act = first
        self.options: tuple[str, ...] = ()
        """More of the daemon's command line."""
        self._process: Process | None = None
        self._keys: dict[tuple[str, Mode], str] = {}
        self.http = httpx.Client(base_url=f"http://127.0.0.1:{self.port}", timeout=60, verify=PLAIN)

    def use_https(self) -> ssl.SSLContext:
        """Makes the box's own authority (`tls = "internal"`); call it before the start. Returns what trusts it alone."""
        self._write_config()
        authority = self.folder / "authority.pem"
        self.mcfd("tls", "init", check=True)
        self.mcfd("tls", "export-ca", str(authority), check=True)
        trusting = ssl.create_default_context(cafile=authority)
        self.http.close()
        self.http = httpx.Client(base_url=f"https://127.0.0.1:{self.port}", timeout=60, verify=trusting)
        return trusting

    # -- processes ----------------------------------------------------------------------------------------------------

    def start(self, *, ready: bool = True) -> Self:
        for machine in self.machines:
            machine.start()
        self.start_daemon(ready=ready)
        return self

    def start_daemon(self, *, ready: bool = True) -> None:
        self.launch_daemon()
        wait_for(self.is_ready if ready else self._live, "the daemon's start")

    def launch_daemon(self) -> None:
        """The process alone: it may not live until it is ready."""
        self._write_config()
        arguments = ["run", "--config", str(self.config_file), *self.options]
        if self.command == INSTALLED:
            self._process = start_program("mcfd", arguments, self.log_file, self.environ, self.first_act)
            return
        with self.log_file.open("ab") as log:
            self._process = subprocess.Popen([*self.command, *arguments], stderr=log, stdout=log, env=self.environ)

    def stop_daemon(self, number: int = signal.SIGTERM) -> int:
        """The exit code; negative for a signal."""
        assert self._process is not None
        self._process.send_signal(number)
        code = self._process.wait(timeout=PATIENCE)
        self._process = None
        return code

    def kill_daemon(self) -> None:
        self.stop_daemon(signal.SIGKILL)

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def pids(self) -> list[int]:
        """The daemon's, and of the machines that are there."""
        return [self.pid, *(machine.pid for machine in self.machines if machine.is_running)]

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def wait_for_exit(self) -> int:
        assert self._process is not None
        code = self._process.wait(timeout=PATIENCE)
        self._process = None
        return code

    def mcfd(self, *arguments: str, check: bool = False) -> subprocess.CompletedProcess[str]:
        """One command of the command line on this shop's configuration."""
        environ = {**self.environ, "LC_ALL": "en_US.UTF-8"}
        done = run_program("mcfd", [*arguments, "--config", str(self.config_file)], environ)
        if check:
            done.check_returncode()
        return done

    def events(self, name: str) -> list[dict[str, Any]]:
        """Log lines of that event so far."""
        lines = (json.loads(line) for line in self.log_file.read_text().splitlines() if line.startswith("{"))
        return [line for line in lines if line["event"] == name]

    # -- the till -----------------------------------------------------------------------------------------------------

    def key(self, mode: Mode = "live", nim: str = NIM) -> str:
        """A key of that NIM and mode, made on first use."""
        if (nim, mode) not in self._keys:
            self._keys[nim, mode] = self.change(CreateKey(nim, mode, "till"))
        return self._keys[nim, mode]

    def use_key(self, key: str, mode: Mode = "live", nim: str = NIM) -> None:
        """That one from now on."""
        self._keys[nim, mode] = key

    def headers(self, mode: Mode = "live", nim: str = NIM, key: str = "") -> dict[str, str]:
        headers = {"Authorization": f"Bearer {self.key(mode, nim)}"}
        return {**headers, "Idempotency-Key": key} if key else headers

    def certify(
        self,
        body: Any,
        *,
        key: str = "",
        mode: Mode = "live",
        nim: str = NIM,
        path: str = "certify",
        headers: Mapping[str, str] | None = None,
        **query: str,
    ) -> httpx.Response:
        """Or any other POST, to `path`."""
        sent = {**self.headers(mode, nim, key), **(headers or {})}
        return self.http.post(f"/v1/mcf/{nim}/{path}", json=body, params=query or None, headers=sent)

    def close_period(self, *, key: str = "", mode: Mode = "live", nim: str = NIM) -> httpx.Response:
        return self.certify({}, key=key, mode=mode, nim=nim, path="reports/z")

    def closed(self) -> dict[str, Any]:
        """The Z of the period that it closes."""
        answer = self.close_period()
        assert answer.status_code == 201, answer.text
        report: dict[str, Any] = answer.json()
        return report

    def get(self, path: str, *, mode: Mode = "live", nim: str = NIM, **query: Any) -> httpx.Response:
        return self.http.get(f"/v1/mcf/{nim}/{path}", params=query, headers=self.headers(mode, nim))

    def x_with(self, count: int, *, mode: Mode = "live", nim: str = NIM) -> dict[str, Any]:
        """The X report once it holds `count` certifications (decision 13)."""

        def look() -> dict[str, Any] | None:
            report: dict[str, Any] = self.get("reports/x", mode=mode, nim=nim).json()
            return report if report["certs_count"] == count else None

        found: dict[str, Any] = wait_for(look, f"an X report of {count} certifications")
        return found

    # -- the ledger ---------------------------------------------------------------------------------------------------

    def change(self, operation: Operation[T]) -> T:
        """As a command does it: by the daemon that runs, or with the ledger's lock."""
        if not self.config_file.exists():
            self._write_config()
        with ThreadPoolExecutor(1) as thread:  # also from a test that has a loop of its own
            return thread.submit(change, load(self.config_file), operation, make=True).result()

    def with_store(self, work: Callable[[Store], Any]) -> Any:
        """What `work` makes of the open ledger, or the coroutine that it makes gives; it is read beside a running daemon."""

        async def run() -> Any:
            async with await Store.open(self.ledger, timezone=UTC, opening="read") as store:
                found = work(store)
                return await found if inspect.isawaitable(found) else found

        with ThreadPoolExecutor(1) as thread:  # also from a test that has a loop of its own
            return thread.submit(asyncio.run, run()).result()

    def verify(self) -> None:
        """`mcfd verify` finds nothing wrong."""
        done = self.mcfd("verify")
        assert done.returncode == 0, done.stdout + done.stderr

    # -- how ----------------------------------------------------------------------------------------------------------

    def _write_config(self) -> None:
        sections: dict[str, dict[str, Any]] = {
            "server": {"port": self.port},
            "storage": {"path": str(self.ledger)},
            "reports": {"aggregation_delay": 0.05},
        }
        for name, values in self._config.items():
            sections[name] = {**sections.get(name, {}), **values}
        text = "".join(section(f"[{name}]", values) for name, values in sections.items())
        for machine in self.machines:
            text += section("[[machine]]", {"nim": machine.nim, "port": str(machine.link), **self._per_machine})
        self.config_file.write_text(text + self.more_config)

    def is_ready(self) -> bool:
        return self._answers("/health/ready")

    def _live(self) -> bool:
        return self._answers("/health/live")

    def _answers(self, path: str) -> bool:
        assert self._process is not None
        if self._process.poll() is not None:
            raise AssertionError(
                f"the daemon ended with {self._process.returncode}:\n{self.log_file.read_text()[-3000:]}"
            )
        with suppress(OSError, httpx.HTTPError):
            at = self.http.base_url
            if at.scheme == "https":
                return self.http.get(path).is_success
            # By hand: it is asked some six times in a start, and what a client does for each takes a tenth of the whole start.
            with socket.create_connection((at.host, at.port), PATIENCE) as query, query.makefile("rb") as result:
                query.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
                return result.readline().startswith(b"HTTP/1.1 200 ")
        return False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        code = None
        if self._process is not None:
            code = self._process.poll()
            self.kill_daemon()
        for machine in self.machines:
            machine.kill()
        self.http.close()
        # A test that lets it end says so with `wait_for_exit`.
        assert code is None, f"the daemon ended by itself, with {code}:\n{self.log_file.read_text()[-3000:]}"
        if error is not None and self.log_file.exists():
            sys.stderr.write(self.log_file.read_text()[-6000:])


@contextmanager
def running_shop(folder: Path, **options: Any) -> Iterator[Shop]:
    with Shop(folder, **options) as shop:
        yield shop.start()


def section(head: str, values: Mapping[str, Any]) -> str:
    """Of a configuration file."""
    return head + "\n" + "".join(f"{key} = {json.dumps(value)}\n" for key, value in values.items()) + "\n"
