"""A shop on a box that boots: the package, a simulated machine on a line, a till that asks from inside.

The box has a network of its own, so everything is asked for from inside."""

from __future__ import annotations

import contextlib
import http.client
import json
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from support.box.cache import keep, scratch
from support.box.debian import TRIXIE, Debian, debian, need_debian
from support.box.package import built, other_version
from support.box.trees import quietly

T = TypeVar("T")
NIM = "EL02000015-1"
LEDGER = "/var/lib/mcfd/mcfd.sqlite3"
PATIENCE_SECONDS = 180.0
PORT, ANSWER_SECONDS = 8480, 30.0
# The simulated machine, which keeps its counters while it is away. It is started once its line is there.
MACHINE = f"""\
[Service]
User=mcfd
RuntimeDirectory=machine
RuntimeDirectoryPreserve=yes
StateDirectory=machine
ExecStart=/usr/bin/python3 -IS -c "import sys; sys.path[:0] = ['/usr/lib/mcfd', '/opt/mcfd/lib']; from simulator.process.serve import main; main()" \
  --nim {NIM} --ifu 00084440Y --link /run/machine/line --state /var/lib/machine/state --baud 0
ExecStartPost=/bin/sh -c 'until [ -e /run/machine/line ]; do sleep 0.1; done'
"""
FIRST_START = """
import http.cookiejar, re, ssl, sys, urllib.parse, urllib.request
link, place, nim = sys.argv[1:]
# The name of the box is known on its network, and this is the box.
base, link = "https://localhost:8480", link[link.index("/ui/") :]
anyone = ssl.create_default_context()
anyone.check_hostname, anyone.verify_mode = False, ssl.CERT_NONE
cookies = urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar())
browser = urllib.request.build_opener(cookies, urllib.request.HTTPSHandler(context=anyone))
browser.addheaders = [("Origin", base)]
def ask(path, **form):
    body = urllib.parse.urlencode(form).encode() or None
    return browser.open(urllib.parse.urljoin(base, path), body, timeout=60).read().decode()
assert "name=\\"code\\"" in ask("/")
ask(link)
assert nim in ask("/ui/setup?look=1&place=" + urllib.parse.quote(place))
wish = {"nim." + nim: "1", "network": "local", "isf": "1", "till": "Caisse 1", "name": "issa", "password": "orange-bleu-42"}
print(re.search(r'data-testid="new-key">([^<]+)<', ask("/ui/setup", **wish))[1])
ask("/ui/setup/start", now="1")
"""
"""What a person does in the page of a box that is not set up yet: the code, the machine, the till, a name, and start."""
UPSTREAM = """
[upstream]
kind = "https"
url = "https://127.0.0.1:1/closures"
secret_file = "/etc/mcfd/credentials/upstream.secret"
"""


@contextlib.contextmanager
def new_shop(package: Callable[[], Path] = built, suite: str = TRIXIE) -> Iterator[Shop]:
    """A Debian that boots, with the package in it, a machine plugged in and `mcfd setup` done."""
    need_debian()
    with debian(suite) as box:
        box.boot()
        shop = Shop(box, package())
        shop.open()
        yield shop
        shop.verify()


@contextlib.contextmanager
def open_shop() -> Iterator[Shop]:
    """The same, on Debian 13. It is opened once in a run of the tests; all others go on from there."""
    need_debian()
    with keep("shop", scratch()) as (opened, half):
        if half is not None:
            _open_once(half)
    layer = opened / "layer"
    if not layer.exists():
        with new_shop() as shop:
            yield shop
        return
    with debian(TRIXIE, layer) as box:
        box.boot()
        shop = Shop(box, built(), (opened / "key").read_text())
        shop.plug_in()
        # The daemon started with the box, before the machine was there.
        until(lambda: shop.call("GET", "/info"), lambda found: found[0] == 200)
        yield shop
        shop.verify()


def _open_once(target: Path) -> None:
    """What the package and `mcfd setup` write to a plain tree, and the till's key. Nothing where a tree has no layers."""
    with new_shop() as shop:
        if shop.box.written is None:
            return
        shop.unplug()
        shop.box.run("systemctl", "stop", "mcfd.service")
        shop.box.switch_off()
        quietly("cp", "-a", shop.box.written, target / "layer")
        (target / "key").write_text(shop.key)


