"""`make demo-hq`: a nats-server, three shops with their machines and daemons, headquarters and its page; one shop is cut off."""

from __future__ import annotations

import asyncio
import json
import secrets
import signal
import ssl
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx

from common.demo import Demo, DemoError
from common.wire.nats_client import NatsError
from common.wire.nats_pull import NatsOptions, connected
from headquarters.intake.stream import call

PORT = 8490
PATIENCE = 90.0
PLAIN = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""For HTTP without TLS: the authorities of the world are not read."""
SHOPS = (
    ("EL02000015-1", "Ouaga Centre", "Centre"),
    ("EL02000016-1", "Koudougou", "Centre"),
    ("EL02000017-1", "Bobo", "Ouest"),
)
CUT_OFF = "EL02000017-1"
IFU = "00084440Y"

HQ_CONFIG = """\
[server]
port = {port}
[storage]
url = "sqlite:///{state}/hq.sqlite3"
[nats]
url = "nats://127.0.0.1:{nats}"
[findings]
look_every = 0.5
silent_after = 5
tell_after = 5
[reports]
timezone = "UTC"
"""
SHOP_CONFIG = """\
[server]
port = {port}
[storage]
path = "{state}/mcfd.sqlite3"
[reports]
aggregation_delay = 0.2
[upstream]
kind = "nats"
url = "nats://127.0.0.1:{nats}"
key_file = "{state}/upstream.key"
retry_max = 1.0
box = "{label}"
[[machine]]
nim = "{nim}"
port = "{state}/machine"
isf = "1"
operator_id = "1"
operator_name = "Caisse 1"
"""
NATS_CONFIG = 'listen: "127.0.0.1:{port}"\njetstream {{ store_dir: "{state}/nats" }}\n'


def show(demo: Demo) -> None:
    demo.print("starting nats-server and headquarters …")
    nats_port = demo.free_port()
    config = demo.folder / "nats.conf"
    config.write_text(NATS_CONFIG.format(port=nats_port, state=demo.folder.resolve()))
    demo.start("nats", "nats-server", "-c", str(config))
    asyncio.run(_make_stream(nats_port))
    hq = Headquarters(demo, nats_port)
    shops = []
    for nim, label, region in SHOPS:
        demo.print(f"starting {label}: a simulated machine and its daemon …")
        shop = DemoShop(demo, nim, label)
        hq.add(shop, region)
        shop.open(demo.free_port() if nim == CUT_OFF else nats_port)  # where nobody listens, or headquarters
        shops.append(shop)
    demo.print("a day of sales …")
    for number, shop in enumerate(shops, 1):
        shop.sell(number * 2)
    demo.print("Bobo is cut off: its line to headquarters is dead. The shops close their day.")
    for shop in shops:
        shop.close_day()
    hq.closing_was_two_hours_ago()
    demo.wait("two closures", lambda: len(hq.closures()) == len(shops) - 1)
    nims = sorted(str(row["nim"]) for row in hq.closures())
    demo.print(f"headquarters holds {len(nims)} closures, of {', '.join(nims)}")
    # On a busy box another's closure may be looked for before it has come, too.
    demo.wait("the finding", lambda: any((one["kind"], one["nim"]) == ("late", CUT_OFF) for one in hq.findings()))
    for found in hq.findings():
        demo.print(f"finding: {found['kind']} – {found['nim']} – {found['detail']}")
    demo.print("Bobo's line is there again.")
    shops[-1].reach(nats_port)
    demo.wait("Bobo's closure", lambda: len(hq.closures()) == len(shops))
    demo.wait("the end of the finding", lambda: not hq.findings())
    demo.print("the closure came by itself, and the finding is solved:")
    for row in hq.closures():
        demo.print(f"  {row['nim']}  Z {row['z_number']}  {row['certs_count']} invoices  {row['total_ttc']} XOF")
    demo.print(hq.page)


class Headquarters:
    def __init__(self, demo: Demo, nats_port: int) -> None:
        self._demo = demo
        port = demo.free_port(PORT)
        self._config = demo.folder / "hq.toml"
        self._config.write_text(HQ_CONFIG.format(port=port, state=demo.folder.resolve(), nats=nats_port))
        base, password = f"http://127.0.0.1:{port}", secrets.token_urlsafe(9)
        self.page = f"the page: {base}/ui/  name: siege  password: {password}"
        self._run("users", "create", "siege", "--role", "admin", "--password-stdin", stdin=password)
        key = self._run("keys", "create", "--role", "reader")
        self._client = _client(demo, base, key)
        demo.start("hq", "mcfd-hq", "run", "--config", str(self._config))
        demo.wait("headquarters", lambda: _is_ready(self._client))
        demo.print(self.page)

    def _run(self, *arguments: str, stdin: str = "") -> str:
        return self._demo.run("mcfd-hq", *arguments, "--config", str(self._config), stdin=stdin)

    def add(self, shop: DemoShop, region: str) -> None:
        key = ("--public-key", shop.public_key)
        self._run("boxes", "add", shop.nim, *key, "--label", shop.label, "--region", region)

    def closing_was_two_hours_ago(self) -> None:
        """The demo has no evening to wait for: each shop should have closed by then."""
        at = datetime.now(UTC) - timedelta(hours=2)
        for nim, _, _ in SHOPS:
            self._run("boxes", "closing", nim, f"{at:%H:%M}")

    def closures(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self._client.get("/v1/closures").raise_for_status().json()["closures"]
        return found

    def findings(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self._client.get("/v1/findings?open=true").raise_for_status().json()["findings"]
        return found


class DemoShop:
    def __init__(self, demo: Demo, nim: str, label: str) -> None:
        self.nim, self.label = nim, label
        self._demo = demo
        self._state = demo.folder / nim
        self._state.mkdir()
        self._config = self._state / "mcfd.toml"
        self._port = demo.free_port()
        self.public_key = demo.run("mcfd", "upstream", "keygen", str(self._state / "upstream.key")).split()[-1]

    def open(self, nats_port: int) -> None:
        demo, link = self._demo, self._state / "machine"
        simulator = ("--ifu", IFU, "--link", str(link), "--state", str(self._state / "machine.json"))
        demo.start(f"{self.nim}-machine", "mcf-simulator", "--nim", self.nim, *simulator)
        demo.wait("the machine", link.exists)
        self._write_config(nats_port)
        key = demo.run("mcfd", "keys", "create", "--nim", self.nim, "--config", str(self._config))
        self._process = demo.start(f"{self.nim}-mcfd", "mcfd", "run", "--config", str(self._config))
        self._client = _client(demo, f"http://127.0.0.1:{self._port}", key)
        demo.wait(f"{self.label}'s daemon", lambda: _is_ready(self._client))

    def reach(self, nats_port: int) -> None:
        """Headquarters is there from now on."""
        self._write_config(nats_port)
        self._process.send_signal(signal.SIGHUP)

    def _write_config(self, nats_port: int) -> None:
        values = {"port": self._port, "state": self._state.resolve(), "nim": self.nim, "label": self.label}
        self._config.write_text(SHOP_CONFIG.format(**values, nats=nats_port))

    def sell(self, count: int) -> None:
        for number in range(1, count + 1):
            amount = 1500 * number
            item = {"name": "Riz", "taxGroup": "B", "unitPrice": amount, "quantity": 1}
            invoice = {"invoiceNumber": f"F-{number}", "invoiceType": "FV", "items": [item]}
            self._post("certify", {**invoice, "payments": [{"method": "E", "amount": amount}]})

    def close_day(self) -> None:
        self._post("reports/z", {})

    def _post(self, path: str, body: dict[str, object]) -> None:
        answer = self._client.post(f"/v1/mcf/{self.nim}/{path}", json=body)
        if answer.is_error:
            raise DemoError(f"{self.label}: {path} answered {answer.status_code}: {answer.text}")


def _client(demo: Demo, base: str, key: str) -> httpx.Client:
    headers = {"Authorization": f"Bearer {key}"}
    client = httpx.Client(base_url=base, headers=headers, trust_env=False, timeout=40, verify=PLAIN)
    return demo.until_end.enter_context(client)


def _is_ready(client: httpx.Client) -> bool:
    try:
        return client.get("/health/ready").is_success
    except httpx.HTTPError:
        return False


async def _make_stream(port: int) -> None:
    """The stream as config/nats has it for one server; headquarters makes its consumer itself."""
    config = json.loads((Path(__file__).parents[1] / "config" / "nats" / "closures-one.json").read_text())
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            client = await connected(NatsOptions(url=f"nats://127.0.0.1:{port}"))
            try:
                await call(client, "STREAM.CREATE.CLOSURES", config)
            finally:
                await client.close()
        except (OSError, NatsError):
            if time.monotonic() > deadline:
                raise DemoError("nats-server did not start") from None
            await asyncio.sleep(0.05)
        else:
            return


if __name__ == "__main__":
    sys.exit(Demo("demo-hq", "headquarters with three shops", show, PATIENCE).main())
