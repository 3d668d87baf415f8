"""`make demo`: the simulated machine on a pseudo-terminal, the daemon on it, one invoice certified over HTTP.

Everything is a process of its own and lives in `.demo/`, which each run starts afresh.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx

NIM = "EL02000015-1"
IFU = "00084440Y"
PORT = 8480
STATE = Path(".demo")
PATIENCE = 30.0
PLAIN = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""For HTTP without TLS: the authorities of the world are not read."""

CONFIG = """\
[server]
host = "127.0.0.1"
port = {port}

[storage]
path = "{state}/mcfd.sqlite3"

[reports]
aggregation_delay = 0.5

[[machine]]
nim = "{nim}"
port = "{state}/machine"
isf = "1"
operator_id = "1"
operator_name = "Caisse 1"
"""

INVOICE = {
    "invoiceNumber": "FV-2026-0001",
    "invoiceType": "FV",
    "operatorName": "Awa",
    "items": [
        {"name": "Riz 25 kg", "taxGroup": "B", "unitPrice": 15000, "quantity": 1},
        {"name": "Pain", "taxGroup": "A", "unitPrice": 150, "quantity": 4},
    ],
    "payments": [{"method": "E", "amount": 15600}],
}


def main() -> int:
    parser = argparse.ArgumentParser(description="mcfd on a simulated machine")
    parser.add_argument("--once", action="store_true", help="stop after printing")
    once = parser.parse_args().once
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    # A script that starts this in the background has SIGINT ignored; daemon and simulator hear it all the same, and so does this.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    shutil.rmtree(STATE, ignore_errors=True)
    STATE.mkdir()
    try:
        with _machine() as machine, _daemon(_free_port()) as (daemon, base):
            _show(base)
            if not once:
                _stay(machine, daemon)
    except KeyboardInterrupt:
        show("stopped")
    except DemoError as error:
        show(str(error))
        return 1
    return 0


class DemoError(Exception):
    pass


def show(text: str) -> None:
    sys.stdout.write(f"demo: {text}\n")
    sys.stdout.flush()


def _free_port() -> int:
    """8480, or, when something else listens there, a free one; says which."""
    for port in (PORT, 0):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            with contextlib.suppress(OSError):
                probe.bind(("127.0.0.1", port))
                found = int(probe.getsockname()[1])
                if found != PORT:
                    show(f"port {PORT} is taken; using {found}")
                return found
    raise DemoError("no free port on 127.0.0.1")


@contextlib.contextmanager
def _process(name: str, *args: str) -> Iterator[subprocess.Popen[str]]:
    """A process of ours with its messages in `.demo/NAME.log`, stopped at the end whatever happens."""
    command = str(Path(sys.executable).parent / args[0])
    with (STATE / f"{name}.log").open("w") as messages:
        process = subprocess.Popen(  # noqa: S603  our own commands
            [command, *args[1:]], stdout=subprocess.PIPE, stderr=messages, text=True, start_new_session=True
        )
        try:
            yield process
        finally:
            process.terminate()
            try:
                process.wait(timeout=15)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            if process.stdout:
                process.stdout.close()


@contextlib.contextmanager
def _machine() -> Iterator[subprocess.Popen[str]]:
    show("starting the simulated fiscal machine …")
    link = STATE / "machine"
    arguments = ("--nim", NIM, "--ifu", IFU, "--link", str(link), "--state", str(STATE / "machine.json"))
    with _process("machine", "mcf-simulator", *arguments) as process:
        line = process.stdout.readline() if process.stdout else ""
        if not line.startswith("ready"):
            raise DemoError(f"the simulated machine did not start; see {STATE}/machine.log")
        yield process


