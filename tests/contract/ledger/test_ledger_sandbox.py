"""The sandbox's share of the disk: its oldest records go, and what is left is as sound as before; a live book loses nothing."""

import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import msgspec
import pytest
from support.ledgers.ledger import MINUTE, NIM, Till, invoice, opened, query, tamper

from daemon.core.audit import Call
from daemon.core.errors import LedgerUnusable
from daemon.core.ledger.book import Tally
from daemon.core.report.fiscal_reports import x_report
from daemon.store.decisions import DecisionNote
from daemon.store.maintenance import sandbox
from daemon.store.maintenance.verify import verify
from daemon.store.store import Store
from daemon.store.tables.book import attempts, uniqueness
from daemon.store.tables.book.acts import cash_of_period
from daemon.store.tables.book.books import BookStart, read_start
from daemon.store.tables.book.totals import tally_between

BATCH = 7
NEWEST = 5
NO_LIMIT = 1 << 40


@pytest.fixture(autouse=True)
def small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox, "BATCH", BATCH)
    monkeypatch.setattr(sandbox, "NEWEST", NEWEST)


async def trimmed(store: Store, budget: int = 0, now: int = 1 << 60) -> int:
    return await store.retention.trim_sandbox(now, budget, rest=0)


async def live(till: Till, chance: random.Random, steps: int) -> None:
    """Sales, credit notes, failures, closures with and without sales, ticks, hours in between."""
    for _ in range(steps):
        match chance.choice(("sell", "sell", "sell", "credit", "fail", "close", "cash", "tick", "pass")):
            case "sell":
                await till.sell(chance.randrange(1, 10**6), chance.choice("ABC"))
            case "credit":
                await till.certify(invoice(f"C-{till.at}", type_="FA", reference="BF12345678-1-1"))
            case "fail":
                await till.fail(invoice(f"X-{till.at}"), key=b"%d" % till.at)
            case "close":
                await till.close(call=Call(key=f"z{till.at}"))
            case "cash":
                await till.move_cash(chance.randrange(1, 10**5), chance.choice(("deposit", "withdrawal")))
            case "tick":
                await till.store.ledger.aggregate(till.book)
            case "pass":
                till.at += chance.randrange(60 * 24) * MINUTE
    await till.store.ledger.aggregate(till.book)


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(1, 4))])
async def test_what_is_left_is_sound(tmp_path: Path, seed: int) -> None:
    """Whatever happened, and however often the oldest went: chain, totals, checkpoints and closures verify, the file opens, X and the
    ranges after the cut say what they said before, and the book goes on."""
    chance = random.Random(seed)
    path = tmp_path / "ledger.sqlite3"
    for _ in range(3):
        async with opened(path) as store:
            till = await Till.of(store, mode="test")
            await live(till, chance, 150)
            x, since = await figures(till)
            assert await trimmed(store, budget=chance.choice((0, 20_000)))
            left_x, left_since = await figures(till)
            assert left_x == x
            assert left_since == {at: since[at] for at in left_since}
        findings = verify(path)
        assert findings.clean, (seed, findings.problems)
    ((records,),) = query(path, "SELECT count(*) FROM certification")
    assert records < 150


async def figures(till: Till) -> tuple[object, dict[int, Tally]]:
    """X, and what was sold since each of the last records."""
    ledger = till.store.ledger
    x = x_report(till.book, await ledger.aggregated(till.book), till.at)
    cash = ledger.peek(cash_of_period, till.book, (await ledger.aggregated(till.book)).period_start)
    sql = "SELECT ended_at FROM certification WHERE book_id = ? AND seq IS NOT NULL ORDER BY seq DESC LIMIT 40"
    times = [at for (at,) in ledger._open.snapshot.execute(sql, (till.book.id,))]
    return (msgspec.to_builtins(x), cash), {
        at: await ledger.read(tally_between, till.book, at, 1 << 60) for at in times
    }


