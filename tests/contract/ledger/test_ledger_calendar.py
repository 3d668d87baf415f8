"""Months and years are closed once, hold exactly their Zs, and never begin anew, whatever happens to the shop."""

import random
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial
from itertools import pairwise
from pathlib import Path

import msgspec
import pytest
from support.ledgers.ledger import Till, invoice, opened_till, tamper

from daemon.core.audit import INTERNAL
from daemon.core.clock import DAY, HOUR, millis, millis_text
from daemon.core.errors import NotFound, PeriodNotOver
from daemon.core.ledger.entries import CalendarClosed, CalendarKind
from daemon.core.machine.state import FiscalCounters
from daemon.core.report.calendar_report import CalendarReport
from daemon.core.report.fiscal_reports import ZReport
from daemon.core.report.report_parts import digest_of
from daemon.store.maintenance.backup import backup, restore
from daemon.store.maintenance.verify import verify
from daemon.store.sqlite.high_water import mark_path
from daemon.store.store import Store
from daemon.store.tables.book.calendar_closures import (
    calendar_list,
    find_calendar_closure,
    highest_numbers,
    store_letterhead,
)
from daemon.store.tables.book.closures import close_period, closures_between, find_closure
from daemon.store.tables.book.entries import repair_time
from daemon.store.tables.book.totals import tally_between
from daemon.usecases.reports.report import net_total

ALL = {"start": 0, "end": 1 << 53}


def at(month: int, day: int, hour: int = 8, year: int = 2026) -> int:
    return millis(datetime(year, month, day, hour, tzinfo=UTC))


async def reports(store: Store, till: Till, kind: CalendarKind = "month") -> list[CalendarReport]:
    found = await store.ledger.read(calendar_list, till.book, kind, limit=1000)
    return [msgspec.json.decode(closed_of(placed.entry).body, type=CalendarReport) for placed in found]


def closed_of(entry: object) -> CalendarClosed:
    assert isinstance(entry, CalendarClosed)
    return entry


async def tick(store: Store, till: Till) -> None:
    """As `usecases.worker.aggregate`."""
    aggregate = await store.ledger.aggregate(till.book)
    await store.ledger.close_over_months(till.book, aggregate.at)


async def zs_of(store: Store, till: Till) -> Sequence[ZReport]:
    closures = await store.ledger.read(closures_between, till.book, **ALL)
    return [msgspec.json.decode(closure.body, type=ZReport) for closure in closures]


async def day(till: Till, draw: random.Random) -> None:
    """Some sales, a credit note now and then, cash, and mostly a Z."""
    for _ in range(draw.randrange(4)):
        sale = await till.sell(draw.randrange(1, 90) * 59, draw.choice("ABC"))
        if draw.random() < 0.2:
            reference = f"{till.book.nim}-{till.counters.fvc}"
            amounts = ((sale.invoice.items[0].group, sale.total_ttc),)
            await till.certify(invoice(f"C-{sale.number}", type_="FA", amounts=amounts, reference=reference))
    if draw.random() < 0.2:
        await till.move_cash(draw.randrange(1, 9) * 500)
    await tick(till.store, till)
    if draw.random() < 0.9:
        await till.close()


