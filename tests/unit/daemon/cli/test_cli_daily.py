"""The command line for daily work: reports, journal and logs, as people read them."""

import json
import os
import re
import sqlite3
import subprocess
import sys
from contextlib import closing

import pytest
from support.cli.command import NIM, Command, limit_files, terminal_output
from support.ledgers.ledger import opened_till

from common.wire.instants import now_millis
from daemon.core.clock import DAY


def test_a_report_is_shown_as_it_is_printed(mcfd):
    """X of the open period, the last Z, a Z by number, A of a range: as paper, or as JSON for scripts."""
    assert "DAILY X REPORT" in mcfd.ok("report", "x")
    assert "PERIODIC X REPORT" in mcfd.ok("report", "x", "--from", "2020-01-01")
    last, first = mcfd.ok("report", "z"), mcfd.ok("report", "z", "1")
    assert last == first
    assert "Z REPORT No. 1" in last
    assert "A REPORT" in mcfd.ok("report", "a", "--from", "2020-01-01")
    french = mcfd.run("report", "z", env={"LC_ALL": "C.UTF-8"}).stdout
    assert "RAPPORT Z N° 1" in french.replace("\N{NO-BREAK SPACE}", " ")
    assert max(map(len, mcfd.ok("report", "x", "--width", "32").splitlines())) <= 32
    content = mcfd.json("report", "z")
    assert (content["kind"], content["z_number"], content["certs_count"]) == ("Z", 1, 2)
    assert mcfd.json("report", "x")["certs_count"] == 1
    assert mcfd.refused(2, "report", "a", "--from", "2026-13-01").startswith("from: ")


def test_the_journal(mcfd):
    """Newest first, one line each; by number, by code, by range and by state, and as JSON whole records."""
    entries = mcfd.json("journal", "--from", "2020-01-01")
    assert [entry["zNumber"] for entry in entries] == [None, 1, 1]
    code, number = entries[0]["codeSecef"], entries[0]["invoiceNumber"]
    assert code in mcfd.ok("journal", "--number", number)
    assert [entry["codeSecef"] for entry in mcfd.json("journal", "--code", f"{code[:4]}-{code[4:]}")] == [code]
    assert mcfd.json("journal", "--from", "2020-01-01", "--state", "refused") == []
    french = mcfd.run("journal", "--from", "2020-01-01", env={"LC_ALL": "C.UTF-8"}).stdout
    assert french.startswith("HEURE")
    assert french.count("certifiée") == 3


async def test_a_range_up_to_now_holds_what_a_fast_clock_wrote(tmp_path):
    """The book is ahead of the box: reports, journal and its file end with the book's last entry, and no sooner."""
    mcfd = Command(tmp_path)
    async with opened_till(mcfd.ledger) as (_, till):
        till.at = now_millis() + 20 * DAY
        await till.sell()
        await till.close()
    assert mcfd.json("report", "a")["certs_count"] == mcfd.json("report", "a")["closures"][0]["certs_count"] == 1
    assert len(mcfd.json("journal")) == 1
    assert "(1 line)" in mcfd.ok("journal", "--output", str(tmp_path / "journal.csv"))


async def test_the_journal_as_a_file(mcfd):
    """The whole range, oldest first, in each form, or the attempts of one number, of any time; a file that is there stays, and of one that could not be made nothing is left."""
    for form, first in (("csv", "seq,state"), ("excel-fr", "\ufeffN° d'ordre;État"), ("jsonl", '{"seq":1,')):
        target = mcfd.folder / f"journal.{form}"
        output = mcfd.ok("journal", "--from", "2020-01-01", "--output", str(target), "--format", form)
        assert output == f"written: {target} (3 lines)\n"
        assert target.read_text("utf-8").startswith(first)
        assert target.stat().st_mode & 0o777 == 0o600  # it names customers
        assert mcfd.refused(1, "journal", "--output", str(target)) == f"{target} exists already"
    one = mcfd.json("journal", "--from", "2020-01-01")[0]["invoiceNumber"]
    for_one = ("journal", "--number", one, "--output", str(mcfd.folder / "one.jsonl"), "--format", "jsonl")
    assert mcfd.ok(*for_one) == f"written: {mcfd.folder}/one.jsonl (1 line)\n"
    missing = mcfd.folder / "none" / "journal.csv"
    assert mcfd.refused(1, "journal", "--output", str(missing)).startswith(f"{missing} cannot be written")
    mcfd.refused(1, "journal", "--nim", "EL99999999", "--output", str(mcfd.folder / "half"))
    assert not (mcfd.folder / "half").exists()
    full = (limit_files.__module__, "limit_files", {"size": 300})
    with closing(sqlite3.connect(mcfd.ledger)) as daemon:  # so that reading makes no file
        daemon.execute("SELECT count(*) FROM sqlite_schema").fetchall()
        refused = mcfd.run("journal", "--from", "2020-01-01", "--output", str(mcfd.folder / "half"), first=full)
    assert refused.returncode == 3
    assert refused.stderr.endswith(
        f"mcfd: {mcfd.folder}/half cannot be written: the file is larger than that disk allows (FAT: 4 GB)\n"
    )
    assert not (mcfd.folder / "half").exists()
    wrong = mcfd.run("journal", "--format", "csv")
    assert (wrong.returncode, wrong.stderr.splitlines()[-1]) == (2, "mcfd: means something only with --output")


