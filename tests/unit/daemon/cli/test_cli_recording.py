"""`mcfd machine recording`: what moved on a line, without the people unless root asks for them."""

from __future__ import annotations

import os
import time

import pytest
from support.cli.command import NIM, Command
from support.line.naive_frames import naive_encode
from support.line.scripted_line import IDLE

from bridge.recording.recording import RECEIVED, SENT, LineEvent, read
from daemon.recording.writer import LineFiles, RecordingPlace

CUSTOMER = "PM,00012345A,OUEDRAOGO & Fils,Secteur 4,,,"


@pytest.fixture
def mcfd(tmp_path):
    """With a minute-old sale to a customer, and one of just now that became an incident."""
    folder = tmp_path / "recordings" / NIM.partition("-")[0]
    files = LineFiles(RecordingPlace(folder, 1_000_000, 0, {"nim": NIM}))
    now = time.time_ns() // 1000
    files.write([LineEvent(now - 60_000_000, SENT, naive_encode(0x21, 0xC3, CUSTOMER.encode()))], "")
    files.write([LineEvent(now, RECEIVED, naive_encode(0x21, 0xC3, b"OK", IDLE))], "20261121T140512Z")
    files.close()
    return Command(tmp_path)


def test_it_is_shown_without_the_people(mcfd):
    """Command and fields by name, the customer masked."""
    output = mcfd.ok("machine", "recording", NIM)
    assert "C3h  SEQ 21  customer  CTYPE=PM  CIFU=xxxxxxxxx  CNAME=xxxx" in output
    assert "OUEDRAOGO" not in output
    assert len(output.splitlines()) == 2


def test_root_may_see_them(mcfd, monkeypatch):
    """And nobody else."""
    assert "OUEDRAOGO & Fils" in mcfd.ok("machine", "recording", NIM, "--raw")


@pytest.mark.skipif(os.geteuid() == 0, reason="this is root")
def test_others_may_not(mcfd):
    """One line says so."""
    done = mcfd.run("machine", "recording", NIM, "--raw")
    assert (done.returncode, done.stdout) == (1, "")
    assert "root" in done.stderr


def test_from_a_moment_on(mcfd):
    """An age, or a time; anything else is wrong use."""
    assert len(mcfd.ok("machine", "recording", NIM, "--since", "30s").splitlines()) == 1
    assert len(mcfd.ok("machine", "recording", NIM, "--since", "2026-01-01T00:00").splitlines()) == 2
    assert mcfd.run("machine", "recording", NIM, "--since", "yesterday").returncode == 2


def test_incidents(mcfd):
    """They are listed, shown by name, and one that is not there is told."""
    assert mcfd.ok("machine", "recording", "--incidents") == "20261121T140512Z\n"
    assert len(mcfd.ok("machine", "recording", "--incident", "20261121T140512Z").splitlines()) == 2
    done = mcfd.run("machine", "recording", "--incident", "../../etc/passwd")
    assert (done.returncode, done.stdout) == (1, "")


def test_a_file_to_be_sent(mcfd, tmp_path):
    """Masked, whole, and for its owner alone."""
    file = tmp_path / "sent.rec"
    mcfd.ok("machine", "recording", NIM, "--save", str(file))
    found = read(file.read_text())
    assert found.problems == ()
    assert (found.about["nim"], found.about["masked"]) == (NIM, "yes")
    assert len(found.events) == 2
    assert "OUEDRAOGO" not in file.read_text()
    assert file.stat().st_mode & 0o777 == 0o600


def test_nothing_was_recorded(tmp_path):
    """Told, with exit code 3."""
    done = Command(tmp_path).run("machine", "recording")
    assert (done.returncode, done.stdout) == (3, "")