async def live_a_year(path: Path, saved: Path, draw: random.Random) -> None:
    """From 3 January on: no Z in April, a reset of the machine in May, a restore within a month and one over its end."""
    restores = {draw.randrange(50, 55): 3, draw.randrange(208, 211): 6}
    today, until = 0, 0
    while today < 365:
        async with opened_till(path) as (store, till):
            till.sold = 1000 * today
            while today < 365:
                till.at = at(1, 3) + today * DAY
                if not at(4, 1) <= till.at < at(5, 2):
                    await day(till, draw)
                if today == 120:
                    till.counters = FiscalCounters(0, 0, 0)
                    till.book = await store.ledger.begin_epoch(till.book, till.state(), "EL02000015-2", at=till.at)
                today += 1
                if today in restores:
                    await store.ledger.reconcile(till.book, till.state(), unexplained=0, at=till.at)
                    backup(path, saved, at=till.at)
                    until = today + restores.pop(today)
                if today == until:
                    break
        if today == until:
            restore(saved, path, at=at(1, 3) + today * DAY)
            until = 0


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.long)])
async def test_a_year_of_a_shop_adds_up_to_the_franc(path: Path, tmp_path: Path, seed: int) -> None:
    """Months, year, Z, A and journal, and the grand total goes on from month to month."""
    await live_a_year(path, tmp_path / "saved", random.Random(seed))
    async with opened_till(path) as (store, till):
        till.at = at(1, 4, year=2027)
        await till.close()
        months, (year,) = await reports(store, till), await reports(store, till, "year")
        zs = [z for z in await zs_of(store, till) if z.created_at < "2027"]
        last = await store.ledger.read(find_closure, till.book, zs[-1].z_number)
        records = [record async for record in store.journal.iterate(till.book, 0, 1 << 53, 0)]
        sold = await store.ledger.read(tally_between, till.book, 0, last.created_at)
    assert [month.period for month in months] == [f"2026-{month:02}" for month in range(1, 13)]
    numbers = [month.number for month in months]
    assert numbers == sorted(set(numbers))
    assert sum(month.z_count for month in months) == year.z_count == len(zs)
    for figure in ("total_ttc", "total_ht", "total_tva", "certs_count", "reductions", "incomplete"):
        assert sum(getattr(month, figure) for month in months) == getattr(year, figure)
        assert sum(getattr(z, figure) for z in zs) == getattr(year, figure)
    signed = [r.total_ttc * (-1 if r.invoice.is_credit else 1) for r in records if r.seq <= last.last_seq]
    assert year.total_ttc == sum(signed) == net_total(sold) == year.grand_total.total_ttc
    assert (months[3].z_count, months[3].certs_count, months[3].first_z) == (0, 0, None)
    for before, month in pairwise(months):
        assert month.grand_total.total_ttc == before.grand_total.total_ttc + month.total_ttc
    assert sum(month.cash.deposits for month in months) == sum(z.cash.deposits for z in zs)
    assert verify(path).problems == ()


@pytest.mark.parametrize(("kind", "period"), [("month", "2026-01"), ("year", "2026")])
async def test_a_closure_that_there_is_not_is_named(store: Store, till: Till, kind: CalendarKind, period: str) -> None:
    with pytest.raises(NotFound, match=f"no closure of a {kind} {period}"):
        await store.ledger.read(find_calendar_closure, till.book, kind, period)


async def test_a_month_is_neither_closed_early_nor_twice(store: Store, till: Till) -> None:
    till.at = at(1, 31, 10)
    await till.sell()
    await till.close()
    for period in ("", "2026-01", "2026-02"):
        with pytest.raises(PeriodNotOver):
            await store.ledger.close_calendar(till.book, "month", period, at=till.at, call=INTERNAL)
    first = await store.ledger.close_calendar(till.book, "month", "", at=at(2, 1), call=INTERNAL)
    with pytest.raises(PeriodNotOver):
        await store.ledger.close_calendar(till.book, "month", "", at=at(2, 2), call=INTERNAL)
    assert await store.ledger.close_calendar(till.book, "month", "2026-01", at=at(2, 2), call=INTERNAL) == first
    with pytest.raises(PeriodNotOver):
        await store.ledger.close_calendar(till.book, "year", "", at=at(12, 31), call=INTERNAL)


def forget(path: Path) -> None:
    """The disk is another one."""
    path.unlink()
    mark_path(path).unlink()


@pytest.mark.parametrize("is_listed", [True, False])
async def test_a_month_that_was_closed_after_the_backup_keeps_its_number(
    path: Path, tmp_path: Path, *, is_listed: bool
) -> None:
    """On a disk that remembers the number, and on one where nothing does: there as many are left out as can have been given."""
    saved = tmp_path / "saved"
    async with opened_till(path) as (store, till):
        till.at = at(2, 27)
        await store.ledger.reconcile(till.book, till.state(), unexplained=0, at=till.at)
        await till.sell(5000)
        await till.close()
        backup(path, saved, at=till.at)
        await till.sell(1000)
        await till.close()
        till.at = at(3, 1)
        await till.close()
        (february,) = await reports(store, till)
        assert (february.number, february.total_ttc) == (1, 6000)
    if not is_listed:
        forget(path)
    restore(saved, path, at=at(3, 2), last_z=None if is_listed else 3)
    async with opened_till(path) as (store, till):
        till.at = at(3, 2)
        await till.close()
        (february,) = await reports(store, till)
        assert (february.number, february.total_ttc, february.first_z, february.last_z) == (2, 5000, 1, 1)
    assert verify(path).problems == ()


