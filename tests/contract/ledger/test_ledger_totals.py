"""Totals that are kept up equal totals that are summed, for any history, any period and any range."""

import asyncio
import random
import tempfile
from collections.abc import Iterable
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.ledgers.ledger import MINUTE, START, ZONE, Till, invoice, opened, opened_till, query

from common.wire.closure import Withholding
from daemon.core.events import CERTIFIED
from daemon.core.invoice.invoice import Psvb
from daemon.core.ledger.attempt import NOT_SENT, Outcome, Record
from daemon.core.ledger.book import Closure, Tally
from daemon.core.ledger.tally import add, contribution, subtract
from daemon.core.machine.state import FiscalCounters
from daemon.core.report.fiscal_reports import a_report, x_report
from daemon.store.maintenance.verify import verify
from daemon.store.store import Store
from daemon.store.tables.book import settlements, totals
from daemon.store.tables.book.books import book_state
from daemon.store.tables.book.closures import closures_between
from daemon.store.tables.book.totals import aggregate_between, day_end, isfs_between, isfs_of_period, tally_between
from daemon.store.tables.events import EventWriter

HOUR = 60 * MINUTE

amounts = st.lists(st.tuples(st.sampled_from("ABC"), st.integers(1, 10**9)), min_size=1, max_size=4)
steps = st.one_of(
    st.tuples(st.just("sell"), st.sampled_from(["FV", "FT", "EV", "ET", "FA", "EA"]), amounts, st.sampled_from("EVCM")),
    st.tuples(st.just("fail"), st.sampled_from(["refused", "abandoned"]), st.sampled_from(["E:no", NOT_SENT])),
    st.tuples(st.just("tick")),
    st.tuples(st.just("close")),
    st.tuples(st.just("pass"), st.integers(1, 40)),
)


@dataclass
class History:
    """What was done to a ledger, for the sums to be made again by hand."""

    till: Till
    ended: list[Record] = field(default_factory=list)
    closures: list[Closure] = field(default_factory=list)

    async def take(self, number: int, step: tuple) -> None:
        kind, *rest = step
        if kind == "sell":
            type_, lines, method = rest
            sale = invoice(f"N-{number}", type_=type_, amounts=lines, method=method)
            sale = msgspec.structs.replace(sale, isf=f"ISF{number // 3 % 3}")
            self.ended.append(await self.till.certify(sale))
        elif kind == "fail":
            self.ended.append(await self.till.fail(invoice(f"N-{number}"), *rest))
        elif kind == "tick":
            await self.till.store.ledger.aggregate(self.till.book)
        elif kind == "close":
            self.closures.append(await self.till.close())
        else:
            self.till.at += rest[0] * HOUR


def isfs_of(records: Iterable[Record]) -> tuple[str, ...]:
    return tuple(sorted({record.invoice.isf for record in records if record.state == "certified"}))


def summed(records: Iterable[Record]) -> Tally:
    total: Tally = {}
    for record in records:
        total = add(total, contribution(record))
    return total


