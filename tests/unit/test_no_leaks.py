"""The suite's own watchman: tests/conftest.py fails a test that leaves something running or open."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

CONFTEST = Path(__file__).parents[1] / "conftest.py"
PYPROJECT = Path(__file__).parents[2] / "pyproject.toml"
TESTS = """
import asyncio, os, sqlite3, threading
kept = []
async def test_task(): kept.append(asyncio.create_task(asyncio.sleep(60)))
def test_thread(): threading.Thread(target=threading.Event().wait, daemon=True).start()
def test_terminal(): kept.extend(os.openpty())
def test_database(tmp_path): kept.append(sqlite3.connect(tmp_path / 'a.sqlite3'))
async def test_clean_thread(): await asyncio.to_thread(sum, (1, 2))
async def test_clean_task(): kept.append(asyncio.create_task(asyncio.sleep(0.01)))
"""
COMPLAINTS = {
    "test_task": "tasks left running",
    "test_thread": "threads left behind",
    "test_terminal": "descriptors left open",
    "test_database": "descriptors left open",
}


def test_a_leak_fails_its_test(tmp_path: Path) -> None:
    """A left task, thread, terminal or database is an error of the test that left it; a clean test passes."""
    shutil.copy(PYPROJECT, tmp_path)
    watchman, found = re.subn("(?m)^PATIENCE_SECONDS = .*", "PATIENCE_SECONDS = 0.2", CONFTEST.read_text())
    assert found == 1
    (tmp_path / "conftest.py").write_text(watchman)
    (tmp_path / "test_leak.py").write_text(TESTS)
    command = [sys.executable, "-m", "pytest", "-rA", "-p", "no:cacheprovider", "test_leak.py"]
    environ = {**os.environ, "PYTHONPATH": str(CONFTEST.parent)}
    run = subprocess.run(command, cwd=tmp_path, env=environ, capture_output=True, text=True, check=False, timeout=120)
    errors = {line.split("::")[1].split()[0]: line for line in run.stdout.splitlines() if line.startswith("ERROR ")}
    assert errors.keys() == COMPLAINTS.keys(), run.stdout + run.stderr
    assert all(complaint in errors[name] for name, complaint in COMPLAINTS.items()), errors
