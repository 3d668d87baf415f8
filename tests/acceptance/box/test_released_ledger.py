"""A ledger that a release has left, with its machines and what its tills were answered: an upgrade goes on with it.

`tests/releases/0.1.0.tar.gz` was made by 0.1.0 itself on two machines, one of which counts local sales alone in FVC: sales of every type, a specific tax,
PSVB, credit notes, a rebate, cash, a Z, a revoked key, numbers that differ by their case alone."""

import json
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.shop import IFU, NIM, Machine, Shop, invoice

RELEASES = Path(__file__).parents[2] / "releases"
SECOND = "EL02000016-1"
REVOKED = "ak_live_H7EOTLH5S45dT92jqIYoJqX39nzITtPf1NxY3F"


@pytest.fixture(scope="module")
def left(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Shop, dict[str, Any]]]:
    folder = tmp_path_factory.mktemp("released")
    with tarfile.open(RELEASES / "0.1.0.tar.gz") as archive:
        archive.extractall(folder)  # noqa: S202  our own
    left = json.loads((folder / "asked.json").read_text())
    machines = (Machine(folder), Machine(folder, SECOND, IFU, "--fvc-local"))
    with Shop(folder, machines=machines) as shop:
        for name, key in left["keys"].items():
            nim, mode = name.split()
            shop.use_key(key, mode, nim)
        shop.start()
        yield shop, left
        shop.stop_daemon()
        shop.verify()


def test_each_retry_gets_the_answer_of_then(left: tuple[Shop, dict[str, Any]]) -> None:
    """The same key and body: status and body as 0.1.0 gave them, for sales, credit notes, cash and Z, live and sandbox."""
    shop, record = left
    for each in record["asked"]:
        path = f"/v1/mcf/{each['nim']}/{each['path']}"
        headers = shop.headers(each["mode"], each["nim"], each["key"])
        answer = shop.http.post(path, json=each["body"], headers=headers)
        assert answer.status_code == each["status"]
        if answer.is_success:
            assert answer.headers["Idempotency-Replayed"] == "true"
            found = answer.json()
            assert {name: found.get(name) for name in each["answer"]} == each["answer"]


@pytest.mark.parametrize("nim", [NIM, SECOND])
def test_reports_and_papers_stay_as_they_were(left: tuple[Shop, dict[str, Any]], nim: str) -> None:
    """The open period, the closed one and the range have the figures of then, the withholding of then among them; a ticket has its amounts."""
    shop, record = left
    reports = record["reports"][nim]
    for name, path in (("x", "reports/x"), ("a", "reports/a"), ("z", "reports/z/1"), ("reports", "reports")):
        found, before = shop.get(path, nim=nim).json(), reports[name]
        moving = ("period_end", "from", "to")
        assert {key: found[key] for key in before if key not in moving} == {
            key: value for key, value in before.items() if key not in moving
        }
    for code, text in reports["tickets"].items():
        found = shop.get(f"certifications/{code}/ticket", nim=nim, format="text", copy="original").text
        lines = [line.split() for line in found.splitlines()]  # columns may stand farther apart
        amounts = [line for line in text.splitlines() if line.startswith(("PSVB", "TOTAL", "Total", "Groupe", "B 18"))]
        assert amounts
        assert [line for line in amounts if line.split() not in lines] == []


@pytest.mark.parametrize("nim", [NIM, SECOND])
def test_the_shop_goes_on(left: tuple[Shop, dict[str, Any]], nim: str) -> None:
    """A new sale, a number of then again, the next Z: certified, refused, numbered on; nothing is in attention."""
    shop, _ = left
    assert shop.certify(invoice("N-1"), nim=nim).status_code == 200
    duplicate = shop.certify(invoice("F-1", 700), nim=nim)
    assert (duplicate.status_code, duplicate.json()["code"]) == (409, "DUPLICATE_INVOICE")
    closure = shop.close_period(nim=nim)
    assert (closure.status_code, closure.json()["z_number"]) == (201, 2)


def test_papers_of_then_have_the_counters_of_the_law(left: tuple[Shop, dict[str, Any]]) -> None:
    """SECeF 2.10.4: once a new sale has shown that the machine's FC is FVC, a local sale of then has it too; an export has a question mark. The journal's
    receipt says the same, a retry what 0.1.0 said."""
    shop, record = left
    seen = set()
    for nim in (NIM, SECOND):
        assert shop.certify(invoice(f"N-{nim}"), nim=nim).status_code == 200
    for each in record["asked"]:
        answer, kind = each["answer"], each["body"].get("invoiceType")
        if each["mode"] != "live" or each["status"] != 200 or kind not in ("FV", "EV"):
            continue
        expected = f"{answer['fvc'] if kind == 'FV' else '?'}/{answer['tc']} {kind}"
        code = answer["codeSecef"]
        paper = shop.get(f"certifications/{code}/ticket", nim=each["nim"], format="text", copy="duplicate").text
        assert expected in paper
        record = shop.get(f"certifications/{code}", nim=each["nim"]).json()
        assert record["receipt"] == answer | {"counters": expected, "copies": 1}
        seen.add(kind)
    assert seen == {"FV", "EV"}


def test_a_revoked_key_stays_revoked(left: tuple[Shop, dict[str, Any]]) -> None:
    """As in 0.1.0."""
    shop, _ = left
    answer = shop.http.get("/v1/me", headers={"Authorization": f"Bearer {REVOKED}"})
    assert answer.status_code == 401
