"""Closed months and years on the page, and the archive of a year among the box's backups."""

import asyncio
import io
import re
from datetime import UTC, datetime
from pathlib import Path

import pytest
from support.browser import Visitor, create_users
from support.ledgers.ledger import Till, opened
from support.shop import Shop, wait_for

from daemon.core.clock import DAY, millis
from daemon.store.tables.book.entries import repair_time
from daemon.whole_box import verify_archive

pytestmark = pytest.mark.long


async def new_year(ledger: Path) -> None:
    """A sale in December of last year, a Z; a Z of a clock that is twenty days fast, and that is set right; and a Z in January."""
    async with opened(ledger) as store:
        till = await Till.of(store)
        till.at = millis(datetime(2025, 12, 20, 9, tzinfo=UTC))
        await till.sell(5900)
        await till.close()
        till.at += 20 * DAY
        await till.close()
        await store.decisions.write(repair_time, till.book, now=till.at - 20 * DAY, ahead=20 * DAY, reason="fast")
        till.at = millis(datetime(2026, 1, 5, 9, tzinfo=UTC))
        await till.close()


def test_a_closed_month_its_paper_and_the_archive_of_its_year(tmp_path: Path) -> None:
    """The month and the year, and what supplements them, stand under their Zs, a click away from their paper; a copy of the ledger brings the archive, which verifies."""
    with Shop(tmp_path) as shop:
        asyncio.run(new_year(shop.ledger))
        shop.start(ready=False)
        create_users(shop, ("technician", "reader"))
        wait_for(lambda: shop.http.get("/ui/login").status_code == 200, "the page")
        with Visitor(shop, "technician") as client:
            screen = client.get("/ui/closures", params={"month": "2025-12"}).text
            assert screen.count('data-testid="calendar-closure"') == 4
            assert ">décembre 2025</a>" in screen
            for kind, period in (("month", "2025-12"), ("year", "2025")):
                for number in (1, 2):
                    assert re.search(rf"/ui/paper/{kind}/{number}\b", screen)
                assert "CLÔTURE" in client.get(f"/ui/paper/{kind}/1").text
                assert "Complément de la clôture n° 1," in client.get(f"/ui/paper/{kind}/{period}").text
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
        with Visitor(shop, "reader") as client:
            assert client.get(found[1]).status_code == 403
