"""The section of a machine: where it is, and what is peculiar to it."""

import pytest
from settings_files import MACHINE, PORT, SECOND, refusal, write

from daemon.settings import SettingsError, load


@pytest.mark.parametrize("port", ["tcp://192.168.1.50:4001", "rfc2217://device-server.local:4001"])
def test_a_machine_on_the_network(tmp_path, port):
    """An address of the network is kept as it was written, not taken for a relative path."""
    assert load(write(tmp_path, MACHINE.replace(PORT, port)), {}).machine[0].port == port


@pytest.mark.parametrize(
    ("port", "expected"),
    [
        ("tcp://192.168.1.50", "is not an address tcp://host:port"),
        ("http://192.168.1.50:4001", "is not an address tcp://"),
        ("tcp://192.168.1.50:99999", "is not an address tcp://"),
        ("tcp://me:secret@192.168.1.50:4001", "must not carry a password"),
        ("rfc2217://192.168.1.50:4001?logging=debug", "is not an address rfc2217://host:port"),
        ("tcp:192.168.1.50:4001", None),
    ],
)
def test_a_wrong_address_names_the_key(tmp_path, port, expected):
    """Each mistake is told with its key; what has no `://` is a path."""
    file = write(tmp_path, MACHINE.replace(PORT, port))
    if expected is None:
        assert load(file, {}).machine[0].port == str(tmp_path / port)
        return
    with pytest.raises(SettingsError) as caught:
        load(file, {})
    assert "machine[0].port" in str(caught.value)
    assert expected in str(caught.value)


def test_one_device_server_port_for_one_machine(tmp_path):
    """Raw or RFC 2217, it is the same line."""
    second = SECOND.replace("/dev/mcf-EL02000016", "rfc2217://10.0.0.1:4001")
    with pytest.raises(SettingsError) as caught:
        load(write(tmp_path, MACHINE.replace(PORT, "tcp://10.0.0.1:4001") + second), {})
    assert "machine[1].port" in str(caught.value)


def test_the_habits_of_a_machine(tmp_path):
    """A table behind the keys of its `[[machine]]`; what is left out suits what is known of machines."""
    habits = '[machine.habits]\ncode_page = "cp1252"\nreply_gap = 1\n'
    first, second = load(write(tmp_path, MACHINE + habits + SECOND), {}).machine
    assert (first.habits.code_page, first.habits.reply_gap, first.habits.walk_in) == ("cp1252", 1.0, "nothing")
    assert (second.habits.code_page, second.habits.close_total) == ("utf-8", "decimals")


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ("code_pag = 1", "machine[0].habits.code_pag: unknown key (did you mean code_page?)"),
        ('code_page = "latin"', 'machine[0].habits.code_page: "latin" is not allowed: it must be cp1252 or utf-8'),
        (
            "name_bytes = 201",
            "machine[0].habits.name_bytes: 201 is not allowed: it must be a whole number from 0 to 200",
        ),
    ],
)
def test_a_wrong_habit_is_named_with_its_key(tmp_path, lines, expected):
    """One line: which machine, which key, and why."""
    assert refusal(tmp_path, f"{MACHINE}[machine.habits]\n{lines}\n") == expected


def test_habits_that_are_no_table(tmp_path):
    """What it has to be, in one line."""
    text = refusal(tmp_path, f"{MACHINE}habits = 1\n")
    assert text == "machine[0].habits: must be a section […]"
