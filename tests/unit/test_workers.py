"""The forks that run the tests: `--workers=N` (tests/support/workers.py)."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
COLLECTED = """
import os, pytest
from support.workers import pytest_addoption, pytest_runtestloop
def pytest_collection_finish(session): print(f"collected by {os.getpid()}")
@pytest.fixture(scope="session")
def shared(tmp_path_factory):
    yield tmp_path_factory.mktemp("shared")
    print(f"shared is over in {os.getpid()}", file=open(os.environ["TOLD"], "a"))
@pytest.fixture(autouse=True)
def told(request):
    yield
    print(f"{request.node.nodeid} {os.getpid()}", file=open(os.environ["TOLD"], "a"))
"""
MEETS = """
import os, pathlib, time, pytest
def test_meets_the_other(shared):
    here = pathlib.Path(os.environ["TOLD"]).parent
    (here / __name__).touch()
    limit = time.monotonic() + 60
    while len(list(here.glob("test_meets_?"))) < 2:
        assert time.monotonic() < limit
        time.sleep(0.01)
@pytest.mark.parametrize("n", range(3))
def test_passes(n, shared): pass
"""
TELLS = """
import warnings, pytest
def test_prints_and_fails(record_property):
    record_property("points", 3)
    print("said by the test")
    assert [1] == [2]
def test_warns(): warnings.warn("careful")
def test_skips(): pytest.skip("not here")
"""
DIES = """
import os
def test_before(): pass
def test_dies(): os.kill(os.getpid(), 9)
def test_after(): pass
"""


def pytest_with(folder: Path, *options: str, **files: str) -> tuple[int, str, list[str]]:
    """Its code, what it says, and which test ran where."""
    (folder / "pytest.ini").write_text("[pytest]\n")
    for name, text in {"conftest": COLLECTED, **files}.items():
        (folder / f"{name}.py").write_text(text)
    (folder / "told").touch()
    command = [sys.executable, "-m", "pytest", "-ra", "-p", "no:cacheprovider", *options]
    environ = {
        **os.environ,
        "PYTHONPATH": str(TESTS),
        "TOLD": str(folder / "told"),
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
    }
    done = subprocess.run(command, cwd=folder, env=environ, capture_output=True, text=True, check=False, timeout=120)
    return done.returncode, done.stdout + done.stderr, (folder / "told").read_text().splitlines()


def test_each_test_runs_once_whole_files_beside_each_other(tmp_path: Path) -> None:
    """Two files whose first tests wait for each other end; each file is one worker's, which is not the process that collected; what a
    worker's tests share ends once in it."""
    code, said, told = pytest_with(tmp_path, "-s", "--workers=2", test_meets_a=MEETS, test_meets_b=MEETS)
    assert code == 0, said
    assert "8 passed" in said
    (collected_by,) = re.findall(r"collected by (\d+)", said)
    ran = [line.split() for line in told if "::" in line]
    assert len({test for test, _ in ran}) == len(ran) == 8
    where = {name: {pid for test, pid in ran if test.startswith(name)} for name in ("test_meets_a", "test_meets_b")}
    (first,), (second,) = where.values()
    assert len({first, second, collected_by}) == 3
    assert sorted(line for line in told if "::" not in line) == sorted(
        f"shared is over in {pid}" for pid in (first, second)
    )


def test_what_a_test_says_is_said_as_without_workers(tmp_path: Path) -> None:
    """A failure with its assertion and what the test printed, a warning, a reason to skip; code 1."""
    code, said, _ = pytest_with(
        tmp_path, "--workers=2", test_tells=TELLS, test_meets_a="", test_meets_b="def test_b(): pass"
    )
    assert code == 1
    for each in ("assert [1] == [2]", "said by the test", "UserWarning: careful", "SKIPPED [1] test_tells.py:8: not here",
                 "FAILED test_tells.py::test_prints_and_fails", "1 failed, 2 passed, 1 skipped, 1 warning"):  # fmt: skip
        assert each in said, said


@pytest.mark.parametrize("workers", [1, 2])
def test_a_worker_that_dies_fails_the_run(tmp_path: Path, workers: int) -> None:
    """By the name of the test that it ran; what other workers have is run, what nobody has is not passed."""
    code, said, told = pytest_with(tmp_path, f"--workers={workers}", test_a_dies=DIES, test_b="def test_b(): pass")
    assert code == 1
    assert "FAILED test_a_dies.py::test_dies - the worker ended with -9" in said, said
    others = ["test_b.py::test_b"] if workers == 2 else []
    assert sorted(line.split()[0] for line in told) == ["test_a_dies.py::test_before", *others]


def test_the_first_failure_ends_the_run(tmp_path: Path) -> None:
    """With `-x`: no test is begun after it."""
    code, said, told = pytest_with(tmp_path, "--workers=1", "-x", test_a_tells=TELLS, test_b="def test_b(): pass")
    assert code == 1
    assert "1 failed" in said
    assert "stopping after 1 failures" in said, said
    assert not any("test_b" in line for line in told), said