@contextlib.contextmanager
def _daemon(port: int) -> Iterator[tuple[subprocess.Popen[str], str]]:
    show("starting mcfd …")
    config = STATE / "mcfd.toml"
    config.write_text(CONFIG.format(port=port, state=STATE.resolve(), nim=NIM))
    base = f"http://127.0.0.1:{port}"
    with _process("mcfd", "mcfd", "run", "--config", str(config)) as process:
        deadline = time.monotonic() + PATIENCE
        with httpx.Client(timeout=2, verify=PLAIN) as client:
            while not _ready(client, base):
                if process.poll() is not None or time.monotonic() > deadline:
                    tail = (STATE / "mcfd.log").read_text()[-2000:]
                    raise DemoError(f"mcfd did not become ready; {STATE}/mcfd.log ends:\n{tail}")
                time.sleep(0.05)
        yield process, base


def _ready(client: httpx.Client, base: str) -> bool:
    try:
        return client.get(f"{base}/health/ready").status_code == httpx.codes.OK
    except httpx.HTTPError:
        return False


def _key(*extra: str) -> str:
    command = [str(Path(sys.executable).parent / "mcfd"), "keys", "create", "--config", str(STATE / "mcfd.toml")]
    made = subprocess.run(  # noqa: S603  our own command
        [*command, "--nim", NIM, *extra], check=False, capture_output=True, text=True
    )
    if made.returncode:
        raise DemoError(f"no key: {made.stderr.strip()}")
    return made.stdout.strip()


def _show(base: str) -> None:
    live, test = _key("--label", "demo"), _key("--test", "--label", "demo sandbox")
    show(f"live key {live}")
    show(f"test key {test} (works on the built-in simulated machine: nothing counts)")
    headers = {"Authorization": f"Bearer {live}", "Idempotency-Key": "demo-1"}
    url = f"{base}/v1/mcf/{NIM}"
    with httpx.Client(timeout=40, headers=headers, verify=PLAIN) as client:
        certified = client.post(f"{url}/certify", json=INVOICE)
        if certified.is_error:
            raise DemoError(f"certify answered {certified.status_code}: {certified.text}")
        receipt = certified.json()
        _print_receipt(receipt)
        report = _report_with(client, f"{url}/reports/x")
    show("the X report, after the aggregation delay:")
    sys.stdout.write(json.dumps(report, indent=2, ensure_ascii=False) + "\n")
    body = json.dumps({**INVOICE, "invoiceNumber": "FV-2026-0002"}, ensure_ascii=False)
    show("try:")
    sys.stdout.write(
        f"\ncurl -s {url}/certify \\\n  -H 'Authorization: Bearer {live}' \\\n"
        f"  -H 'Content-Type: application/json' -H 'Idempotency-Key: my-till-0002' \\\n  -d '{body}'\n\n"
    )
    show(f"the API page: {base}/schema")


def _report_with(client: httpx.Client, url: str) -> dict[str, object]:
    """The X report once the certification has entered it (decision 13)."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        report: dict[str, object] = client.get(url).json()
        if report.get("certs_count"):
            return report
        time.sleep(0.1)
    raise DemoError("the certification did not reach the X report")


def _print_receipt(receipt: dict[str, object]) -> None:
    show("certified. The receipt:")
    rows = (
        ("Facture / invoice", receipt["invoiceNumber"]),
        ("Total TTC", f"{receipt['totalTtc']} XOF"),
        ("NIM", receipt["nim"]),
        ("IFU", receipt["ifu"]),
        ("Code SECeF", receipt["codeSecef"]),
        ("Date", receipt["dateTime"]),
        ("Compteurs / counters", f"TC {receipt['tc']}  FVC {receipt['fvc']}  FRC {receipt['frc']}"),
        ("QR", receipt["qrContent"]),
    )
    for name, value in rows:
        sys.stdout.write(f"    {name:<22} {value}\n")


def _stay(*processes: subprocess.Popen[str]) -> None:
    show(f"running until Ctrl-C; messages are in {STATE}/*.log")
    while all(process.poll() is None for process in processes):
        time.sleep(0.5)
    raise DemoError(f"a process ended by itself; see {STATE}/*.log")


if __name__ == "__main__":
    sys.exit(main())
