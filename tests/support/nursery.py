"""Our programs, started fast: a process that has everything imported forks a child for each start. The child runs the same `main`
as the installed command, on the same arguments and environment; what it saves is half a second of imports.

    {"do":"start","program":NAME,"arguments":[…],"environ":{…},"cwd":PATH,"stdin":PATH,"stdout":PATH,"stderr":PATH,
     "first":[MODULE, FUNCTION, {…}]|null}     →  {"pid":N}
    {"do":"poll","pid":N}                      →  {"code":null|N}

**first** is called in the child before `main`, for tests that put something around the program (`support.crash.crashing`).

`warm()` is the one of this run of the tests. Outside of them (the bench) there is none, and programs are started as a box does.
"""

from __future__ import annotations

import atexit
import ctypes
import gc
import importlib
import json
import os
import pkgutil
import select
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple, TextIO
from unittest.mock import patch

import msgspec
from support import forks

TESTS = Path(__file__).parents[1]
LARGE_PAGE = 1 << 21
MADV_COLLAPSE = 25
PROGRAMS = {
    "mcfd": ("daemon.cli", "main"),
    "mcf-simulator": ("simulator.process.serve", "main"),
    "mcfd-hq": ("headquarters.cli", "main"),
    "mcfd-relay": ("relay.cli", "main"),
    "attacker": ("bench.siege.attacks", "main"),
    "receiver": ("support.receivers.receiver", "main"),
}
HOUSES: dict[str, tuple[str, ...]] = {
    "mcfd-hq": (
        *("headquarters", "psycopg.types.hstore"),  # the dialect leaves psycopg for later
        *(f"sqlalchemy.dialects.{name}" for name in ("sqlite", "postgresql.psycopg")),
    ),
    "receiver": ("support.receivers.receiver",),
    "mcfd-relay": ("relay",),
}
"""What is imported beforehand for a program, if not the daemon and its simulator; those with the same share a nursery."""
USUAL = ("daemon", "simulator")
BY_HAND = ("__main__", "demo", "env", "mbcs", "oem", "cp65001")
"""Modules that run when they are imported, and three that only Windows has."""
SPOKEN: dict[str, dict[str, ModuleType]] = {}
"""Of each language, the modules of mcfd's command line: what they say, they say in that of their environment, when they are imported."""
First = tuple[str, str, dict[str, Any]]


def environment() -> dict[str, str]:
    """Wherever it is started: a test may stand in a folder of its own."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join((str(TESTS), str(TESTS.parent)))}


class Shared(NamedTuple):
    """By all processes of a run of the tests: where, and the process with which it ends."""

    folder: str
    run: int


class Nursery:
    """The test's side: a fork of one that all workers of a run share, so that what it imports is imported once. Safe to use from several threads."""

    def __init__(self, house: tuple[str, ...], shared: Shared) -> None:
        with forks.connected(start_shared(house, shared)) as connection:
            self._orders, self._answers = connection.makefile("w"), connection.makefile("r")
        self._turn = threading.Lock()

    def order(self, do: str, **fields: Any) -> dict[str, Any]:
        with self._turn:
            self._orders.write(json.dumps({"do": do, **fields}) + "\n")
            self._orders.flush()
            answer: dict[str, Any] = json.loads(self._answers.readline())
            return answer

    def start(
        self,
        program: str,
        arguments: list[str],
        environ: Mapping[str, str],
        *,
        stdout: Path,
        stderr: Path,
        stdin: Path | None = None,
        first: First | None = None,
    ) -> Child:
        """Both outputs are appended to those files, which may be the same."""
        fields = {
            "arguments": arguments,
            "environ": dict(environ),
            "cwd": str(Path.cwd()),
            "stdin": str(stdin or os.devnull),
            "stdout": str(stdout),
            "stderr": str(stderr),
            "first": first,
        }
        return Child(self, self.order("start", program=program, **fields)["pid"])

    def run(
        self,
        program: str,
        arguments: list[str],
        environ: Mapping[str, str],
        *,
        stdin: str | Path | None = None,
        timeout: float,
        first: First | None = None,
    ) -> subprocess.CompletedProcess[str]:
        """To its end, as `subprocess.run` with its output as text. `stdin` is what is typed, or where it is read from: a terminal, say."""
        with tempfile.TemporaryDirectory(prefix="mcfd-run-") as folder:
            typed, stdout, stderr = (Path(folder, name) for name in ("stdin", "stdout", "stderr"))
            for each in (stdout, stderr):
                each.write_text("")
            if isinstance(stdin, Path):
                typed = stdin
            else:
                typed.write_text(stdin or "")
            child = self.start(program, arguments, environ, stdin=typed, stdout=stdout, stderr=stderr, first=first)
            try:
                code = child.wait(timeout)
            finally:
                child.send_signal(9)
            return subprocess.CompletedProcess(
                [program, *arguments], code, stdout.read_text(errors="replace"), stderr.read_text()
            )

    def close(self) -> None:
        self._orders.close()
        self._answers.close()


