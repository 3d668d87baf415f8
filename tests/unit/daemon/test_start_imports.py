"""The libraries that a start of the daemon loads."""

import subprocess
import sys

START = """
import asyncio
import sys
from pathlib import Path
from daemon.app.serve import serve
from daemon.app.upkeep.housekeeping import Certificate
from daemon.api.access.context import ApiDeps
from daemon.api.service import create_api
from daemon.settings import Settings, Storage
from daemon.usecases.worker.machine_workers import MachineWorkers
asyncio.run(Certificate(Settings(storage=Storage(path=Path("x")))).freshen_at_start())
create_api(ApiDeps(workers=MachineWorkers([]), keyring=None, timezone="UTC", clock=lambda: 0))
print(*sorted({"cryptography", "jinja2", "httpx"} & {name.partition(".")[0] for name in sys.modules}))
"""


def test_a_daemon_without_tls_loads_no_library_that_it_does_not_use() -> None:
    """Memory of a small box: certificates, screens and deliveries load their libraries at their first use."""
    done = subprocess.run([sys.executable, "-c", START], capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout.split()) == (0, []), done.stderr
