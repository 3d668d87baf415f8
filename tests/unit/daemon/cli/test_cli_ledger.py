import json
import os
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner
from support.cli.command import CONFIG, NIM, Command, terminal_output
from support.ledgers.ledger import Till, opened, opened_till, tamper
from support.shop import BIN

from common.language.reasons import WRITES_LOST, to_stored
from daemon.cli.commands import clock
from daemon.store.sqlite.lock import LedgerLock
from daemon.store.tables.book.books import open_book

DOCS = Path(__file__).parents[4] / "docs"


def test_a_sound_ledger_and_a_changed_record(mcfd):
    """Exit 0, and what was looked through; exit 1, and the record that is not what it was."""
    expected = {"ok": True, "ledger": str(mcfd.ledger), "problems": [], "notes": []}
    assert mcfd.json("verify") == {**expected, "books": 1, "records": 3, "closures": 1}
    assert mcfd.ok("verify") == f"{mcfd.ledger}: all is right (1 book, 3 records, 1 Z closure)\n"
    tamper(mcfd.ledger, "UPDATE certification SET total_ttc = 1 WHERE seq = 2")
    done, output = mcfd.run("verify"), mcfd.run("verify", "--json")
    assert (done.returncode, done.stdout, f"mcfd: {NIM} (live): " in done.stderr) == (1, "", True)
    assert (output.returncode, '"ok": false' in output.stdout) == (1, True)


def test_a_backup_is_verified_and_put_back(mcfd):
    """A file is replaced only with --force, the ledger never; after a restore the ledger before it is kept, and both are sound."""
    copy = mcfd.folder / "copy.sqlite3"
    assert mcfd.ok("backup", str(copy)) == f"verified copy: {copy} (3 records, 1 Z closure)\n"
    assert mcfd.refused(1, "backup", str(copy)) == f"{copy} exists already"
    mcfd.ok("backup", str(copy), "--force")
    before = mcfd.ledger.read_bytes()
    assert mcfd.refused(1, "backup", str(mcfd.ledger), "--force") == f"{mcfd.ledger} exists already"
    assert mcfd.refused(1, "restore", str(mcfd.ledger)) == f"{mcfd.ledger} is the ledger itself"
    assert mcfd.ledger.read_bytes() == before
    mcfd.ok("keys", "create", "--nim", NIM)
    unchanged = mcfd.json("restore", str(copy), "--yes", "--keep-newer")
    assert (unchanged["is_unchanged"], unchanged["aside"], len(mcfd.json("keys", "list"))) == (True, None, 1)
    restored = mcfd.json("restore", str(copy), "--yes")
    assert (restored["ledger"], restored["records"], restored["is_unchanged"]) == (str(mcfd.ledger), 3, False)
    assert mcfd.json("keys", "list") == []
    assert mcfd.json("verify")["records"] == 3
    shutil.move(restored["aside"], mcfd.ledger)
    assert len(mcfd.json("keys", "list")) == 1


@pytest.mark.parametrize(
    ("machine", "is_reported"), [("", False), ("enabled = false", False), ("enabled = true", True)]
)
async def test_missing_writes_are_reported_while_the_machine_may_answer(mcfd, machine, is_reported):
    """A book whose machine left the configuration or is off is never compared, and would fail for ever; doctor advises `settle`."""
    if machine:
        mcfd.config.write_text(f'{CONFIG}\n[[machine]]\nnim = "EL02000099-1"\nport = "/dev/mcf-2"\n{machine}\n')
    lost = to_stored(WRITES_LOST(count=3))
    tamper(mcfd.ledger, "INSERT INTO meta VALUES ('lost_writes', ?)", lost)
    async with opened(mcfd.ledger) as store:
        await store.ledger.write(open_book, "EL02000099-1", "live")
    tamper(mcfd.ledger, "UPDATE book SET restored_at = 5 WHERE nim = 'EL02000099-1'")
    done = mcfd.run("verify")
    assert (done.returncode, "acknowledged writes are missing" in done.stderr) == (is_reported, is_reported)
    found = next(
        each for each in json.loads(mcfd.run("doctor", "--json").stdout)["checks"] if each["check"] == "ledger"
    )
    assert (found["state"], "settle" in found["todo"], "restore" in found["todo"]) == (
        ("fail", True, False) if is_reported else ("ok", False, False)
    )


