"""`mcfd verify` compares the sales that are certified later with the chain."""

import hashlib
from pathlib import Path

import msgspec
import pytest
from support.ledgers.filled import filled
from support.ledgers.ledger import NIM, Till, invoice, opened_till, tamper

from common.language import Text
from common.language.reasons import SALE_RESTORED, to_stored
from daemon.core.audit import Actor, key_hash_of
from daemon.core.clock import DAY, HOUR
from daemon.core.errors import MachineBusy
from daemon.core.invoice.invoice import Deferral
from daemon.core.invoice.number import TakenFrom
from daemon.core.ledger.attempt import Attempt, DuplicateInvoice
from daemon.core.ledger.book import KeyUse
from daemon.core.ledger.deferred import DeferredSale, NotWaiting, NumberWaits
from daemon.store.maintenance.housekeeping import BACKUP_AT, mark_restored
from daemon.store.maintenance.numbers import is_copied_by_hand
from daemon.store.maintenance.verify import verify
from daemon.store.tables.audit import newest_entries
from daemon.store.tables.book import attempts, deferred, outages, uniqueness
from daemon.store.tables.book.entries import repair_time
from daemon.store.tables.book.settlements import read_evidence
from daemon.store.tables.meta import write_meta

BY = Actor("user", "patron")
ANOTHER = f"{NIM} (live): the sale '{{}}', to be certified later, is not the one of the chain"
STATE = f"{NIM} (live): the state of the sale '{{}}', to be certified later ({{}}), is not that of the chain"


async def fill(path: Path) -> None:
    """W-1 waits, W-2 was refused once and waits, W-3 is begun; C-1 is certified, R-1 refused, B-1 taken back, and its number waits again."""
    async with opened_till(path) as (store, till):
        sales = {number: await defer(till, number) for number in ("C-1", "R-1", "B-1", "W-1", "W-2", "W-3")}
        await till.finish(await begin(till, sales["C-1"]), sales["C-1"].invoice or invoice())
        for number in ("R-1", "W-2"):
            attempt_id = await begin(till, sales[number])
            await store.ledger.write(attempts.end, till.book, attempt_id, "refused", "E:No amount!", at=till.at)
        await store.ledger.refuse_sale(till.book, sales["R-1"], "E:No amount!", at=till.at)
        await store.ledger.write(deferred.withdraw, till.book, sales["B-1"], "by the till", at=till.at, by=BY)
        await defer(till, "B-1", key="again")
        await begin(till, sales["W-3"])


original, path = filled(fill)


async def defer(till: Till, number: str, key: str = "", *, sold_at: int = 0) -> DeferredSale:
    till.at += 60_000
    sold_at = sold_at or till.at
    sold = msgspec.structs.replace(invoice(number), deferred=Deferral(sold_at, "requested"))
    sale = DeferredSale(
        *(0, key or f"key-{number}", hashlib.sha256(number.encode()).digest(), f"request-{number}", number),
        *(sold.type, sold.total_ttc, sold_at, f"address-{number}-{key}"),
        invoice=sold,
    )
    stored = await till.store.ledger.defer(till.book, sale, "requested", TakenFrom())
    assert till.store.ledger.peek(deferred.by_id, till.book, stored.id) == stored
    return stored


async def begin(till: Till, sale: DeferredSale) -> int:
    assert sale.invoice
    attempt = Attempt(sale.invoice, till.counters, till.at, sale.request_id, deferred_id=sale.id)
    return await till.store.ledger.write(attempts.begin, till.book, attempt)


async def test_a_number_that_the_book_has_is_not_that_of_a_sale_to_be_certified_later(path: Path) -> None:
    """Certified, or being certified: the transaction that stores the sale looks again."""
    async with opened_till(path) as (_, till):
        await till.certify(invoice("D-1"))
        await till.begin(invoice("D-2"))
        for number, error in (("D-1", DuplicateInvoice), ("D-2", MachineBusy)):
            with pytest.raises(error):
                await defer(till, number)


async def test_a_ledger_that_was_put_back_believes_nothing_that_may_be_older(path: Path) -> None:
    """Nor what its machine had said, nor when it last could certify, nor that what waits was not certified since, until a person has decided on each."""
    async with opened_till(path) as (store, till):
        await store.ledger.store_evidence(till.book, till.state(), at=till.at)
        await store.ledger.write(outages.store_sign_of_life, till.book, till.at)
        await store.ledger.write(write_meta, BACKUP_AT, str(till.at))
        assert store.ledger.peek(outages.sign_of_life, till.book)
        with pytest.raises(NumberWaits):
            await defer(till, "W-1", key="of another request")
        await store.decisions.write(mark_restored, till.at)
        assert store.ledger.peek(read_evidence, till.book) is None
        assert store.ledger.peek(outages.sign_of_life, till.book) == 0
        assert not store.ledger.peek(is_copied_by_hand)
        sales = [sale for sale in store.ledger.peek(deferred.open_sales, till.book, 0, 9) if sale.state == "doubtful"]
        assert [(sale.number, sale.why) for sale in sales] == [
            (number, to_stored(SALE_RESTORED)) for number in ("W-1", "W-2", "B-1")
        ]
        for sale in sales:
            assert store.ledger.peek(deferred.by_address, sale.address) == (till.book.id, sale)
            assert store.ledger.peek(uniqueness.find_key, till.book, key_hash_of(sale.key)) == KeyUse(
                sale.fingerprint, sale=sale
            )
            await store.decisions.write(deferred.release, till.book, sale, "on no paper", at=till.at, by=BY)
        (entry,) = await store.ledger.read(newest_entries, 1)
        assert (entry.action, entry.detail["number"], entry.detail["reason"]) == ("sale.released", "B-1", "on no paper")
        with pytest.raises(NotWaiting):
            await store.decisions.write(deferred.release, till.book, sales[0], "again", at=till.at, by=BY)
    assert not [problem for problem in verify(path).problems if "certified later" in problem]


