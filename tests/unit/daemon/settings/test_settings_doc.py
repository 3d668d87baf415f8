import re
import tomllib
from pathlib import Path

import msgspec

from daemon.settings import load
from daemon.settings.describe import render, tables

ROOT = Path(__file__).parents[4]


def test_the_command_prints_every_key():
    """What holds for all of them is docs/configuration.md."""
    assert all(f"| `{key.name}` |" in render() for section in tables() for key in section.keys)


def test_every_key_says_what_it_means():
    """No key is without a description, and no two keys share a variable."""
    keys = [key for section in tables() for key in section.keys]
    assert all(key.text.endswith(".") for key in keys)
    assert len({key.variable for key in keys}) == len(keys)


def test_the_example_holds_every_key_and_its_default(tmp_path):
    """config/mcfd.toml loads as it is, and with every comment sign taken away its keys are exactly those there are."""
    example = (ROOT / "config/mcfd.toml").read_text()
    (tmp_path / "mcfd.toml").write_text(example)
    shipped = load(tmp_path / "mcfd.toml", {})
    assert shipped.upstream is None
    everything = tomllib.loads(re.sub(r"^# (?=\[|\w+ = )", "", example, flags=re.MULTILINE))
    for section in tables():
        outer, _, inner = section.name.partition(".")
        table = everything[outer][0] if section.many else everything[outer]
        table = (
            table[inner]
            if inner
            else {key: value for key, value in table.items() if not isinstance(value, dict) or key != "habits"}
        )
        assert set(table) == {key.name for key in section.keys}
        for key in section.keys:
            if key.default not in (msgspec.NODEFAULT, None, "", (), {}):
                assert str(table[key.name]) == str(key.default), key.path
