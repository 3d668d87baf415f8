"""The service contract, "Authentication", "Errors", "Versioning", and every error code of decision 11, over HTTP; two machines in one daemon."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest
from support.hurried import STILL
from support.shop import NIM, Machine, Shop, invoice, wait_for
from support.till import certified, fresh, problem, rows, untouched

OTHER = "EL02000077-1"


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    folder = tmp_path_factory.mktemp("shop")
    machines = (Machine(folder), Machine(folder, OTHER, "00099999Z"))
    with Shop(folder, machines=machines, per_machine={"certify_timeout": 60.0}, first=STILL) as shop:
        yield shop.start()


def call(shop: Shop, method: str, path: str, **kwargs: object) -> httpx.Response:
    """With a good key, unless another is given."""
    kwargs["headers"] = {**shop.headers(), **kwargs.get("headers", {})}
    return shop.http.request(method, f"/v1/mcf/{NIM}/{path}", **kwargs)


def test_404_for_a_path_that_is_not_there(shop: Shop) -> None:
    """`NOT_FOUND` as problem+json, with and without a key, and for another version: the version is the path's prefix."""
    for path in ("/", "/v1", "/v2/mcf/x/certify", f"/v1/mcf/{NIM}/reports/y", f"/v1/mcf/{NIM}", "/v1/mcf//certify"):
        problem(shop.http.get(path), 404, "NOT_FOUND")
        problem(shop.http.get(path, headers=shop.headers()), 404, "NOT_FOUND")


def test_413_for_more_than_a_mebibyte(shop: Shop) -> None:
    """`TOO_LARGE`; a body of exactly 1 MiB is read."""
    body = json.dumps(invoice(fresh())).encode()
    exact = body[:-1] + b',"x":"' + b"y" * (1024 * 1024 - len(body) - 7) + b'"}'
    assert len(exact) == 1024 * 1024
    json_type = {"Content-Type": "application/json"}
    certified(call(shop, "POST", "certify", content=exact, headers=json_type))
    with untouched(shop):
        problem(call(shop, "POST", "certify", content=exact + b" ", headers=json_type), 413, "TOO_LARGE")
        problem(call(shop, "POST", "reports/z", content=exact + b" ", headers=json_type), 413, "TOO_LARGE")


def test_502_when_the_machine_answers_nonsense(shop: Shop) -> None:
    """`BRIDGE_ERROR`: the subtotal cannot be read, so the invoice is cancelled; the next one is certified."""
    machine = shop.machines[0]
    before = machine.counters
    machine.order("fault", spec="nonsense@33h#1")
    problem(shop.certify(invoice(fresh())), 502, "BRIDGE_ERROR")
    assert machine.counters == before
    assert machine.order("snapshot", log=False)["stage"] == "idle"
    certified(shop.certify(invoice(fresh())))


def offline(shop: Shop, nim: str) -> bool:
    machines = shop.http.get("/health/ready").json()["machines"]
    return not next(machine["connected"] for machine in machines if machine["nim"] == nim)


def test_503_when_the_machine_is_away(shop: Shop) -> None:
    """`BRIDGE_OFFLINE` with `Retry-After` from everything that needs the machine; reports are still answered."""
    machine = shop.machines[0]
    machine.order("unplug")
    wait_for(lambda: offline(shop, NIM))
    try:
        with untouched(shop):
            for method, path in (
                ("POST", "certify"),
                ("POST", "reports/z"),
                ("GET", "info"),
                ("POST", "cancel-pending"),
            ):
                body = invoice(fresh()) if path == "certify" else None
                answer = call(shop, method, path, json=body)
                detail = problem(answer, 503, "BRIDGE_OFFLINE")["detail"]
                assert NIM in detail
                assert 1 <= int(answer.headers["retry-after"]) <= 30
            for path in ("reports/x", "reports/a", "reports"):
                assert call(shop, "GET", path).status_code == 200
    finally:
        machine.order("plug")
    wait_for(lambda: not offline(shop, NIM))
    certified(shop.certify(invoice(fresh())))


def test_a_slow_machine_does_not_hold_up_the_others(shop: Shop) -> None:
    """While one takes its time for an invoice, another certifies ten."""
    slow = shop.machines[0]
    slow.order("pause-at", next=6, when="before", direction="in")
    with ThreadPoolExecutor(1) as till:
        waiting = till.submit(shop.certify, invoice(fresh()), nim=NIM)
        wait_for(slow.is_stopped, "38h")
        try:
            for _ in range(10):
                certified(shop.certify(invoice(fresh()), nim=OTHER))
            assert not waiting.done()
        finally:
            slow.order("resume")
        certified(waiting.result())


def test_503_when_an_operator_has_to_settle(shop: Shop) -> None:
    """`MACHINE_ATTENTION`: invoices on the machine that this ledger does not know stop certifications until that is settled."""
    shop.stop_daemon()
    shop.machines[1].order("foreign-invoice", total=1000)
    shop.start_daemon(ready=False)
    wait_for(lambda: not offline(shop, NIM))
    wait_for(lambda: shop.http.get("/health/ready").json()["machines"][1]["attention"])
    before = rows(shop)
    for answer in (shop.certify(invoice(fresh()), nim=OTHER), shop.close_period(nim=OTHER)):
        detail = problem(answer, 503, "MACHINE_ATTENTION")["detail"]
        assert "an invoice" in detail
        assert "FVC 1" in detail
    assert rows(shop) == before
    certified(shop.certify(invoice(fresh())))