def row_counts(path: Path) -> tuple[int, int]:
    """The first and the last record of the book."""
    ((first, last),) = query(path, "SELECT min(seq), max(seq) FROM certification")
    return first, last


async def sell(till: Till, times: int) -> None:
    for _ in range(times):
        await till.sell()


async def test_what_is_ninety_days_old_stays_and_what_is_older_goes(store: Store, path: Path) -> None:
    """To the millisecond, by the time of the book; what an operator decided on one that went is kept without it."""
    till = await Till.of(store, mode="test")
    attempt_id = await till.begin(invoice("D-1"))
    await store.ledger.dispute(till.book, attempt_id, "unknown", at=till.at)
    settled = await store.decisions.write(
        store.decisions.abandon, till.book, attempt_id, note=DecisionNote("seen", till.at)
    )
    at = settled.ended_at + 1
    till.at = at - MINUTE - 50
    await sell(till, 1)
    till.at = at + 90 * sandbox.DAY - NEWEST * (MINUTE + 50)
    await sell(till, NEWEST)
    assert till.at == at + 90 * sandbox.DAY
    await store.ledger.aggregate(till.book)
    await trimmed(store, NO_LIMIT)
    assert row_counts(path) == (2, NEWEST + 2)
    assert query(path, "SELECT decision, attempt_id FROM settlement") == [("abandoned", None)]
    assert verify(path).clean


async def test_a_live_book_loses_nothing(store: Store, path: Path) -> None:
    """No budget, no age: what was certified on a machine stays, beside a sandbox that goes."""
    shop, till = await Till.of(store), await Till.of(store, mode="test")
    for each in (shop, till):
        await sell(each, 30)
        await each.close()
    await trimmed(store)
    count = "SELECT count(*) FROM certification WHERE book_id = ?"
    assert (query(path, count, shop.book.id), query(path, count, till.book.id)) == ([(30,)], [(NEWEST - 1,)])
    assert verify(path).clean


@asynccontextmanager
async def sandbox_that_sold(folder: Path) -> AsyncIterator[tuple[Path, Store, Till]]:
    """One sale; the ledger is sound at the end."""
    path = folder / "ledger.sqlite3"
    async with opened(path) as store:
        till = await Till.of(store, mode="test")
        await till.sell()
        yield path, store, till
    assert verify(path).clean


async def test_closures_without_sales_go_too(tmp_path: Path) -> None:
    """A sandbox that is closed again and again fills no disk either; the numbers go on."""
    async with sandbox_that_sold(tmp_path) as (path, store, till):
        for _ in range(60):
            await till.close()
        await trimmed(store)
        assert query(path, "SELECT min(z_number), max(z_number) FROM closure") == [(60 - NEWEST + 1, 60)]
        assert row_counts(path) == (None, None)
        assert (await till.close()).z_number == 61


async def test_movements_of_cash_go_too(tmp_path: Path) -> None:
    """What was moved in the open period still counts in it, and its Z verifies, although the movements themselves went."""
    async with sandbox_that_sold(tmp_path) as (path, store, till):
        for _ in range(20):
            await till.move_cash(100)
            await till.move_cash(30, "withdrawal")
        await store.ledger.aggregate(till.book)
        await trimmed(store)
        assert query(path, "SELECT count(*) FROM entry") == [(NEWEST,)]
        closure = await till.close()
        cash = msgspec.json.decode(closure.body)["cash"]
        assert (cash["deposits"], cash["withdrawals"]) == (2_000, 600)


