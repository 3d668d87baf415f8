"""For every test: whatever it started is gone when it ends, or it fails.

`no_leaks` watches threads and the descriptors of pseudo-terminals and databases, `no_leaked_tasks` the tasks of the
loop of an async test. Both are set up before the test's own fixtures and look again after those are torn down.
"""

import asyncio
import functools
import gc
import inspect
import os
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import structlog
import structlog.testing
import uvloop
from hypothesis import HealthCheck, settings
from support.collected import ForkedWorkers
from support.memory import RunInMemory
from support.nursery import Shared, keep_warm
from support.steady_loop import SteadyLoop

if TYPE_CHECKING:
    from support.shop import Machine

# As on a box, whose package is compiled: a workplace that asks Python not to keep byte code has each worker rewrite 300 modules of tests (8 s
# of a processor), and each program that is started compile itself anew.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# How long an example takes says how busy the machine is.
settings.register_profile("ci", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("quick", settings.get_profile("ci"), max_examples=25)
settings.load_profile("ci")

# A traceback that is drawn in frames takes half a second. Set where it stands: to configure would be seen by what asks whether a daemon has.
structlog.get_config()["processors"][-1].exception_formatter = structlog.dev.plain_traceback

PATIENCE_SECONDS = 15.0
ASYNC_TEST_SECONDS = 240
"""Shorter than pytest's own limit, which for an async test can only end the whole worker: a signal does not interrupt an
idle uvloop. Cancelled from inside, the test fails like any other, says where it stood and tears down what it began."""
HERE = Path(__file__).parent
PACKAGE_SECONDS = 900
"""For a test that may be the one that waits for Debian trees and packages to be made."""
LONGEST = (
    "test_package_upgrade.py", "test_package_debian13.py", "test_package_repository.py", "test_hq_demo.py",
    "test_package_deb.py", "test_package_box.py", "test_hq_jetstream.py", "test_hq_healing.py", "test_hq_package.py",
    "test_page_screens.py", "test_crash_matrix.py", "test_histories.py", "test_every_history.py",
)  # fmt: skip
"""Files that take minutes or mostly wait, when the whole suite runs: first, so that no worker is left alone with one at the end. Then those that
compute for long, beside those that wait."""
WATCHED = ("/dev/pts/", "/dev/ptmx", "sqlite")
IN_MEMORY = RunInMemory()
IN_MEMORY.begin()


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> None:
    """What lies in a test's folder has a name that fits into a socket's address, which `pytest-of-somebody/pytest-7` is too long for."""
    config.add_cleanup(IN_MEMORY.end)
    if IN_MEMORY.folder is not None and config.option.basetemp is None:
        config.option.basetemp = str(IN_MEMORY.folder / "tests")


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection() -> Generator[None, object, object]:
    """What has been imported and collected stays to the end: the garbage collector, which finds nothing in it, need not walk it again and again
    (a third of a second each time)."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if [Path(each).resolve() for each in config.args] == [HERE]:
        items.sort(key=lambda item: LONGEST.index(item.path.name) if item.path.name in LONGEST else len(LONGEST))
    for item in items:
        if "package" in item.path.name and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(PACKAGE_SECONDS))
        if isinstance(item, pytest.Function) and is_async(item):
            names = item.fixturenames
            names.insert(names.index("no_leaks") + 1, "no_leaked_tasks")
            limit_time(item)


def pytest_asyncio_loop_factories(item: pytest.Item) -> dict[str, Callable[[], asyncio.AbstractEventLoop]]:
    """The loop that the daemon runs on, except for machines whose timers are too short for a busy machine."""
    return {"steady": SteadyLoop} if item.get_closest_marker("quick_timers") else {"uvloop": uvloop.new_event_loop}


class FailuresAtOnce:
    """Names a test that failed when it failed: a run that is cut off has no summary."""

    def __init__(self, terminal: pytest.TerminalReporter) -> None:
        self._terminal = terminal

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self._terminal.write_line(f"\nfailed: {report.nodeid} ({report.when})")


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    settings.load_profile("quick" if config.option.markexpr == "not long" else "ci")
    worker = getattr(config, "workerinput", {})
    keep_warm(Shared(*worker["shared"]) if "shared" in worker else None)
    if config.getoption("tx", None) and not worker:
        config.pluginmanager.register(ForkedWorkers())
    terminal = config.pluginmanager.get_plugin("terminalreporter")
    if terminal is not None and not hasattr(config, "workerinput"):
        config.pluginmanager.register(FailuresAtOnce(terminal))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    names = {name for mark in item.iter_markers("logs") for name in mark.args}
    if not names:
        return (yield)
    with structlog.testing.capture_logs() as logs:
        answer = yield
    assert names <= {each["event"] for each in logs}, "what an operator has to read of it is not in the log"
    return answer


def pytest_sessionfinish(exitstatus: int) -> None:
    IN_MEMORY.is_stored = exitstatus != 0


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """How many points each test of the crash matrix tried (`record_property("points", …)`), of how many habits of a machine how many
    combinations (`"habits"`), and how soon headquarters was complete again (`"healed"`), also when workers ran them."""
    reports = [report for report in terminalreporter.getreports("passed") if report.when == "call"]
    healed = [result for report in reports for name, result in report.user_properties if name == "healed"]
    if healed:
        terminalreporter.section("headquarters' database lost or put back")
        for what, seconds in healed:
            terminalreporter.line(f"complete again after {seconds:5.2f} s: {what}")
    for result in [result for report in reports for name, result in report.user_properties if name == "habits"]:
        terminalreporter.section("habits of machines")
        terminalreporter.line(f"{result}; exactly once in each that passed")
    tried = [result for report in reports for name, result in report.user_properties if name == "points"]
    if tried:
        terminalreporter.section("crash matrix")
        for name, count in tried:
            terminalreporter.line(f"{count:4} points: {name}")
        terminalreporter.line(f"{sum(count for _, count in tried):4} points in all; nothing lost, nothing doubled")


def is_async(item: pytest.Function) -> bool:
    """Also under hypothesis, which wraps the coroutine function."""
    inner = getattr(getattr(item.obj, "hypothesis", None), "inner_test", item.obj)
    return inspect.iscoroutinefunction(inner)


def limit_time(item: pytest.Function) -> None:
    if item.get_closest_marker("timeout") is None:
        item.add_marker(pytest.mark.timeout(ASYNC_TEST_SECONDS + 60, method="thread"))
    stored = getattr(item.obj, "hypothesis", None)
    if stored is not None:
        stored.inner_test = within(ASYNC_TEST_SECONDS, stored.inner_test)
    else:
        item.obj = within(ASYNC_TEST_SECONDS, item.obj)


def within(seconds: float, test: Callable[..., Awaitable[None]]) -> Callable[..., Awaitable[None]]:
    @functools.wraps(test)
    async def limited(*args: object, **kwargs: object) -> None:
        async with asyncio.timeout(seconds):
            await test(*args, **kwargs)

    return limited


@pytest.fixture(autouse=True)
def no_leaks() -> Iterator[None]:
    threads, descriptors = set(threading.enumerate()), open_descriptors()
    yield
    left_threads = wait_until_empty(lambda: {t.name for t in set(threading.enumerate()) - threads if t.is_alive()})
    assert not left_threads, f"threads left behind: {left_threads}"
    left_descriptors = wait_until_empty(lambda: open_descriptors() - descriptors)
    assert not left_descriptors, f"descriptors left open: {left_descriptors}"


@pytest.fixture
def no_leaked_tasks(_function_scoped_runner: asyncio.Runner) -> Iterator[None]:
    """Around the loop of the test, which stands still here: a fixture that is a coroutine would have to be run on it, twice for each test."""
    loop = _function_scoped_runner.get_loop()
    before = asyncio.all_tasks(loop)
    yield
    deadline = time.monotonic() + PATIENCE_SECONDS
    while (left := asyncio.all_tasks(loop) - before) and time.monotonic() < deadline:
        loop.run_until_complete(asyncio.wait(left, timeout=0.05))
    assert not left, f"tasks left running: {left}"


def open_descriptors() -> set[tuple[str, str]]:
    """The watched ones, as (number, what it leads to)."""
    found = set()
    for number in os.listdir("/proc/self/fd"):  # noqa: PTH208  each test looks twice, and a Path costs as much as a look
        try:
            target = os.readlink(f"/proc/self/fd/{number}")  # noqa: PTH115
        except OSError:  # the one that lists the folder
            continue
        if any(name in target for name in WATCHED):
            found.add((number, target))
    return found


def wait_until_empty(look: Callable[[], set]) -> set:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while (left := look()) and time.monotonic() < deadline:
        gc.collect()
        time.sleep(0.02)
    return left


@pytest.fixture
def machine(tmp_path: Path) -> Iterator["Machine"]:
    """The simulator on the port of `Command` and `Shop`."""
    from support.shop import Machine  # noqa: PLC0415  most tests need no machine

    machine = Machine(tmp_path).start()
    yield machine
    machine.kill()


@pytest.fixture
def in_english(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LC_ALL", "en_GB.UTF-8")
