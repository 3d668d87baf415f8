"""A ledger that is behind its machine: nothing is certified, no number is given out, until an operator has looked and decided."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from support.crash.lane import AtFrame, Lane
from support.ledgers.ledger import query
from support.ledgers.ledger import settlements as read_settlements
from support.shop import NIM, Shop, invoice, wait_for

from daemon.store.tables.book.books import all_books

Put = Callable[[Lane, Path], None]
COUNTED = {"still": True}
"""A look at the idle machine between the order and the sale would be one of the frames: 38h would not be the sixth."""


def restored(lane: Lane, saved: Path, *options: str) -> None:
    code, output = lane.mcfd("restore", str(saved), *(options or ("--yes",)))
    assert code == 0, output


def attention(shop: Shop) -> str:
    return str(shop.http.get("/health/ready").json()["machines"][0]["attention"])


def copied(lane: Lane, saved: Path) -> None:
    """By somebody who does not know of `mcfd restore`."""
    for left in lane.shop.folder.glob("mcfd.sqlite3*"):
        left.unlink()
    shutil.copy(saved, lane.shop.ledger)


@pytest.mark.parametrize("put_back", [restored, copied])
def test_a_ledger_from_before_a_certification_never_gives_its_number_out_again(tmp_path: Path, put_back: Put) -> None:
    """The machine certified, its answer was lost, the daemon was killed, and the ledger put back is from before that invoice."""
    with Lane(tmp_path / "lane", hurry=COUNTED) as lane:
        shop, machine = lane.shop, lane.machine
        saved = tmp_path / "saved"
        assert shop.certify(invoice("F-1"), key="1").status_code == 200
        assert lane.mcfd("backup", str(saved))[0] == 0
        lane.die_at(AtFrame(6, "after", "in"), lambda: shop.certify(invoice("F-2"), key="2"))
        lane.end_hurry()
        put_back(lane, saved)
        shop.start_daemon(ready=False)
        wait_for(lambda: attention(shop), "attention")

        for again in (
            shop.certify(invoice("F-2"), key="2"),
            shop.certify(invoice("F-2")),
            shop.certify(invoice("F-3")),
            shop.close_period(),
        ):
            assert (again.status_code, again.json()["code"]) == (503, "MACHINE_ATTENTION")
            assert "'F-2'" in again.json()["detail"]
        assert [entry["number"] for entry in machine.certified()] == ["F-1", "F-2"]
        assert shop.events("machine.attention")

        code, output = lane.mcfd(
            "machine", "settle", NIM, "--decision", "adopt", "--reason", "ledger put back", "--json"
        )
        assert code == 0, output
        assert json.loads(output)["decision"] == "adopt"
        wait_for(lambda: shop.certify(invoice("F-3"), key="3").status_code == 200, "service")
        duplicate = shop.certify(invoice("F-2"), key="2")
        assert (duplicate.status_code, duplicate.json()["code"]) == (409, "DUPLICATE_INVOICE")
        log = machine.certified()
        assert duplicate.json()["certification"]["codeSecef"] == log[1]["code"]
        assert [entry["number"] for entry in log] == ["F-1", "F-2", "F-3"]
        assert lane.mcfd("verify")[0] == 0


def test_a_damaged_ledger_that_is_mended_with_a_copy_has_what_was_certified_since(tmp_path: Path) -> None:
    """Sales with and without a key, and a Z, since the copy; a doubt when the daemon is killed, and a page of the file that cannot be read. The daemon does
    not start; after the restore no decision is needed, each till that repeats a sale has the one that was certified, and the next Z has its number."""
    with Lane(tmp_path / "lane", hurry=COUNTED) as lane:
        shop, machine = lane.shop, lane.machine
        saved = tmp_path / "saved"
        assert shop.certify(invoice("F-1"), key="1").status_code == 200
        assert lane.mcfd("backup", str(saved))[0] == 0
        receipt = shop.certify(invoice("F-2"), key="2").json()
        assert shop.certify(invoice("F-3")).status_code == 200
        assert shop.close_period().json()["z_number"] == 1
        assert shop.certify(invoice("F-4"), key="4").status_code == 200
        lane.die_at(AtFrame(6, "after", "in"), lambda: shop.certify(invoice("F-5"), key="5"))
        lane.end_hurry()
        [(page,)] = query(shop.ledger, "SELECT rootpage FROM sqlite_schema WHERE name = 'certification_key'")
        query(shop.ledger, "PRAGMA wal_checkpoint(TRUNCATE)")
        with shop.ledger.open("r+b") as file:
            file.seek((page - 1) * 4096)
            file.write(b"\xff" * 4096)
        assert lane.mcfd("verify")[0] == 1
        restored(lane, saved, "--yes", "--keep-newer")
        shop.start_daemon()
        assert not attention(shop)
        again = shop.certify(invoice("F-2"), key="2")
        assert (again.status_code, again.json()["codeSecef"]) == (200, receipt["codeSecef"])
        for number in ("F-3", "F-4"):
            duplicate = shop.certify(invoice(number), key=f"another for {number}")
            assert (duplicate.status_code, duplicate.json()["code"]) == (409, "DUPLICATE_INVOICE")
        assert shop.certify(invoice("F-5"), key="5").status_code == 200
        assert shop.certify(invoice("F-6"), key="6").status_code == 200
        assert [entry["number"] for entry in machine.certified()] == [f"F-{n}" for n in range(1, 7)]
        closed = shop.closed()
        assert (closed["z_number"], closed["certs_count"]) == (2, 3)
        assert lane.mcfd("verify")[0] == 0


def test_an_invoice_of_somebody_else_in_the_middle_of_ours_is_not_guessed_at(tmp_path: Path) -> None:
    """The daemon is killed at 38h and another program certifies two invoices before it is back, of which ours might have been one: attention, and the
    operator's word is kept with its reason. One alone leaves no room for ours, and is no doubt."""
    with Lane(tmp_path / "lane", hurry=COUNTED) as lane:
        shop, machine = lane.shop, lane.machine
        lane.die_at(AtFrame(6, "before", "in", power=True), lambda: shop.certify(invoice("F-1"), key="1"))
        lane.end_hurry()
        for _ in range(2):
            machine.order("foreign-invoice", total=500)
        shop.start_daemon(ready=False)
        wait_for(lambda: attention(shop), "attention")
        again = shop.certify(invoice("F-1"), key="1")
        assert (again.status_code, again.json()["code"]) == (503, "MACHINE_ATTENTION")
        assert lane.mcfd("machine", "settle", "--decision", "certified", "--reason", "I think so")[0] == 1
        for decision, found in (("not-certified", "no known outcome"), ("adopt", "does not know")):
            wait_for(lambda found=found: found in attention(shop), found)
            settled = shop.mcfd(
                "machine", "settle", "--decision", decision, "--reason", "seen on the machine's journal"
            )
            assert settled.returncode == 0, settled.stderr
        wait_for(lambda: shop.http.get("/health/ready").is_success, "service")
        answer = shop.certify(invoice("F-1"), key="1")
        assert answer.status_code == 200, answer.text
        assert answer.json()["codeSecef"] == machine.certified()[-1]["code"]
        [book, *_] = shop.with_store(lambda store: store.journal.read(all_books))
        settlements = shop.with_store(lambda store: store.decisions.read(read_settlements, book))
        assert [(s.decision, s.reason) for s in settlements] == [
            ("abandoned", "seen on the machine's journal"),
            ("adopted", "seen on the machine's journal"),
        ]
        assert lane.mcfd("verify")[0] == 0
