"""A disk has lost the newest page of records: the shop goes on with all others, and its Z agrees with the machine."""

import contextlib
import sqlite3
from pathlib import Path

from support.ledgers.ledger import query
from support.shop import invoice, running_shop, wait_for

PAGE = 4096
PAGES = "SELECT pageno FROM dbstat WHERE name = 'certification' AND pagetype = 'leaf' ORDER BY pageno"


def test_a_shop_goes_on_without_records_that_its_disk_has_lost(tmp_path: Path) -> None:
    """A till that repeats a lost sale under its key is refused, one that has its answer still gets it, and a new sale is certified. The Z counts what
    the machine has, sold or unexplained; the ledger is sound and can be copied."""
    with running_shop(tmp_path) as shop:
        [machine] = shop.machines
        numbers = [f"F-{number}" for number in range(60)]
        for number in numbers:
            assert shop.certify(invoice(number), key=number).status_code == 200
            if number == "F-20":
                shop.closed()
                shop.mcfd("backup", str(tmp_path / "copy"), check=True)
        shop.stop_daemon()
        with contextlib.closing(sqlite3.connect(shop.ledger)) as ledger:
            ledger.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        with shop.ledger.open("r+b") as file:
            file.seek((query(shop.ledger, PAGES)[-1][0] - 1) * PAGE)
            file.write(b"\xff" * PAGE)
        done = shop.mcfd("restore", str(tmp_path / "copy"), "--yes", "--keep-newer", check=True)
        assert "a disk has lost the records" in done.stdout
        there = {number for (number,) in query(shop.ledger, "SELECT number FROM certification")}
        lost = [number for number in numbers if number not in there]
        assert 0 < len(lost) < 16
        shop.start_daemon()
        again = shop.certify(invoice(lost[-1]), key=lost[-1])
        assert (again.status_code, again.json()["code"]) == (503, "LEDGER_DAMAGED")
        assert shop.certify(invoice("F-22"), key="F-22").headers["Idempotency-Replayed"] == "true"
        assert shop.certify(invoice("F-60"), key="F-60").status_code == 200
        assert len(machine.certified()) == 61
        z = wait_for(shop.closed, "the Z")
        assert z["certs_count"] + z["unexplained"] == 61 - 21
        shop.mcfd("backup", str(tmp_path / "again"), check=True)
