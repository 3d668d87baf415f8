"""Months of a spare that lies in the cupboard (0047 art. 23)."""

from pathlib import Path

import pytest
from support.spare import paired

from daemon.core.clock import DAY
from daemon.store.tables.book.books import book_state
from daemon.store.tables.book.calendar_closures import calendar_list
from daemon.usecases.worker.aggregate import tick

pytestmark = pytest.mark.quick_timers


async def test_a_clock_that_is_fast_for_a_while_closes_no_month_of_an_idle_spare(tmp_path: Path) -> None:
    """Nor does it move its book: its months are closed when the machine in use has come to the next one, with a sale
    that closes that machine's own."""
    async with paired(tmp_path / "ledger") as shop:
        await shop.first_dies()
        await shop.take_over()
        await shop.certify("A")
        await shop.spare.close_period()
        await shop.first_returns()
        await shop.take_back()
        await shop.certify("B")
        spare, ledger = shop.spare.worker, shop.store.ledger

        async def months(ahead: int) -> int:
            for each in (shop.first, shop.spare):
                each.box_offset, each.synchronised = ahead, True
            await tick(spare)
            return len(ledger.peek(calendar_list, spare.book, "month", limit=9))

        before = ledger.peek(book_state, spare.book).last_at
        assert await months(31 * DAY) == 0
        assert ledger.peek(book_state, spare.book).last_at == before
        await shop.certify("C")
        assert ledger.peek(calendar_list, shop.in_use.book, "month", limit=9) == []
        await tick(shop.in_use)
        assert len(ledger.peek(calendar_list, shop.in_use.book, "month", limit=9)) > 0
        assert await months(31 * DAY) > 0