@pytest.mark.parametrize(
    ("day", "ms", "expected"),
    [
        ((2, 28), 0, (2, 1)),
        ((2, 28), 10 * HOUR - 1, (2, 1)),
        ((2, 28), 10 * HOUR, (3, 1)),
        ((3, 31), 10 * HOUR, (4, 1)),
        ((12, 31), 10 * HOUR - 1, (12, 1)),
        ((12, 31), 10 * HOUR, (13, 2)),
    ],
)
async def test_how_many_months_and_years_a_later_state_may_have_closed(
    store: Store, till: Till, day: tuple[int, int], ms: int, expected: tuple[int, int]
) -> None:
    """Each that is over fourteen hours east of UTC, beside two that are closed with the year of the first; nothing was closed since February."""
    for moment in (at(12, 27, year=2025), at(2, 27)):
        till.at = moment
        await till.sell(1000)
        await till.close()
    when = at(*day) // DAY * DAY + ms
    assert store.ledger.peek(highest_numbers, till.book, when) == expected


@pytest.mark.parametrize(
    ("ahead", "months", "years"),
    [
        (20, [(11, 1000), (11, 6000), (12, 8000)], [15000]),
        (50, [(11, 1000), (12, 0), (11, 6000), (12, 8000)], [1000, 14000]),
        (400, [(11, 1000), (12, 0), (11, 6000), (12, 8000)], [1000, 14000]),
    ],
)
async def test_a_month_that_a_fast_clock_closed_is_closed_again_with_the_zs_since(
    path: Path, ahead: int, months: list[tuple[int, int]], years: list[int]
) -> None:
    """A clock that is days or a year ahead, and is set right: the closure stands; when the month is over the later one names it, and together they hold the Zs that were
    made in the month."""
    async with opened_till(path) as (store, till):
        till.at = at(11, 14)
        await till.sell(1000)
        await till.close()
        till.at += ahead * DAY
        await till.sell(2000)
        await till.close()
        await store.decisions.write(repair_time, till.book, now=at(11, 15), ahead=ahead * DAY, reason="wrong day")
        with pytest.raises(PeriodNotOver):
            await store.ledger.close_calendar(till.book, "month", "2026-11", at=at(11, 16), call=INTERNAL)
        for month, day_, amount in ((11, 28, 4000), (12, 28, 8000)):
            till.at = at(month, day_)
            await till.sell(amount)
            await till.close()
        till.at = at(1, 2, year=2027)
        await till.close()
        zs = Counter[str]()
        for z in await store.ledger.read(closures_between, till.book, **ALL):
            zs[millis_text(z.created_at)[:7]] += z.total_ttc
        for kind, expected in (
            ("month", [(f"2026-{month}", total) for month, total in months]),
            ("year", [("2026", total) for total in years]),
        ):
            found = await reports(store, till, kind)
            ours = [report for report in found if report.period[:4] == "2026"]
            assert [(report.period, report.total_ttc) for report in ours] == expected
            before: dict[str, int] = {}
            for report in found:
                assert report.supplements == before.get(report.period, msgspec.UNSET)
                before[report.period] = report.number
            assert sum(report.total_ttc for report in found) == found[-1].grand_total.total_ttc == 15000
        for period in ("2026-11", "2026-12"):
            assert sum(month.total_ttc for month in await reports(store, till) if month.period == period) == zs[period]
    assert verify(path).problems == ()