def until(look: Callable[[], T], good: Callable[[T], bool] = bool) -> T:
    """What `look` gives once that is good."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not good(found := look()):
        assert time.monotonic() < deadline, found
        time.sleep(0.1)
    return found


@dataclass
class Shop:
    box: Debian
    package: Path
    key: str = ""
    sold: list[str] = field(default_factory=list)

    def call(self, method: str, path: str, body: object = None) -> tuple[int, dict[str, object]]:
        """The status and the answer, empty where that has no body; 0 without a listener, because the daemon is down or on its way."""
        text = json.dumps(body) if body is not None else None
        headers = {"Authorization": f"Bearer {self.key}", "Content-Type": "application/json"}
        try:
            with contextlib.closing(http.client.HTTPConnection("127.0.0.1", PORT)) as connection:
                connection.sock = self.box.connect(PORT, ANSWER_SECONDS)
                connection.request(method, f"/v1/mcf/{NIM}{path}", text, headers)
                answer = connection.getresponse()
                return answer.status, json.loads(answer.read() or "{}")
        except OSError as error:
            return 0, {"refused": str(error)}

    def certify(self, number: str, items: int = 1) -> tuple[int, dict[str, object]]:
        item = {"name": "Riz 25 kg", "taxGroup": "B", "unitPrice": 15000, "quantity": 1}
        invoice = {
            "invoiceNumber": number,
            "invoiceType": "FV",
            "items": [item] * items,
            "payments": [{"method": "E", "amount": 15000 * items}],
        }
        return self.call("POST", "/certify", invoice)

    def sell(self) -> dict[str, object]:
        """Sells one more; the till tries again while the daemon starts, as tills do."""
        number = f"FV-{len(self.sold) + 1:04}"
        status, answer = until(lambda: self.certify(number), lambda found: found[0] not in {0, 503})
        assert status == 200, answer
        self.sold.append(number)
        return answer

    def assert_it_sells(self, version: str) -> None:
        """That version is in use, it sells, and it has all that was sold."""
        assert self.version() == version
        assert self.unit("ActiveState") == "active"
        self.sell()
        self.assert_nothing_is_lost()

    def assert_nothing_is_lost(self) -> None:
        """Every sale is in the ledger: it is answered as a duplicate, with the certification it had. That the ledger verifies is seen when its
        tests are over."""
        for number in self.sold:
            status, answer = self.certify(number)
            assert (status, answer["code"]) == (409, "DUPLICATE_INVOICE"), number

    def verify(self) -> None:
        """The ledger's own check finds nothing."""
        self.box.run("mcfd", "verify")

    def open(self) -> None:
        """The package goes in, the machine is plugged in, `mcfd setup` finds it, and the daemon runs."""
        self.box.install(self.package)
        self.box.path("/etc/systemd/system/machine.service").write_text(MACHINE)
        self.box.run("systemctl", "daemon-reload")
        self.plug_in()
        self.set_up()
        self.set_up_upstream()
        self.box.run("mcfd", "config", "check")
        self.box.run("systemctl", "start", "mcfd.service", check=False)
        assert self.unit("ActiveState") == "active", self.journal()

    def upgrade(
        self, version: str, change: Callable[[Path], None] = lambda _: None, check: bool = True, **environment: str
    ) -> subprocess.CompletedProcess[str]:
        """`dpkg --install` of the package as another version, with `change` made to it."""
        package = self.box.bring(other_version(self.package, version, change))
        return self.box.run("dpkg", "--install", package, check=check, **environment)

    def set_up_upstream(self) -> None:
        """Somebody who never answers, and the secret for him."""
        with self.configuration.open("a") as file:
            file.write(UPSTREAM)
        self.box.path("/etc/mcfd/credentials/upstream.secret").write_text("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n")

    def version(self) -> str:
        """The one in use."""
        return self.box.run("mcfd", "--version").stdout.removeprefix("mcfd ").strip()

    @property
    def configuration(self) -> Path:
        return self.box.path("/etc/mcfd/mcfd.toml")

    def set_up(self) -> None:
        """`mcfd setup` unattended, as a script would."""
        output = self.box.run("mcfd", "setup", "--yes", "--json", "--port", "/run/machine/line").stdout
        (found,) = json.loads(output)["machines"]
        assert (found["nim"], found["ifu"], found["port"]) == (NIM, "00084440Y", "/run/machine/line")
        self.key = found["key"]

    def set_up_in_browser(self, link: str) -> None:
        """By the page that a box without a configuration serves; over once the daemon has taken its place."""
        self.key = self.box.run("python3", "-c", FIRST_START, link, "/run/machine/line", NIM).stdout.strip()
        until(lambda: self.call("GET", "/reports/x"), lambda found: found[0] == 200)

    def plug_in(self) -> None:
        self.box.run("systemctl", "start", "machine.service")

    def unplug(self) -> None:
        self.box.run("systemctl", "stop", "machine.service")

    def unit(self, name: str) -> str:
        return self.box.run("systemctl", "show", "--value", f"--property={name}", "mcfd.service").stdout.strip()

    def journal(self) -> str:
        return self.box.run("journalctl", "--no-pager", "--unit=mcfd.service", "--lines=50").stdout
