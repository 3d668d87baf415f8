"""Commands about the ledger on a disk that is full, or nearly: what they say is what became of it."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from support.box.mounts import fill, small_disk
from support.cli.command import CONFIG, Command, audited
from support.ledgers.ledger import Till, invoice, opened, query, tamper

UNAVAILABLE = 3


@pytest.fixture
async def box(tmp_path: Path) -> AsyncIterator[Command]:
    """A box whose ledger, of one closure, is on a small disk of its own."""
    with small_disk(tmp_path / "disk", 8) as disk:
        box = Command(tmp_path, CONFIG.replace('"mcfd.sqlite3"', '"disk/mcfd.sqlite3"'))
        box.ledger = disk / "mcfd.sqlite3"
        async with opened(box.ledger) as store:
            till = await Till.of(store)
            await till.sell()
            await till.close()
        yield box


def test_verify_on_a_full_disk_says_that_it_is_full(box: Command) -> None:
    """Nothing is wrong with the ledger: exit 3, not 1, and no "problem"; with room again it is verified."""
    filler = fill(box.ledger.parent)
    done = box.run("verify")
    assert (done.returncode, "full" in done.stderr, "problem" in done.stdout + done.stderr) == (3, True, False), done
    filler.unlink()
    assert box.ok("verify")


@pytest.mark.parametrize("beyond", [-65_536, 0, 4096, 8192, 12_288, 16_384, 24_576, 32_768, 65_536])
def test_a_restore_has_done_all_or_nothing_whatever_room_there_is(box: Command, tmp_path: Path, beyond: int) -> None:
    """Exit 0 and the ledger was replaced, with its entry in the audit log; or exit 3, and it is the one that was there."""
    copy = tmp_path / "copy.sqlite3"
    box.ok("backup", str(copy))
    before = box.ledger.stat().st_ino
    filler = fill(box.ledger.parent, leave=copy.stat().st_size + beyond)
    done = box.run("restore", str(copy), "--yes")
    filler.unlink()
    is_replaced = box.ledger.stat().st_ino != before
    assert done.returncode == (0 if is_replaced else UNAVAILABLE), (done.stdout, done.stderr)
    assert len(audited(box, "ledger.restored")) == is_replaced
    assert box.ok("verify")


@pytest.mark.parametrize("beyond", [0, 65_536, 262_144, *range(327_680, 425_984, 16_384), 2_097_152])
async def test_a_restore_that_takes_rows_over_takes_all_or_none(box: Command, tmp_path: Path, beyond: int) -> None:
    """A disk that is full is no page that cannot be read: nothing is left out for want of room."""
    copy = tmp_path / "copy.sqlite3"
    box.ok("backup", str(copy))
    async with opened(box.ledger) as store:
        till = await Till.of(store)
        for number in range(800):
            await till.certify(invoice(f"F-{number}"), key=f"{number}".encode())
    tamper(box.ledger, "UPDATE certification SET payload = x'00' WHERE seq = 1")
    before = box.ledger.stat().st_ino
    filler = fill(box.ledger.parent, leave=copy.stat().st_size + beyond)
    done = box.run("restore", str(copy), "--yes", "--keep-newer")
    filler.unlink()
    is_replaced = box.ledger.stat().st_ino != before
    assert done.returncode == (0 if is_replaced else UNAVAILABLE), (done.stdout, done.stderr)
    is_full = "full" in done.stderr and "cannot be taken over" not in done.stderr
    assert is_full != is_replaced, done.stderr
    assert query(box.ledger, "SELECT count(*) FROM certification, idempotency") == [(801 * 800,)]
    assert box.run("verify").returncode == (not is_replaced)