@settings(max_examples=settings.default.max_examples * 2 // 5)
@given(history=st.lists(steps, max_size=40), instants=st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), max_size=5))
def test_reports_are_the_sums_of_what_they_cover(history: list[tuple], instants: list[tuple[float, float]]) -> None:
    """X is the sum of the open period, the Z partition what ended, A(range) is the sum of what ended in it; verify agrees."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "ledger.sqlite3"
        asyncio.run(_reports_are_sums(path, history, instants))
        findings = verify(path)
        assert findings.clean, findings.problems


async def _reports_are_sums(path: Path, history: list[tuple], instants: list[tuple[float, float]]) -> None:
    async with opened(path) as store:
        done = History(await Till.of(store))
        for number, step in enumerate(history):
            await done.take(number, step)
        aggregate = await store.ledger.aggregate(done.till.book)
        open_period = done.ended[done.closures[-1].last_seq if done.closures else 0 :]
        assert subtract(aggregate.running, aggregate.closed) == summed(open_period)
        assert await store.ledger.read(isfs_of_period, done.till.book) == isfs_of(open_period)
        _check_x(done, aggregate, open_period)
        _check_closures(done)
        await _check_ranges(store, done, instants)


def _check_x(done: History, aggregate: object, open_period: list[Record]) -> None:
    report = x_report(done.till.book, aggregate, done.till.at)
    certified = [record for record in open_period if record.state == "certified"]
    assert report.certs_count == len(certified)
    assert report.total_ttc == sum((-1 if r.invoice.is_credit else 1) * r.total_ttc for r in certified)
    assert report.total_ht + report.total_tva == report.total_ttc


def _check_closures(done: History) -> None:
    """Numbered without a gap, each from where the one before it ended, its figures those of its records."""
    at = 0
    for z_number, closure in enumerate(done.closures, 1):
        assert (closure.z_number, closure.first_seq) == (z_number, at + 1)
        records = [record for record in done.ended if closure.first_seq <= record.seq <= closure.last_seq]
        body = msgspec.json.decode(closure.body)
        certified = [record for record in records if record.state == "certified"]
        assert body["certs_count"] == closure.certs_count == len(certified)
        assert body["incomplete"] == summed(records).get("incomplete", 0)
        sums = {(entry["invoice_type"], entry["count"], entry["total_ttc"]) for entry in body["by_type"]}
        types = {record.type for record in certified}
        assert sums == {
            (t, sum(r.type == t for r in certified), sum(r.total_ttc for r in certified if r.type == t)) for t in types
        }
        at = closure.last_seq


async def _check_ranges(store: Store, done: History, instants: list[tuple[float, float]]) -> None:
    book, span = done.till.book, done.till.at - START
    for one, other in [*instants, (0.0, 1.0)]:
        start, end = sorted((START + round(one * span), START + round(other * span) + 1))
        expected = [record for record in done.ended if start <= record.ended_at < end]
        tally = await store.ledger.read(tally_between, book, start, end)
        assert tally == summed(expected)
        assert await store.ledger.read(isfs_between, book, start, end) == isfs_of(expected)
        listed = await store.ledger.read(closures_between, book, start=start, end=end)
        assert listed == [closure for closure in done.closures if start <= closure.created_at < end]
        report = a_report(book, tally, listed, start, end)
        assert report.certs_count == sum(record.state == "certified" for record in expected)
        period = await store.ledger.read(aggregate_between, book, start, end)
        assert (period.running, period.closed, period.period_start) == (tally, {}, start)
        sales = [r.counters.fvc for r in expected if r.state == "certified" and not r.invoice.is_credit]
        assert period.fvc_start == (sales[0] if sales else 0)


@pytest.mark.long
@pytest.mark.parametrize("seed", [1, 2])
async def test_a_long_history_with_checkpoints(tmp_path: Path, seed: int) -> None:
    """A thousand entries over three weeks, many in one millisecond: ranges that begin and end anywhere, checkpoints included."""
    dice = random.Random(seed)
    path = tmp_path / "ledger.sqlite3"
    async with opened(path) as store:
        done = History(await Till.of(store))
        for number in range(1000):
            await done.take(number, ("sell", "FV", [(dice.choice("ABC"), dice.randrange(1, 10**6))], "E"))
            done.till.at += dice.choice((-MINUTE, -MINUTE, 0, 30 * MINUTE, 0, HOUR))
            if dice.random() < 0.05:
                await store.ledger.aggregate(done.till.book)
        await store.ledger.aggregate(done.till.book)
        times = [record.ended_at for record in done.ended]
        for _ in range(200):
            start, end = sorted(dice.choice(times) + dice.randrange(-2, 3) for _ in range(2))
            expected = [record for record in done.ended if start <= record.ended_at < end]
            assert await store.ledger.read(tally_between, done.till.book, start, end) == summed(expected), (
                seed,
                start,
                end,
            )
            assert await store.ledger.read(isfs_between, done.till.book, start, end) == isfs_of(expected), (
                seed,
                start,
                end,
            )
    assert verify(path).clean
    [(least,)] = query(path, "SELECT count(*) FROM checkpoint")
    assert least > 1000 // 64


async def test_the_order_decides_what_a_z_holds_not_the_clock(till: Till) -> None:
    """An invoice in the same millisecond as a Z is in the period that it was certified in (decision 14)."""
    await till.sell(100)
    till.at -= MINUTE
    closure = await till.close()
    till.at = closure.created_at - MINUTE - 50
    late = await till.sell(7)
    assert late.ended_at == closure.created_at
    second = await till.close()
    assert (closure.certs_count, closure.total_ttc) == (1, 100)
    assert (second.certs_count, second.total_ttc) == (1, 7)


async def test_a_day_that_ends_where_a_checkpoint_is_has_that_one(tmp_path: Path) -> None:
    """Every 64 records and at the end of each local day, one and not two where both meet; a day that has just begun has none."""
    async with opened_till(tmp_path / "ledger.sqlite3") as (store, till):
        till.at = day_end(START, ZONE) - HOUR
        assert till.at == START + HOUR * 17 + 800_000
        for count in (64, 2, 1):
            for _ in range(count):
                till.at -= MINUTE - 1
                await till.sell()
            await store.ledger.aggregate(till.book)
            till.at += 24 * HOUR
    assert query(tmp_path / "ledger.sqlite3", "SELECT seq FROM checkpoint ORDER BY seq") == [(64,), (66,)]
    assert verify(tmp_path / "ledger.sqlite3").clean


async def test_a_sale_at_midnight_sharp_is_of_the_new_day(tmp_path: Path) -> None:
    """The day before ends with the sale before it, and its checkpoint lies there."""
    async with opened_till(tmp_path / "ledger.sqlite3") as (store, till):
        first = await till.sell()
        midnight = day_end(first.ended_at, ZONE)
        assert day_end(253_402_300_799_999, ZONE) > 253_402_300_799_999  # the end of the year 9999
        for later in (0, HOUR):
            till.at = midnight + later - MINUTE - 50
            assert (await till.sell()).ended_at == midnight + later
        await store.ledger.aggregate(till.book)
    assert query(tmp_path / "ledger.sqlite3", "SELECT seq, at FROM checkpoint") == [(1, first.ended_at)]


async def test_the_last_fvc_is_the_machine_s_also_without_a_sale_of_ours(store: Store, till: Till) -> None:
    """Somebody else's sale counts on the machine; the tick after what ended next, a refusal, says up to where FVC has come."""
    await till.sell()
    till.word(invoice("somebody else's"))
    await store.ledger.aggregate(till.book)
    await store.ledger.reconcile(till.book, till.state(), unexplained=1, at=till.at)
    assert (await store.ledger.aggregated(till.book)).fvc_end == 2  # before anything else has ended
    refused = await till.fail(invoice("N-1"))
    assert (await store.ledger.aggregate(till.book)).fvc_end == 2
    for end, fvc_end in ((refused.ended_at + 1, 2), (refused.ended_at, 1)):  # by now, and by the sale of ours
        found = await store.ledger.read(aggregate_between, till.book, refused.begun_at, end)
        assert found.fvc_end == fvc_end


