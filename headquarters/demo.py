"""`make demo-hq`: a nats-server, three shops with their machines and daemons, headquarters and its page; one shop is cut off.

Everything is a process of its own and lives in `.demo-hq/`, which each run starts afresh."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import secrets
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx

from common.wire.nats_client import NatsError
from headquarters.demo_line import CutLine
from headquarters.intake.connection import NatsOptions, connected
from headquarters.intake.stream import call

BIN = Path(sys.executable).parent
STATE = Path(".demo-hq")
PORT = 8490
PATIENCE = 90.0
PLAIN = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""For HTTP without TLS: the authorities of the world are not read."""
SHOPS = (
    ("EL02000015-1", "Ouaga Centre", "Centre"),
    ("EL02000016-1", "Koudougou", "Centre"),
    ("EL02000017-1", "Bobo", "Ouest"),
)
IFU = "00084440Y"

HQ_CONFIG = """\
[server]
port = {port}
[storage]
url = "sqlite:///{state}/hq.sqlite3"
[nats]
url = "nats://127.0.0.1:{nats}"
[findings]
look_every = 0.5
silent_after = 5
tell_after = 5
[reports]
timezone = "UTC"
"""
SHOP_CONFIG = """\
[server]
port = {port}
[storage]
path = "{state}/mcfd.sqlite3"
[reports]
aggregation_delay = 0.2
[upstream]
kind = "nats"
url = "nats://127.0.0.1:{line}"
key_file = "{state}/upstream.key"
retry_max = 1.0
box = "{label}"
[[machine]]
nim = "{nim}"
port = "{state}/machine"
isf = "1"
operator_id = "1"
operator_name = "Caisse 1"
"""
NATS_CONFIG = 'listen: "127.0.0.1:{port}"\njetstream {{ store_dir: "{state}/nats" }}\n'


class HqDemoError(Exception):
    pass


def echo(text: str) -> None:
    sys.stdout.write(f"demo-hq: {text}\n")
    sys.stdout.flush()


def main() -> int:
    parser = argparse.ArgumentParser(description="headquarters with three shops")
    parser.add_argument("--once", action="store_true", help="stop after printing")
    once = parser.parse_args().once
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    signal.signal(signal.SIGINT, signal.default_int_handler)
    shutil.rmtree(STATE, ignore_errors=True)
    STATE.mkdir()
    try:
        with contextlib.ExitStack() as stack:
            _show(stack)
            if not once:
                echo(f"running until Ctrl-C; messages are in {STATE}/*.log")
                threading.Event().wait()
    except KeyboardInterrupt:
        echo("stopped")
    except HqDemoError as error:
        echo(str(error))
        return 1
    return 0


def _show(stack: contextlib.ExitStack) -> None:
    echo("starting nats-server and headquarters …")
    nats_port = _free_port()
    _start_nats(stack, nats_port)
    asyncio.run(_make_stream(nats_port))
    port = PORT if _is_free(PORT) else _free_port()
    hq = Headquarters(stack, port, nats_port)
    line = stack.enter_context(CutLine(nats_port))
    shops = []
    for nim, label, region in SHOPS:
        echo(f"starting {label}: a simulated machine and its daemon …")
        shop = DemoShop(stack, nim, label, line.port if label == "Bobo" else nats_port)
        hq.add(shop, region)
        shops.append(shop)
    for shop in shops:
        shop.open()
    echo("a day of sales …")
    for number, shop in enumerate(shops, 1):
        shop.sell(number * 2)
    echo("Bobo is cut off: its line to headquarters is dead. The shops close their day.")
    line.cut()
    for shop in shops:
        shop.close_day()
    hq.closing_was_two_hours_ago()
    _wait("two closures", lambda: len(hq.closures()) == len(shops) - 1)
    echo(
        f"headquarters holds {len(hq.closures())} closures, of {', '.join(sorted(str(row['nim']) for row in hq.closures()))}"
    )
    # On a busy box another's closure may be looked for before it has come, too.
    bobo = next(nim for nim, label, _ in SHOPS if label == "Bobo")
    _wait("the finding", lambda: any((found["kind"], found["nim"]) == ("late", bobo) for found in hq.findings()))
    for found in hq.findings():
        echo(f"finding: {found['kind']} – {found['nim']} – {found['detail']}")
    echo("Bobo's line is there again.")
    line.mend()
    _wait("Bobo's closure", lambda: len(hq.closures()) == len(shops))
    _wait("the end of the finding", lambda: not hq.findings())
    echo("the closure came by itself, and the finding is solved:")
    for row in hq.closures():
        echo(f"  {row['nim']}  Z {row['z_number']}  {row['certs_count']} invoices  {row['total_ttc']} XOF")
    echo(f"the page: {hq.base}/ui/  name: siege  password: {hq.password}")


