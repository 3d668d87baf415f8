"""`make demo-anywhere`: headquarters, a nats-server, the relay, two shops that join by a code, and a till outside of both; one shop is switched off and on
again, the other one is revoked."""

from __future__ import annotations

import asyncio
import json
import secrets
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx

from common.demo import Demo, DemoError
from common.wire.nats_client import NatsError
from common.wire.nats_pull import NatsOptions, connected
from headquarters.demo import IFU, PATIENCE, PLAIN
from headquarters.intake.stream import call

SHOPS = (("EL02000015-1", "Ouaga Centre"), ("EL02000017-1", "Bobo"))
CONFIG = Path(__file__).parents[1] / "config" / "nats"
STREAMS = {"closures": "headquarters", "presence": "headquarters", "calls": "relay"}
"""Each with the consumer that reads it."""
NATS = (
    'listen: "127.0.0.1:{port}"\nserver_name: demo\njetstream {{ store_dir: "{folder}/store" }}\ninclude "users.conf"\n'
)
HQ = """\
[server]
port = {port}
[storage]
url = "sqlite:///{folder}/hq.sqlite3"
[nats]
url = "nats://127.0.0.1:{nats}"
credentials_file = "{keys}/reader.creds"
issuer_file = "{folder}/issuer.json"
[boxes]
url = "http://127.0.0.1:{port}"
"""
RELAY = '[server]\nport = {port}\n[nats]\nurl = "nats://127.0.0.1:{nats}"\ncredentials_file = "{folder}/relay.creds"\n'
BOX = """\
[server]
port = {port}
[storage]
path = "{folder}/mcfd.sqlite3"
[[machine]]
nim = "{nim}"
port = "{folder}/machine"
"""


def show(demo: Demo) -> None:
    site = AnywhereSite(demo)
    shops = [RemoteShop(site, nim, label) for nim, label in SHOPS]
    demo.print(f"the till is outside, and knows one address: {site.relay}")
    for shop in shops:
        answer = shop.certify("WEB-1")
        demo.print(f"  {shop.label}: {answer.json()['codeSecef']}  {answer.json()['totalTtc']} XOF")
    first, second = shops
    demo.print(f"{second.label} is switched off.")
    second.switch_off()
    demo.wait("the relay's word", lambda: second.sell("WEB-2").status_code == httpx.codes.SERVICE_UNAVAILABLE)
    demo.print(f"  a sale there is answered {second.sell('WEB-2').json()['code']}: nothing was certified")
    later = second.sell("WEB-3", prefer="respond-async")
    demo.print(
        f"  one that may wait is answered {later.status_code}, and waits for the box at {later.headers['location']}"
    )
    demo.print(f"{second.label} is switched on.")
    second.switch_on()
    demo.wait("the sale that waited", lambda: second.state("WEB-3") == "certified")
    demo.print(f"  the sale that waited is certified: {second.look('WEB-3').json()['receipt']['codeSecef']}")
    demo.print(f"{first.label} is revoked at headquarters.")
    site.hq("boxes", "revoke", first.nim)
    demo.wait("the cut", lambda: first.sell("WEB-4").status_code == httpx.codes.SERVICE_UNAVAILABLE)
    demo.print("  its connection is cut: a sale there is answered BRIDGE_OFFLINE; the tills in the shop go on")
    for shop in shops:
        demo.print(f"  the machine of {shop.label} has made {shop.invoices()} invoices")


class AnywhereSite:
    """nats-server with the accounts that `mcfd-hq nats` makes, headquarters, and the relay."""

    def __init__(self, demo: Demo) -> None:
        self.demo = demo
        folder, keys = demo.folder.resolve(), demo.folder.resolve() / "keys"
        ports = {name: demo.free_port() for name in ("nats", "hq", "relay")}
        self._config = folder / "hq.toml"
        demo.print("keys of the NATS servers, of headquarters and of the relay …")
        demo.run("mcfd-hq", "nats", "init", str(keys))
        demo.run("mcfd-hq", "nats", "issuer", str(keys), "--to", str(folder / "issuer.json"))
        demo.run("mcfd-hq", "nats", "relay", str(keys), "--to", str(folder / "relay.creds"))
        (folder / "users.conf").write_text((keys / "users.conf").read_text().replace("/var/lib/nats", str(folder)))
        (folder / "nats.conf").write_text(NATS.format(port=ports["nats"], folder=folder))
        demo.print("starting nats-server, headquarters and the relay …")
        demo.start("nats", "nats-server", "-c", str(folder / "nats.conf"))
        demo.wait("nats-server", lambda: asyncio.run(_make_streams(ports["nats"], keys / "administrator.creds")))
        self._config.write_text(HQ.format(port=ports["hq"], nats=ports["nats"], folder=folder, keys=keys))
        password = secrets.token_urlsafe(9)
        self.hq("users", "create", "siege", "--role", "admin", "--password-stdin", stdin=password)
        demo.start("hq", "mcfd-hq", "run", "--config", str(self._config))
        (folder / "relay.toml").write_text(RELAY.format(port=ports["relay"], nats=ports["nats"], folder=folder))
        demo.start("relay", "mcfd-relay", "run", "--config", str(folder / "relay.toml"))
        self.relay = f"http://127.0.0.1:{ports['relay']}"
        self.http = demo.until_end.enter_context(httpx.Client(trust_env=False, timeout=100, verify=PLAIN))
        for base in (f"http://127.0.0.1:{ports['hq']}", self.relay):
            demo.wait(base, lambda base=base: self.is_ready(base))  # type: ignore[misc]  # called at once
        demo.print(f"headquarters: http://127.0.0.1:{ports['hq']}/ui/  name: siege  password: {password}")

    def hq(self, *arguments: str, stdin: str = "") -> str:
        return self.demo.run("mcfd-hq", *arguments, "--config", str(self._config), stdin=stdin)

    def is_ready(self, base: str) -> bool:
        try:
            return self.http.get(f"{base}/health/ready").is_success
        except httpx.HTTPError:
            return False