def start_shared(house: tuple[str, ...], shared: Shared) -> Path:
    at = Path(shared.folder, house[0])
    if not at.exists():
        forks.started(at, (sys.executable, "-P", "-m", "support.nursery", str(shared.run), *house), environment())
    return at


class Child:
    """As much of `subprocess.Popen` as the tests use."""

    def __init__(self, nursery: Nursery, pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self._nursery = nursery

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def poll(self) -> int | None:
        if self.returncode is None and self._has_ended(0):
            code = self._nursery.order("poll", pid=self.pid)["code"]
            self.returncode = self.returncode if code is None else code  # None: another thread was told
        return self.returncode

    def wait(self, timeout: float) -> int:
        began = time.monotonic()
        while (code := self.poll()) is None:
            if time.monotonic() - began > timeout:
                raise subprocess.TimeoutExpired(str(self.pid), timeout)
            self._has_ended(timeout)
        return code

    def _has_ended(self, patience: float) -> bool:
        """Within so many seconds. Its number is its own until the nursery is asked for the code."""
        try:
            watched = os.pidfd_open(self.pid)
        except ProcessLookupError:  # another thread has asked
            return True
        try:
            looks = select.poll()
            looks.register(watched, select.POLLIN)
            return bool(looks.poll(patience * 1000))
        finally:
            os.close(watched)


def pause(least: float, waited: float) -> float:
    """Before the next look at what has been waited for so long (s): a tenth of that, so it is seen about when it comes, and a wait on
    a busy box does not add to what keeps it busy."""
    return min(max(least, waited / 10), 0.05)


class _Warm:
    shared: Shared | None = None
    """Where it is wanted."""
    nurseries: dict[tuple[str, ...], Nursery] = {}  # noqa: RUF012  one for this process
    turn = threading.Lock()


def keep_warm(shared: Shared | None = None) -> None:
    """From now on `warm()` is there, from its first use to the end of this process; without `shared` for this process alone."""
    if shared is None:
        shared = Shared(tempfile.mkdtemp(prefix="mcfd-forks-"), os.getpid())
        atexit.register(shutil.rmtree, shared.folder, ignore_errors=True)
    _Warm.shared = shared


def warm(program: str = "mcfd") -> Nursery | None:
    """The one that starts that program."""
    house = HOUSES.get(program, USUAL)
    with _Warm.turn:
        if _Warm.shared and house not in _Warm.nurseries:
            _Warm.nurseries[house] = Nursery(house, _Warm.shared)
            atexit.register(_Warm.nurseries[house].close)
        return _Warm.nurseries.get(house)


# -- the nursery's own side -----------------------------------------------------------------------------------------------


def serve() -> None:
    """`RUN HOUSE…`: for each process of that run."""
    run, *house = sys.argv[1:]
    # Also what a daemon that is no longer root could not read in the developer's home.
    for each in (*house, "encodings"):
        import_all(each)
    if "daemon" in house:
        prepare_daemon()
    if "headquarters" in house:
        importlib.import_module("headquarters.app.service").drawn_routes()
    importlib.import_module("common.process").complete_structs()
    gc.freeze()
    use_large_pages()
    forks.serve(int(run), lambda worker: obey(worker.makefile("r"), worker.makefile("w")))


def obey(orders: TextIO, answers: TextIO) -> None:
    for line in orders:
        order = json.loads(line)
        answer = start(order) if order["do"] == "start" else poll(order["pid"])
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


def use_large_pages() -> None:
    """What lies here is copied by the table at each fork, and taken apart at each end: half of what a child costs. One entry for 2 MB
    instead of 512 where the kernel can (Linux 6.1); a page that a child writes to is its own as before."""
    madvise = ctypes.CDLL(None).madvise
    for line in Path("/proc/self/maps").read_text().splitlines():
        span, access, _, _, inode, *_ = line.split()
        start, end = (int(each, 16) for each in span.split("-"))
        if access.startswith("rw") and inode == "0" and end - start >= LARGE_PAGE:
            madvise(ctypes.c_void_p(start), ctypes.c_size_t(end - start), MADV_COLLAPSE)


def import_all(package: str) -> None:
    """With all that is in it; a module is one alone."""
    for module in pkgutil.walk_packages(getattr(importlib.import_module(package), "__path__", ()), f"{package}."):
        if module.name.rpartition(".")[2] not in BY_HAND:
            importlib.import_module(module.name)


def prepare_daemon() -> None:
    """What each start would make anew, and is the same for all: the routes, and what msgspec knows of the configuration."""
    from common.language import ambient  # noqa: PLC0415
    from daemon.api.service import drawn_routes  # noqa: PLC0415
    from daemon.settings import Settings  # noqa: PLC0415

    for with_page in (False, True):
        drawn_routes(with_page=with_page)
    msgspec.convert({"storage": {"path": "ledger"}}, Settings, dec_hook=lambda _, value: Path(value))
    for locale in ("en", "fr"):
        _taken_out()
        with patch.dict(os.environ, LC_ALL=locale):
            import_all("daemon.cli")
            SPOKEN[ambient()] = _taken_out()


def _taken_out() -> dict[str, ModuleType]:
    """The modules of the command line, which count as not imported afterwards."""
    return {name: sys.modules.pop(name) for name in [*sys.modules] if f"{name}.".startswith("daemon.cli.")}


def speak() -> None:
    """The command line in the language of the environment."""
    if SPOKEN:
        from common.language import ambient  # noqa: PLC0415

        sys.modules.update(SPOKEN[ambient()])
        importlib.import_module("daemon.cli.groups").install()  # click's words follow the environment


def cheapen() -> None:
    """Passwords that a command hashes, and passphrases of its backups, cost it next to nothing; what they cost, the unit tests look at. pyrage makes a
    passphrase as costly as a second of this processor allows."""
    import pyrage  # noqa: PLC0415
    from support.age_forms import age_file, by_passphrase  # noqa: PLC0415

    from common import passwords  # noqa: PLC0415

    vars(passwords).update(_N=2, _P=1)
    pyrage.passphrase.encrypt = lambda content, words: age_file(by_passphrase(words, 1), content)


def start(order: dict[str, Any]) -> dict[str, Any]:
    pid = os.fork()
    if pid == 0:
        become(order)
    return {"pid": pid}


def poll(pid: int) -> dict[str, Any]:
    with suppress(ChildProcessError):
        ended, status = os.waitpid(pid, os.WNOHANG)
        return {"code": os.waitstatus_to_exitcode(status) if ended else None}
    return {"code": None}


def become(order: dict[str, Any]) -> None:
    """The program of that order, to its end: this never returns."""
    code = 70
    try:
        os.dup2(os.open(order["stdin"], os.O_RDONLY), 0)
        for number, name in ((1, "stdout"), (2, "stderr")):
            os.dup2(os.open(order[name], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600), number)
        os.closerange(3, 64)
        sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115  with nothing read ahead of it
        os.environ.clear()
        os.environ.update(order["environ"])
        time.tzset()
        os.chdir(order["cwd"])
        sys.argv = [order["program"], *order["arguments"]]
        if order["first"]:
            module, name, arguments = order["first"]
            getattr(importlib.import_module(module), name)(**arguments)
        speak()
        if order["program"] == "mcfd" and order["arguments"][:1] != ["run"]:  # at a daemon, others wait meanwhile
            cheapen()
        module, name = PROGRAMS[order["program"]]
        code = exit_code(getattr(importlib.import_module(module), name))
    except BaseException:  # noqa: BLE001  the child must not come back into the loop of `serve`
        traceback.print_exc()
    finally:
        with suppress(OSError, ValueError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


def exit_code(main: Callable[[], int | None]) -> int:
    """What `sys.exit(main())` would end with."""
    try:
        result: object = main()
    except SystemExit as end:
        result = end.code
    if result is None or isinstance(result, int):
        return int(result or 0)
    sys.stderr.write(f"{result}\n")
    return 1


if __name__ == "__main__":
    serve()