def test_a_copy_is_verified_where_it_lies(mcfd):
    """By the variable that docs/install.md names: what is wrong with a copy is found, and says nothing of the ledger, whichever process holds that meanwhile."""
    copy = mcfd.folder / "copy.sqlite3"
    mcfd.ok("backup", str(copy))
    env = {"MCFD_STORAGE_PATH": str(copy), "LC_ALL": "en_US.UTF-8"}
    lock = LedgerLock.acquire(mcfd.ledger)
    try:
        assert mcfd.run("verify", env=env).stdout == f"{copy}: all is right (1 book, 3 records, 1 Z closure)\n"
        tamper(copy, "UPDATE certification SET total_ttc = 1 WHERE seq = 2")
        assert mcfd.run("verify", env=env).returncode == 1
    finally:
        lock.release()
    assert mcfd.json("verify")["ok"]
    for page in ("install.md", "install.fr.md"):
        assert "`sudo MCFD_STORAGE_PATH=COP" in (DOCS / page).read_text()


def test_backups_with_a_date_are_thinned_out(mcfd):
    """`--into` names the copy by its time; `--keep-daily` lets older ones of the same day go, and a rest of one that was killed goes too."""
    folder = mcfd.folder / "backups"
    folder.mkdir()
    old = [folder / f"mcfd-2020010{day}T000000Z.sqlite3" for day in (1, 2, 3)]
    for file in (*old, folder / f"{old[2].name}.part"):
        file.touch()
    content = mcfd.json("backup", "--into", str(folder), "--keep-daily", "2", "--keep-monthly", "1")
    assert content["deleted"] == [str(file) for file in old[:2]]
    assert {str(file) for file in folder.iterdir()} == {content["backup"], str(old[2])}
    for arguments in ([], ["x", "--into", "y"], ["x", "--keep-daily", "1"]):
        assert mcfd.run("backup", *arguments).returncode == 2


@pytest.mark.parametrize("place", ["file", "file/below", "pipe"])
def test_a_folder_for_backups_that_is_none(mcfd, place):
    """One line with its path, as for a stick that is not there."""
    (mcfd.folder / "file").touch()
    os.mkfifo(mcfd.folder / "pipe")
    done = mcfd.run("backup", "--into", str(mcfd.folder / place))
    assert done.returncode in (1, 2)
    assert "Traceback" not in done.stderr
    assert str(mcfd.folder / place) in done.stderr.splitlines()[-1]


def test_at_a_terminal_it_asks_first(mcfd):
    """An operator who says no keeps the ledger: exit 130; one who says yes, or a script, gets it replaced."""
    copy = mcfd.folder / "copy.sqlite3"
    mcfd.ok("backup", str(copy))
    mcfd.ok("keys", "create", "--nim", NIM)
    no = mcfd.at_terminal(b"n\n", "restore", str(copy))
    assert (no.returncode, len(mcfd.json("keys", "list"))) == (130, 1)
    yes = mcfd.at_terminal(b"y\n", "restore", str(copy))
    assert (yes.returncode, len(mcfd.json("keys", "list"))) == (0, 0)
    assert mcfd.at_terminal(b"", "restore", str(copy), "--yes").returncode == 0


async def test_it_says_which_certifications_the_copy_lacks(mcfd):
    """How many, first and last; with `--keep-newer` a damaged ledger is mended, and one that cannot be is not replaced."""
    async with opened_till(mcfd.ledger) as (_, till):
        await till.sell()
    copy, again = mcfd.folder / "copy.sqlite3", mcfd.folder / "again.sqlite3"
    mcfd.ok("backup", str(copy))
    async with opened_till(mcfd.ledger) as (_, till):
        lacks = [(await till.sell()).number for _ in range(3)]
    mcfd.ok("backup", str(again))
    keeping = ("restore", str(copy), "--yes", "--keep-newer")
    compared = "at the next start it is compared with the machine"
    stays = mcfd.ok(*keeping)
    assert ("has all of the copy and 3 invoices since" in stays, compared in stays) == (True, False)
    tamper(mcfd.ledger, "UPDATE certification SET payload = x'00' WHERE seq = 1")
    assert "taken over from the ledger it replaces: 3 invoices" in mcfd.ok(*keeping)
    done = mcfd.run("restore", str(again), "--yes")
    assert "lacks" not in done.stderr
    assert (f"{mcfd.ledger} put back (" in done.stdout, compared in done.stdout) == (True, True)
    tamper(mcfd.ledger, "UPDATE certification SET hash = x'00' WHERE number = ?", lacks[2])
    found = f"{copy} lacks 3 invoices ({lacks[0]} to {lacks[2]})"
    before = mcfd.ledger.read_bytes()
    assert found in mcfd.refused(3, *keeping)
    assert mcfd.ledger.read_bytes() == before
    assert found in mcfd.run("restore", str(copy), "--yes").stderr
    mcfd.ledger.write_bytes(b"no ledger")
    assert "nothing was taken over from the ledger it replaces" in mcfd.ok(*keeping)
    assert mcfd.json("verify")["records"] == 4


