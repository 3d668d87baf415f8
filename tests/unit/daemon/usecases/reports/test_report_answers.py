"""X, A, Z, sales by article and cash, from a real ledger: what each of them counts."""

from pathlib import Path

import msgspec
import pytest
from support.ledgers.ledger import MINUTE, START, Till, invoice, opened
from support.ledgers.worker import worker_of

from daemon.core.audit import Call
from daemon.core.errors import KeyReused, NotFound, StorageFull
from daemon.usecases.reports.acts import cash_moves, move_cash
from daemon.usecases.reports.report import a_report, articles_report, closure, history, x_between, x_report

EVER = START + 365 * 24 * 60 * MINUTE
DEPOSIT = {"kind": "deposit", "amount": 500, "reason": "float"}


async def test_each_report_has_what_is_its_own(tmp_path: Path) -> None:
    """X the open period as of the last tick; a look at a range whatever Z lie in it; A with the Z that were made in the range."""
    async with opened(tmp_path / "ledger.sqlite3") as store:
        till = await Till.of(store)
        worker = worker_of(till)
        first = await till.sell(1000)
        await till.close()
        second = await till.sell(2000)
        await store.ledger.aggregate(till.book)
        await till.sell(4000)
        x = await x_report(worker)
        assert (x.total_ttc, x.certs_count) == (2000, 1)
        range_ = first.ended_at, second.ended_at + 1
        between = await x_between(worker, *range_)
        assert (between.total_ttc, between.certs_count) == (3000, 2)
        assert (await x_between(worker, first.ended_at + 1, second.ended_at)).certs_count == 0
        a = await a_report(worker, *range_)
        assert (a.total_ttc, [each.z_number for each in a.closures]) == (3000, [1])
        articles = await articles_report(worker, 0, EVER)
        assert sum(each.amount for each in articles.articles) == 3000


async def test_a_z_is_found_by_its_number_or_its_id(tmp_path: Path) -> None:
    """NotFound of any other; the history has them in order, from the one after."""
    async with opened(tmp_path / "ledger.sqlite3") as store:
        till = await Till.of(store)
        worker = worker_of(till)
        rows = [await till.close() for _ in range(3)]
        for entry in ("2", "000000002", rows[1].report_id):
            assert (await closure(worker, entry)).z_number == 2
        for entry in ("4", "0000000002", "²", "", "-1", "x"):
            with pytest.raises(NotFound):
                await closure(worker, entry)
        assert [each.z_number for each in await history(worker, 0, EVER, 0, 2)] == [1, 2]
        assert [each.z_number for each in await history(worker, 0, EVER, 2, 2)] == [3]


async def test_cash_is_moved_once_under_its_key(tmp_path: Path) -> None:
    """The same request again gets the first answer; another one under that key, or under that of a sale, is refused; all are listed, page by page."""
    async with opened(tmp_path / "ledger.sqlite3") as store:
        till = await Till.of(store)
        worker = worker_of(till)
        calls = [Call("r1", "k", b"one"), Call("r2", "k", b"one"), Call("r3", "", b"")]
        answers = []
        for call in calls:
            till.at += MINUTE
            answers.append(await move_cash(worker, dict(DEPOSIT), call))
        assert [each.replayed for each in answers] == [False, True, False]
        assert answers[0].value == answers[1].value != answers[2].value
        with pytest.raises(KeyReused):
            await move_cash(worker, dict(DEPOSIT), Call("r4", "k", b"two"))
        of_a_sale = Call("r5", "sale", b"one")
        await till.certify(invoice("A"), of_a_sale.key_hash, of_a_sale.fingerprint)
        with pytest.raises(KeyReused):
            await move_cash(worker, dict(DEPOSIT), of_a_sale)
        listed = msgspec.to_builtins(await cash_moves(worker, 0, EVER, 0, 1))
        assert len(listed["movements"]) == 1
        rest = msgspec.to_builtins(await cash_moves(worker, 0, EVER, 1, 5))
        assert len(rest["movements"]) == 1
        assert rest["deposits"] == 1000


async def test_no_cash_is_moved_where_there_is_no_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Asked before anything is written: what is left is for sales."""

    async def full(_: object) -> None:
        raise StorageFull("the disk is full")

    async with opened(tmp_path / "ledger.sqlite3") as store:
        worker = worker_of(await Till.of(store))
        monkeypatch.setattr(worker.ledger, "check_free_space", full)
        with pytest.raises(StorageFull, match="the disk is full"):
            await move_cash(worker, dict(DEPOSIT), Call("r1", "", b""))
        assert (await cash_moves(worker, 0, EVER, 0, 1)).count == 0