@pytest.mark.parametrize(
    ("stored", "forged", "found"),
    [
        ('"number":2', '"number":1', "2026-02 does not follow"),
        ('"period":"2026-02"', '"period":"2026-01"', "2026-01 does not follow"),
        ('"period":"2026-02"', '"period":"2026-03"', "2026-03 does not follow"),
        (r"ttc\":5000", r"ttc\":6000", "2026-01 reports another"),
    ],
    ids=["the number of the one before", "its month once more, with no repair of the time", "a month later", "figures"],
)
async def test_verify_finds_a_month_that_was_changed(
    till: Till, path: Path, stored: str, forged: str, found: str
) -> None:
    for month in (1, 2, 3):
        till.at = at(month, 10)
        await till.sell(5000)
        await till.close()
    tamper(path, f"UPDATE entry SET body = CAST(replace(CAST(body AS TEXT), '{stored}', '{forged}') AS BLOB)")  # noqa: S608
    assert any(found in str(problem) for problem in verify(path).problems)


async def test_the_month_of_a_spare_names_the_machine_in_whose_place_it_has_certified(store: Store, till: Till) -> None:
    """As its Zs do, also where the take-over ended in an earlier one of the month."""
    spare = await Till.of(store, "EL02000088-1")
    spare.sold = 100
    await till.sell()
    till.at = spare.at = at(2, 3)
    await spare.sell()
    await store.decisions.take_over(till.book, spare.book, reason="out of order", at=spare.at)
    await spare.close()
    await store.decisions.take_back(till.book, reason="repaired", at=spare.at)
    for spare.at in (at(2, 20), at(3, 5)):
        await spare.sell()
        await spare.close()
    for each in (spare, till):
        each.at = at(4, 2)
        await each.sell()
        await tick(store, each)
    named = [report.stands_for for report in await reports(store, spare) if report.z_count]
    assert named == [till.book.nim, msgspec.UNSET]
    assert {report.stands_for for report in await reports(store, till)} == {msgspec.UNSET}


async def test_a_month_names_the_newest_letterhead(store: Store, till: Till) -> None:
    """By its digest, for the paper."""
    digest = digest_of(b"a letterhead")
    await store.ledger.write(store_letterhead, till.book, digest, b"a letterhead", till.at)
    await till.close()
    await store.ledger.close_over_months(till.book, till.at + 31 * DAY)
    assert {report.letterhead for report in await reports(store, till)} == {digest.hex()}


async def test_the_tick_closes_the_month_of_a_books_only_z(store: Store, till: Till) -> None:
    """Also in January, where it closes no month of a year without a Z."""
    till.at = at(1, 10)
    await till.sell(5000)
    await till.close()
    await store.ledger.close_over_months(till.book, at(3, 10, year=2027), upto_z=True)
    assert [report.z_count for report in await reports(store, till)] == [1, *[0] * 11]


@pytest.mark.parametrize(("end", "closed"), [((2026, 1), 600), ((2026, 2), 0)])
async def test_fifty_years_are_closed_at_once_and_no_month_more(
    store: Store, till: Till, end: tuple[int, int], closed: int
) -> None:
    """So many are over by a wrong clock alone."""
    till.at = at(1, 10, year=1976)
    await till.close()
    year, month = end
    await store.ledger.close_over_months(till.book, at(month, 1, year=year))
    assert len(await reports(store, till)) == closed


@pytest.mark.parametrize("sales", [3, 70])
async def test_months_of_a_version_that_closed_none_have_their_own_sums(
    store: Store, till: Till, path: Path, sales: int
) -> None:
    """Closed at once, each from its last Z on, whether or not a checkpoint is before that."""
    ledger, totals = store.ledger, []
    for month in (1, 2, 3):
        till.at = at(month, 5)
        totals.append(sum([(await till.sell(month * 1000)).total_ttc for _ in range(sales)]))
        write_z = partial(close_period, counters=till.counters, unexplained=0, zone=UTC, labels={})
        await ledger.write(write_z, till.book, at=till.at)
    await ledger.close_over_months(till.book, at(4, 1))
    assert [report.total_ttc for report in await reports(store, till)] == totals
    assert all("among what goes to headquarters" in problem for problem in verify(path).problems)
