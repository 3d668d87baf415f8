"""Where the temporary folders of a run of the tests are."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest
from support import memory
from support.memory import PREFIX, RunInMemory


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Stands for the machine's memory, and has room."""
    monkeypatch.setattr(memory, "PLACE", tmp_path)
    monkeypatch.setattr(memory, "ENOUGH_FOR_ALL", 0)
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.delenv("TMPDIR", raising=False)
    return tmp_path


def test_a_run_has_a_folder_of_its_own_until_its_end(place: Path) -> None:
    """For what it starts, too; nothing of it is left, nor of a run that was killed, and another's is left alone."""
    killed = place / f"{PREFIX}{2**22 + 1}"  # no process has that number
    others = [place / f"{PREFIX}1", place / f"{PREFIX}upstream-x1"]
    for each in (killed, *others):
        each.mkdir()
    run = RunInMemory()
    run.begin()
    assert Path(tempfile.gettempdir()) == Path(os.environ["TMPDIR"]) == place / f"{PREFIX}{os.getpid()}"
    assert sorted(place.iterdir()) == sorted([*others, place / f"{PREFIX}{os.getpid()}"])
    run.is_kept = False
    run.end()
    assert sorted(place.iterdir()) == others
    assert "TMPDIR" not in os.environ


def test_what_failed_stays_to_be_looked_at(place: Path) -> None:
    """Until another run begins."""
    run = RunInMemory()
    run.begin()
    run.end()
    assert [each.name for each in place.iterdir()] == [f"{PREFIX}{os.getpid()}"]


def test_a_caller_says_where(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """TMPDIR is honoured; where there is too little memory, all lies where it usually does."""
    monkeypatch.setenv("TMPDIR", str(place / "own"))
    RunInMemory().begin()
    monkeypatch.delenv("TMPDIR")
    monkeypatch.setattr(memory, "ENOUGH_FOR_ALL", 1 << 60)
    run = RunInMemory()
    run.begin()
    assert (run.folder, "TMPDIR" in os.environ, [*place.iterdir()]) == (None, False, [])
