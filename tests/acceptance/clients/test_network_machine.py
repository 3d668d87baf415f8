"""The daemon with its machine behind the network: each sale exactly once over a line that stalls, splits and is taken over."""

import random
import socket
import threading
import time
from contextlib import ExitStack
from itertools import cycle

import httpx
import pytest
from support.cli.command import Command
from support.hurried import HURRIED
from support.line.network import Relay, ser2net
from support.shop import NIM, Machine, Shop, invoice, wait_for

from daemon.settings import load

pytestmark = pytest.mark.long

SALES = 8


@pytest.fixture(params=["tcp", "rfc2217"])
def scheme(request):
    return request.param


class NetworkShop:
    def __init__(self, folder, scheme, *, kick=True):
        self._stack = ExitStack()
        self.machine = Machine(folder)
        self.machine.start()
        self._stack.callback(self.machine.kill)
        telnet = scheme == "rfc2217"
        self.server = self._stack.enter_context(ser2net(folder, self.machine.link, telnet=telnet, kick=kick))
        self.relay = self._stack.enter_context(Relay(self.server))
        self.place = f"{scheme}://127.0.0.1:{self.relay.port}"
        self.shop = Shop(folder, machines=(self.machine,), per_machine={"port": self.place}, first=HURRIED)
        self._stack.enter_context(self.shop)
        self.shop.start_daemon()

    def sell(self, number):
        """As a till does: again, with the same key, until there is an answer that settles it."""

        def answered():
            try:
                answer = self.shop.certify(invoice(number), key=f"key-{number}")
            except httpx.TransportError:
                return None
            return answer if answer.status_code < 500 else None

        answer = wait_for(answered, f"the answer to {number}", patience=60)
        assert answer.status_code in (200, 201), answer.text
        return answer.json()

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self._stack.close()


def trouble(relay, stop, seed):
    """Stalls of up to 1.5 s, pieces of a few bytes, and hard cuts, one after the other."""
    dice = random.Random(seed)
    for what in cycle(("stall", "split", "cut", "split", "stall")):
        if stop.wait(dice.uniform(0.02, 0.2)):
            return
        if what == "cut":
            relay.cut()
            time.sleep(0.5)
        else:
            relay.stall = what == "stall"
            relay.piece, relay.gap = (3, 0.001) if what == "split" else (4096, 0.0)
            stop.wait(dice.uniform(0.1, 1.5))
            relay.stall, relay.piece, relay.gap = False, 4096, 0.0


def test_each_sale_once_whatever_the_network_does(tmp_path, scheme):
    """Stalls, splits and cuts at any moment of a sale: the machine has certified each invoice once, in the ledger's words."""
    with NetworkShop(tmp_path, scheme) as net:
        stop = threading.Event()
        thread = threading.Thread(target=trouble, args=(net.relay, stop, 17))
        thread.start()
        try:
            codes = {number: net.sell(number)["codeSecef"] for number in (f"F-{at}" for at in range(SALES))}
        finally:
            stop.set()
            thread.join()
        assert {sale["number"]: sale["code"] for sale in net.machine.certified()} == codes
        assert len(net.machine.certified()) == SALES
        net.shop.verify()


def test_another_client_takes_the_line_over(tmp_path):
    """Somebody else connects to the device server, which drops us: it is logged, the line comes back by itself, sales go on."""
    with NetworkShop(tmp_path, "tcp") as net:
        net.sell("F-1")
        with socket.create_connection(("127.0.0.1", net.server)):
            wait_for(lambda: net.shop.events("line.down"), "the loss of the line")
        net.sell("F-2")
        assert [sale["number"] for sale in net.machine.certified()] == ["F-1", "F-2"]


def test_another_machine_behind_the_same_address(tmp_path):
    """The device server is plugged to another machine: nothing is certified on it, the reason names it, the right one is taken back."""
    other = Machine(tmp_path, "EL02000099-1")
    with NetworkShop(tmp_path, "tcp") as net:
        net.sell("F-1")
        other.start()
        try:
            with ser2net(tmp_path, other.link, kick=True) as elsewhere:
                net.relay.target = elsewhere
                net.relay.cut()
                wait_for(
                    lambda: any("EL02000099-1" in str(event) for event in net.shop.events("line.down")),
                    "the other's name",
                )
                assert net.shop.certify(invoice("F-2")).status_code == 503
                net.relay.target = net.server
                net.relay.cut()
                net.sell("F-2")
                assert other.certified() == []
        finally:
            other.kill()
        assert [sale["number"] for sale in net.machine.certified()] == ["F-1", "F-2"]


def test_setup_doctor_and_info_by_the_network(tmp_path):
    """`mcfd doctor` and `machine info` go to the address; beside a running daemon, which holds the line, both ask the daemon."""
    with NetworkShop(tmp_path, "tcp", kick=False) as net:
        done = net.shop.mcfd("doctor")
        assert net.place in done.stdout, done.stdout + done.stderr
        net.sell("F-1")
        result = net.shop.mcfd("machine", "info", NIM)
        assert "F-1" in result.stdout, result.stderr + result.stdout
        net.sell("F-2")
        net.shop.stop_daemon()
        config = tmp_path / "new.toml"
        (tmp_path / "none").mkdir()
        flags = ("--yes", "--port", net.place, "--ledger", str(tmp_path / "new.sqlite3"), "--json")
        done = Command(tmp_path / "none").run("setup", *flags, "--config", str(config))
        assert done.returncode == 0, done.stdout + done.stderr
        assert load(config, {}).machine[0].port == net.place
        found = wait_for(lambda: "F-2" in net.shop.mcfd("machine", "info", NIM).stdout, "the machine's last invoice")
        assert found
