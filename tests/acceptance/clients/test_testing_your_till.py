"""Failures rehearsed with a test key (`Mcfd-Test`, decision 40): what the page says of each case is what a till gets."""

from itertools import count
from typing import Any

import httpx
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from support.rehearsals import rehearsed_cases
from support.shop import NIM, Shop, invoice, wait_for

from daemon.api.access.rehearsal import CASES
from daemon.core.ledger.attempt import Mode

PAGE_CASES = rehearsed_cases()
SHORT = {"offline": "offline:1", "slow": "slow:1", "late": "late:1"}
"""The same in less time."""


def rehearse(shop: Shop, value: str, number: str, *, mode: Mode = "test", path: str = "certify") -> httpx.Response:
    return shop.certify(invoice(number), key=f"key-{number}", mode=mode, path=path, headers={"Mcfd-Test": value})


def in_the_sandbox(shop: Shop, number: str) -> list[str]:
    found = shop.get("certifications", mode="test", limit=200).json()["certifications"]
    return [each["state"] for each in found if each["invoiceNumber"] == number and each["state"] == "certified"]


@pytest.mark.parametrize("case", PAGE_CASES)
def test_each_case_gives_what_its_line_says(shop: Shop, case: str) -> None:
    """Status, code and Retry-After; then the same request with the same key until it is certified, once."""
    expected, number = PAGE_CASES[case], f"REHEARSED-{case}"
    first = rehearse(shop, SHORT.get(case, case), number)
    assert first.status_code == expected.status, first.text
    assert first.headers.get("retry-after") == (str(expected.retry_after) if expected.retry_after else None)
    if expected.code:
        assert first.json()["code"] == expected.code
    if CASES[case].always:
        assert rehearse(shop, case, number).json()["code"] == expected.code
        last = shop.certify(invoice(number), key=f"key-{number}", mode="test")
    else:
        last = wait_for(
            lambda: (answer := rehearse(shop, SHORT.get(case, case), number)).status_code == 200 and answer,
            "the certification",
        )
    assert last.json()["codeSecef"].startswith("TESTFACT")
    assert in_the_sandbox(shop, number) == ["certified"]
    if expected.status == 200:
        assert last.json() == first.json()


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ("ofline", "must be one of offline, busy"),
        ("slow:26", "slow takes 1 to 25 seconds"),
    ],
)
def test_a_value_that_is_no_case_is_refused_by_name(shop: Shop, value: str, says: str) -> None:
    """422 in the shape of every error; nothing is certified."""
    answer = rehearse(shop, value, "REHEARSED-BAD")
    assert answer.status_code == 422, answer.text
    (fault,) = answer.json()["errors"]
    assert fault["field"] == "Mcfd-Test"
    assert says in fault["message"]
    assert in_the_sandbox(shop, "REHEARSED-BAD") == []


@pytest.mark.parametrize("value", ["storage-full", "slow:20", "nonsense"])
def test_with_a_live_key_the_header_does_nothing(shop: Shop, value: str) -> None:
    """Certified as any other, with a warning that is not kept: neither the replay without the header nor the journal has it."""
    number = f"LIVE-{value}"
    first = rehearse(shop, value, number, mode="live")
    assert first.status_code == 200, first.text
    (warning,) = first.json()["warnings"]
    assert (warning["code"], warning["field"]) == ("TEST_HEADER_IGNORED", "Mcfd-Test")
    plain = {**first.json(), "warnings": []}
    again = shop.certify(invoice(number), key=f"key-{number}")
    assert (again.headers["idempotency-replayed"], again.json()) == ("true", plain)
    assert shop.get(f"certifications/{plain['codeSecef']}").json()["receipt"] == plain


def test_in_the_shop_s_network_there_is_no_limit_of_time(shop: Shop) -> None:
    """Only the relay knows a time that both ends share: what is over there is certified here, and the programmer learns it."""
    answer = shop.certify(invoice("LIMIT"), key="limit", headers={"Mcfd-Not-After": "2020-01-01T00:00:00Z"})
    assert answer.status_code == 200, answer.text
    assert [(each["code"], each["field"]) for each in answer.json()["warnings"]] == [
        ("NOT_AFTER_HEADER_IGNORED", "Mcfd-Not-After")
    ]


QUICK = ("offline:1", "busy", "refused", "blocked", "attention", "storage-full")
"""Cases of a test key that take no time of the test's."""

header_names = st.sampled_from(["Mcfd-Test", "mcfd-test", "MCFD-TEST"])
seconds = st.one_of(st.just(""), st.integers(0, 99).map(lambda number: f":{number}"))
cases = st.tuples(st.sampled_from(sorted(CASES)), seconds).map("".join)
nonsense = st.text(st.characters(min_codepoint=0x21, max_codepoint=0x7E), max_size=20)
sent = st.lists(st.tuples(header_names, st.one_of(cases, nonsense)), min_size=1, max_size=3)
acts = st.sampled_from(["certify", "credit-note", "reports/z", "cash", "cancel-pending", "reports/month", "test/clock"])


