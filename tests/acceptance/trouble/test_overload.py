"""Two hundred tills at once on one machine: each has its answer, in order, in flat memory, and a till that leaves breaks nothing."""

import asyncio
import json
import socket
import sqlite3
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest
from support.crash.lane import Lane
from support.shop import NIM, wait_for

pytestmark = pytest.mark.long

TILLS = 200
FLAT_MB = 8
Sale = tuple[dict[str, Any], str]


@pytest.fixture
def lane(tmp_path: Path) -> Iterator[Lane]:
    """A request waits for the machine for as long as it takes."""
    with Lane(tmp_path / "lane", per_machine={"queue_patience": 600.0}) as lane:
        yield lane


def at_once(lane: Lane, sales: Sequence[Sale]) -> list[httpx.Response]:
    """Every sale on a connection of its own, all open before the first is sent; each in one piece, one after the other."""

    async def run() -> list[httpx.Response]:
        tills = [await asyncio.open_connection("127.0.0.1", lane.shop.port) for _ in sales]
        for (_, writer), sale in zip(tills, sales, strict=True):
            writer.write(request(lane, *sale))
        return await asyncio.gather(*(answer(*till) for till in tills))

    return asyncio.run(run())


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> httpx.Response:
    head, _, body = (await reader.read()).partition(b"\r\n\r\n")
    writer.close()
    await writer.wait_closed()
    status, *lines = head.decode().split("\r\n")
    headers = [(name, value) for name, _, value in (line.partition(": ") for line in lines)]
    return httpx.Response(int(status.split()[1]), headers=headers, content=body)


def request(lane: Lane, body: dict[str, Any], key: str) -> bytes:
    content = json.dumps(body).encode()
    headers = {
        "Host": f"127.0.0.1:{lane.shop.port}",
        "Content-Type": "application/json",
        "Content-Length": str(len(content)),
        "Connection": "close",
        **lane.shop.headers(key=key),
    }
    head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return f"POST /v1/mcf/{NIM}/certify HTTP/1.1\r\n{head}\r\n".encode() + content


def resident_mb(pid: int) -> float:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * 4096 / 1e6


def test_two_hundred_tills_have_their_answers_in_order(lane: Lane) -> None:
    """First come, first served; after 600 invoices the daemon is as large as after 200."""
    sales = [lane.next_invoice() for _ in range(TILLS)]
    answers = at_once(lane, sales)
    machine = {entry["number"]: entry["code"] for entry in lane.machine.certified()}
    assert [answer.status_code for answer in answers] == [200] * TILLS
    assert [answer.json()["codeSecef"] for answer in answers] == [machine[body["invoiceNumber"]] for body, _ in sales]
    assert served(lane) == sorted(served(lane))
    size = resident_mb(lane.shop.pid)
    for _ in range(2):
        assert {answer.status_code for answer in at_once(lane, [lane.next_invoice() for _ in range(TILLS)])} == {200}
    assert resident_mb(lane.shop.pid) < size + FLAT_MB
    lane.check()
    lane.check_totals()


def served(lane: Lane) -> list[int]:
    """The requests in the order in which the machine got them, as the numbers that they had on arrival."""
    with closing(sqlite3.connect(lane.shop.ledger)) as ledger:
        rows = ledger.execute("SELECT request_id FROM certification WHERE state = 'certified' ORDER BY seq").fetchall()
    return [int(request_id.rpartition("-")[2], 16) for (request_id,) in rows]


def test_more_tills_than_may_wait_are_told_to_come_back(tmp_path: Path) -> None:
    """A clear 503 before anything was sent, or an answer; who comes back has it once."""
    with Lane(tmp_path / "lane", per_machine={"queue_limit": 20, "queue_patience": 1.0}) as lane:
        lane.machine.order("think", ms=4)
        sales = [lane.next_invoice() for _ in range(TILLS)]
        answers = at_once(lane, sales)
        result = Counter(answer.status_code for answer in answers)
        assert set(result) == {200, 503}
        for answer in answers:
            assert answer.is_success or (answer.json()["code"], "retry-after" in answer.headers) == (
                "MACHINE_BUSY",
                True,
            )
        assert len(lane.machine.certified()) == result[200]
        lane.machine.order("think", ms=0)
        again = [sale for sale, answer in zip(sales, answers, strict=True) if not answer.is_success]
        while again:  # so many as may wait
            answers = at_once(lane, again[:20])
            again[:20] = [sale for sale, answer in zip(again[:20], answers, strict=True) if not answer.is_success]
        lane.check()
        assert len(lane.certified) == TILLS


def test_clients_that_hang_up_leave_no_half_invoice(lane: Lane) -> None:
    """Fifty send their request and are gone: the machine is idle afterwards, and what it certified is in the ledger."""
    lane.machine.order("think", ms=2)
    for each in range(50):
        body, key = lane.next_invoice(100, 200, 300)
        hang_up(lane, body, key, after=0.0 if each % 3 else 0.01)
    wait_for(lambda: ended(lane) == 50, "the end of each of them")
    lane.check()
    assert lane.machine.order("snapshot", log=False)["stage"] == "idle"
    body, key = lane.next_invoice()
    lane.certified_once(body, key)


def hang_up(lane: Lane, body: dict[str, Any], key: str, after: float) -> None:
    with socket.create_connection(("127.0.0.1", lane.shop.port)) as till:
        till.sendall(request(lane, body, key))
        time.sleep(after)


def ended(lane: Lane) -> int:
    """Requests for a certification that the daemon is done with, whether anybody waited for the answer or not."""
    return sum(line["route"].endswith("/certify") for line in lane.shop.events("request.answered"))
