"""`mcfd-hq run` or `mcfd-relay run` as a process of its own, on the port that it says in its log."""

import os
import re
import signal
import time
from pathlib import Path

import httpx
from support.nursery import First
from support.shop import PLAIN, Process, start_program


class Service:
    """`config` is its configuration file, beside which is its log; it lies in a folder of its own."""

    program = ""

    def __init__(self, config: Path, text: str) -> None:
        config.parent.mkdir(exist_ok=True)
        self.config = config
        self.config.write_text(text)
        self._log = config.with_suffix(".log")
        self._process: Process | None = None
        self.base = ""
        """The address of HTTP, of the last start."""
        self.first: First | None = None
        """Done in the process before it becomes that program."""

    def start(self) -> None:
        before = self._log.stat().st_size if self._log.exists() else 0
        self._log.touch()
        arguments = ["run", "--config", str(self.config)]
        self._process = start_program(self.program, arguments, self._log, os.environ, self.first)
        deadline = time.monotonic() + 60
        while not (found := re.search(r'"event":"\w+.started".*"address":"([^"]+)"', self.log[before:])):
            assert not self.has_ended(), self.log[-3000:]
            assert time.monotonic() < deadline, self.log[-3000:]
            time.sleep(0.02)
        self.base = found[1]

    @property
    def log(self) -> str:
        return self._log.read_text()

    @property
    def pid(self) -> int:
        return self._process.pid

    def has_ended(self) -> bool:
        return self._process is None or self._process.poll() is not None

    def wait_until_dead(self) -> None:
        assert self._process.wait(200) == -signal.SIGKILL

    def kill(self) -> None:
        self.stop(signal.SIGKILL)

    def stop(self, number: int = signal.SIGTERM) -> int:
        """The exit code; negative for a signal."""
        if self._process is None:
            return 0
        if self._process.poll() is None:
            self._process.send_signal(number)
        code = self._process.wait(100)
        self._process = None
        return code

    def is_ready(self) -> bool:
        return httpx.get(f"{self.base}/health/ready", verify=PLAIN, trust_env=False).is_success
