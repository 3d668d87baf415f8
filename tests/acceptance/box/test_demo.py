"""`make demo`: the first command of the README, in a copy of the tree with the environment that runs the tests."""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import pytest
from support.tools import need

pytestmark = pytest.mark.long

ROOT = Path(__file__).parents[3]
PORT = 8480
DEMO_SECONDS = 120
PACKAGES = ("bridge", "common", "daemon", "simulator")


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    need("make", "curl")
    tree = tmp_path_factory.mktemp("tree")
    for name in PACKAGES:
        shutil.copytree(ROOT / name, tree / name)
    shutil.copy(ROOT / "Makefile", tree)
    (tree / ".venv").symlink_to(sys.prefix)
    return tree


def make_demo(tree: Path) -> subprocess.CompletedProcess[str]:
    """With `-o`: the environment is there, whatever its date."""
    command = ["make", "-o", ".venv/.run-ready", "demo", "ONCE=1"]
    demo = subprocess.Popen(
        command, cwd=tree, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        out, errors = demo.communicate(timeout=DEMO_SECONDS)
    finally:
        if demo.poll() is None:  # it ends its machine and its daemon itself
            os.killpg(demo.pid, signal.SIGTERM)
            demo.communicate()
    return subprocess.CompletedProcess(command, demo.returncode, out, errors)


def report_of(text: str) -> dict[str, Any]:
    start = text.index("\n{") + 1
    return json.JSONDecoder().raw_decode(text[start:])[0]


def shows_all(done: subprocess.CompletedProcess[str]) -> None:
    """Both keys, the receipt, the X report of that one invoice, a curl line, the page with who may log in."""
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"live key ak_live_\w{38}\n", done.stdout)
    assert re.search(r"test key ak_test_\w{38} ", done.stdout)
    assert re.search(r"Code SECeF +[A-Z0-9]{24}\n", done.stdout)
    assert re.search(r"Total TTC +15600 XOF\n", done.stdout)
    fvc = re.search(r"TC (\d+)  FVC \1  FRC 0", done.stdout)
    assert fvc, done.stdout
    assert int(fvc[1]) > 300  # three weeks were before it
    assert re.search(r"http://127.0.0.1:\d+/ui/ – name awa, password \S+\n", done.stdout)
    report = report_of(done.stdout)
    assert (report["kind"], report["certs_count"], report["total_ttc"]) == ("X", 1, 15600)
    assert "curl -s http://127.0.0.1:" in done.stdout


@pytest.fixture
def taken() -> Iterator[None]:
    """8480 is somebody's: ours, unless it is taken already."""
    with closing(socket.socket()) as holder:
        with suppress(OSError):
            holder.bind(("127.0.0.1", PORT))
            holder.listen()
        yield


def test_it_certifies_one_invoice_and_stops(tree: Path, taken: None) -> None:
    """With progress in between, and exit 0, on another port than 8480, and it says so."""
    done = make_demo(tree)
    shows_all(done)
    assert done.stdout.index("starting mcfd …") < done.stdout.index("certified.")
    used = re.search(r"port 8480 is taken; using ([0-9]+)\n", done.stdout)
    assert f"http://127.0.0.1:{used[1]}/v1/" in done.stdout


def test_its_invoices_have_numbers_of_their_own() -> None:
    """None of the documents: an example that is sent to it as it stands was answered 409 `DUPLICATE_INVOICE`."""
    numbers = re.findall(r'"invoiceNumber": "([^"{]+)"', (ROOT / "daemon/demo.py").read_text())
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "docs").rglob("*.py")]
    examples = "".join(page.read_text() for page in pages)
    assert len(numbers) == 2
    assert [number for number in numbers if number in examples] == []


@contextmanager
def staying(tree: Path, ignore_interrupts: bool) -> Iterator[subprocess.Popen[str]]:
    """The demo in a session of its own, of which nothing is left afterwards, whatever the test finds."""
    trap = 'trap "" INT; ' if ignore_interrupts else ""
    demo = subprocess.Popen(
        ["sh", "-c", f'{trap}exec "$0" -m daemon.demo', str(tree / ".venv/bin/python")],
        cwd=tree,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        yield demo
    finally:
        if demo.poll() is None:
            demo.terminate()  # its own end of machine and daemon, which have sessions of their own
            with suppress(subprocess.TimeoutExpired):
                demo.wait(40)
        demo.kill()
        demo.wait()
        if demo.stdout:
            demo.stdout.close()


@pytest.mark.parametrize("ignore_interrupts", [False, True], ids=["at a terminal", "in a script's background"])
def test_it_stays_up_until_ctrl_c(tree: Path, taken: None, ignore_interrupts: bool) -> None:
    """The curl line that it prints certifies the next invoice; Ctrl-C ends it with 0, and nothing is left running: also when the process that
    started it ignores Ctrl-C, as a shell does for what a script starts with `&`."""
    with staying(tree, ignore_interrupts) as demo:
        assert demo.stdout
        lines = []
        for line in demo.stdout:
            lines.append(line)
            if "running until Ctrl-C" in line:
                break
        text = "".join(lines)
        command = re.search(r"^curl .*?}'$", text, re.DOTALL | re.MULTILINE)
        assert command, text
        answer = subprocess.run(["bash", "-c", command[0]], capture_output=True, text=True, check=True)
        assert json.loads(answer.stdout)["fvc"] > 300
        demo.send_signal(signal.SIGINT)
        assert demo.wait(30) == 0
        assert "stopped" in demo.stdout.read()
    base = re.search(r"http://127\.0\.0\.1:[0-9]+", text)
    assert base
    with pytest.raises(httpx.ConnectError):
        httpx.get(base[0] + "/health/live")