def act(shop: Shop, path: str, number: str, extra: list[tuple[str, str]]) -> tuple[object, ...]:
    """A POST with the live key; of its answer all that a rehearsal could change."""
    body: dict[str, Any] = {}
    if path == "certify":
        body = invoice(number)
    elif path == "credit-note":
        body = invoice(number, invoiceType="FA", creditNoteNature="RAM", creditNoteRef=f"{NIM}-999999")
    elif path == "cash":
        body = {"kind": "deposit", "amount": 1, "reason": number}
    elif path == "test/clock":
        body = {"days": 1}
    headers = [*shop.headers(key=number).items(), *extra]
    answer = shop.http.post(f"/v1/mcf/{NIM}/{path}", json=body, headers=headers)
    content = answer.json() if answer.content else {}
    warnings = [each["code"] for each in content.get("warnings", ()) if each["code"] != "TEST_HEADER_IGNORED"]
    return (
        answer.status_code,
        answer.headers.get("retry-after"),
        content.get("code"),
        sorted(content.keys() - {"warnings"}),
        warnings,
    )


NUMBERS = count()


@pytest.mark.long
@settings(max_examples=60, deadline=None)
@given(path=acts, extra=sent, beside=st.lists(st.sampled_from(QUICK), max_size=2))
@example(path="certify", extra=[("Mcfd-Test", "storage-full")], beside=["attention", "offline:1"])
def test_live_never_listens(shop: Shop, path: str, extra: list[tuple[str, str]], beside: list[str]) -> None:
    """Whatever `Mcfd-Test` says, however often and to which POST, and whatever a test key rehearses just before: a live key gets the answer
    that it gets without it, and neither machine nor box has noticed anything."""
    for case in beside:
        rehearse(shop, case, f"BESIDE-{next(NUMBERS)}")
    number = f"P-{next(NUMBERS)}"
    assert act(shop, path, f"{number}-1", extra) == act(shop, path, f"{number}-0", [])
    assert shop.is_ready()
    assert {line["mode"] for line in shop.events("machine.attention")} <= {"test"}
    assert shop.get("info").json()["clockDrift"] in (-1, 0, 1)


def test_late_with_prefer_is_certified_later(shop: Shop) -> None:
    """202 at once, and the receipt by the key when the sandbox's machine is back."""
    late = {"Mcfd-Test": "late:1", "Prefer": "respond-async"}
    answer = shop.certify(invoice("LATE-1"), key="late-1", mode="test", headers=late)
    assert (answer.status_code, answer.json()["status"]) == (202, "waiting")
    outcome = wait_for(
        lambda: (found := shop.get("requests/late-1", mode="test").json())["status"] == "certified" and found,
        "the sale",
    )
    assert outcome["receipt"]["codeSecef"].startswith("TESTFACT")


def test_z_is_rehearsed_too(shop: Shop) -> None:
    """Any POST with a test key: a Z without its machine closes nothing, and is closed by the retry."""

    def close() -> httpx.Response:
        return shop.certify({}, key="z-1", mode="test", path="reports/z", headers={"Mcfd-Test": "offline:1"})

    assert close().json()["code"] == "BRIDGE_OFFLINE"
    assert wait_for(lambda: (answer := close()).status_code == 201 and answer, "the Z").json()["kind"] == "Z"


def move(shop: Shop, mode: Mode = "test", **body: object) -> httpx.Response:
    return shop.certify(body, mode=mode, path="test/clock")


def test_the_sandboxes_time_goes_on_and_no_other(own_shop: Shop) -> None:
    """A day later there is a Z of the next day, and the machine's own time is the same; after a restart too. Live, nothing has moved."""
    shop = own_shop
    shop.certify(invoice("S-1"), mode="test")
    today = shop.close_period(mode="test").json()["created_at"]
    moved = move(shop, days=31).json()
    assert moved["ahead_seconds"] == 31 * 86400
    later = shop.certify(invoice("S-2"), mode="test").json()
    assert later["certifiedAt"] > moved["now"] > today
    assert later["dateTime"][:8] == later["certifiedAt"][:10].replace("-", "")
    shop.stop_daemon()
    shop.start_daemon()
    closed = shop.close_period(mode="test").json()
    assert closed["created_at"][:7] > today[:7]
    live = shop.certify(invoice("L-1")).json()
    assert live["certifiedAt"] < moved["now"]
    assert shop.get("info").json()["clockDrift"] in (-1, 0, 1)
    shop.mcfd("verify", check=True)


def test_eight_days_without_the_tax_server_are_an_alert(own_shop: Shop) -> None:
    """In `info` and as an event; contact again ends it."""
    assert move(own_shop, days=8, taxServer="unreachable").json()["tax_server"] == "unreachable"
    server = own_shop.get("info", mode="test").json()["taxServer"]
    assert (server["alert"], server["daysSinceContact"]) == (True, 8)
    assert move(own_shop, taxServer="reachable").status_code == 200
    wait_for(lambda: not own_shop.get("info", mode="test").json()["taxServer"]["alert"], "the contact")
    assert not own_shop.get("info").json()["taxServer"]["alert"]


def test_only_a_test_key_moves_a_clock(shop: Shop) -> None:
    """404 for a live key; what cannot be read is refused by name."""
    assert move(shop, "live", days=1).json()["code"] == "NOT_FOUND"
    faults = move(shop, days=-1, hours="2", taxServer="gone", months=1).json()["errors"]
    assert {fault["field"] for fault in faults} == {"days", "hours", "taxServer", "months"}


def test_the_page_has_each_case_with_its_seconds() -> None:
    """docs/testing-your-till.md, by its table; what a till gets in each is compared above."""
    assert {case: line.most for case, line in PAGE_CASES.items()} == {case: line.most for case, line in CASES.items()}
