"""Workers of pytest-xdist that need not import what all of them need: forks of a process that has collected the same tests.

A worker collects too, as it always does: in a third of the time, since each module is there already.
"""

import atexit
import gc
import os
import shlex
import shutil
import socket
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import execnet
import pytest
from support import forks
from support.nursery import HOUSES, TESTS, USUAL, Shared, start_shared

WRAPPER = Path(__file__).with_name("forked_worker.py")


class ForkedWorkers:
    """Of the process that hands out the tests. They share their nurseries too, and all of it ends with that process."""

    def __init__(self) -> None:
        self._shared = Shared(tempfile.mkdtemp(prefix="mcfd-forks-"), os.getpid())

    def pytest_xdist_setupnodes(self, config: pytest.Config, specs: Sequence[execnet.XSpec]) -> None:
        at = Path(self._shared.folder, "workers")
        forks.started(at, command(self._shared.run, [*config.args, "-m", config.option.markexpr]))
        for spec in specs:
            spec.python = shlex.join([sys.executable, "-IS", str(WRAPPER), str(at)])
        if [Path(each).resolve() for each in config.args] == [TESTS]:  # another core is free, and both are needed soon
            start_shared(USUAL, self._shared)
            start_shared(HOUSES["mcfd-hq"], self._shared)

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        node.workerinput["shared"] = tuple(self._shared)

    @pytest.hookimpl(trylast=True)
    def pytest_unconfigure(self) -> None:
        shutil.rmtree(self._shared.folder)


def command(run: int, tests: Sequence[str]) -> list[str]:
    start = f"import sys; sys.path = {sys.path!r}; from support.collected import main; main()"
    return [sys.executable, "-c", start, str(run), *tests]


class CollectedAgain:
    """pytest keeps the names that it has made for the values of a `parametrize` with `ids`, what is not ASCII in them escaped, and would escape the
    backslash when a worker collects: nobody would find `[z\\xe9ro]` who asks for it by name."""

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        for mark in (mark for item in session.items for mark in item.iter_markers("parametrize")):
            if mark._param_ids_from is not None:
                object.__setattr__(mark._param_ids_from, "_param_ids_generated", None)


def main() -> None:
    run, *tests = sys.argv[1:]
    path = [*sys.path]
    pytest.main(["--collect-only", "-qq", "-n0", *tests], plugins=[CollectedAgain()])
    sys.path[:] = path
    gc.freeze()
    forks.serve(int(run), work)


def work(connection: socket.socket) -> None:
    """On the descriptors that are sent, as `python -c` does it for execnet."""
    _, descriptors, _, _ = socket.recv_fds(connection, 1, 3)
    for number, descriptor in enumerate(descriptors):
        os.dup2(descriptor, number)
        os.close(descriptor)
    connection.sendall(str(os.getpid()).encode())
    connection.close()
    exec(eval(sys.stdin.readline()), {"__name__": "__main__"})  # noqa: S102, S307  that is how a worker is told what it is
    atexit._run_exitfuncs()
