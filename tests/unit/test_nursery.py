from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from support.nursery import Nursery

from bench.siege.target import Target


def test_a_nursery_has_the_tree_wherever_it_is_started(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The first test that needs one may be somewhere else: its folder has nothing to say, what lies beside the tests is there."""
    (tmp_path / "siege.py").write_text("raise SystemExit(3)")
    monkeypatch.chdir(tmp_path)
    told = msgspec.json.encode(Target(1, tls=False, nim="EL02000015-1", sandbox_key="")).decode()
    with Nursery(("json",)) as nursery:
        done = nursery.run("attacker", ["drops", "0", told], {}, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "ready\n", "")
