"""The shop under attack: simulator on a paced line, the daemon as systemd starts it, plain or with TLS. Also the
resources of the daemon and of HAProxy, its child, and the intervals of the daemon's watchdog messages."""

import contextlib
import itertools
import os
import re
import resource
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
from support.nursery import warm
from support.shop import IFU, NIM, Machine, Process, Shop

from bench import RESULTS, ROOT
from bench.siege.target import InvoiceTimes, SiegeTill, Target

EVERY = 0.05

UNIT = ROOT / "systemd" / "mcfd.service"
WATCHDOG_SECONDS = 30
SOFT_DESCRIPTORS = 1_024
"""systemd's default for a unit without LimitNOFILE."""


class Manager:
    """Receives the daemon's watchdog messages like systemd. `beats` in seconds of `monotonic`."""

    def __init__(self, address: Path) -> None:
        self.beats: list[float] = []
        self.address = address
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(str(address))
        self._socket.settimeout(0.2)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._listen, name="manager")
        self._thread.start()

    def _listen(self) -> None:
        while not self._over.is_set():
            with contextlib.suppress(TimeoutError):
                if b"WATCHDOG=1" in self._socket.recv(4096):
                    self.beats.append(time.monotonic())

    def longest_gap(self, since: float, until: float) -> float:
        """Longest time without a message in seconds, including the interval open at `until`."""
        heard = [beat for beat in self.beats if since <= beat <= until]
        moments = [since, *heard, until]
        return max(later - earlier for earlier, later in itertools.pairwise(moments))

    def close(self) -> None:
        self._over.set()
        self._thread.join()
        self._socket.close()


@dataclass
class Peak:
    """`resident`: MB of daemon and HAProxy; `descriptors`: most that the daemon had open at once."""

    resident: float = 0.0
    descriptors: int = 0

    def look(self, pid: int) -> None:
        with contextlib.suppress(OSError):
            children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
            pages = [int(Path(f"/proc/{each}/statm").read_text().split()[1]) for each in (pid, *children)]
            self.resident = max(self.resident, sum(pages) * os.sysconf("SC_PAGE_SIZE") / 1e6)
            self.descriptors = max(self.descriptors, sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir()))


@contextlib.contextmanager
def watched(pid: int) -> Iterator[Peak]:
    """The peaks of that process, sampled every `EVERY` seconds until the end."""
    peak, over = Peak(), threading.Event()

    def watch() -> None:
        while not over.wait(EVERY):
            peak.look(pid)

    peak.look(pid)
    thread = threading.Thread(target=watch, name="watch")
    thread.start()
    try:
        yield peak
    finally:
        over.set()
        thread.join()


@dataclass(frozen=True)
class AttackedShop:
    shop: Shop
    target: Target
    till: SiegeTill
    manager: Manager

    def attack(self, names: Sequence[str], seconds: float, *, idle: bool = False) -> Sequence[Process]:
        """Starts a process for each attack at the same moment; they end by themselves. `idle`: only on idle
        processors."""
        target_json = msgspec.json.encode(self.target).decode()
        last = ["--idle"] if idle else []
        orders = [[name, str(seconds), target_json, *last] for name in names]
        file = RESULTS / "siege-attackers.log"
        if nursery := warm("attacker"):  # its children start at once
            return [nursery.start("attacker", order, os.environ, stdout=file, stderr=file) for order in orders]
        command = [sys.executable, "-m", "bench.siege.attacks"]
        with file.open("ab") as log:
            attackers = [
                subprocess.Popen(
                    [*command, *order], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True
                )
                for order in orders
            ]
        for attacker in attackers:  # `communicate` would wait for their end
            assert attacker.stdin
            assert attacker.stdout
            attacker.stdout.readline()
            attacker.stdout.close()
        for attacker in attackers:
            assert attacker.stdin
            with contextlib.suppress(OSError):  # it has failed before, and its log has the reason
                attacker.stdin.close()
        return attackers


@contextlib.contextmanager
def open_attacked_shop(*, tls: bool, baud: int = 115_200) -> Iterator[AttackedShop]:
    """On the network behind HAProxy. Ends with `mcfd verify`."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="siege-", dir=RESULTS))
    manager = Manager(folder / "notify")
    try:
        machine = Machine(folder, NIM, IFU, "--baud", str(baud), lasting=False)
        server: dict[str, Any] = {"host": "0.0.0.0", "allow_plain_lan": not tls}  # noqa: S104
        if tls:
            server["tls"] = "internal"
        environ = dict(re.findall(r"^Environment=(\w+)=(.*)", UNIT.read_text(), re.MULTILINE))
        environ.pop("FRONT_FOLDER")  # here HAProxy is a child of the daemon, not a unit
        environ |= {"NOTIFY_SOCKET": str(manager.address), "WATCHDOG_USEC": str(WATCHDOG_SECONDS * 1_000_000)}
        with Shop(folder, machines=(machine,), config={"server": server}, environ=environ) as shop:
            if tls:
                shop.use_https()
            machine.start()
            shop.start_daemon()
            _, hard = resource.prlimit(shop.pid, resource.RLIMIT_NOFILE)
            resource.prlimit(shop.pid, resource.RLIMIT_NOFILE, (min(SOFT_DESCRIPTORS, hard), hard))
            target = Target(shop.port, tls, NIM, shop.key("test"))
            yield AttackedShop(shop, target, SiegeTill(target, shop.key("live")), manager)
            shop.http.close()  # an idle TLS connection would have 5 s to say goodbye
            shop.stop_daemon()
            shop.verify()
    finally:
        manager.close()
        shutil.rmtree(folder, ignore_errors=True)


def wait_until_calm(site: AttackedShop, bound: float, patience: float = 30.0) -> float:
    """Seconds until three invoices in a row took at most `bound` seconds each; `patience` if that never happens."""
    began, since, good = time.monotonic(), 0.0, 0
    while time.monotonic() - began < patience:
        seen, start = InvoiceTimes(), time.monotonic()
        took = site.till.certify(seen)
        good = good + 1 if not seen.errors and took <= bound else 0
        if good == 1:
            since = start
        if good == 3:
            return since - began
        time.sleep(0.1)
    return patience