@pytest.mark.parametrize("counted", [10, 1000])
async def test_what_went_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, counted: int) -> None:
    """However many are counted at a time. Its keys, events and outgoing messages go with it: a key of that time stands for nothing, its number may be used again."""
    monkeypatch.setattr(sandbox, "COUNTED", counted)
    path = tmp_path / "ledger.sqlite3"
    async with opened(path, destinations={"hook": frozenset({"cert.issued", "closure.created"})}) as store:
        till = await Till.of(store, mode="test")
        for number in range(30):
            await till.certify(invoice(f"F-{number}"), key=b"key-%d" % number, body=b"body")
        await store.ledger.aggregate(till.book)
        assert await trimmed(store) == 30 + 30 - NEWEST  # that were counted, that went
        assert store.ledger.peek(uniqueness.find_key, till.book, b"key-3") is None
        assert (use := store.ledger.peek(uniqueness.find_key, till.book, b"key-29")) is not None
        assert use.record is not None
        assert store.ledger.peek(attempts.find_number, till.book, "F-3") is None
        again = await till.certify(invoice("F-3"), key=b"key-3", body=b"another")
        assert again.state == "certified"
        left = "SELECT (SELECT count(*) FROM idempotency), (SELECT count(*) FROM event), (SELECT count(*) FROM outbox)"
        assert max(query(path, left)[0]) <= NEWEST + 1
    assert verify(path).clean


async def test_a_live_book_without_its_beginning_is_found(tmp_path: Path) -> None:
    """A live book that was cut, with its beginning written down, is reported by `mcfd verify`, and a start of another chain is no start."""
    path = tmp_path / "ledger.sqlite3"
    async with opened(path) as store:
        till = await Till.of(store, mode="test")
        await sell(till, 30)
        await store.ledger.aggregate(till.book)
        await trimmed(store)
    tamper(path, "UPDATE book SET mode = 'live'")
    assert any("has lost its beginning" in problem for problem in verify(path).problems)
    tamper(path, "UPDATE book SET mode = 'test'")
    tamper(path, "UPDATE book_start SET hash = zeroblob(32)")
    assert any("does not continue the chain" in problem for problem in verify(path).problems)
    tamper(path, "UPDATE certification SET total_ttc = 1 WHERE seq = 30")
    with pytest.raises(LedgerUnusable):
        async with opened(path):
            pass


async def step(store: Store, budget: int = 0) -> int:
    return await store.retention.write(partial(sandbox.trim, now=1 << 60, budget=budget))


async def start_of(till: Till) -> BookStart:
    return await till.store.retention.read(partial(read_start, book_id=till.book.id))


async def test_what_comes_to_the_budget_stays(tmp_path: Path) -> None:
    """To the byte; one byte less lets go of the oldest record."""
    async with sandbox_that_sold(tmp_path) as (path, store, till):
        await sell(till, 2 * NEWEST)
        await store.ledger.aggregate(till.book)
        assert await step(store, NO_LIMIT) == 2 * NEWEST + 1
        size = (await start_of(till)).byte_count
        assert (await step(store, size), row_counts(path)) == (0, (1, 2 * NEWEST + 1))
        assert (await step(store, size - 1), row_counts(path)) == (1, (2, 2 * NEWEST + 1))


@pytest.mark.parametrize("more", [0, 1, 4, 12])
async def test_a_cut_after_a_z(tmp_path: Path, more: int) -> None:
    """Wherever in the next period it lies: that period's cash, which was moved right after the Z, its first FVC and what is left are
    counted as they were, and the bytes that are kept are those that are there."""
    async with sandbox_that_sold(tmp_path) as (_, store, till):
        await till.close()
        await till.move_cash(500)
        await till.fail(invoice("X-1"))
        await till.certify(invoice("C-1", type_="FA", reference=f"{NIM}-1"))
        await sell(till, NEWEST + more)
        await store.ledger.aggregate(till.book)
        await trimmed(store)
        start = await start_of(till)
        anew = BookStart(entry_id=start.entry_id, counted_seq=0, counted_z=0, counted_id=start.entry_id, byte_count=0)
        await store.retention.read(lambda connection: sandbox._count(connection, till.book, anew))
        assert start.byte_count == anew.byte_count
        closure = await till.close()
        body = msgspec.json.decode(closure.body)
        assert (body["cash"]["deposits"], body["fvc_start"]) == (500, 2)
