"""`mcfd-hq run` as a process of its own, with its command line beside it."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import time
from pathlib import Path

import httpx
from support.nursery import warm
from support.shop import PLAIN, Process, run_program, start_program


class RunningHq:
    def __init__(self, directory: Path, url: str, extra: str = "", server: str = "") -> None:
        directory.mkdir(exist_ok=True)
        self.url = url
        self.config = directory / "hq.toml"
        self.config.write_text(
            f'[server]\nport = 0\n{server}[storage]\nurl = {json.dumps(url)}\nregister_copy = "{directory}/register.json"\n{extra}'
        )
        self._log = directory / "hq.log"
        self._process: Process | None = None
        self.base = ""

    def cli(self, *arguments: str, stdin: str = "") -> str:
        done = self.tried(*arguments, stdin=stdin)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def tried(self, *arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        return run_program("mcfd-hq", [*arguments, "--config", str(self.config)], os.environ, stdin=stdin)

    def start(self, dies_at: tuple[str, int] | None = None) -> None:
        before = self._log.stat().st_size if self._log.exists() else 0
        self._log.touch()
        arguments = ["run", "--config", str(self.config)]
        if dies_at is None:
            self._process = start_program("mcfd-hq", arguments, self._log, os.environ)
        else:
            first = ("support.hq.killed", "die_at", {"point": dies_at[0], "times": dies_at[1]})
            nursery = warm("mcfd-hq")
            assert nursery
            log = {"stdout": self._log, "stderr": self._log}
            self._process = nursery.start("mcfd-hq", arguments, os.environ, first=first, **log)
        self.base = self._address(before)

    def wait_until_dead(self) -> None:
        assert self._process.wait(200) == -signal.SIGKILL

    def _address(self, before: int) -> str:
        deadline = time.monotonic() + 60
        while True:
            text = self._log.read_text()[before:]
            if found := re.search(r'"event":"headquarters.started".*"address":"([^"]+)"', text):
                return found[1]
            assert self._process.poll() is None, text[-3000:]
            assert time.monotonic() < deadline, text[-3000:]
            time.sleep(0.02)

    @property
    def log(self) -> str:
        return self._log.read_text()

    @property
    def pid(self) -> int:
        return self._process.pid

    def has_ended(self) -> bool:
        return self._process is None or self._process.poll() is not None

    def kill(self) -> None:
        self._end(signal.SIGKILL)

    def stop(self) -> int:
        return self._end(signal.SIGTERM)

    def _end(self, number: int) -> int:
        if self._process is None:
            return 0
        if self._process.poll() is None:
            self._process.send_signal(number)
        code = self._process.wait(60)
        self._process = None
        return code

    def post(self, path: str, sent: tuple[dict[str, str], bytes]) -> httpx.Response:
        return httpx.post(
            f"{self.base}{path}", headers=sent[0], content=sent[1], timeout=30, trust_env=False, verify=PLAIN
        )

    def key(self, role: str = "accountant") -> str:
        return self.cli("keys", "create", "--role", role)

    def get(self, path: str, key: str) -> httpx.Response:
        headers = {"Authorization": f"Bearer {key}"}
        return httpx.get(f"{self.base}{path}", headers=headers, timeout=30, trust_env=False, verify=PLAIN)
