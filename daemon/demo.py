"""`make demo`: the simulated machine on a pseudo-terminal, the daemon, one invoice certified over HTTP. The store's own
functions write three weeks of a small shop's sales before, with a Z each day, since no clock can be turned back."""

import asyncio
import json
import random
import socket
import ssl
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final
from zoneinfo import ZoneInfo

import httpx

from common.demo import Demo, DemoError
from daemon.core.clock import DAY, HOUR
from daemon.core.invoice.intake import Defaults, read_invoice
from daemon.core.ledger.attempt import Attempt, Outcome
from daemon.core.ledger.book import Book
from daemon.core.machine.state import NO_COUNTERS, Certified, FiscalCounters, MachineState
from daemon.store.store import Store
from daemon.store.tables.book import attempts, books
from daemon.store.tables.book.books import open_book

NIM = "EL02000015-1"
PORT = 8480
PERSON = "awa"
PASSWORD = "demo-de-la-caisse"  # noqa: S105  printed for the viewer of the demonstration
PATIENCE = 30.0
PLAIN = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""For HTTP without TLS: saves loading the system's authorities."""

CONFIG = """\
[server]
host = "127.0.0.1"
port = {port}

[storage]
path = "{state}/mcfd.sqlite3"

[company]
name = "Alimentation Wend-Panga"
support = "Moussa, 70 00 00 00"

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
    "invoiceNumber": "DEMO-0001",
    "invoiceType": "FV",
    "operatorName": "Awa",
    "items": [
        {"name": "Riz 25 kg", "taxGroup": "B", "unitPrice": 15000, "quantity": 1},
        {"name": "Pain", "taxGroup": "A", "unitPrice": 150, "quantity": 4},
    ],
    "payments": [{"method": "E", "amount": 15600}],
}

IFU: Final = "00084440Y"
DAYS: Final = 21
OPENS: Final = 8
CLOSES: Final = 19
RATES: Final = {"A": 0, "B": 1800, "C": 1000}
GOODS: Final = (
    ("Riz 25 kg", "B", 15_000),
    ("Huile 5 l", "B", 7500),
    ("Ciment 50 kg", "B", 5500),
    ("Sucre 1 kg", "B", 850),
    ("Savon", "B", 450),
    ("Lait 400 g", "A", 2250),
    ("Pain", "A", 150),
)


def show(demo: Demo) -> None:
    base = _start(demo)
    live, test = _key(demo, "--label", "demo"), _key(demo, "--test", "--label", "demo sandbox")
    demo.print(f"live key {live}")
    demo.print(f"test key {test} (works on the built-in simulated machine: nothing counts)")
    headers = {"Authorization": f"Bearer {live}", "Idempotency-Key": "demo-1"}
    url = f"{base}/v1/mcf/{NIM}"
    with httpx.Client(timeout=40, headers=headers, verify=PLAIN) as client:
        certified = client.post(f"{url}/certify", json=INVOICE)
        if certified.is_error:
            raise DemoError(f"certify answered {certified.status_code}: {certified.text}")
        demo.print("certified. The receipt:")
        _print_receipt(certified.json())
        # After the totals include the certification (decision 13).
        demo.wait(
            "the certification in the X report", lambda: bool(client.get(f"{url}/reports/x").json()["certs_count"])
        )
        report = client.get(f"{url}/reports/x").json()
    demo.print("the X report, after the aggregation delay:")
    sys.stdout.write(json.dumps(report, indent=2, ensure_ascii=False) + "\n")
    body = json.dumps({**INVOICE, "invoiceNumber": "DEMO-0002"}, ensure_ascii=False)
    demo.print("try:")
    sys.stdout.write(
        f"\ncurl -s {url}/certify \\\n  -H 'Authorization: Bearer {live}' \\\n"
        f"  -H 'Content-Type: application/json' -H 'Idempotency-Key: demo-0002' \\\n  -d '{body}'\n\n"
    )
    demo.print(f"the API page: {base}/schema")
    demo.print(
        f"orders to the machine, as a cable that is pulled: {demo.folder / 'machine.control'} (docs/simulator.md)"
    )
    demo.print(f"the shop's page, with three weeks of sales: {base}/ui/ – name {PERSON}, password {PASSWORD}")


def _start(demo: Demo) -> str:
    """Starts machine and daemon; returns the daemon's address."""
    demo.print("starting the simulated fiscal machine …")
    link = demo.folder / "machine"
    arguments = ("--nim", NIM, "--ifu", IFU, "--link", str(link), "--state", str(demo.folder / "machine.json"))
    control = demo.folder / "machine.control"
    demo.start("machine", "mcf-simulator", *arguments, "--control", str(control))
    demo.wait("the simulated machine", lambda: link.exists() and control.exists())
    demo.print("writing three weeks of sales …")
    set_counters(control, asyncio.run(write_weeks(demo.folder / "mcfd.sqlite3", NIM)))
    port = demo.free_port(PORT)
    demo.print("starting mcfd …")
    config = demo.folder / "mcfd.toml"
    config.write_text(CONFIG.format(port=port, state=demo.folder.resolve(), nim=NIM))
    demo.run(
        "mcfd",
        "users",
        "create",
        "--config",
        str(config),
        PERSON,
        "--role",
        "technician",
        "--password-stdin",
        stdin=PASSWORD,
    )
    demo.start("mcfd", "mcfd", "run", "--config", str(config))
    base = f"http://127.0.0.1:{port}"
    demo.wait("mcfd", lambda: _is_ready(base))
    return base


