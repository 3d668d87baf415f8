"""`make demo-hq`, as a newcomer runs it."""

import subprocess
import sys

import pytest

pytestmark = pytest.mark.long


def test_demo(tmp_path):
    """Each machine has made exactly the invoices that were answered, findings come and are solved, and nothing is left running."""
    command = [sys.executable, "-m", "headquarters.demo", "--once"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    lines = [line.removeprefix("demo-hq: ").strip() for line in done.stdout.splitlines()]
    assert "a sale there is answered BRIDGE_OFFLINE: nothing was certified" in lines
    assert any(line.startswith("one that may wait is answered 202") for line in lines)
    assert "headquarters holds 2 closures, of EL02000015-1, EL02000016-1" in lines
    assert any(line.startswith("finding: late – EL02000017-1") for line in lines)
    assert any(line.startswith("the sale that waited is certified: ") for line in lines)
    assert "EL02000017-1  Z 1  4 invoices  60000 XOF" in lines
    assert sum("  Z 1  " in line for line in lines) == 3
    counts = {"Ouaga Centre": "1 invoice", "Koudougou": "2 invoices", "Bobo": "4 invoices"}
    assert {f"the machine of {shop} has made {invoices}" for shop, invoices in counts.items()} <= set(lines)
    assert "its connection is cut: a sale there is answered BRIDGE_OFFLINE; the tills in the shop go on" in lines
    assert any("/ui/" in line for line in lines)
    running = subprocess.run(["pgrep", "-f", str(tmp_path)], capture_output=True, text=True, check=False)
    assert running.stdout == ""