async def test_what_a_mended_ledger_has_lost_is_named(mcfd):
    """A sale since the copy whose invoice cannot be read."""
    copy = mcfd.folder / "copy.sqlite3"
    mcfd.ok("backup", str(copy))
    async with opened_till(mcfd.ledger) as (_, till):
        damaged, _ = [await till.sell() for _ in range(2)]
    tamper(mcfd.ledger, "UPDATE certification SET payload = x'00' WHERE id = ?", damaged.id)
    done = mcfd.run("restore", str(copy), "--yes", "--keep-newer")
    assert (done.returncode, f"has lost the records {damaged.seq} to {damaged.seq}" in done.stdout) == (0, True), done


async def test_a_poisoned_time_is_repaired_with_the_daemon_stopped(mcfd):
    """`mcfd time show` names the book; `repair` is refused beside a daemon, says what it did, and the ledger verifies."""
    async with opened_till(mcfd.ledger) as (_, till):
        till.at += 20 * 365 * 86_400_000
        await till.sell()
    assert f"mcfd time repair {NIM}" in mcfd.ok("time", "show")
    lock = LedgerLock.acquire(mcfd.ledger)
    refused = mcfd.run("time", "repair", "--reason", "wrong year")
    lock.release()
    assert (refused.returncode != 0, "stop that one first" in refused.stderr) == (True, True)
    text = terminal_output([BIN / "mcfd", "time", "repair", NIM, "--json"], mcfd.environ(), ("x" * 201, "wrong year"))[
        1
    ]
    assert text.count("Reason: ") == 2  # one that is too long is prompted for again
    done = json.loads(text[text.index("{") :])
    assert done["from"].startswith("2045")
    assert done["to"] < "2045"
    again = mcfd.run("time", "repair", "--reason", "wrong year")
    assert "nothing to repair" in again.stderr
    assert mcfd.json("verify")["ok"]
    assert mcfd.run("time", "repair", "--reason", "x", "--ahead", "soon").returncode == 2
    for reason in ("a\nb", "x" * 201, " "):
        refused = mcfd.run("time", "repair", "--reason", reason)
        assert (refused.returncode, "--reason" in refused.stderr) == (2, True)
    assert mcfd.ok("time", "accept").startswith("accepted")


def test_no_book_is_wrong_by_a_clock_that_is_not_set(mcfd, monkeypatch):
    """On a box that has begun in 1970: its clock has to be set, not the book repaired."""
    monkeypatch.setattr(clock, "now_millis", lambda: 60_000)
    done = CliRunner().invoke(clock.command, ["show", "--config", str(mcfd.config)])
    assert ("1970-01-01T00:01:00.000Z" in done.output, "repair" in done.output) == (True, False), done.output


async def test_each_machine_has_its_own_last_z(mcfd, tmp_path):
    """`--last-z NIM=3` for each; who is left out is named; none is below the ledger's own, and without --yes nothing is done."""
    other = "EL02000099-1"
    async with opened(mcfd.ledger) as store:
        await (await Till.of(store, other)).close()
    copy, folder = tmp_path / "copy.sqlite3", tmp_path / "new"
    mcfd.ok("backup", str(copy))
    folder.mkdir()
    new = Command(folder)
    refused = new.refused(2, "restore", str(copy), "--yes", "--last-z", "7")
    assert f"{NIM}, {other}" in refused
    assert not new.ledger.exists()
    for wrong in (("x",), (f"{NIM}=",), ("nim=3",), (f"{NIM}=3", f"{NIM}=4"), ("3", f"{NIM}=4"), (f"{NIM}=-3",)):
        rows = [part for value in wrong for part in ("--last-z", value)]
        assert new.run("restore", str(copy), "--yes", *rows).returncode == 2
    number = f"{NIM.partition('-')[0]}=7"
    output = new.ok("restore", str(copy), "--yes", "--last-z", number)
    done = new.run("restore", str(copy), "--last-z", number)
    assert (done.returncode, f"--last-z {number}: the next Z will be 8; that cannot be" in done.stderr) == (2, True)
    assert f"mcfd machine last-z {other} NUMBER" in output
    assert f"last-z {NIM}" not in output
    assert "cannot be the last Z" in new.refused(2, "machine", "last-z", other, "0", "--yes")
    assert new.ok("machine", "last-z", other, "1", "--yes") == f"the next Z of {other} is 2\n"
    again = json.loads(
        new.ok("restore", str(copy), "--yes", "--json", "--last-z", f"{NIM}=7", "--last-z", f"{other}=2")
    )
    assert again["asks_last_z"] == []
    assert json.loads(new.ok("verify", "--json"))["closures"] == 2
    async with opened(new.ledger) as store:
        assert (await (await Till.of(store)).close()).z_number == 8
        assert (await (await Till.of(store, other)).close()).z_number == 3
