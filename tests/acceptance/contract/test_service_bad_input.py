"""Bad input over real sockets: every refusal leaves the machine and the ledger as they were, and honest tills do not wait."""

from __future__ import annotations

import json
import re
import socket
from typing import Any

import pytest
from support.processor import within
from support.shop import NIM, Shop, invoice
from support.till import certified, fresh, problem, untouched

from daemon.api.service import API_ROUTES

GOOD = json.dumps(invoice("G")).encode()
NOTIFIED = json.dumps({"who": "distributor", "reference": "1"}).encode()


def post(shop: Shop, content: bytes, path: str = "certify") -> Any:
    headers = {**shop.headers(), "Content-Type": "application/json"}
    return shop.http.post(f"/v1/mcf/{NIM}/{path}", content=content, headers=headers)


def test_what_is_no_json(shop: Shop) -> None:
    """400 `INVALID_JSON`, at once: nested without end, and a key twice deep inside."""
    with untouched(shop), within(5, *shop.pids):
        for content in (
            b'{"a":' * 100_000 + b"1" + b"}" * 100_000,
            GOOD.replace(b'"quantity": 1', b'"quantity": 1, "quantity": 2'),
        ):
            problem(post(shop, content), 400, "INVALID_JSON")


@pytest.mark.parametrize("path", sorted(path for route in API_ROUTES for path in route.paths if ":int}" in path))
def test_a_number_in_a_path_that_no_row_has(shop: Shop, path: str) -> None:
    """404, also beyond 64 bits: nothing of that number is there."""
    methods = next(route.http_methods for route in API_ROUTES if path in route.paths)
    path = re.sub(r"\{\w+:int\}", "9" * 30, path)
    with untouched(shop):
        problem(post(shop, NOTIFIED, path) if "POST" in methods else shop.get(path), 404, "NOT_FOUND")


def test_a_z_with_a_bad_body_closes_nothing(shop: Shop) -> None:
    """400, and no number is used."""
    with untouched(shop):
        problem(post(shop, b"[]", "reports/z"), 400, "INVALID_JSON")


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
