"""A long journal in one file: flat memory, and tills that notice nothing."""

import json
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from support.processor import measured
from support.shop import IFU, NIM, PLAIN, Machine, Shop, invoice, wait_for
from support.till import certified, problem

from bench.shop.ledger import PER_DAY, make

pytestmark = pytest.mark.long

DAYS = 20
COUNT = DAYS * PER_DAY
FLAT_KB = 12_000
"""What caches and a few buffers may add; all of the journal in memory would be 40 MB."""
RANGE = {"from": "2020-01-01"}


@pytest.fixture(scope="module")
def year(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    """A shop that has sold as much as some sell in a year; its machine remembers as much."""
    folder = tmp_path_factory.mktemp("year")
    counters = make(folder / "mcfd.sqlite3", DAYS, NIM)
    state = {"tc": counters.tc, "fvc": counters.fvc, "frc": counters.frc}
    (folder / f"state-{NIM}.json").write_text(json.dumps(state))
    with Shop(folder, machines=(Machine(folder, NIM, IFU, "--baud", "115200"),)) as shop:
        yield shop.start()


def resident_kb(shop: Shop) -> int:
    status = Path(f"/proc/{shop.pid}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0])


class Export(threading.Thread):
    """Reads a file to its end, or, `again` and again, until it has to stop, and keeps the largest memory of the daemon
    meanwhile."""

    def __init__(self, shop: Shop, form: str, *, again: bool = False) -> None:
        super().__init__()
        self._shop = shop
        self._form = form
        self._again = again
        self.lines = self.peak = 0
        self.first = self.last = b""
        self.enough = threading.Event()

    def run(self) -> None:
        self._read()
        while self._again and not self.enough.is_set():
            self._read()

    def _read(self) -> None:
        query = {"format": self._form, "state": "certified", **RANGE}
        url = f"http://127.0.0.1:{self._shop.port}/v1/mcf/{NIM}/certifications"
        tail = b""
        with httpx.stream("GET", url, params=query, headers=self._shop.headers(), timeout=60, verify=PLAIN) as answer:
            answer.raise_for_status()
            for piece in answer.iter_raw():
                *whole, tail = (tail + piece).split(b"\n")
                self.first = self.first or (whole or [b""])[0]
                self.last = (whole or [self.last])[-1]
                self.lines += len(whole)
                self.peak = max(self.peak, resident_kb(self._shop))
                if self.enough.is_set():
                    return


@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_a_year_streams_in_flat_memory(year: Shop, form: str) -> None:
    """20 000 certifications, every one of them, oldest first, and the daemon grows by nothing that counts."""
    before = resident_kb(year)
    export = Export(year, form)
    export.run()
    assert export.lines >= COUNT + (form == "csv")
    assert export.peak - before < FLAT_KB, f"{before} kB before, {export.peak} kB at the most"
    if form == "jsonl":
        assert json.loads(export.first)["invoiceNumber"] == "FV-00000001"
        assert json.loads(export.last)["seq"] == export.lines


def sell(shop: Shop, name: str, number: int) -> float:
    """Seconds."""
    with measured(*shop.pids) as spent:
        certified(shop.certify(invoice(f"{name}-{number}", 1500, 600)))
    return spent.seconds


def test_a_reader_that_stops_holds_nothing_up(year: Shop) -> None:
    """Its file waits, memory does not grow, tills sell; and a key has two files at once."""
    head = f"GET /v1/mcf/{NIM}/certifications?format=jsonl&from=2020-01-01 HTTP/1.1\r\nHost: localhost\r\n"
    request = (head + f"Authorization: {year.headers()['Authorization']}\r\n\r\n").encode()
    before = resident_kb(year)
    idle = [socket.create_connection(("127.0.0.1", year.port)) for _ in range(2)]
    try:
        for each in idle:
            each.sendall(request)
            assert each.recv(100).startswith(b"HTTP/1.1 200")
        refused: Any = year.get("certifications", format="csv", **RANGE)
        problem(refused, 429, "TOO_MANY_REQUESTS")
        assert int(refused.headers["retry-after"]) > 0
        assert sell(year, "beside", 1) < 2
        assert resident_kb(year) - before < FLAT_KB
    finally:
        for each in idle:
            each.close()
    wait_for(lambda: year.get("certifications", format="csv", to="2020-01-01").status_code == 200, "a free place")
