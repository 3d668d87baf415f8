"""`make demo-hq`: nats-server, headquarters with its page, the relay, three shops that join by a code, and a till outside
of them. One shop is switched off and on again, another one is revoked."""

import asyncio
import json
import secrets
import ssl
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx

from common.demo import Demo
from common.wire.errors import NatsError
from common.wire.nats_pull import NatsOptions, connected
from headquarters.intake.stream import call

PORT = 8490
PATIENCE = 90.0
NO_TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""For HTTP without TLS: the system's certificate authorities are not read."""
SHOPS = (
    ("EL02000015-1", "Ouaga Centre", "Centre"),
    ("EL02000016-1", "Koudougou", "Centre"),
    ("EL02000017-1", "Bobo", "Ouest"),
)
IFU = "00084440Y"
CONFIG = Path(__file__).parents[1] / "config" / "nats"
STREAMS = {"closures": "headquarters", "presence": "", "calls": "relay"}
"""Each with the consumer that reads it, if any."""
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
credentials_file = "{folder}/keys/reader.creds"
issuer_file = "{folder}/issuer.json"
[boxes]
url = "http://127.0.0.1:{port}"
[findings]
look_every = 0.5
silent_after = 5
tell_after = 5
[reports]
timezone = "UTC"
"""
RELAY = '[server]\nport = {port}\n[nats]\nurl = "nats://127.0.0.1:{nats}"\ncredentials_file = "{folder}/relay.creds"\n'
BOX = """\
[server]
port = 0
[storage]
path = "{folder}/mcfd.sqlite3"
[reports]
aggregation_delay = 0.2
[[machine]]
nim = "{nim}"
port = "{folder}/machine"
"""


def show(demo: Demo) -> None:
    site = DemoSite(demo)
    shops = [DemoShop(site, nim, label, region) for nim, label, region in SHOPS]
    first, second, third = shops
    demo.print(f"the till is outside, and knows one address: {site.relay}")
    for number, shop in enumerate(shops, 1):
        receipts = [shop.certify(f"WEB-{count}") for count in range(1, number + 1)]
        demo.print(f"  {shop.label}: {receipts[-1]['codeSecef']}  {number} x {receipts[-1]['totalTtc']} XOF")
    demo.print(f"{third.label} is switched off.")
    third.switch_off()
    demo.wait("the relay's answer", lambda: third.sell("OFF-1").status_code == httpx.codes.SERVICE_UNAVAILABLE)
    demo.print(f"  a sale there is answered {third.sell('OFF-1').json()['code']}: nothing was certified")
    later = third.sell("OFF-2", prefer="respond-async")
    where = later.headers["location"]
    demo.print(f"  one that may wait is answered {later.status_code}, and waits for the box at {where}")
    demo.print("The other shops close their day.")
    for shop in (first, second):
        shop.close_day()
    site.set_closing_time()
    demo.wait("two closures", lambda: len(site.rows("closures")) == len(shops) - 1)
    nims = sorted(str(row["nim"]) for row in site.rows("closures"))
    demo.print(f"headquarters holds {len(nims)} closures, of {', '.join(nims)}")
    # On a busy box another's closure may be looked for before it has come, too.
    demo.wait(
        "the finding", lambda: any((one["kind"], one["nim"]) == ("late", third.nim) for one in site.rows("findings"))
    )
    for finding in site.rows("findings"):
        demo.print(f"finding: {finding['kind']} – {finding['nim']} – {finding['detail']}")
    demo.print(f"{third.label} is switched on.")
    third.switch_on()
    demo.wait("the sale that waited", lambda: third.state("OFF-2") == "certified")
    demo.print(f"  the sale that waited is certified: {third.request('OFF-2').json()['receipt']['codeSecef']}")
    third.close_day()
    demo.wait("the last closure", lambda: len(site.rows("closures")) == len(shops))
    demo.wait("the end of the finding", lambda: not site.rows("findings"))
    demo.print("its day is closed, and the finding is solved:")
    for row in site.rows("closures"):
        demo.print(f"  {row['nim']}  Z {row['z_number']}  {_invoices(row['certs_count'])}  {row['total_ttc']} XOF")
    demo.print(f"{first.label} is revoked at headquarters.")
    site.hq("boxes", "revoke", first.nim)
    demo.wait("the cut", lambda: not first.answers())
    code = first.sell("CUT-1").json()["code"]
    demo.print(f"  its connection is cut: a sale there is answered {code}; the tills in the shop go on")
    for shop in shops:
        demo.print(f"  the machine of {shop.label} has made {_invoices(shop.invoices())}")
    demo.print(site.page)


class DemoSite:
    """nats-server with the accounts that `mcfd-hq nats` makes, headquarters, and the relay."""

    def __init__(self, demo: Demo) -> None:
        self.demo = demo
        folder = demo.folder.resolve()
        keys = folder / "keys"
        ports = {"nats": demo.free_port(), "hq": demo.free_port(PORT), "relay": demo.free_port()}
        base, self.relay = (f"http://127.0.0.1:{ports[name]}" for name in ("hq", "relay"))
        self._config = folder / "hq.toml"
        self._config.write_text(HQ.format(port=ports["hq"], nats=ports["nats"], folder=folder))
        demo.print("keys of the NATS servers, of headquarters and of the relay …")
        demo.run("mcfd-hq", "nats", "init", str(keys))
        demo.run("mcfd-hq", "nats", "issuer", str(keys), "--to", str(folder / "issuer.json"))
        demo.run("mcfd-hq", "nats", "relay", str(keys), "--to", str(folder / "relay.creds"))
        (folder / "users.conf").write_text((keys / "users.conf").read_text().replace("/var/lib/nats", str(folder)))
        (folder / "nats.conf").write_text(NATS.format(port=ports["nats"], folder=folder))
        (folder / "relay.toml").write_text(RELAY.format(port=ports["relay"], nats=ports["nats"], folder=folder))
        demo.print("starting nats-server, headquarters and the relay …")
        demo.start("nats", "nats-server", "-c", str(folder / "nats.conf"))
        demo.wait("nats-server", lambda: asyncio.run(_make_streams(ports["nats"], keys / "administrator.creds")))
        password = secrets.token_urlsafe(9)
        self.hq("users", "create", "siege", "--role", "admin", "--password-stdin", stdin=password)
        self._base = base
        self._headers = {"Authorization": f"Bearer {self.hq('keys', 'create', '--role', 'reader')}"}
        self.http = demo.until_end.enter_context(httpx.Client(trust_env=False, timeout=100, verify=NO_TLS))
        demo.start("hq", "mcfd-hq", "run", "--config", str(self._config))
        demo.start("relay", "mcfd-relay", "run", "--config", str(folder / "relay.toml"))
        demo.wait("headquarters", lambda: self._is_ready(base))
        demo.wait("the relay", lambda: self._is_ready(self.relay))
        self.page = f"the page: {base}/ui/  name: siege  password: {password}"
        demo.print(self.page)

    def hq(self, *arguments: str, stdin: str = "") -> str:
        return self.demo.run("mcfd-hq", *arguments, "--config", str(self._config), stdin=stdin)

    def _is_ready(self, base: str) -> bool:
        try:
            return self.http.get(f"{base}/health/ready").is_success
        except httpx.HTTPError:
            return False

    def set_closing_time(self) -> None:
        """The demo has no evening to wait for: each shop should have closed two hours ago."""
        at = datetime.now(UTC) - timedelta(hours=2)
        for nim, _, _ in SHOPS:
            self.hq("boxes", "closing", nim, f"{at:%H:%M}")

    def rows(self, what: str) -> list[dict[str, Any]]:
        """`closures`, or open `findings`."""
        answer = self.http.get(f"{self._base}/v1/{what}", params={"open": "true"}, headers=self._headers)
        rows: list[dict[str, Any]] = answer.raise_for_status().json()[what]
        return rows


class DemoShop:
    """A box with its machine: it joins by a code, and has a key for the till outside."""

    def __init__(self, site: DemoSite, nim: str, label: str, region: str) -> None:
        self.nim, self.label = nim, label
        self._site, self._folder = site, site.demo.folder.resolve() / nim
        self._folder.mkdir()
        demo, link = site.demo, self._folder / "machine"
        self._config = self._folder / "mcfd.toml"
        self._config.write_text(BOX.format(folder=self._folder, nim=nim))
        state = ("--link", str(link), "--state", str(self._folder / "machine.json"))
        demo.start(f"{nim}-machine", "mcf-simulator", "--nim", nim, "--ifu", IFU, *state)
        demo.wait("the machine", link.exists)
        code = site.hq("boxes", "code", nim, "--label", label, "--region", region)
        demo.print(f"{label} joins: mcfd upstream join {code}")
        self._run("upstream", "join", code)
        self._key = self._run("keys", "create", "--nim", nim, "--via", "relay", "--role", "manager").split()[-1]
        self.switch_on()

    def _run(self, *arguments: str) -> str:
        return self._site.demo.run("mcfd", *arguments, "--config", str(self._config))

    def switch_on(self) -> None:
        demo, arguments = self._site.demo, ("run", "--config", str(self._config))
        self._process: subprocess.Popen[str] = demo.start(f"{self.nim}-mcfd", "mcfd", *arguments)
        demo.wait(self.label, self.answers)

    def answers(self) -> bool:
        return self._send("GET", "info").is_success

    def switch_off(self) -> None:
        self._site.demo.stop(self._process)

    def certify(self, number: str) -> dict[str, Any]:
        receipt: dict[str, Any] = self.sell(number).raise_for_status().json()
        return receipt

    def close_day(self) -> None:
        self._send("POST", "reports/z", {}, {"Idempotency-Key": "z-1"}).raise_for_status()

    def sell(self, number: str, **headers: str) -> httpx.Response:
        item = {"name": "Riz 25 kg", "taxGroup": "B", "unitPrice": 15000, "quantity": 1}
        payments = [{"method": "E", "amount": 15000}]
        sale = {"invoiceNumber": number, "invoiceType": "FV", "items": [item], "payments": payments}
        return self._send("POST", "certify", sale, {"Idempotency-Key": f"till-{number}", **headers})

    def request(self, number: str) -> httpx.Response:
        return self._send("GET", f"requests/till-{number}")

    def state(self, number: str) -> str:
        answer = self.request(number)
        return str(answer.json()["status"]) if answer.is_success else ""

    def invoices(self) -> int:
        return int(json.loads((self._folder / "machine.json").read_text())["fvc"])

    def _send(
        self, method: str, path: str, body: object = None, headers: dict[str, str] | None = None
    ) -> httpx.Response:
        url = f"{self._site.relay}/v1/mcf/{self.nim}/{path}"
        own = {"Authorization": f"Bearer {self._key}", **(headers or {})}
        return self._site.http.request(method, url, json=body, headers=own)


def _invoices(count: int) -> str:
    return f"{count} invoice" if count == 1 else f"{count} invoices"


async def _make_streams(port: int, administrator: Path) -> bool:
    """As config/nats has them for one server, with their consumers; False while the server does not answer."""
    try:
        client = await connected(NatsOptions(url=f"nats://127.0.0.1:{port}", credentials_file=administrator))
    except (OSError, NatsError):
        return False
    try:
        for name, reader in STREAMS.items():
            stream = name.upper()
            await call(client, f"STREAM.CREATE.{stream}", json.loads((CONFIG / f"{name}-one.json").read_text()))
            if reader:
                consumer = {"stream_name": stream, "config": json.loads((CONFIG / f"{reader}.json").read_text())}
                await call(client, f"CONSUMER.CREATE.{stream}.{reader}", consumer)
    except NatsError:
        return False
    finally:
        await client.close()
    return True


if __name__ == "__main__":
    sys.exit(Demo("demo-hq", "a chain of three shops: headquarters, a relay, a till outside", show, PATIENCE).main())
