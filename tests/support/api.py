"""The API on a real socket, with use cases that only note what they are asked: what they do is shown in their own tests."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

import httpx

from common.http_server import HttpServer
from daemon.core import keys
from daemon.core.keys import ApiKey
from daemon.core.people import ROLES, USUAL

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


@dataclass
class UseCases:
    """`calls` are the names of those that were called; `trouble` is raised instead of an answer, `gate` holds answers back until it is set."""

    calls: list[str] = field(default_factory=list)
    trouble: Exception | None = None
    gate: asyncio.Event | None = None

    def answering(self, name: str, answer: object) -> Callable[..., Awaitable[object]]:
        """One that answers so."""

        async def called(*_: object, **__: object) -> object:
            self.calls.append(name)
            if self.gate is not None:
                await self.gate.wait()
            if self.trouble is not None:
                raise self.trouble
            return answer

        return called


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
