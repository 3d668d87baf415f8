"""Shared by `make demo` and `make demo-hq`: child processes, with their messages in a folder that each run empties."""

from __future__ import annotations

import argparse
import contextlib
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

_BIN: Final = Path(sys.executable).parent


class DemoError(Exception):
    pass


class Demo:
    """`show` starts the programs and prints what they do; `--once` stops after that."""

    def __init__(self, name: str, description: str, show: Callable[[Demo], None], patience: float) -> None:
        self.name = name
        self.folder = Path(f".{name}")
        self.until_end = contextlib.ExitStack()
        self._description = description
        self._show = show
        self._patience = patience
        self._processes: list[subprocess.Popen[str]] = []

    def main(self) -> int:
        parser = argparse.ArgumentParser(description=self._description)
        parser.add_argument("--once", action="store_true", help="stop after printing")
        once = parser.parse_args().once
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
        # In a script's background SIGINT is ignored. The child processes react to it all the same, and so must this
        # one.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir()
        try:
            with self.until_end:
                self._show(self)
                if not once:
                    self._stay()
        except KeyboardInterrupt:
            self.print("stopped")
        except DemoError as error:
            self.print(str(error))
            return 1
        return 0

    def _stay(self) -> None:
        self.print(f"running until Ctrl-C; messages are in {self.folder}/*.log")
        while all(process.poll() is None for process in self._processes):
            time.sleep(0.5)
        raise DemoError(f"a process ended by itself; see {self.folder}/*.log")

    def print(self, text: str) -> None:
        sys.stdout.write(f"{self.name}: {text}\n")
        sys.stdout.flush()

    def free_port(self, wanted: int = 0) -> int:
        """`wanted`, or a free port if another program listens there; prints which."""
        for port in (wanted, 0):
            with socket.socket() as probe, contextlib.suppress(OSError):
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                probe.bind(("127.0.0.1", port))
                found = int(probe.getsockname()[1])
                if wanted not in (0, found):
                    self.print(f"port {wanted} is taken; using {found}")
                return found
        raise DemoError("no free port on 127.0.0.1")

    def start(self, log: str, program: str, *arguments: str) -> subprocess.Popen[str]:
        """The process is always stopped at the end; its messages are in `LOG.log`."""
        process = self.until_end.enter_context(self._process(self.folder / f"{log}.log", program, *arguments))
        self._processes.append(process)
        return process

    def stop(self, process: subprocess.Popen[str]) -> None:
        """Ends one process before the others."""
        self._processes.remove(process)
        process.terminate()
        process.wait(timeout=120)

    @contextlib.contextmanager
    def _process(self, log: Path, program: str, *arguments: str) -> Iterator[subprocess.Popen[str]]:
        with log.open("w") as messages:
            process = subprocess.Popen(  # noqa: S603  our own commands
                [str(_BIN / program), *arguments], stdout=messages, stderr=messages, text=True, start_new_session=True
            )
            try:
                yield process
            finally:
                process.terminate()
                try:
                    process.wait(timeout=15)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()

    def run(self, program: str, *arguments: str, stdin: str = "") -> str:
        """Returns stdout. Raises DemoError if the program fails."""
        done = subprocess.run(  # noqa: S603  our own commands
            [str(_BIN / program), *arguments], check=False, capture_output=True, text=True, input=stdin
        )
        if done.returncode:
            raise DemoError(f"{program} {arguments[0]}: {done.stderr.strip()}")
        return done.stdout.strip()

    def wait(self, what: str, is_there: Callable[[], bool]) -> None:
        deadline = time.monotonic() + self._patience
        while not is_there():
            if time.monotonic() > deadline or any(process.poll() is not None for process in self._processes):
                raise DemoError(f"{what} did not come; see {self.folder}/*.log")
            time.sleep(0.05)
