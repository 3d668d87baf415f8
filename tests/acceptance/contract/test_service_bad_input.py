"""Bad input over real sockets: every refusal leaves the machine and the ledger as they were, and honest tills do not wait."""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from support import hurried
from support.processor import within
from support.shop import NIM, Shop, invoice
from support.till import LEAKS, PROBLEM_MEMBERS, certified, fresh, invalid, problem, untouched

from daemon.api.service import MACHINE_ROUTES

GOOD = json.dumps(invoice("G")).encode()
NOTIFIED = json.dumps({"who": "distributor", "reference": "1"}).encode()


def post(shop: Shop, content: bytes, path: str = "certify") -> Any:
    headers = {**shop.headers(), "Content-Type": "application/json"}
    return shop.http.post(f"/v1/mcf/{NIM}/{path}", content=content, headers=headers)


NOT_JSON = {
    "nested 100 000 deep": b'{"a":' * 100_000 + b"1" + b"}" * 100_000,
    "a key twice deep inside": GOOD.replace(b'"quantity": 1', b'"quantity": 1, "quantity": 2'),
    "a key twice, once escaped": GOOD[:-1] + b',"invoice\\u004eumber":"H"}',
    "NaN": GOOD.replace(b"15000", b"NaN"),
    "invalid UTF-8": GOOD.replace(b"Article", b"Artic\xff"),
    "half a surrogate pair": GOOD.replace(b"Article", b"\\ud800"),
    "a list": b"[" + GOOD + b"]",
    "nothing": b"",
}


@pytest.mark.parametrize("case", NOT_JSON)
def test_what_is_no_json(shop: Shop, case: str) -> None:
    """400 `INVALID_JSON`, at once."""
    with untouched(shop), within(5, *shop.pids):
        problem(post(shop, NOT_JSON[case]), 400, "INVALID_JSON")


@pytest.mark.parametrize(
    "number", [b"1e400", b"-1e400", b"1e999999999", b"1e-999999999", b"9" * 5000, b"0." + b"0" * 9000 + b"1"]
)
def test_numbers_that_cost_time_elsewhere(shop: Shop, number: bytes) -> None:
    """JSON, and no amount: 422 by name in every place that counts, in no time."""
    with untouched(shop), within(5, *shop.pids):
        faults = invalid(post(shop, GOOD.replace(b"15000", number)))
    assert {"items[0].unitPrice", "payments[0].amount"} <= faults.keys() | {"items[0].amountTtc"}


@pytest.mark.parametrize("path", sorted(path for route in MACHINE_ROUTES for path in route.paths if ":int}" in path))
def test_a_number_in_a_path_that_no_row_has(shop: Shop, path: str) -> None:
    """404, also beyond 64 bits: nothing of that number is there."""
    methods = next(route.http_methods for route in MACHINE_ROUTES if path in route.paths)
    path = re.sub(r"\{\w+:int\}", "9" * 30, path)
    with untouched(shop):
        problem(post(shop, NOTIFIED, path) if "POST" in methods else shop.get(path), 404, "NOT_FOUND")


def test_a_million_digits_in_an_unknown_field_are_nothing_to_us(shop: Shop) -> None:
    """Ignored without being computed: also a number as long as the body allows."""
    content = json.dumps(invoice(fresh())).encode()[:-1] + b',"x":' + b"1" * 900_000 + b"}"
    with within(5, *shop.pids):
        certified(post(shop, content))


@pytest.mark.parametrize("content", [b"[]", b"null", b"{", b'{"a":1,"a":1}', b"\xff"])
def test_a_z_with_a_bad_body_closes_nothing(shop: Shop, content: bytes) -> None:
    """400, and no number is used."""
    with untouched(shop):
        problem(post(shop, content, "reports/z"), 400, "INVALID_JSON")


# -- below HTTP ---------------------------------------------------------------------------------------------------------


def connect(shop: Shop) -> socket.socket:
    return socket.create_connection(("127.0.0.1", shop.port), timeout=20)


