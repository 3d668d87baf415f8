"""`mcfd machine recording`: what moved on a line, without the people unless root asks for them."""

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


def test_it_is_shown_without_the_people(mcfd, tmp_path):
    """Commands and fields by name, the customer masked unless root asks; from a time on, by incident; nothing recorded: 3."""
    look = ("machine", "recording")
    output = mcfd.ok(*look, NIM)
    assert "C3h  SEQ 21  customer  CTYPE=PM  CIFU=xxxxxxxxx  CNAME=xxxx" in output
    assert ("OUEDRAOGO" in output, len(output.splitlines())) == (False, 2)
    if os.geteuid() == 0:
        assert "OUEDRAOGO & Fils" in mcfd.ok(*look, NIM, "--raw")
    else:
        assert "root" in mcfd.refused(1, *look, NIM, "--raw")
    assert len(mcfd.ok(*look, NIM, "--since", "30s").splitlines()) == 1
    assert len(mcfd.ok(*look, NIM, "--since", "2026-01-01T00:00").splitlines()) == 2
    assert mcfd.run(*look, NIM, "--since", "yesterday").returncode == 2
    assert mcfd.ok(*look, "--incidents") == "20261121T140512Z\n"
    assert len(mcfd.ok(*look, "--incident", "20261121T140512Z").splitlines()) == 2
    done = mcfd.run(*look, "--incident", "../../etc/passwd")
    assert (done.returncode, done.stdout) == (1, "")
    (tmp_path / "other").mkdir()
    done = Command(tmp_path / "other").run(*look)
    assert (done.returncode, done.stdout) == (3, "")


def test_a_file_to_be_sent(mcfd, tmp_path):
    """Masked, whole, and for its owner alone; a file that exists stays."""
    file = tmp_path / "sent.rec"
    mcfd.ok("machine", "recording", NIM, "--save", str(file))
    found = read(file.read_text())
    assert found.problems == ()
    assert (found.about["nim"], found.about["masked"]) == (NIM, "yes")
    assert len(found.events) == 2
    assert "OUEDRAOGO" not in file.read_text()
    assert file.stat().st_mode & 0o777 == 0o600
    before = file.read_bytes()
    assert "exists already" in mcfd.refused(1, "machine", "recording", NIM, "--save", str(file))
    assert file.read_bytes() == before