class Headquarters:
    def __init__(self, stack: contextlib.ExitStack, port: int, nats_port: int) -> None:
        self._config = STATE / "hq.toml"
        self._config.write_text(HQ_CONFIG.format(port=port, state=STATE.resolve(), nats=nats_port))
        self.base = f"http://127.0.0.1:{port}"
        self.password = secrets.token_urlsafe(9)
        _run(
            "mcfd-hq", "users", "create", "siege", "--role", "admin", "--password-stdin", *self._at, stdin=self.password
        )
        key = _run("mcfd-hq", "keys", "create", "--role", "reader", *self._at)
        self._client = stack.enter_context(
            httpx.Client(
                base_url=self.base,
                headers={"Authorization": f"Bearer {key}"},
                trust_env=False,
                timeout=10,
                verify=PLAIN,
            )
        )
        _started(stack, "hq", "mcfd-hq", "run", *self._at)
        _wait("headquarters", self._is_ready)
        echo(f"the page: {self.base}/ui/  name: siege  password: {self.password}")

    @property
    def _at(self) -> tuple[str, str]:
        return "--config", str(self._config)

    def _is_ready(self) -> bool:
        try:
            return self._client.get("/health/ready").is_success
        except httpx.HTTPError:
            return False

    def add(self, shop: DemoShop, region: str) -> None:
        arguments = ("--public-key", shop.public_key, "--label", shop.label, "--region", region)
        _run("mcfd-hq", "boxes", "add", shop.nim, *arguments, *self._at)

    def closing_was_two_hours_ago(self) -> None:
        """The demo has no evening to wait for: each shop should have closed by then."""
        at = datetime.now(UTC) - timedelta(hours=2)
        for nim, _, _ in SHOPS:
            _run("mcfd-hq", "boxes", "closing", nim, f"{at:%H:%M}", *self._at)

    def closures(self) -> list[dict[str, object]]:
        found: list[dict[str, object]] = self._client.get("/v1/closures").raise_for_status().json()["closures"]
        return found

    def findings(self) -> list[dict[str, object]]:
        found: list[dict[str, object]] = (
            self._client.get("/v1/findings?open=true").raise_for_status().json()["findings"]
        )
        return found