def head(shop: Shop, *lines: str, path: str = "certify") -> bytes:
    own = (f"POST /v1/mcf/{NIM}/{path} HTTP/1.1", "Host: localhost", f"Authorization: Bearer {shop.key()}", *lines)
    return "\r\n".join(own).encode() + b"\r\n\r\n"


JSON = "Content-Type: application/json"


def talk(shop: Shop, data: bytes, *, end: bool = False) -> bytes:
    """All that comes back until the peer closes."""
    with connect(shop) as line:
        line.sendall(data)
        if end:
            line.shutdown(socket.SHUT_WR)
        answer = b""
        while piece := line.recv(65536):
            answer += piece
        return answer


def refused(answer: bytes, status: int) -> None:
    """A whole HTTP answer with that status, as a problem."""
    top, _, body = answer.partition(b"\r\n\r\n")
    lines = top.decode().lower().split("\r\n")
    assert lines[0].startswith(f"http/1.1 {status} "), top
    assert "content-type: application/problem+json" in lines
    content = json.loads(body)
    assert content.keys() >= PROBLEM_MEMBERS
    assert f"x-request-id: {content['request_id']}" in lines
    assert not LEAKS.search(body.decode())


def test_a_body_that_stops_half_way(shop: Shop) -> None:
    """The till goes away in the middle of its invoice, told by length or in chunks: nothing is begun."""
    body = json.dumps(invoice(fresh())).encode()
    sized, chunked = head(shop, JSON, f"Content-Length: {len(body)}"), head(shop, JSON, "Transfer-Encoding: chunked")
    with untouched(shop):
        for data in (
            sized + body[:-1],
            chunked + b"%x\r\n" % len(body) + body[:-1],
            chunked + b"%x\r\n" % len(body) + body,
        ):
            with connect(shop) as line:
                line.sendall(data)
            talk(shop, data, end=True)
    certified(post(shop, body))


def test_a_body_and_a_request_behind_it(shop: Shop) -> None:
    """More than the length says is the next request, which is not there: it is refused, and the first is certified once."""
    body = json.dumps(invoice(fresh())).encode()
    answer = talk(shop, head(shop, JSON, f"Content-Length: {len(body)}") + body + b"AT\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 200 ")
    assert b"HTTP/1.1 400 " in answer


@pytest.fixture
def impatient(tmp_path: Path) -> Iterator[Shop]:
    """Whose thirty seconds are six."""
    with Shop(tmp_path, launch=partial(hurried.launch, impatient=True)) as shop:
        yield shop.start()


@pytest.fixture
def crowd(impatient: Shop) -> Iterator[list[socket.socket]]:
    with ExitStack() as stack:
        yield [stack.enter_context(connect(impatient)) for _ in range(200)]


def test_two_hundred_idle_connections_while_a_till_certifies(impatient: Shop, crowd: list[socket.socket]) -> None:
    """Idle, in the middle of a header, and in the middle of a body: 20 invoices are certified meanwhile as ever. A body that does not
    go on is refused with 408 and has changed nothing."""
    shop = impatient
    for line in crowd[:20]:
        line.sendall(b"POST /v1/mcf/x/certify HTTP/1.1\r\nHost: localhost\r\nX-Slow: ")
    for line in crowd[20:40]:
        line.sendall(head(shop, JSON, "Content-Length: 500") + b'{"invoiceNumber":')
    with within(16, *shop.pids):
        with within(8, *shop.pids), ThreadPoolExecutor(4) as tills:
            for answer in tills.map(lambda _: shop.certify(invoice(fresh())), range(20)):
                certified(answer)
        with untouched(shop):
            for line in crowd[20:40]:
                refused(read(line), 408)
    crowd[-1].sendall(b"GET /health/live HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
    assert read(crowd[-1]).startswith(b"HTTP/1.1 200 ")
    shop.verify()


def read(line: socket.socket) -> bytes:
    answer = b""
    while piece := line.recv(65536):
        answer += piece
    return answer
