"""A plugin of pytest, `--workers=N`: the tests are collected once, and N forks of that process run them. Each takes a file, and the next when
it has begun the last test of it, in the order in which they were collected; what it finds it tells the process that it is a fork of.

A collection takes 3 s of a processor, and as much again what is imported for it: with a worker that makes its own (xdist) that is the first
ten seconds of a run on two cores, in which no test runs.
"""

from __future__ import annotations

import atexit
import ctypes
import mmap
import os
import signal
import traceback
import uuid
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import groupby
from multiprocessing.connection import Connection, Pipe, wait
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

__all__ = ["pytest_addoption", "pytest_runtestloop"]

PR_SET_PDEATHSIG = 1
TELLS = ("terminalreporter", "failures-at-once")
"""Plugins that write of what they are told: one of each is enough."""
NUMBER = 4
Tests = Iterator[tuple[pytest.Item, pytest.Item | None]]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--workers", type=int, default=0, help="forks that run the tests, a file at a time")


def pytest_runtestloop(session: pytest.Session) -> bool | None:
    count = session.config.getoption("--workers")
    if not count or session.config.option.collectonly or session.testsfailed:
        return None
    run(session, count)
    if session.shouldfail:
        raise session.Failed(session.shouldfail)
    if session.shouldstop:
        raise session.Interrupted(session.shouldstop)
    return True


def run(session: pytest.Session, count: int) -> None:
    files = [list(group) for _, group in groupby(session.items, key=lambda item: item.path)]
    todo = Queue(len(files))
    session.config._tmp_path_factory.getbasetemp()
    os.environ["PYTEST_XDIST_TESTRUNUID"] = uuid.uuid4().hex
    session.config.pluginmanager.get_plugin(
        "terminalreporter"
    ).showfspath = False  # files do not come one after the other
    workers: list[Worker] = []
    try:
        for number in range(min(count, len(files))):
            workers.append(Worker(session, number, workers, lambda: work(todo, files)))
        listen(session, workers, todo)
    finally:
        for each in workers:
            each.end()
    left = len(session.items) - sum(each.finished for each in workers)
    if left and not (session.shouldfail or session.shouldstop):
        raise session.Failed(f"{left} tests were not run")


def listen(session: pytest.Session, workers: Sequence[Worker], todo: Queue) -> None:
    """Until none of them has anything more to say."""
    telling = {channel: each for each in workers for channel in (each.told, each.alive)}
    while telling:
        for channel in wait(telling):
            worker = telling.get(channel)
            if worker and not worker.listen():
                del telling[worker.told], telling[worker.alive]
        if session.shouldfail or session.shouldstop:
            todo.close()


class Queue:
    """Numbers of files, from 0; each is taken by one worker."""

    def __init__(self, count: int) -> None:
        self._left, filled = os.pipe()
        os.write(filled, b"".join(each.to_bytes(NUMBER) for each in range(count)))
        os.close(filled)
        self._closed = mmap.mmap(-1, 1)

    def take(self) -> int | None:
        taken = b"" if self.is_closed() else os.read(self._left, NUMBER)
        return int.from_bytes(taken) if taken else None

    def close(self) -> None:
        self._closed[0] = 1

    def is_closed(self) -> bool:
        return bool(self._closed[0])


def work(todo: Queue, files: list[list[pytest.Item]]) -> Tests:
    """Each test, with the one that follows it; none is begun after the queue was closed."""
    tests = (test for number in iter(todo.take, None) for test in files[number])
    test = next(tests, None)
    while test and not todo.is_closed():
        following = next(tests, None)
        yield test, following
        test = following


