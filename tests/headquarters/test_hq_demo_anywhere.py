"""`make demo-anywhere`, as a newcomer runs it."""

from __future__ import annotations

import subprocess
import sys


def test_demo(tmp_path):
    """Two shops join, and sell through the relay; one that is off certifies what waits once it is on again, the other is revoked, and each machine has made
    exactly the invoices that were answered; nothing is left running."""
    command = [sys.executable, "-m", "headquarters.demo_anywhere", "--once"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    lines = [line.removeprefix("demo-anywhere: ").strip() for line in done.stdout.splitlines()]
    assert "a sale there is answered BRIDGE_OFFLINE: nothing was certified" in lines
    assert any(line.startswith("one that may wait is answered 202") for line in lines)
    assert any(line.startswith("the sale that waited is certified: ") for line in lines)
    assert "the machine of Ouaga Centre has made 1 invoices" in lines
    assert "the machine of Bobo has made 2 invoices" in lines
    running = subprocess.run(["pgrep", "-f", str(tmp_path)], capture_output=True, text=True, check=False)
    assert running.stdout == ""
