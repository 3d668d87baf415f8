"""Three weeks of a small shop's sales for `make demo`, each day closed by its Z: written into the ledger by the store's own functions, as no clock can be
turned back."""

from __future__ import annotations

import json
import random
import socket
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final
from zoneinfo import ZoneInfo

from daemon.core.invoice.intake import Defaults, read_invoice
from daemon.core.ledger.attempt import Attempt, Outcome
from daemon.core.ledger.book import Book
from daemon.core.machine.state import Certified, FiscalCounters, MachineState
from daemon.store.store import Store
from daemon.store.tables.book import attempts, books

IFU: Final = "00084440Y"
DAYS: Final = 21
DAY: Final = 86_400_000
HOUR: Final = 3_600_000
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


async def write_weeks(ledger: Path, nim: str) -> FiscalCounters:
    """The machine's counters afterwards. The same sales each time, up to the evening before today."""
    zone = ZoneInfo("Africa/Ouagadougou")
    draw = random.Random(1)  # noqa: S311  goods of a demonstration
    counters = FiscalCounters(0, 0, 0)
    midnight = int(time.time() * 1000) // DAY * DAY
    async with await Store.open(ledger, timezone=zone, reserve_bytes=0) as store:
        book = await store.ledger.open_book(nim, "live")
        for day in range(midnight - DAYS * DAY, midnight, DAY):
            sales = [day + OPENS * HOUR + at * (CLOSES - OPENS) * HOUR // 30 for at in range(draw.randint(18, 30))]
            counters = await store.ledger.write(_sell_all, book=book, known=counters, times=sales, draw=draw)
            await store.ledger.close_period(book, counters=counters, unexplained=0, at=day + CLOSES * HOUR)
        state = MachineState(nim, IFU, "20260101000000", counters, RATES, None)
        await store.ledger.write(books.reconcile, book=book, state=state, unexplained=0, at=midnight)
    return counters


def _sell_all(
    connection: Any, book: Book, known: FiscalCounters, times: Sequence[int], draw: random.Random
) -> FiscalCounters:
    for at in times:
        known = _sell(connection, book, known, at, draw)
    return known


def _sell(connection: Any, book: Book, known: FiscalCounters, at: int, draw: random.Random) -> FiscalCounters:
    number = known.fvc + 1
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
    attempt = attempts.begin(connection, book, Attempt(sale, known, at, f"demo-{number}"))
    counters = FiscalCounters(known.tc + 1, number, known.frc)
    moment = time.strftime("%Y%m%d%H%M%S", time.gmtime(at / 1000))
    certified = Certified(f"DEMO{number:020X}", moment, IFU, counters)
    attempts.certify(connection, book, attempt, Outcome(certified, sale, sale.total_ttc, at + 60, 50, 60))
    return counters


def set_counters(control: Path, counters: FiscalCounters) -> None:
    """The simulated machine has made them all (docs/simulator.md)."""
    order = {"do": "counters", "tc": counters.tc, "fvc": counters.fvc, "frc": counters.frc}
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(str(control))
        client.sendall(json.dumps(order).encode() + b"\n")
        client.recv(1)
