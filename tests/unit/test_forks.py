"""What workers of the tests do not make anew: they are forks of what was made once (`support.forks`, `support.collected`)."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support import collected, forks
from support.shop import wait_for

TOLD = """
import os, sys
from support import forks
made = os.urandom(8).hex()
forks.serve(int(sys.argv[1]), lambda connection: connection.sendall(f"{made} {os.getpid()}".encode()))
"""


@pytest.fixture
def run() -> Iterator[subprocess.Popen[bytes]]:
    """Stands for the process that hands out the tests."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        yield process
        process.kill()


def answer(at: Path) -> list[str]:
    with forks.connected(at) as connection, connection.makefile() as told:
        return told.read().split()


def test_each_has_a_fork_of_the_one_that_was_started(tmp_path: Path, run: subprocess.Popen[bytes]) -> None:
    """What was made is the same for both, also where two want to start it; with the run it is gone."""
    at = tmp_path / "at"
    for _ in range(2):
        forks.started(at, (sys.executable, "-c", TOLD, str(run.pid)), {"PYTHONPATH": os.pathsep.join(sys.path)})
    (made, pid), (made_for_other, other) = answer(at), answer(at)
    assert made == made_for_other
    assert pid != other
    assert [path.name for path in tmp_path.iterdir()] == ["at"]
    run.kill()

    def is_gone() -> bool:
        try:
            return not answer(at)
        except ConnectionError:
            return True

    wait_for(is_gone, "its end")


def worker(at: Path, work: str) -> str:
    """What a worker says to that line of execnet."""
    command = [sys.executable, "-IS", str(collected.WRAPPER), str(at), "-u", "-c", "exec(eval(input()))"]
    return subprocess.run(command, input=f"{work!r}\n", capture_output=True, check=True, text=True).stdout


def test_a_worker_has_the_tests_from_the_beginning(tmp_path: Path, run: subprocess.Popen[bytes]) -> None:
    """It is told what it is as execnet tells it, its output is that of the one who stands for it, and what is to be done at its end is done."""
    at = tmp_path / "at"
    forks.started(at, collected.command(run.pid, [__file__]))
    last = "import atexit, sys; atexit.register(print, 'ended'); print(sys.modules['test_forks'].worker.__name__)"
    assert worker(at, last) == "worker\nended\n"


def test_a_worker_calls_a_test_as_everybody_does(tmp_path: Path, run: subprocess.Popen[bytes]) -> None:
    """Also one whose value is not ASCII, so that it runs when it is asked for by its name."""
    file, at = tmp_path / "test_words.py", tmp_path / "at"
    # As ours: these two take a second to load.
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = -p no:schemathesis -p no:faker\n")
    file.write_text(
        "import pytest\n@pytest.mark.parametrize('word', ['z\xe9ro'], ids=str)\ndef test_it(word): pass\n", "utf-8"
    )
    forks.started(at, collected.command(run.pid, [str(file)]))
    again = f"import pytest; pytest.main(['--collect-only', '-q', '--rootdir={tmp_path}', {str(file)!r}])"
    assert worker(at, again).splitlines()[0] == "test_words.py::test_it[z\\xe9ro]"


def test_where_nobody_forks_a_worker_is_the_python_that_was_asked_for(tmp_path: Path) -> None:
    assert worker(tmp_path / "nobody", "import sys; print('test_forks' in sys.modules)") == "False\n"
