"""The outbox of a real ledger, with closures in it."""

from __future__ import annotations

import contextlib
import hashlib
import sqlite3
import uuid
from collections.abc import AsyncIterator
from pathlib import Path
from zoneinfo import ZoneInfo

import msgspec

from daemon.core.delivery import Outgoing
from daemon.core.machine.state import FiscalCounters
from daemon.store.store import Store
from daemon.store.tables.book.books import book_state, open_book

START = 1_765_000_000_000


def make_outgoing(
    nim: str = "EL02000015-1", z_number: int = 1, mode: str = "live", number: int | None = None
) -> Outgoing:
    created_at = START + z_number * 86_400_000
    report_id = str(uuid.uuid5(uuid.NAMESPACE_URL, f"{nim}/{mode}/{z_number}"))
    report = {
        "kind": "Z",
        "nim": nim,
        "period_start": "2025-12-05T20:00:00Z",
        "period_end": "2025-12-06T20:00:00Z",
        "certs_count": 2,
        "total_ttc": 16000,
        "total_ht": 13559,
        "total_tva": 2441,
        "by_group": [{"group": "B", "ht": 13559, "tva": 2441, "ttc": 16000}],
        "by_type": [{"invoice_type": "FV", "count": 2, "total_ttc": 16000}],
        "fvc_start": 2 * z_number - 1,
        "fvc_end": 2 * z_number,
        "z_number": z_number,
        "report_id": report_id,
        "created_at": "2025-12-06T20:00:00Z",
        "mcf_counters": {"tc": 3 * z_number, "fvc": 2 * z_number, "frc": 0},
    }
    body = msgspec.json.encode(report)
    chain = hashlib.sha256(body).digest()
    return Outgoing(number or z_number, nim, mode, z_number, report_id, created_at, body, chain, 0)


class LedgerOutbox:
    """A real ledger; `outbox` is its own, `rows` looks at the file from outside."""

    def __init__(self, path: Path, store: Store) -> None:
        self._path = path
        self._store = store
        self.outbox = store.outbox

    @classmethod
    @contextlib.asynccontextmanager
    async def open(cls, path: Path) -> AsyncIterator[LedgerOutbox]:
        async with await Store.open(path, timezone=ZoneInfo("Africa/Ouagadougou")) as store:
            yield cls(path, store)

    async def add(self, nim: str = "EL02000015-1", count: int = 1, mode: str = "live") -> None:
        """So many Z of empty periods."""
        book = await self._store.ledger.write(open_book, nim, mode)
        for _ in range(count):
            z_number = (self._store.ledger.peek(book_state, book)).z_number + 1
            counters = FiscalCounters(tc=z_number, fvc=0, frc=0)
            await self._store.ledger.close_period(
                book, counters=counters, unexplained=0, at=START + z_number * 86_400_000
            )

    def rows(self, nim: str | None = None) -> list[dict]:
        """In order: nim, mode, z, state, tries, last_error, next_at."""
        with contextlib.closing(sqlite3.connect(f"file:{self._path}?mode=ro", uri=True)) as connection:
            connection.row_factory = sqlite3.Row
            query = (
                "SELECT nim, mode, ref_id AS z, outbox.state, tries, last_error, next_at FROM outbox"
                " JOIN book ON book.id = book_id WHERE ? IS NULL OR nim = ? ORDER BY outbox.id"
            )
            return [dict(row) for row in connection.execute(query, (nim, nim))]

    def states(self, nim: str | None = None) -> list[str]:
        return [row["state"] for row in self.rows(nim)]

    def is_sent(self, nim: str | None = None) -> bool:
        return set(self.states(nim)) == {"sent"}

    def sent(self) -> int:
        return self.states().count("sent")