async def test_a_range_without_a_sale_has_the_last_fvc_before_its_end(store: Store, till: Till) -> None:
    """That of a sale or of a Z, whichever is later; what comes at its very end is of the next range."""
    till.counters = FiscalCounters(40, 30, 2)
    closure = await till.close()
    first = await till.sell()
    credit = await till.certify(invoice("C-1", type_="FA", reference=f"{till.book.nim}-31"))
    second = await till.sell()
    await store.ledger.aggregate(till.book)
    for start, end, fvc_end in (
        (START, closure.created_at, 0),
        (START, closure.created_at + 1, 30),
        (closure.created_at, first.ended_at, 30),
        (closure.created_at, first.ended_at + 1, 31),
        (credit.ended_at, credit.ended_at + 1, 31),
        (credit.ended_at, second.ended_at, 31),
        (credit.ended_at, second.ended_at + 1, 32),
        (second.ended_at + 1, second.ended_at + 2, 32),
    ):
        found = await store.ledger.read(aggregate_between, till.book, start, end)
        assert found.fvc_end == fvc_end, (start - START, end - START)


async def test_a_withholding_stays_as_it_was_certified(store: Store, till: Till, path: Path) -> None:
    """0.1.0 computed it without VAT (12 712 of 15 000), and took a rebate off: such records, and a period that holds them beside newer ones, are the
    sums of what each was certified with, and so is every total made of them."""
    for number, kind, psvb in (
        ("old sale", "FV", Psvb("A", 12_712, 200, 254)),
        ("old rebate", "FA", Psvb("A", 1_000, 200, 20)),
        ("new sale", "FV", Psvb("A", 15_000, 200, 300)),
    ):
        await till.certify(msgspec.structs.replace(invoice(number, type_=kind), psvb=psvb))
    aggregate = await store.ledger.aggregate(till.book)
    report = x_report(till.book, aggregate, till.at)
    assert report.psvb == (Withholding("A", 12_712 - 1_000 + 15_000, 2, 254 - 20 + 300),)
    closure = await till.close()
    assert msgspec.json.decode(closure.body)["psvb"] == msgspec.to_builtins([*report.psvb])
    assert verify(path).clean


