"""docs/simulator.md and `mcf-simulator --help` say what there is."""

import re
from pathlib import Path
from typing import get_args

import msgspec

from simulator import control
from simulator.machine.options import FirmwareHabits
from simulator.process.serve import _parser, read_habits

DOC = (Path(__file__).parents[3] / "docs" / "simulator.md").read_text(encoding="utf-8")


def test_every_order_is_documented_and_every_example_can_be_read():
    """Each order stands in the table, and each JSON example there is one."""
    examples = [msgspec.json.decode(text, type=control.Order) for text in re.findall(r'`(\{"do".*?\})`', DOC)]
    assert {type(example) for example in examples} == set(get_args(control.Order))


def test_every_habit_is_an_option_and_may_be_set_in_a_running_machine():
    """The command, the control socket and the machine know the same habits, and read them alike."""
    names = {field.name for field in msgspec.structs.fields(FirmwareHabits)}
    assert names <= {field.name for field in msgspec.structs.fields(control.SetOptions)}
    usual = read_habits(_parser().parse_args(["--link", "x"]))
    assert usual == msgspec.structs.asdict(FirmwareHabits())
    assert read_habits(_parser().parse_args(["--link", "x", "--halves-ms", "400", "--vat", "up", "--echo"])) == {
        **usual, "halves": 0.4, "vat": "up", "echo": True,
    }  # fmt: skip
