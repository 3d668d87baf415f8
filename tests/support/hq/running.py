"""`mcfd-hq run` as a process of its own, with its command line beside it."""

import json
import os
import subprocess
from pathlib import Path

import httpx
from support.service import Service
from support.shop import PLAIN, run_program


class RunningHq(Service):
    program = "mcfd-hq"

    def __init__(self, directory: Path, url: str, extra: str = "", server: str = "") -> None:
        """`extra` are further sections, `server` is more of the section of that name."""
        self.url = url
        storage = f'[storage]\nurl = {json.dumps(url)}\nregister_copy = "{directory}/register.json"\n'
        super().__init__(directory / "hq.toml", f"[server]\nport = 0\n{server}{storage}{extra}")

    def cli(self, *arguments: str, stdin: str = "") -> str:
        done = self.tried(*arguments, stdin=stdin)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def tried(self, *arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        return run_program("mcfd-hq", [*arguments, "--config", str(self.config)], os.environ, stdin=stdin)

    def post(self, path: str, sent: tuple[dict[str, str], bytes]) -> httpx.Response:
        return httpx.post(
            f"{self.base}{path}", headers=sent[0], content=sent[1], timeout=30, trust_env=False, verify=PLAIN
        )

    def key(self, role: str = "accountant") -> str:
        return self.cli("keys", "create", "--role", role)

    def get(self, path: str, key: str) -> httpx.Response:
        headers = {"Authorization": f"Bearer {key}"}
        return httpx.get(f"{self.base}{path}", headers=headers, timeout=30, trust_env=False, verify=PLAIN)
