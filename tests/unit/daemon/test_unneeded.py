"""What a daemon has no use for is not loaded into it, although it is there."""

import importlib
import subprocess
import sys

import pytest

from daemon.unneeded import later

START = """
import asyncio
import sys
from pathlib import Path
from daemon.cli.commands.run import OTHERS, UNUSED
from daemon.unneeded import later, without
later(*UNUSED)
with without(*OTHERS):
    from common import logs
    from daemon.app.serve import serve
from daemon.app.upkeep.housekeeping import Certificate
from daemon.api.access.context import ApiDeps
from daemon.api.service import create_api
from daemon.settings import Settings, Storage
from daemon.usecases.worker.machine_workers import MachineWorkers
asyncio.run(Certificate(Settings(storage=Storage(path=Path("x")))).freshen_at_start())
create_api(ApiDeps(workers=MachineWorkers([]), keyring=None, timezone="UTC", clock=lambda: 0))
others = {"rich", "pygments", "pydantic", "cryptography", "attr", "attrs", "annotated_types", "greenlet", "jinja2", "httpx"}
print(*sorted(others & {name.partition(".")[0] for name in sys.modules}), *sorted(name for name in sys.modules if name.startswith("yaml.")))
"""


def test_what_comes_later_is_loaded_when_it_is_asked_for_something() -> None:
    """An import alone loads nothing; a use gets the real one, and so does the next import. What is loaded already stays."""
    real = sys.modules.pop("colorsys", None) or importlib.import_module("colorsys")
    sys.modules.pop("colorsys", None)
    later("colorsys", "sys")
    try:
        stand_in = importlib.import_module("colorsys")
        assert not hasattr(type(stand_in), "rgb_to_hsv")
        assert "rgb_to_hsv" not in vars(stand_in)
        assert stand_in.rgb_to_hsv(0, 0, 0) == (0, 0, 0)
        assert importlib.import_module("colorsys") is not stand_in
        assert importlib.import_module("sys") is sys
        with pytest.raises(AttributeError):
            _ = stand_in.nothing
    finally:
        sys.modules["colorsys"] = real


def test_a_daemon_without_tls_starts_without_them() -> None:
    """Memory of a box: nothing of them, nor of the PyYAML that Litestar imports, is loaded."""
    done = subprocess.run([sys.executable, "-c", START], capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout.split()) == (0, []), done.stderr