class RemoteShop:
    """A box with its machine: it joins by a code, and has a key for the till outside."""

    def __init__(self, site: AnywhereSite, nim: str, label: str) -> None:
        self.nim, self.label = nim, label
        self._site, self._folder = site, site.demo.folder.resolve() / nim
        self._folder.mkdir()
        demo, link = site.demo, self._folder / "machine"
        self._config, self._port = self._folder / "mcfd.toml", demo.free_port()
        self._config.write_text(BOX.format(port=self._port, folder=self._folder, nim=nim))
        state = ("--link", str(link), "--state", str(self._folder / "machine.json"))
        demo.start(f"{nim}-machine", "mcf-simulator", "--nim", nim, "--ifu", IFU, *state)
        demo.wait("the machine", link.exists)
        code = site.hq("boxes", "code", nim, "--label", label)
        demo.print(f"{label} joins: mcfd upstream join {code}")
        self._run("upstream", "join", code)
        self._key = self._run("keys", "create", "--nim", nim, "--via", "relay").split()[-1]
        self.switch_on()

    def _run(self, *arguments: str) -> str:
        return self._site.demo.run("mcfd", *arguments, "--config", str(self._config))

    def switch_on(self) -> None:
        demo = self._site.demo
        self._process: subprocess.Popen[str] = demo.start(
            f"{self.nim}-mcfd", "mcfd", "run", "--config", str(self._config)
        )
        demo.wait(self.label, lambda: self._ask("GET", "info").is_success)

    def switch_off(self) -> None:
        self._site.demo.stop(self._process)

    def certify(self, number: str) -> httpx.Response:
        answer = self.sell(number)
        if answer.status_code != httpx.codes.OK:
            raise DemoError(f"{self.label} answered {answer.status_code}: {answer.text}")
        return answer

    def sell(self, number: str, **headers: str) -> httpx.Response:
        item = {"name": "Riz 25 kg", "taxGroup": "B", "unitPrice": 15000, "quantity": 1}
        payments = [{"method": "E", "amount": 15000}]
        sale = {"invoiceNumber": number, "invoiceType": "FV", "items": [item], "payments": payments}
        return self._ask("POST", "certify", sale, {"Idempotency-Key": f"till-{number}", **headers})

    def look(self, number: str) -> httpx.Response:
        return self._ask("GET", f"requests/till-{number}")

    def state(self, number: str) -> str:
        answer = self.look(number)
        return str(answer.json()["status"]) if answer.is_success else ""

    def invoices(self) -> int:
        state: dict[str, Any] = json.loads((self._folder / "machine.json").read_text())
        return int(state["fvc"])

    def _ask(
        self, method: str, path: str, body: object = None, headers: dict[str, str] | None = None
    ) -> httpx.Response:
        url = f"{self._site.relay}/v1/mcf/{self.nim}/{path}"
        own = {"Authorization": f"Bearer {self._key}", **(headers or {})}
        return self._site.http.request(method, url, json=body, headers=own)


async def _make_streams(port: int, administrator: Path) -> bool:
    """As config/nats has them for one server, with their consumers; False while nobody answers."""
    try:
        client = await connected(NatsOptions(url=f"nats://127.0.0.1:{port}", credentials_file=administrator))
    except (OSError, NatsError):
        return False
    try:
        for name, reader in STREAMS.items():
            stream = name.upper()
            await call(client, f"STREAM.CREATE.{stream}", json.loads((CONFIG / f"{name}-one.json").read_text()))
            consumer = {"stream_name": stream, "config": json.loads((CONFIG / f"{reader}.json").read_text())}
            await call(client, f"CONSUMER.CREATE.{stream}.{reader}", consumer)
    except NatsError:
        return False
    finally:
        await client.close()
    return True


if __name__ == "__main__":
    sys.exit(Demo("demo-anywhere", "tills anywhere: two shops behind a relay", show, PATIENCE).main())
