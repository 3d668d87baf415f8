"""What is given out is on record: duplicates, reports on paper, the report of articles that is closed (SFE 2.11, 2.23, 5.1)."""

import csv
import io
import json
from pathlib import Path
from typing import Any

from support.shop import NIM, Shop, invoice, running_shop, wait_for
from support.till import certified, problem


def lines(shop: Shop, state: str) -> list[dict[str, Any]]:
    text = shop.get("certifications", format="jsonl").text
    return [line for line in map(json.loads, text.splitlines()) if line["state"] == state]


def closed(shop: Shop, key: str) -> Any:
    return shop.certify({}, key=key, path="reports/articles")


def test_a_duplicate_is_numbered_and_on_record(tmp_path: Path) -> None:
    """Per invoice, on its paper, in the journal's files, the audit log and the receipt; a retry of the sale gets the answer of then, and a print that fails is
    no copy."""
    printer = {"printer": {"address": "tcp://127.0.0.1:9", "timeout": 1.0}}
    with running_shop(tmp_path, config=printer) as shop:
        first = shop.certify(invoice("D-1"), key="d-1")
        path = f"certifications/{certified(first)['codeSecef']}"
        other = certified(shop.certify(invoice("D-2")))["codeSecef"]
        assert "DUPLICATA" not in shop.get(f"{path}/ticket").text
        problem(shop.certify(None, path=f"{path}/print", copy="duplicate"), 503, "PRINTER_UNAVAILABLE")
        assert "copies" not in shop.get(path).json()["receipt"]
        url = f"/v1/mcf/{NIM}/{path}/ticket?copy=duplicate"
        assert shop.http.head(url, headers=shop.headers()).status_code == 405
        for number in (1, 2):
            assert f"DUPLICATA N° {number}" in shop.get(f"{path}/ticket", copy="duplicate").text
        assert "DUPLICATA N° 1" in shop.get(f"certifications/{other}/ticket", copy="duplicate").text
        assert shop.get(path).json()["receipt"]["copies"] == 2
        assert [(line["invoiceNumber"], line["copy"]) for line in lines(shop, "copy")] == [
            ("D-1", 1),
            ("D-1", 2),
            ("D-2", 1),
        ]
        rows = csv.DictReader(io.StringIO(shop.get("certifications", format="csv").text))
        assert [row["state"] for row in rows].count("copy") == 3
        assert shop.certify(invoice("D-1"), key="d-1").content == first.content
        assert shop.mcfd("audit").stdout.count("D-1") >= 2
        shop.stop_daemon()
        shop.verify()


def test_a_report_on_paper_comes_back_as_it_was(own_shop: Shop) -> None:
    """SFE 2.23: X and A that were given out are entries of the journal, whatever was sold since."""
    certified(own_shop.certify(invoice("R-1", 5000)))
    wait_for(lambda: own_shop.get("reports/x").json()["certs_count"] == 1, "the tick")
    for report in ("x", "a", "articles"):
        assert own_shop.get(f"reports/{report}/ticket").status_code == 200
    certified(own_shop.certify(invoice("R-2", 7000)))
    reports = lines(own_shop, "report")
    assert [line["kind"] for line in reports] == ["X", "A", "articles"]
    for line in reports:
        assert line["report"]["total_ttc"] == 5000
        assert own_shop.get(f"reports/given/{line['id']}").json() == line["report"]
    problem(own_shop.get("reports/given/999"), 404, "NOT_FOUND")


def test_a_report_on_paper_is_given_out_three_hundred_times_an_hour(own_shop: Shop) -> None:
    """Each is stored, so a screen that asks for the paper again and again gets 429 with a delay; as JSON it may ask as often as it likes."""
    answers = [own_shop.get("reports/x/ticket") for _ in range(301)]
    assert {answer.status_code for answer in answers[:300]} == {200}
    problem(answers[300], 429, "TOO_MANY_REQUESTS")
    assert 0 < int(answers[300].headers["retry-after"]) <= 3600
    assert own_shop.get("reports/x").status_code == 200
    assert len(lines(own_shop, "report")) == 300
    own_shop.verify()


def test_the_report_of_articles_goes_on_after_the_one_before(own_shop: Shop) -> None:
    """SFE 5.1: numbered, kept, each certification in one of them, also after a restart; a retry closes none, and where nothing was sold since there is
    none."""
    problem(closed(own_shop, "a-1"), 409, "NOTHING_TO_CLOSE")
    certified(own_shop.certify(invoice("A-1", 5000)))
    first = closed(own_shop, "a-1")
    assert (first.status_code, first.json()["number"], first.json()["total_ttc"]) == (201, 1, 5000)
    assert closed(own_shop, "a-1").content == first.content
    certified(own_shop.certify(invoice("A-2", 700)))
    wait_for(lambda: own_shop.get("reports/x").json()["certs_count"] == 2, "the tick")
    assert own_shop.get("reports/articles").json()["total_ttc"] == 700
    own_shop.stop_daemon()
    own_shop.start_daemon()
    second = closed(own_shop, "a-2").json()
    assert (second["number"], second["total_ttc"], second["from"]) == (2, 700, first.json()["to"])
    problem(closed(own_shop, "a-3"), 409, "NOTHING_TO_CLOSE")
    assert own_shop.get("reports/articles/1").json() == first.json()
    assert "N° 1" in own_shop.get("reports/articles/1/ticket").text
    problem(own_shop.get("reports/articles/9"), 404, "NOT_FOUND")
    own_shop.stop_daemon()
    own_shop.verify()
