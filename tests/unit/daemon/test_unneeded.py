"""What a daemon has no use for is not loaded into it, although it is there."""

from __future__ import annotations

import importlib
import subprocess
import sys

import pytest

from daemon.unneeded import without

START = """
import sys
from pathlib import Path
from daemon.cli.commands.box.run import OTHERS
from daemon.unneeded import without
with without(*OTHERS):
    from daemon import logs
    from daemon.app.serve import serve
from daemon.app.upkeep.certificate import Certificate
from daemon.api.access.context import ApiDeps
from daemon.api.service import create_api
from daemon.settings import Settings, Storage
from daemon.usecases.worker.machine_worker import MachineWorkers
Certificate(Settings(storage=Storage(path=Path("x")))).freshen_at_start()
create_api(ApiDeps(workers=MachineWorkers([]), keyring=None, timezone="UTC", clock=lambda: 0))
others = {"rich", "pydantic", "cryptography", "yaml", "attr", "attrs", "annotated_types", "greenlet", "jinja2"}
print(*sorted(others & {name.partition(".")[0] for name in sys.modules}))
"""


def test_what_is_hidden_is_not_found_and_comes_back() -> None:
    """Only while it lasts, and never what is loaded already."""
    sys.modules.pop("colorsys", None)
    with without("colorsys", "sys"):
        assert importlib.import_module("sys") is sys
        with pytest.raises(ModuleNotFoundError):
            importlib.import_module("colorsys")
    assert importlib.import_module("colorsys").__name__ == "colorsys"


def test_a_daemon_without_tls_starts_without_them() -> None:
    """12 MB of a box's memory: tracebacks in colour, another program's models, certificates that nobody makes, screens that nobody looks at.
    PyYAML Litestar cannot be without."""
    done = subprocess.run([sys.executable, "-c", START], capture_output=True, text=True, check=False, timeout=60)
    assert done.stdout.split() == ["yaml"], done.stderr
