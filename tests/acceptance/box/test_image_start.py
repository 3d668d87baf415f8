"""What the container image starts (`make image`), started without a container."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from support.ports import free_port
from support.shop import NIM, PLAIN, invoice, wait_for

from daemon.core.keys import inspect

pytestmark = pytest.mark.long

TREE = Path(__file__).resolve().parents[3]


@contextmanager
def started(state: Path, port: int) -> Iterator[tuple[list[str], httpx.Client]]:
    """The keys that it says, and a client once it serves; stopped as `podman stop` does it, and then nothing of it is left."""
    own = {"MCFD_LIBRARIES": str(TREE), "MCFD_DEMO_STATE": str(state), "MCFD_DEMO_BAUD": "0"}
    server = {"MCFD_SERVER_HOST": "127.0.0.1", "MCFD_SERVER_PORT": str(port)}
    process = subprocess.Popen(
        [sys.executable, TREE / "packaging/image/start.py"],
        env={**os.environ, **own, **server}, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    try:
        assert process.stdout is not None
        keys = [process.stdout.readline().split()[-1] for _ in range(2)]
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60, verify=PLAIN) as client:
            wait_for(lambda: _ready(client), "the daemon")
            yield keys, client
        process.terminate()
        assert process.wait(60) == 0
    finally:
        process.kill()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()


def _ready(client: httpx.Client) -> bool:
    try:
        return client.get("/health/ready").is_success
    except httpx.TransportError:
        return False


def test_the_image_has_what_the_package_depends_on() -> None:
    """But for what a container does without: an init, devices, and the C library that Python brings."""
    control = (TREE / "debian/control").read_text()
    depends = re.search(r"^Package: mcfd$.*?^Depends: (.*?)^\S", control, re.MULTILINE | re.DOTALL)
    included = re.search(r"--include=(\S+)", (TREE / "packaging/image/build").read_text())
    assert depends
    assert included
    wanted = {each.split()[0] for each in depends[1].split(",")} - {"${misc:Depends}", "libc6", "systemd", "udev"}
    assert set(included[1].split(",")) == wanted


def test_a_developer_starts_it_twice(tmp_path: Path) -> None:
    """Two keys are said, of a machine that certifies; a second start says the same ones, and machine and ledger go on where they were."""
    port = free_port()
    with started(tmp_path / "state", port) as (keys, client):
        assert [inspect(key) for key in keys] == ["live", "test"]
        first = sell(client, keys[0], "FV-1")
    with started(tmp_path / "state", port) as (again, client):
        assert again == keys
        assert sell(client, keys[0], "FV-2")["fvc"] == first["fvc"] + 1
        assert sell(client, keys[1], "FV-1")["codeSecef"].startswith("TESTFACT")


def sell(client: httpx.Client, key: str, number: str) -> dict[str, object]:
    answer = client.post(f"/v1/mcf/{NIM}/certify", json=invoice(number), headers={"Authorization": f"Bearer {key}"})
    assert answer.status_code == httpx.codes.OK, answer.text
    return answer.json()
