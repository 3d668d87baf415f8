"""Closed months and years on the page, and the archive of a year among the box's backups."""

from __future__ import annotations

import asyncio
import io
import re
from datetime import UTC, datetime
from pathlib import Path

import httpx
import pytest
from support.browser import create_users, session_of
from support.ledgers.ledger import Till, opened
from support.shop import Shop, wait_for

from daemon.core.clock import millis
from daemon.whole_box import verify_archive

pytestmark = pytest.mark.long


async def new_year(ledger: Path) -> None:
    """A sale in December of last year, a Z, and a Z in January."""
    async with opened(ledger) as store:
        till = await Till.of(store)
        till.at = millis(datetime(2025, 12, 20, 9, tzinfo=UTC))
        await till.sell(5900)
        await till.close()
        till.at = millis(datetime(2026, 1, 5, 9, tzinfo=UTC))
        await till.close()


def test_a_closed_month_its_paper_and_the_archive_of_its_year(tmp_path: Path) -> None:
    """The month and the year stand under their Zs, a click away from their paper; a copy of the ledger brings the archive, which verifies."""
    with Shop(tmp_path) as shop:
        asyncio.run(new_year(shop.ledger))
        shop.start(ready=False)
        create_users(shop, ("technician", "reader"))
        base = f"http://127.0.0.1:{shop.port}"
        wait_for(lambda: httpx.get(f"{base}/ui/login").status_code == 200, "the page")
        with httpx.Client(base_url=base, headers={"Origin": base}, timeout=60) as client:
            client.cookies.update(session_of(shop, "technician"))
            screen = client.get("/ui/closures", params={"month": "2025-12"}).text
            assert screen.count('data-testid="calendar-closure"') == 2
            for kind, period in (("month", "2025-12"), ("year", "2025")):
                assert f"/ui/paper/{kind}/{period}" in screen
                assert "CLÔTURE" in client.get(f"/ui/paper/{kind}/{period}").text
            assert 'data-testid="calendar-closure"' not in client.get("/ui/closures", params={"month": "2026-01"}).text
            client.post("/ui/box/backup")
            found = wait_for(
                lambda: re.search(r'href="(/ui/box/backup/[^"]+\.tar)"', client.get("/ui/box/jobs").text), "it"
            )
            archive = client.get(found[1])
            assert archive.headers["content-type"] == "application/x-tar"
            faults: list[str] = []
            manifest, key = verify_archive.check(
                io.BytesIO(archive.content), lambda part, text: faults.append(part + text)
            )
            assert (faults, manifest["year"], key is not None) == ([], "2025", True)
            client.cookies.clear()
            client.cookies.update(session_of(shop, "reader"))
            assert client.get(found[1]).status_code == 403
