"""`make demo-hq`, as a newcomer runs it."""

from __future__ import annotations

import subprocess
import sys


def test_demo(tmp_path):
    """Three shops, one cut off; the finding appears, the shop comes back, the finding is solved, and nothing is left running."""
    command = [sys.executable, "-m", "headquarters.demo", "--once"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    lines = [line.removeprefix("demo-hq: ") for line in done.stdout.splitlines()]
    assert "headquarters holds 2 closures, of EL02000015-1, EL02000016-1" in lines
    assert any(line.startswith("finding: late – EL02000017-1") for line in lines)
    assert sum("  Z 1  " in line for line in lines) == 3
    assert any("/ui/" in line for line in lines)
    running = subprocess.run(["pgrep", "-f", str(tmp_path)], capture_output=True, text=True, check=False)
    assert running.stdout == ""
