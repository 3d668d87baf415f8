"""HAProxy as the package's unit runs it: a process of its own, whose configuration the daemon writes."""

import json
import os
import shutil
import signal
import ssl
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from support.ports import free_port
from support.shop import Shop, invoice, wait_for
from support.till import certified, fresh
from support.tools import need

from common.front_config import program

pytestmark = pytest.mark.long


class Unit:
    """`systemd/front-mcfd.service`, without systemd."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        wait_for((self.folder / "haproxy.cfg").exists, "the configuration")
        haproxy, config = program() or "", str(self.folder / "haproxy.cfg")
        subprocess.run([haproxy, "-c", "-q", "-f", config], check=True, timeout=60)
        socket = f"{self.folder}/master.sock,mode,660"
        self._process = subprocess.Popen([haproxy, "-W", "-q", "-f", config, "-S", socket], start_new_session=True)

    @property
    def pid(self) -> int:
        """Of the worker, the newest child of the process that systemd knows."""
        assert self._process
        children = Path(f"/proc/{self._process.pid}/task/{self._process.pid}/children").read_text().split()
        return int(children[-1])

    def kill(self) -> None:
        if self._process is not None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait(60)
            self._process = None


@pytest.fixture
def unit() -> Iterator[Unit]:
    if program() is None:
        need("haproxy")
    folder = Path(tempfile.mkdtemp(prefix="front-"))
    unit = Unit(folder)
    yield unit
    unit.kill()
    shutil.rmtree(folder)


@contextmanager
def behind_haproxy(folder: Path, unit: Unit, host: str) -> Iterator[Shop]:
    """A shop with TLS, its daemon and HAProxy started."""
    with Shop(folder, config={"server": {"tls": "internal", "host": host}}) as shop:
        shop.options = ("--front", str(unit.folder))
        shop._write_config()
        shop.mcfd("tls", "init", check=True)
        shop.http.close()
        shop.http = client(shop)
        shop.machines[0].start()
        shop.launch_daemon()
        unit.start()
        wait_for(shop.is_ready, "the start")
        yield shop


def test_daemon_and_haproxy_end_and_come_back(tmp_path: Path, unit: Unit) -> None:
    """Each alone: while the daemon is away its tills get 503 as a problem, and go on afterwards; so they do when HAProxy was away. Another
    port of the configuration is taken over by the HAProxy that runs, and so is a box that serves itself alone again. The audit log has the
    till's own address."""
    with behind_haproxy(tmp_path, unit, "0.0.0.0") as shop:  # noqa: S104  with TLS
        certified(shop.certify(invoice(fresh())))

        shop.kill_daemon()
        problem_of_proxy(shop.certify(invoice(fresh())))
        shop.launch_daemon()
        wait_for(shop.is_ready, "the daemon")
        certified(shop.certify(invoice(fresh())))

        unit.kill()
        with pytest.raises(httpx.HTTPError):
            shop.certify(invoice(fresh()))
        unit.start()
        wait_for(shop.is_ready, "HAProxy")
        assert shop.close_period().status_code == httpx.codes.CREATED
        entries = json.loads(shop.mcfd("audit", "--json", check=True).stdout)
        assert "127.0.0.9" in json.dumps(entries)

        assert shop.stop_daemon() == 0
        shop.port = free_port()
        shop.http.close()
        shop.http = client(shop)
        shop.launch_daemon()
        wait_for(shop.is_ready, "the other port")
        certified(shop.certify(invoice(fresh())))
        assert shop.stop_daemon() == 0

        shop._config = {}
        shop.http.close()
        shop.http = httpx.Client(base_url=f"http://127.0.0.1:{shop.port}", timeout=60)
        shop.start_daemon()
        assert not (unit.folder / "haproxy.cfg").exists()
        certified(shop.certify(invoice(fresh())))
        shop.verify()


def test_a_certificate_that_is_new_at_the_start_is_what_a_running_haproxy_shows(tmp_path: Path, unit: Unit) -> None:
    """A new authority, or another name in the configuration, and a restart of mcfd: HAProxy runs on, and its configuration is the same. With the old
    certificate every till that trusts the new authority is refused. One that HAProxy did not take for the moment is given to it again."""
    with behind_haproxy(tmp_path, unit, "127.0.0.1") as shop:
        assert shop.stop_daemon() == 0
        shop.mcfd("tls", "init", "--force", check=True)
        shop.launch_daemon()
        wait_for(shop.is_ready, "the daemon")
        wait_for(lambda: is_served(shop), "the new certificate", 20)

        shop.mcfd("tls", "init", "--force", check=True)
        os.kill(unit.pid, signal.SIGSTOP)
        os.kill(shop.pid, signal.SIGHUP)
        wait_for(lambda: shop.events("front.unreachable"), "that HAProxy does not answer")
        os.kill(unit.pid, signal.SIGCONT)
        os.kill(shop.pid, signal.SIGHUP)
        wait_for(lambda: is_served(shop), "the newest certificate", 20)


def is_served(shop: Shop) -> bool:
    present = (shop.folder / "tls/server.pem").read_text()
    return ssl.get_server_certificate(("127.0.0.1", shop.port)).strip() in present


def client(shop: Shop) -> httpx.Client:
    transport = httpx.HTTPTransport(local_address="127.0.0.9", verify=False)
    return httpx.Client(transport=transport, base_url=f"https://127.0.0.1:{shop.port}", timeout=60)


def problem_of_proxy(answer: httpx.Response) -> None:
    assert (answer.status_code, answer.json()["code"]) == (503, "UNAVAILABLE")
    assert int(answer.headers["retry-after"]) > 0
