from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any, cast

import httpx
import pytest
from support.api import NIM, NOW, Ring, Serve, Served, UseCases
from support.core_samples import closure, record
from support.shop import PLAIN

from common.http_server import HttpServer, ServerConfig
from daemon.api.access.context import ApiDeps
from daemon.api.routes import certify, machine, reports
from daemon.api.service import create_api
from daemon.core.invoice.intake import Defaults
from daemon.core.ledger.book import Book
from daemon.core.ledger.deferred import DeferredBacklog
from daemon.store.tables.book.books import BookHead, read_head
from daemon.usecases.certification.idempotency import Answered
from daemon.usecases.worker.book_clock import BoxClock
from daemon.usecases.worker.machine_worker import MachineWorker
from daemon.usecases.worker.machine_workers import MachineWorkers


@pytest.fixture
def usecases(monkeypatch: pytest.MonkeyPatch) -> UseCases:
    fake = UseCases()
    certified, cancelled = Answered(record(), False), b'{"wasPending":false,"message":"no invoice was open"}'
    for place, name, answer in (
        (certify, "certify", certified),
        (certify, "certify_or_defer", certified),
        (reports, "close_period", Answered(closure(), False)),
        (machine.inspect, "cancel_pending", Answered(cancelled, False)),
        (machine.inspect, "info", {"nim": NIM}),
        (reports.report, "x_report", {"kind": "X"}),
        (reports.report, "x_between", {"kind": "X"}),
        (reports.report, "a_report", {"kind": "A"}),
        (reports.report, "history", []),
    ):
        monkeypatch.setattr(place, name, fake.answering(name, answer), raising=False)
    return fake


class QuietLedger:
    """All that is asked of a ledger here: the metrics look at it."""

    async def read(self, function: object, book: Book) -> DeferredBacklog:
        assert function
        assert book
        return DeferredBacklog(0, 0, 0, 0)

    def peek(self, function: object, book: object) -> BookHead | None:
        """No outage lasts, and the book is empty."""
        assert book
        return BookHead(0, 0, b"") if function is read_head else None


@pytest.fixture
def workers() -> MachineWorkers:
    defaults = Defaults("1", "Caisse 1", "1")
    ledger = cast("Any", QuietLedger())  # no use case runs here that would ask it
    return MachineWorkers(
        [
            MachineWorker(Book(1, NIM, "live"), ledger, ledger, ledger, BoxClock(lambda: NOW, lambda: False), defaults),
            MachineWorker(Book(2, NIM, "test"), ledger, ledger, ledger, BoxClock(lambda: NOW, lambda: False), defaults),
        ]
    )


@pytest.fixture
async def serve(usecases: UseCases, workers: MachineWorkers) -> AsyncIterator[Serve]:
    """Starts a server: `await serve(config={…}, allowed_hosts=…)`."""
    async with AsyncExitStack() as stack:

        async def start(*, config: dict[str, Any] | None = None, **deps: Any) -> Served:
            value = ApiDeps(
                **{
                    "workers": workers,
                    "keyring": Ring(),
                    "timezone": "UTC",
                    "clock": lambda: NOW,
                    "version": "1",
                    **deps,
                }
            )
            settings = {"port": 0, "grace": 1.0, **(config or {})}
            server = HttpServer(create_api(value), ServerConfig(**settings))
            await server.start()
            stack.push_async_callback(server.stop)
            client = httpx.AsyncClient(base_url=f"http://127.0.0.1:{server.port}", timeout=30, verify=PLAIN)
            await stack.enter_async_context(client)
            return Served(server, client)

        yield start


@pytest.fixture
async def served(serve: Serve) -> Served:
    return await serve()