class Worker:
    """The side of the process that collected."""

    def __init__(
        self, session: pytest.Session, number: int, others: Sequence[Worker], tests: Callable[[], Tests]
    ) -> None:
        self._session = session
        self._running = ""
        self._is_done = False
        self.finished = 0
        self.told, tell = Pipe(duplex=False)
        collected_by = os.getpid()
        self._pid = os.fork()
        if self._pid == 0:
            ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() != collected_by:
                os._exit(1)
            for each in (*others, self):
                each.told.close()
            become(session, f"gw{number}", tell, tests)
        tell.close()
        self.alive = os.pidfd_open(self._pid)

    def listen(self) -> bool:
        """To what it says now; false when there will be no more."""
        try:
            while self.told.poll():
                what, said = self.told.recv()
                if what == "done":
                    return self._on_done(said)
                getattr(self, f"_on_{what}")(*said)
        except (EOFError, OSError):
            return self._on_end()
        return True if not wait([self.alive], 0) or self.told.poll() else self._on_end()

    def _on_running(self, test: str) -> None:
        self._running = test

    def _on_finished(self, test: str, location: tuple[str, int | None, str], reports: list[dict[str, Any]]) -> None:
        self.finished += 1
        hook = self._session.config.hook
        for data in reports:
            report = hook.pytest_report_from_serializable(config=self._session.config, data=data)
            hook.pytest_runtest_logreport(report=report)
        hook.pytest_runtest_logfinish(nodeid=test, location=location)

    def _on_warning(self, text: str, file: str, line: int, test: str) -> None:
        message = warnings.WarningMessage(UserWarning(text), UserWarning, file, line)
        told = {"warning_message": message, "when": "runtest", "nodeid": test, "location": None}
        self._session.config.hook.pytest_warning_recorded.call_historic(kwargs=told)

    def _on_done(self, failure: str) -> bool:
        self._is_done = True
        if failure:
            self._fail(failure)
        return False

    def _on_end(self) -> bool:
        self._fail(f"the worker ended with {self.end()} in this test; the rest of its file was not run")
        return False

    def _fail(self, why: str) -> None:
        file = self._running.partition("::")[0]
        report = pytest.TestReport(self._running, (file, None, file), {}, "failed", why, "call")
        self._session.config.hook.pytest_runtest_logreport(report=report)

    def end(self) -> int:
        """Its exit code. One that still runs tests is interrupted: the run was."""
        self.told.close()
        if self._pid:
            if not self._is_done:
                os.kill(self._pid, signal.SIGINT)
            self._code = os.waitstatus_to_exitcode(os.waitpid(self._pid, 0)[1])
            self._pid = 0
            os.close(self.alive)
        return self._code


def become(session: pytest.Session, name: str, tell: Connection, tests: Callable[[], Tests]) -> None:
    """A worker, to its end: this never returns."""
    failure = ""
    try:
        config = session.config
        os.environ["PYTEST_XDIST_WORKER"] = name
        own_folder(config, name)
        own_output(config)
        config.pluginmanager.register(Teller(config, tell))
        for test, following in tests():
            test.config.hook.pytest_runtest_protocol(item=test, nextitem=following)
        session._setupstate.teardown_exact(None)
        atexit._run_exitfuncs()
    except BaseException:  # noqa: BLE001  it must not come back into the run that it was forked from
        failure = traceback.format_exc()
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        with suppress(OSError):
            tell.send(("done", failure))
        os._exit(0)


def own_folder(config: pytest.Config, name: str) -> None:
    folders = config._tmp_path_factory
    folders._basetemp = Path(folders.getbasetemp(), name)
    folders._basetemp.mkdir(mode=0o700)


def own_output(config: pytest.Config) -> None:
    """What tests print is kept apart from what others print; reports go to the one that collected."""
    plugins = config.pluginmanager
    capture = plugins.get_plugin("capturemanager")
    capture.read_global_capture()
    capture.stop_global_capturing()
    capture.start_global_capturing()
    writer = config.get_terminal_writer()
    for each in TELLS:
        if plugins.has_plugin(each):
            plugins.unregister(name=each)
    plugins.register(SimpleNamespace(_tw=writer), "terminalreporter")  # pytest-timeout writes where all stood


class Teller:
    """In the worker: says what comes of each test."""

    def __init__(self, config: pytest.Config, tell: Connection) -> None:
        self._config = config
        self._tell = tell
        self._reports: list[dict[str, Any]] = []

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self._tell.send(("running", (nodeid,)))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._reports.append(self._config.hook.pytest_report_to_serializable(config=self._config, report=report))

    def pytest_runtest_logfinish(self, nodeid: str, location: tuple[str, int | None, str]) -> None:
        self._tell.send(("finished", (nodeid, location, self._reports)))
        self._reports = []

    def pytest_warning_recorded(self, warning_message: warnings.WarningMessage, when: str, nodeid: str) -> None:
        if when == "runtest":
            text = f"{warning_message.category.__name__}: {warning_message.message}"
            self._tell.send(("warning", (text, warning_message.filename, warning_message.lineno, nodeid)))
