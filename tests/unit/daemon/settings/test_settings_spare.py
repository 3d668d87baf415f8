import pytest

from common.settings import SettingsError
from daemon.settings import load

PAIR = """
[[machine]]
nim = "EL02000015-1"
port = "/dev/ttyACM0"
operator_name = "Caisse principale"

[[machine]]
nim = "EL02000099-1"
port = "/dev/ttyACM1"
spare_for = "{first}"
"""
ANOTHER = """
[[machine]]
nim = "EL02000098-1"
port = "/dev/ttyACM2"
spare_for = "{first}"
"""


def test_a_spare_and_its_machine_are_found_by_each_other(tmp_path):
    """With another activation counter too."""
    (tmp_path / "mcfd.toml").write_text(PAIR.format(first="EL02000015"))
    settings = load(tmp_path / "mcfd.toml", {})
    first, spare = settings.machine
    assert (settings.first_of(spare), settings.spare_of(first)) == (first, spare)
    assert (settings.first_of(first), settings.spare_of(spare)) == (None, None)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (PAIR.format(first="EL02000099-2"), "itself"),
        (PAIR.format(first="EL02000077-1"), "no machine"),
        (PAIR.format(first="the other"), "NIM"),
        (PAIR.format(first="EL02000015-1") + ANOTHER.format(first="EL02000015-1"), "has a spare already"),
        (PAIR.format(first="EL02000015-1") + ANOTHER.format(first="EL02000099-1"), "is a spare itself"),
    ],
)
def test_a_spare_that_makes_no_sense_is_refused(tmp_path, text, expected):
    (tmp_path / "mcfd.toml").write_text(text)
    with pytest.raises(SettingsError, match=expected):
        load(tmp_path / "mcfd.toml", {})