SET = "UPDATE deferred SET {} WHERE number = '{}'"
SOLD = (
    *("sold_at = sold_at + 3600000", "total_ttc = total_ttc - 1", "type = 'FT'"),
    *("number = number || 'x'", "outage = 7"),
)
WAITING = (
    *("fingerprint = x'00'", "key = 'another'", "key_hash = x'00'", "number_key = 'W-9'", "payload = NULL"),
    "payload = (SELECT payload FROM deferred AS other WHERE number = 'W-2')",
)
OF_ROW = [*((each, number) for each in SOLD for number in ("W-1", "C-1", "R-1")), *((each, "W-1") for each in WAITING)]
OF_STATE = {
    "begun": ("W-1", "W-2", "C-1", "R-1"),
    "certified": ("W-1", "W-2", "W-3", "R-1"),
    "refused": ("W-1", "W-3", "C-1"),
    "withdrawn": ("W-1", "W-2", "W-3", "C-1", "R-1"),
    "waiting": ("W-3", "C-1", "R-1"),
}
COLUMNS = "book_id, fingerprint, request_id, type, total_ttc, sold_at, state, payload"
INVENTED = f"""INSERT INTO deferred (number, number_key, key, key_hash, address, {COLUMNS})
    SELECT 'W-9', 'W-9', 'k', x'01', 'a', {COLUMNS} FROM deferred WHERE number = 'W-1'"""  # noqa: S608  names of ours
FOREIGN_ATTEMPT = "attempt_id = (SELECT attempt_id FROM deferred WHERE number = 'R-1')"


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        *((SET.format(each, number), ANOTHER.format(number)) for each, number in OF_ROW),
        *((SET.format(f"state = '{state}'", n), STATE.format(n, state)) for state, ns in OF_STATE.items() for n in ns),
        (SET.format("state = 'refused'", "B-1") + " AND state = 'withdrawn'", STATE.format("B-1", "refused")),
        (SET.format(FOREIGN_ATTEMPT, "C-1"), STATE.format("C-1", "certified")),
        ("DELETE FROM deferred WHERE number = 'W-1'", ANOTHER.format("W-1")),
        ("DELETE FROM deferred WHERE number = 'C-1'", ANOTHER.format("C-1")),
        (INVENTED, ANOTHER.format("W-9")),
    ],
)
def test_what_was_changed_of_a_sale_is_found(path: Path, change: str, problem: str) -> None:
    """What was sold and when, of one that waits each byte, its state and its attempt; one that is gone, one that nobody sold."""
    tamper(path, change)
    assert problem in verify(path).problems


async def test_a_repair_of_the_time_moves_what_waits(path: Path) -> None:
    """A sale that waits has the right day after `mcfd time repair`, in its row, in the invoice that the machine is sent and for its number's year."""
    async with opened_till(path) as (store, till):
        right = till.at + HOUR
        till.at = right + 3653 * DAY
        await defer(till, "F-1")
        await defer(till, "F-2")
        await defer(till, "F-3", sold_at=right + HOUR)  # as late as it may have been
        await store.decisions.write(repair_time, till.book, now=right + HOUR, ahead=3653 * DAY, reason="wrong year")
        sales = {sale.number: sale for sale in await store.ledger.read(deferred.open_sales, till.book, 0, 100)}
        assert [sales[number].sold_at - right for number in ("F-1", "F-2", "F-3")] == [60_000, 120_000, HOUR]
        assert [
            sale.invoice and sale.invoice.deferred and sale.invoice.deferred.sold_at for sale in sales.values()
        ] == [sale.sold_at for sale in sales.values()]
    assert verify(path).problems == ()
    tamper(path, "UPDATE deferred SET sold_at = sold_at + 1 WHERE number = 'F-2'")
    assert verify(path).problems == (ANOTHER.format("F-2"),)


async def test_what_waits_may_have_been_certified_where_the_machine_is_ahead(tmp_path: Path) -> None:
    """A waiting sale is then not certified by itself, since the machine may have it."""
    async with opened_till(tmp_path / "ledger") as (store, till):
        await defer(till, "A")
        await store.ledger.set_attention(till.book, Text("the machine is ahead"), at=till.at)
        assert [sale.state for sale in store.ledger.peek(deferred.open_sales, till.book, 0, 9)] == ["doubtful"]
