"""A fleet in small: a real nats-server with the files of config/nats, boxes with their machines, and relays, each a process."""

import asyncio
import contextlib
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
from support.nursery import First, warm
from support.receivers.nats_server import NIM, OTHER, NatsCluster, NatsServer, NatsSite
from support.service import Service
from support.shop import Machine, Shop, section, wait_for

from daemon.core.keys import KeyTerms
from daemon.core.ledger.attempt import Mode
from daemon.core.people import Role
from daemon.operations import CreateKey

STREAMS = ("closures-one.json", "presence-one.json", "calls-one.json")


class RunningRelay(Service):
    program = "mcfd-relay"

    def start(self) -> None:
        super().start()
        wait_for(self.is_ready, "the relay's connection")


class RelaySite:
    """One nats-server, or three, the box of `NIM`, that of `OTHER` where it is asked for, and two relays. `first` is done in the first box's process."""

    def __init__(
        self,
        directory: Path,
        *,
        jwt: bool = False,
        two: bool = False,
        config: Any = None,
        first: First | None = None,
        per_machine: Any = None,
        server: str = "",
        three: bool = False,
    ) -> None:
        """`server`: more of the section of that name of each relay; `three`: servers."""
        self._per_machine = per_machine
        self.directory = directory
        self.nats = NatsSite(directory / "nats", jwt)
        self.server = NatsCluster(self.nats) if three else NatsServer(self.nats)
        self._streams = [name.replace("-one", "-three") for name in STREAMS] if three else STREAMS
        self.shop = self.box(directory / "box", NIM, self.nats.shop, config=config, first=first)
        self.other = self.box(directory / "other", OTHER, self.nats.other_shop) if two else None
        text = f"[server]\nport = 0\n{server}\n{section('[nats]', self.server.options(self.nats.relay))}"
        self.relays = [RunningRelay(directory / f"relay-{n}" / "relay.toml", text) for n in (1, 2)]
        self.keys: dict[tuple[str, str, Mode], str] = {}

    def box(
        self,
        folder: Path,
        nim: str,
        credentials: Path,
        url: str = "",
        *,
        config: Any = None,
        first: First | None = None,
        more: tuple[str, ...] = (),
    ) -> Shop:
        """`more`: other machines of that box."""
        folder.mkdir(exist_ok=True)
        upstream = {"kind": "nats", **self.server.options(credentials)}
        if url:
            upstream["url"] = url
        machines = tuple(Machine(folder, each) for each in (nim, *more))
        return Shop(
            folder,
            machines=machines,
            config={"upstream": upstream, **(config or {})},
            first=first,
            per_machine=self._per_machine,
        )

    async def up(self) -> None:
        await self.server.up(*self._streams)
        self.relays[0].start()
        for shop in (self.shop, self.other):
            if shop is not None:
                shop.start()

    def key(
        self,
        role: Role = "manager",
        mode: Mode = "live",
        shop: Shop | None = None,
        *,
        signed: bool = False,
        machine: int = 0,
    ) -> str:
        """A key for the relay."""
        shop = shop or self.shop
        terms = KeyTerms(role, lane="relay", signed=signed)
        return shop.change(CreateKey(shop.machines[machine].nim, mode, f"ERP {role}", terms))

    def down(self) -> None:
        for relay in self.relays:
            relay.kill()
        for shop in (self.shop, self.other):
            if shop is not None:
                shop.__exit__(None, None, None)
        self.server.kill()


def shift_clock(ahead: str) -> None:
    """In the process of a relay: two minutes ahead from when that file exists."""
    from relay.boxes import Boxes  # noqa: PLC0415  in the child alone

    real = Boxes.millis
    Boxes.millis = lambda boxes: real(boxes) + 120_000 * Path(ahead).exists()  # type: ignore[method-assign]  of this process


@contextlib.asynccontextmanager
async def running(directory: Path, **options: Any) -> AsyncIterator[RelaySite]:
    """The clock of the first relay goes ahead once there is a file `ahead`."""
    site = RelaySite(directory, **options)
    if warm("mcfd-relay"):  # the bench has none
        site.relays[0].first = (__name__, "shift_clock", {"ahead": str(directory / "ahead")})
    try:
        await site.up()
        yield site
    finally:
        site.down()


PATIENCE = 60.0
TRY_SECONDS = 20.0


async def until_answered(http: httpx.AsyncClient, method: str, url: str, **request: Any) -> httpx.Response:
    """The first answer that is neither 503 nor 504; the same request with the same key each time."""
    async with asyncio.timeout(PATIENCE):
        while True:
            try:
                answer = await http.request(method, url, timeout=TRY_SECONDS, **request)
            except httpx.TransportError:
                await asyncio.sleep(0.05)
                continue
            if answer.status_code not in (503, 504):
                return answer
            await asyncio.sleep(0.1)


async def answering(site: RelaySite, http: httpx.AsyncClient, key: str) -> str:
    """The address of the API at the first relay, once the box answers."""
    url = f"{site.relays[0].base}/v1/mcf/{NIM}"
    assert (await until_answered(http, "GET", f"{url}/info", headers=bearer(key))).status_code == 200
    return url


async def in_service(site: RelaySite, http: httpx.AsyncClient, *role: str, **options: Any) -> tuple[str, str]:
    """A key of the first box, and that address."""
    key = site.key(*role, **options)
    return key, await answering(site, http, key)


def bearer(key: str, once: str = "", **more: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}", **({"Idempotency-Key": once} if once else {}), **more}


def mistyped(key: str) -> str:
    """The key with another last character."""
    return key[:-1] + ("y" if key.endswith("x") else "x")


def in_seconds(seconds: float) -> str:
    return (datetime.now(UTC) + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")


def ledger_codes(ledger: Path) -> list[str]:
    with closing(sqlite3.connect(f"file:{ledger}?mode=ro", uri=True)) as connection:
        return [code for (code,) in connection.execute("SELECT code FROM certification WHERE state = 'certified'")]


def check_once(shop: Shop, receipts: dict[str, dict]) -> None:
    """The machine's counters are the number of distinct keys with 200; every code stands once in the ledger."""
    codes = ledger_codes(shop.ledger)
    assert sorted(codes) == sorted(receipt["codeSecef"] for receipt in receipts.values())
    assert shop.machines[0].counters[1] == len(receipts)
