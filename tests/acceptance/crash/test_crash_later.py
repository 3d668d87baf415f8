"""What comes after a crash, or instead of one: reports without the machine, somebody else's invoices, the machine's own reports,
credit notes that take their time."""

from pathlib import Path
from typing import Any

import pytest
from support.crash.lane import AtFrame, Lane, every_commit
from support.shop import NIM, invoice, running_shop, wait_for


def test_reports_after_a_kill_do_not_wait_for_the_machine(tmp_path: Path) -> None:
    """Killed before the tick, and the machine is away at the next start: X has the certification (decision 13)."""
    with running_shop(tmp_path, config={"reports": {"aggregation_delay": 60.0}}) as shop:
        body = invoice("F-1")
        assert shop.certify(body, key="F-1").status_code == 200
        shop.kill_daemon()
        shop.machines[0].order("unplug")
        shop.start_daemon(ready=False)
        assert shop.get("reports/x").json()["certs_count"] == 1
        replayed = shop.certify(body, key="F-1")
        assert (replayed.status_code, replayed.headers["idempotency-replayed"]) == (200, "true")


@pytest.mark.long
@pytest.mark.parametrize("style", ["pending", "silent", "syn"])
@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_credit_note_that_takes_its_time_is_certified_once(lane: Lane, style: str, moment: Any) -> None:
    """The tax server checks for a second; the daemon is killed before 38h is executed, or while the check goes on."""
    sale = lane.shop.certify(invoice("F-1")).json()
    lane.machine.order("options", credit_check=1.0, credit_style=style)
    credit = invoice("A-1", invoiceType="FA", creditNoteRef=f"{NIM}-{sale['fvc']}")

    def certify() -> Any:
        return lane.shop.certify(credit, key="A-1", path="credit-note")

    lane.die_at(AtFrame(6, moment, "in"), certify)
    lane.start()
    answer = certify()
    assert answer.status_code == 200, answer.text
    lane.check()
    assert [entry["number"] for entry in lane.certified] == ["F-1", "A-1"]
    assert lane.certified[-1]["code"] == answer.json()["codeSecef"]


def test_a_kill_in_the_sandbox_loses_nothing_either(tmp_path: Path) -> None:
    """Its machine is in the daemon's own memory, and begins again with what the test book holds (decision 23)."""
    with Lane(tmp_path / "sandbox", sandbox=True) as lane:
        shop = lane.shop
        shop.headers("test")  # the key is made by the daemon, too: not at the commit that kills it
        for each, point in enumerate(every_commit(3), 1):
            body, key = lane.next_invoice()
            assert lane.die_at(point, lambda body=body, key=key: shop.certify(body, key=key, mode="test"))
            lane.start()
            wait_for(lambda: shop.get("info", mode="test").is_success, "the sandbox")
            answer = shop.certify(body, key=key, mode="test").json()
            assert answer["codeSecef"].startswith("TESTFACT")
            assert (answer["tc"], answer["fvc"]) == (each, each)
            assert shop.x_with(each, mode="test")["fvc_end"] == each
        assert lane.mcfd("verify")[0] == 0
        assert not lane.machine.certified()
