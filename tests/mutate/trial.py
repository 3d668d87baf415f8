"""One mistake tried: a copy of the tree with it in place, and the tests that touch its line."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from mutate.mistakes import Mistake

TREE = Path(__file__).parents[2]
COPIED = ("bench", "bridge", "config", "daemon", "docs", "exchange", "headquarters", "packaging", "pagekit", "siege", "simulator",
          "systemd", "tests", "requirements", "pyproject.toml", "CHANGELOG.md", "README.md")  # fmt: skip
Outcome = Literal["found", "hangs", "survives", "no test"]


@dataclass(frozen=True)
class Tried:
    mistake: Mistake
    outcome: Outcome
    seconds: float
    tests: int

    @property
    def is_found(self) -> bool:
        return self.outcome in ("found", "hangs")


class Copy:
    """A tree of its own for one worker; `Copy.tried` leaves it as it was."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name in COPIED:
            source, target = TREE / name, folder / name
            if source.is_dir():
                shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(source, target)

    def tried(self, mistake: Mistake, tests: Sequence[str], seconds: float) -> Tried:
        """`tests` are node ids or files of pytest. One that hangs has been noticed, as CI would notice it."""
        began = time.monotonic()
        if not tests:
            return Tried(mistake, "no test", 0.0, 0)
        file = self.folder / mistake.file
        source = file.read_bytes()
        file.write_bytes(mistake.applied(source))
        try:
            code = self.pytest(tests, seconds)
        finally:
            file.write_bytes(source)
        outcome: Outcome = "hangs" if code is None else "survives" if code == 0 else "found"
        return Tried(mistake, outcome, time.monotonic() - began, len(tests))

    def pytest(self, tests: Sequence[str], seconds: float, *options: str) -> int | None:
        """Its exit code; None when it did not end in time. Its processes end with it."""
        paths = os.pathsep.join([str(self.folder), str(self.folder / "tests")])
        environment = {
            **os.environ,
            "PYTHONPATH": paths,
            "PYTHONDONTWRITEBYTECODE": "1",
            "HYPOTHESIS_STORAGE_DIRECTORY": "/dev/null/none",
        }
        listed = self.folder / "tests.txt"
        listed.write_text("\n".join(tests) + "\n")
        command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", f"@{listed}", *options]
        with (self.folder / "output").open("wb") as output:
            process = subprocess.Popen(
                command, cwd=self.folder, env=environment, stdout=output, stderr=output, start_new_session=True
            )
        try:
            return process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
