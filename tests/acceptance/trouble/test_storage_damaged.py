"""A ledger that cannot be worked with: refused at the start, in one line that says what to do, and what it says works."""

from pathlib import Path

from support.crash.lane import Lane
from support.nursery import Nursery
from support.shop import invoice, wait_for

PAGE = 4096
UNUSABLE = 3


def refused_start(lane: Lane) -> str:
    lane.shop.log_file.unlink()
    lane.shop.launch_daemon()
    assert lane.shop.wait_for_exit() == UNUSABLE
    (line,) = lane.shop.events("start.refused")
    return str(line["reason"])


def test_a_damaged_page_is_refused_and_the_backup_put_back_goes_on(tmp_path: Path, nursery: Nursery) -> None:
    """The newest invoice is not in the backup: the machine knows it, so its number is not given out again."""
    with Lane(tmp_path / "lane", nursery) as lane:
        shop, saved = lane.shop, tmp_path / "saved"
        for number in ("F-1", "F-2"):
            assert shop.certify(invoice(number)).status_code == 200
        assert lane.mcfd("backup", str(saved))[0] == 0
        assert shop.certify(invoice("F-3")).status_code == 200
        assert shop.stop_daemon() == 0
        with shop.ledger.open("r+b") as ledger:
            ledger.seek(4 * PAGE)
            ledger.write(b"\xaa" * PAGE)
        reason = refused_start(lane)
        assert str(shop.ledger) in reason
        assert "mcfd restore" in reason
        assert lane.mcfd("verify")[0] != 0

        assert lane.mcfd("restore", str(saved), "--yes")[0] == 0
        shop.start_daemon(ready=False)
        wait_for(lambda: shop.certify(invoice("F-4")).json().get("code") == "MACHINE_ATTENTION", "attention")
        assert lane.mcfd("machine", "settle", "--decision", "adopt", "--reason", "page damaged")[0] == 0
        wait_for(lambda: shop.certify(invoice("F-4"), key="4").status_code == 200, "service")
        assert shop.certify(invoice("F-3")).status_code == 409
        assert [entry["number"] for entry in lane.machine.certified()] == ["F-1", "F-2", "F-3", "F-4"]
        assert lane.mcfd("verify")[0] == 0
