"""What a probe found goes into the configuration file, and what was there stays."""

import pytest

from daemon.probe.run import SectionNotFound, changed, write
from daemon.settings import SettingsError, load

FILE = """\
# of the shop
[server]
port = 8480

[[machine]]
nim = "EL02000015-1"      # the first
port = "/dev/mcf-EL02000015"
# baudrate = 115200

# the other one
[[machine]]
nim = "EL02000016"
port = "/dev/mcf-EL02000016"
[machine.habits]
walk_in = "nothing"
close_total = "whole"

[sandbox]
enabled = true
"""
FOUND = {"baudrate": 9600, "habits.walk_in": "fields", "habits.reply_gap": 0.8}


def test_a_machine_without_habits_gets_them(tmp_path):
    """In its own section, before the next one; every line that was there is still there."""
    text = changed(FILE, "EL02000015-2", FOUND)
    (tmp_path / "mcfd.toml").write_text(text)
    first, second = load(tmp_path / "mcfd.toml").machine
    assert (first.baudrate, first.habits.walk_in, first.habits.reply_gap) == (9600, "fields", 0.8)
    assert (second.baudrate, second.habits.walk_in, second.habits.close_total) == (115_200, "nothing", "whole")
    assert [line for line in FILE.splitlines() if line not in text.splitlines()] == []


def test_habits_that_are_there_are_set_anew(tmp_path):
    """One line each, however often it is done."""
    text = changed(changed(FILE, "EL02000016-1", FOUND), "EL02000016-1", FOUND)
    (tmp_path / "mcfd.toml").write_text(text)
    first, second = load(tmp_path / "mcfd.toml").machine
    assert (second.baudrate, second.habits.walk_in, second.habits.close_total) == (9600, "fields", "whole")
    assert first.baudrate == 115_200
    assert text.count("walk_in") == text.count("reply_gap") == 1


def test_a_machine_that_is_not_there():
    """Nothing is guessed."""
    with pytest.raises(SectionNotFound):
        changed(FILE, "EL09999999-1", FOUND)


def test_the_old_file_is_kept_and_a_bad_one_is_never_put_in_place(tmp_path):
    """What a start would refuse is refused here, and the file is as before."""
    file = tmp_path / "mcfd.toml"
    file.write_text(FILE)
    file.chmod(0o640)
    old_file = write(file, "EL02000015-1", FOUND)
    assert old_file.read_text() == FILE
    assert file.stat().st_mode & 0o777 == 0o640
    before = file.read_text()
    with pytest.raises(SettingsError):
        write(file, "EL02000015-1", {"habits.walk_in": "running"})
    assert file.read_text() == before
    assert {path.name for path in tmp_path.iterdir()} == {file.name, old_file.name}