class DemoShop:
    def __init__(self, stack: contextlib.ExitStack, nim: str, label: str, line: int) -> None:
        self.nim, self.label = nim, label
        self._stack = stack
        self._state = STATE / nim
        self._state.mkdir()
        self._port = _free_port()
        self.public_key = _run("mcfd", "upstream", "keygen", str(self._state / "upstream.key")).split()[-1]
        link = self._state / "machine"
        simulator = ("--nim", nim, "--ifu", IFU, "--link", str(link), "--state", str(self._state / "machine.json"))
        _started(stack, f"{nim}-machine", "mcf-simulator", *simulator)
        _wait("the machine", link.exists)
        self._config = self._state / "mcfd.toml"
        text = SHOP_CONFIG.format(port=self._port, state=self._state.resolve(), nim=nim, line=line, label=label)
        self._config.write_text(text)
        self._client: httpx.Client | None = None

    def open(self) -> None:
        key = _run("mcfd", "keys", "create", "--nim", self.nim, "--config", str(self._config))
        _started(self._stack, f"{self.nim}-mcfd", "mcfd", "run", "--config", str(self._config))
        self._client = self._stack.enter_context(
            httpx.Client(
                base_url=f"http://127.0.0.1:{self._port}",
                headers={"Authorization": f"Bearer {key}"},
                timeout=40,
                verify=PLAIN,
            )
        )
        _wait(f"{self.label}'s daemon", self._is_ready)

    def _is_ready(self) -> bool:
        try:
            return self._client is not None and self._client.get("/health/ready").is_success
        except httpx.HTTPError:
            return False

    def sell(self, count: int) -> None:
        for number in range(1, count + 1):
            amount = 1500 * number
            item = {"name": "Riz", "taxGroup": "B", "unitPrice": amount, "quantity": 1}
            payments = [{"method": "E", "amount": amount}]
            self._post(
                "certify", {"invoiceNumber": f"F-{number}", "invoiceType": "FV", "items": [item], "payments": payments}
            )

    def close_day(self) -> None:
        self._post("reports/z", {})

    def _post(self, path: str, body: dict[str, object]) -> None:
        if self._client is None:
            raise HqDemoError(f"{self.label} is not open")
        answer = self._client.post(f"/v1/mcf/{self.nim}/{path}", json=body)
        if answer.is_error:
            raise HqDemoError(f"{self.label}: {path} answered {answer.status_code}: {answer.text}")


def _start_nats(stack: contextlib.ExitStack, port: int) -> None:
    config = STATE / "nats.conf"
    config.write_text(NATS_CONFIG.format(port=port, state=STATE.resolve()))
    _started(stack, "nats", "nats-server", "-c", str(config))


async def _make_stream(port: int) -> None:
    """The stream as config/nats has it for one server; headquarters makes its consumer itself."""
    config = json.loads((Path(__file__).parents[1] / "config" / "nats" / "closures-one.json").read_text())
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            client = await connected(NatsOptions(url=f"nats://127.0.0.1:{port}"))
            try:
                await call(client, "STREAM.CREATE.CLOSURES", config)
            finally:
                await client.close()
        except (OSError, NatsError):
            if time.monotonic() > deadline:
                raise HqDemoError(f"nats-server did not start; see {STATE}/nats.log") from None
            await asyncio.sleep(0.05)
        else:
            return


def _run(name: str, *arguments: str, stdin: str = "") -> str:
    command = [str(BIN / name), *arguments]
    made = subprocess.run(command, check=False, capture_output=True, text=True, input=stdin)  # noqa: S603  # our own command
    if made.returncode:
        raise HqDemoError(f"{name} {arguments[0]}: {made.stderr.strip()}")
    return made.stdout.strip()


def _started(stack: contextlib.ExitStack, log: str, name: str, *arguments: str) -> None:
    stack.enter_context(_process(log, str(BIN / name), *arguments))


@contextlib.contextmanager
def _process(log: str, *command: str) -> Iterator[None]:
    """With its messages in `.demo-hq/LOG.log`, stopped at the end whatever happens."""
    with (STATE / f"{log}.log").open("w") as messages:
        process = subprocess.Popen(command, stdout=messages, stderr=messages, start_new_session=True)  # noqa: S603  # our own commands
        try:
            yield
        finally:
            process.terminate()
            try:
                process.wait(timeout=15)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _wait(what: str, is_there: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not is_there():
        if time.monotonic() > deadline:
            raise HqDemoError(f"{what} did not come within {PATIENCE:g} s; see {STATE}/*.log")
        time.sleep(0.1)


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


if __name__ == "__main__":
    sys.exit(main())
