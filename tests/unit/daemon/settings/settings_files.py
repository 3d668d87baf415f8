"""Configuration files of the tests, and what is said of them."""

from pathlib import Path

import pytest

from daemon.settings import SettingsError, load

MACHINE = '[[machine]]\nnim = "EL02000015-1"\nport = "/dev/mcf-EL02000015"\n'
PORT = "/dev/mcf-EL02000015"
SECOND = '[[machine]]\nnim = "EL02000016-1"\nport = "/dev/mcf-EL02000016"\n'
UPSTREAM = '[upstream]\nkind = "https"\nurl = "https://hq.example/z"\nsecret_file = "s"\n'


def write(folder: Path, text: str) -> Path:
    file = folder / "mcfd.toml"
    file.write_text(text)
    return file


def refusal(folder: Path, text: str, environ: dict[str, str] | None = None) -> str:
    file = write(folder, text)
    with pytest.raises(SettingsError) as caught:
        load(file, environ or {})
    result = str(caught.value)
    assert "\n" not in result
    return result.removeprefix(f"{file}: ")
