"""Who is asked whether the box's clock is right."""

from pathlib import Path

import pytest

from daemon import time_sync


@pytest.mark.parametrize(
    ("answer", "is_booted", "believed"), [("yes", True, True), ("no", True, False), ("yes", False, False)]
)
async def test_timedatectl_is_asked_where_systemd_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: str, is_booted: bool, believed: bool
) -> None:
    """Its yes is believed; without systemd it could only fail, and no process is started for that."""
    query = tmp_path / "asked"
    command = tmp_path / "timedatectl"
    command.write_text(f"#!/bin/sh\n: > {query}\necho {answer}\n")
    command.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setattr(time_sync, "SYNCHRONISED", tmp_path / "nobody")
    monkeypatch.setattr(time_sync, "BOOTED", tmp_path if is_booted else tmp_path / "nowhere")
    assert (await time_sync.is_synchronised(), query.exists()) == (believed, is_booted)