async def from_paper(store: Store, till: Till) -> dict[str, Any]:
    """Two sales are under way in a copy that is put back; the machine tells the second, and the first one comes from its paper. The Z after it."""
    first, second = invoice("A"), invoice("B")
    ids = [await till.begin(sale) for sale in (first, second)]
    word = till.word(first)
    await till.finish(ids[1], second)
    outcome = Outcome(word, first, first.total_ttc, till.at + 1, line_ms=1, duration_ms=1, reason="its paper")
    after = store.ledger.peek(book_state, till.book)
    await store.ledger.write(settlements.settle_certified, till.book, ids[0], outcome, after)
    state = store.ledger.peek(book_state, till.book)
    assert (state.counters, state.last_number, state.seen) == (after.counters, after.last_number, after.seen)
    await store.ledger.write(EventWriter({}).write, till.book, CERTIFIED, till.at + 1, ref=ids[0])
    return msgspec.json.decode((await till.close()).body)


@pytest.mark.parametrize("is_of_before", [False, True])
async def test_a_sale_from_paper_behind_a_later_one_is_the_periods_first(tmp_path: Path, *, is_of_before: bool) -> None:
    """Its FVC is the first of X and Z; so is not that of a machine that begins to count again. A Z of mcfd 0.15, which has the other, is sound."""
    async with opened_till(tmp_path / "ledger") as (store, till):
        await till.sell()
        await till.close()
        with mock.patch.object(totals, "value_of", return_value=0) if is_of_before else nullcontext():
            z = await from_paper(store, till)
        assert (z["fvc_start"], z["fvc_end"], z["certs_count"]) == (3 if is_of_before else 2, 3, 2)
        await till.sell()
        till.counters = FiscalCounters(0, 0, 0)
        till.book = await store.ledger.begin_epoch(till.book, till.state(), "EL02000015-2", at=till.at)
        await till.sell()
        z = msgspec.json.decode((await till.close()).body)
        assert (z["fvc_start"], z["mcf_counters"]["fvc"]) == (4, 1)
    assert verify(tmp_path / "ledger").problems == ()


async def test_a_range_with_a_sale_from_paper_has_its_lowest_and_highest_fvc(store: Store, till: Till) -> None:
    """The same as the open period's, whatever came after them on the day; afterwards the last FVC known is the highest, and that of a machine that begins to count
    again is its own."""
    since = till.at
    first, second = invoice("A"), invoice("B")
    await till.sell()
    ids = [await till.begin(sale) for sale in (first, second)]
    word = till.word(first)
    later = await till.finish(ids[1], second)
    outcome = Outcome(word, first, first.total_ttc, till.at + MINUTE, line_ms=1, duration_ms=1, reason="its paper")
    after = store.ledger.peek(book_state, till.book)
    entered = await store.ledger.write(settlements.settle_certified, till.book, ids[0], outcome, after)
    till.at = entered.ended_at
    await till.close()
    till.at += HOUR
    till.counters = FiscalCounters(0, 0, 0)
    till.book = await store.ledger.begin_epoch(till.book, till.state(), "EL02000015-2", at=till.at)
    anew = await till.sell()
    till.at += HOUR
    await till.sell()
    await store.ledger.aggregate(till.book)
    for start, end, expected in (
        (since, entered.ended_at + 1, (1, 3)),
        (later.ended_at, entered.ended_at + 1, (2, 3)),
        (entered.ended_at, entered.ended_at + 1, (2, 2)),
        (entered.ended_at + 1, entered.ended_at + 2, (0, 3)),
        (entered.ended_at + HOUR // 2, entered.ended_at + HOUR // 2 + 1, (0, 3)),
        (since, anew.ended_at + 1, (1, 1)),
        (anew.ended_at + 1, anew.ended_at + 2, (0, 1)),
    ):
        found = await store.ledger.read(aggregate_between, till.book, start, end)
        assert (found.fvc_start, found.fvc_end) == expected, (start - since, end - since)