def test_a_machine_is_named_short_or_not_at_all(mcfd):
    """Where there is one it need not be named, its suffix never; a wrong one is refused, with a list of those that there are."""
    short = NIM.partition("-")[0]
    assert mcfd.ok("report", "x", "--nim", short) != ""
    assert (
        mcfd.refused(1, "report", "x", "--nim", "EL99999999")
        == f"EL99999999 is not in the configuration; there is {NIM}"
    )
    mcfd.ok("keys", "create", "--nim", short)
    assert [key["nim"] for key in mcfd.json("keys", "list")] == [NIM]


def test_logs_are_readable(mcfd):
    """Events of the daemon become a line with the time, what it means and its values; other lines stay as they are."""
    log = mcfd.folder / "mcfd.log"
    event = {
        "event": "clock.drift",
        "level": "warning",
        "time": "2026-11-20T10:00:00Z",
        "nim": NIM,
        "seconds": 300,
    }
    log.write_text(json.dumps(event) + "\nnot ours\n{}\n")
    first, second, third = mcfd.ok("logs", "--file", str(log)).splitlines()
    assert first.endswith(f"WARNING  the box's clock is off  nim={NIM}  seconds=300")
    assert (second, third) == ("not ours", "{}")
    assert mcfd.ok("logs", "--file", str(log), "-n", "1") == "{}\n"
    french = mcfd.run("logs", "--file", str(log), env={"LC_ALL": "fr_BF.UTF-8"}).stdout
    assert "ATTENTION  l'horloge du boîtier est décalée" in french


def test_the_bar_has_a_total_and_the_time_left():
    """Each total its own bar; lines now and then where there is no terminal; JSON for the page."""
    script = "from daemon.cli.output import Progress\nwith Progress() as p:\n    p(1, 4)\n    p(3, 4)\n    p(5, 10)\n    p(10, 10)\n"
    text = terminal_output([sys.executable, "-c", script], {**os.environ, "TERM": "xterm"})[1]
    assert "75%" in text
    assert "100%" in text
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60)
    assert done.stderr == ""


SEQUENCES = "\x1b]0;x\x07\x1b[2J\x9b31m\nmcfd: all is well\u202e"


def test_a_stranger_writes_nothing_on_the_terminal_of_root(mcfd):
    """Control characters of a stranger are spelt out: no escape sequence, no line of its own, no change of direction."""
    log = mcfd.folder / "mcfd.log"
    failed = {"time": "2025-12-03T08:00:00.123Z", "level": "warning", "event": "login.failed", "name": SEQUENCES}
    log.write_text(json.dumps(failed) + "\n" + SEQUENCES.replace("\n", "") + "\n")
    output = mcfd.ok("logs", "--file", str(log))
    assert output.count("\n") == 2
    assert "\\x1b[2J\\x9b31m\\nmcfd: all is well\\u202e" in output
    assert re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", output) is None
    mcfd.ok("keys", "create", "--nim", NIM, "--label", "till \u202e")
    assert "till \\u202e" in mcfd.ok("keys", "list")


@pytest.mark.parametrize(
    ("code", "words", "arguments"),
    [
        (2, "'NUMBER'", ("report", "z", "0")),
        (2, "'YEAR'", ("archive", "x", "--into", "own")),
        (2, "--reason", ("time", "repair")),
        (2, "--key", ("homologation", "run", "--url", "http://127.0.0.1:9/v1/mcf/NIM", "--into", "own")),
        (1, "/proc/own", ("homologation", "make", "--into", "/proc/own")),
        (1, "/proc/own", ("homologation", "run", "--url", "http://x", "--key", "k", "--into", "/proc/own")),
        (1, "it is a directory", ("restore", "/proc", "--yes")),
    ],
)
def test_wrong_arguments_are_one_line(mcfd: Command, code: int, words: str, arguments: tuple[str, ...]) -> None:
    """A number that no Z has, a year that is none, what would be prompted for, a folder that cannot be made: no traceback."""
    done = mcfd.run(*arguments)
    assert done.returncode == code, done.stderr
    *usage, fault = done.stderr.splitlines()
    assert fault.startswith("mcfd: ")
    assert words.strip("'") in fault
    assert all(line.startswith("Usage: ") for line in usage)