def _is_ready(base: str) -> bool:
    try:
        return httpx.get(f"{base}/health/ready", timeout=2, verify=PLAIN, trust_env=False).is_success
    except httpx.HTTPError:
        return False


def _key(demo: Demo, *extra: str) -> str:
    return demo.run("mcfd", "keys", "create", "--config", str(demo.folder / "mcfd.toml"), "--nim", NIM, *extra)


def _print_receipt(receipt: dict[str, object]) -> None:
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


async def write_weeks(ledger: Path, nim: str) -> FiscalCounters:
    """Returns the machine's counters afterwards. The same sales each time, up to yesterday evening."""
    zone = ZoneInfo("Africa/Ouagadougou")
    draw = random.Random(1)  # noqa: S311  goods of a demonstration
    counters = NO_COUNTERS
    midnight = int(time.time() * 1000) // DAY * DAY
    async with await Store.open(ledger, timezone=zone, reserve_bytes=0) as store:
        book = await store.ledger.write(open_book, nim, "live")
        for day in range(midnight - DAYS * DAY, midnight, DAY):
            sales = [day + OPENS * HOUR + at * (CLOSES - OPENS) * HOUR // 30 for at in range(draw.randint(18, 30))]
            counters = await store.ledger.write(_sell_all, book=book, before=counters, times=sales, draw=draw)
            await store.ledger.close_period(book, counters=counters, unexplained=0, at=day + CLOSES * HOUR)
        state = MachineState(nim, IFU, "20260101000000", counters, RATES, None)
        await store.ledger.write(books.reconcile, book=book, state=state, unexplained=0, at=midnight)
    return counters


def _sell_all(
    connection: Any, book: Book, before: FiscalCounters, times: Sequence[int], draw: random.Random
) -> FiscalCounters:
    for at in times:
        before = _sell(connection, book, before, at, draw)
    return before


def _sell(connection: Any, book: Book, before: FiscalCounters, at: int, draw: random.Random) -> FiscalCounters:
    number = before.fvc + 1
    sold = [(*goods, draw.choice((1, 1, 1, 2, 3))) for goods in draw.sample(GOODS, draw.randint(1, 3))]
    body = {
        "invoiceNumber": f"FV-{number:05d}",
        "invoiceType": "FV",
        "items": [
            {"name": name, "taxGroup": group, "unitPrice": price, "quantity": count}
            for name, group, price, count in sold
        ],
        "payments": [{"method": draw.choice("EEEMC"), "amount": sum(price * count for _, _, price, count in sold)}],
    }
    sale = read_invoice(body, defaults=Defaults("1", "Caisse 1", "1"), rates=RATES)
    attempt = attempts.begin(connection, book, Attempt(sale, before, at, f"demo-{number}"))
    counters = FiscalCounters(before.tc + 1, number, before.frc)
    moment = time.strftime("%Y%m%d%H%M%S", time.gmtime(at / 1000))
    certified = Certified(f"DEMO{number:020X}", moment, IFU, counters)
    attempts.certify(connection, book, attempt, Outcome(certified, sale, sale.total_ttc, at + 60, 50, 60))
    return counters


def set_counters(control: Path, counters: FiscalCounters) -> None:
    """Sets the simulated machine's counters as if it had certified all (docs/simulator.md)."""
    order = {"do": "counters", "tc": counters.tc, "fvc": counters.fvc, "frc": counters.frc}
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(str(control))
        client.sendall(json.dumps(order).encode() + b"\n")
        client.recv(1)


if __name__ == "__main__":
    sys.exit(Demo("demo", "mcfd on a simulated machine", show, PATIENCE).main())
