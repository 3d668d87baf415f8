"""The API on a real socket, with use cases that only note what they are asked: what they do is shown in their own tests."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

import httpx

from common.http_server import HttpServer
from daemon.core import keys
from daemon.core.audit import Call
from daemon.core.invoice.invoice import Customer, Invoice, Item, Payment, TaxLine
from daemon.core.keys import ApiKey
from daemon.core.ledger.attempt import Record
from daemon.core.ledger.book import Closure
from daemon.core.machine.state import FiscalCounters
from daemon.core.people import ROLES, USUAL
from daemon.usecases.certification.idempotency import Answered
from daemon.usecases.worker.machine_worker import MachineWorker

NIM = "EL02000015-1"
LIVE_KEY = keys.generate("live")
TEST_KEY = keys.generate("test")
LOST_KEY = keys.generate("live")
ROLE_KEYS = {role: keys.generate("live") for role in ROLES}
ENDED_KEY = keys.generate("live")
NOW = 1_770_000_000_000

INVOICE = {
    "invoiceNumber": "F-1",
    "invoiceType": "FV",
    "items": [{"name": "Riz 25kg", "taxGroup": "B", "unitPrice": 15000, "quantity": 1}],
    "payments": [{"method": "E", "amount": 15000}],
}


def api_key(number: int, nim: str, **fields: Any) -> ApiKey:
    """A seller's, in live mode, without an end."""
    return ApiKey(
        **{
            "id": number,
            "nim": nim,
            "mode": "live",
            "label": "",
            "created_at": NOW,
            "revoked_at": 0,
            "role": USUAL,
            "expires_at": 0,
        }
        | {"used_at": 0, "strict": False, "lane": "lan", "public": b"", "rate": 0}
        | fields
    )


class Ring:
    """`LOST_KEY` is for a machine that this box no longer has."""

    owners: ClassVar = {
        LIVE_KEY: api_key(1, NIM, label="Caisse 1"),
        TEST_KEY: api_key(2, NIM, mode="test"),
        LOST_KEY: api_key(3, "EL09999999-1"),
        ENDED_KEY: api_key(4, NIM, created_at=NOW - 1000, expires_at=NOW),
        **{key: api_key(10, NIM, label=role, role=role) for role, key in ROLE_KEYS.items()},
    }

    def find(self, text: str) -> ApiKey | None:
        return self.owners.get(text)

    def find_signer(self, key_id: str) -> ApiKey | None:
        return next((key for key in self.owners.values() if key.public and key_id), None)


def record(number: str = "F-1") -> Record:
    invoice = Invoice(
        number=number,
        type="FV",
        price_mode="TTC",
        operator_id="1",
        operator_name="Caisse 1",
        isf="1",
        customer=Customer(),
        items=(Item("Riz 25kg", "B", 1800, 1_500_000, 1000, 15000, 15000),),
        payments=(Payment("E", 15000),),
        taxes=(TaxLine("B", 1800, 12712, 2288, 15000),),
        total_ttc=15000,
    )
    return Record(
        id=7,
        number=number,
        type="FV",
        state="certified",
        begun_at=NOW,
        base=FiscalCounters(1, 1, 0),
        total_ttc=15000,
        invoice=invoice,
        seq=1,
        ended_at=NOW + 60,
        code="ABCDEFGHIJKLMNOPQRSTUVWX",
        machine_time="20260201024000",
        ifu="00084440Y",
        counters=FiscalCounters(2, 2, 0),
        nim=NIM,
        duration_ms=60,
    )


def closure(z_number: int = 1) -> Closure:
    body = b'{"kind":"Z","z_number":%d}' % z_number
    return Closure(z_number, "0b9f", NOW, NOW, NOW, 1, 15000, FiscalCounters(2, 2, 0), 0, 1, 1, body, b"")


@dataclass
class UseCases:
    """Notes every call; `trouble` is raised instead of an answer, `gate` holds answers back until it is set."""

    calls: list[tuple[str, tuple[Any, ...]]] = field(default_factory=list)
    modes: list[str] = field(default_factory=list)
    trouble: Exception | None = None
    replayed: bool = False
    gate: asyncio.Event | None = None

    async def _meet(self, name: str, worker: MachineWorker, *expected: Any) -> None:
        self.modes.append(worker.book.mode)
        self.calls.append((name, expected))
        if self.gate is not None:
            await self.gate.wait()
        if self.trouble is not None:
            raise self.trouble

    async def certify(
        self, worker: MachineWorker, body: object, call: Call, *, credit: bool = False
    ) -> Answered[Record]:
        await self._meet("certify", worker, body, call, credit)
        return Answered(record(), self.replayed)

    async def certify_or_defer(
        self, worker: MachineWorker, body: object, call: Call, *, is_async: bool
    ) -> Answered[Record]:
        assert not is_async
        return await self.certify(worker, body, call)

    async def close_period(
        self,
        worker: MachineWorker,
        call: Call,
        counted: int | None = None,  # noqa: ARG002  the shape of the use case
        after: int | None = None,  # noqa: ARG002
    ) -> Answered[Closure]:
        await self._meet("close_period", worker, call)
        return Answered(closure(), self.replayed)

    async def cancel_pending(self, worker: MachineWorker, call: Call) -> Answered[bytes]:
        await self._meet("cancel_pending", worker, call)
        return Answered(b'{"wasPending":false,"message":"no invoice was open"}', self.replayed)

    async def x_report(self, worker: MachineWorker) -> dict[str, str]:
        await self._meet("x_report", worker)
        return {"kind": "X"}

    async def x_between(self, worker: MachineWorker, start: int, end: int) -> dict[str, str]:
        await self._meet("x_between", worker, start, end)
        return {"kind": "X"}

    async def a_report(self, worker: MachineWorker, start: int, end: int) -> dict[str, str]:
        await self._meet("a_report", worker, start, end)
        return {"kind": "A"}

    async def history(self, worker: MachineWorker, start: int, end: int, after: int, limit: int) -> list[Any]:
        await self._meet("history", worker, start, end, after, limit)
        return []

    async def info(self, worker: MachineWorker) -> dict[str, str]:
        await self._meet("info", worker)
        return {"nim": NIM}


@dataclass
class Served:
    """One running server. `send` writes raw bytes on a connection of its own and reads until the peer closes."""

    server: HttpServer
    client: httpx.AsyncClient

    @property
    def port(self) -> int:
        return self.server.port

    async def send(self, *pieces: bytes) -> bytes:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            for piece in pieces:
                writer.write(piece)
                await writer.drain()
            async with asyncio.timeout(30):
                return await reader.read()
        finally:
            writer.close()

    async def post(self, path: str = "certify", *, key: str = LIVE_KEY, **kwargs: Any) -> httpx.Response:
        kwargs["headers"] = {"authorization": f"Bearer {key}", **kwargs.get("headers", {})}
        return await self.client.post(f"/v1/mcf/{NIM}/{path}", **kwargs)

    async def get(self, path: str, *, key: str = LIVE_KEY, **kwargs: Any) -> httpx.Response:
        kwargs["headers"] = {"authorization": f"Bearer {key}", **kwargs.get("headers", {})}
        return await self.client.get(path if path.startswith("/") else f"/v1/mcf/{NIM}/{path}", **kwargs)


Serve = Callable[..., Awaitable[Served]]


async def until(fact: Callable[[], object], patience: float = 30.0) -> None:
    """Waits for a condition, and fails when it does not come."""
    async with asyncio.timeout(patience):
        while not fact():  # noqa: ASYNC110  a condition of somebody else's, in a test
            await asyncio.sleep(0.005)
