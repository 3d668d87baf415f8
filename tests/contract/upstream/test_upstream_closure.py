"""What a closure carries, from a real ledger to the bytes that are sent: enough for their reader to see what was done to it."""

import json
from itertools import pairwise
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator
from support.ledgers.ledger import START, Till, invoice, opened, opened_till, tamper

from common.wire.closure import GENESIS, ClosureData, proves_itself, read_closure
from daemon.core.machine.state import FiscalCounters
from daemon.store.maintenance.backup import backup, restore
from daemon.upstream.options import compose

ROOT = Path(__file__).parents[3]
SCHEMA = json.loads((ROOT / "docs" / "closure-event.schema.json").read_text())
PAGE = (ROOT / "docs" / "upstream.md").read_text()
KEY_ID = "0123456789abcdef"
DAY = 86_400_000


@pytest.fixture
def path(tmp_path):
    return tmp_path / "ledger.sqlite3"


async def sent(store, till) -> list[bytes]:
    """The events of everything that waits."""
    waiting = await store.outbox.waiting(till.book.nim, till.book.mode, 100)
    return [compose(entry, "caisse-1", KEY_ID) for entry in waiting]


def read(events) -> list[ClosureData]:
    return [read_closure(event).data for event in events]


async def three_days(store) -> Till:
    """Sales of two groups, a credit note, something refused, an empty day, and an invoice of no till."""
    till = await Till.of(store)
    await till.sell(15_000)
    await till.sell(7_000, "A")
    await till.fail(invoice("R-1"))
    await till.close()
    await till.close()
    await till.sell(3_000)
    await till.certify(invoice("FA-1", type_="FA", amounts=(("B", 3_000),), reference="x"))
    now = till.counters
    till.counters = FiscalCounters(now.tc + 1, now.fvc + 1, now.frc)  # somebody else certified on this machine
    await till.close(unexplained=1)
    return till


async def test_each_proves_itself(path):
    """Read and computed again by the package that headquarters uses: each head is of its closure, and each continues the one before."""
    async with opened(path) as store:
        closures = read(await sent(store, await three_days(store)))
    assert [closure.z_number for closure in closures] == [1, 2, 3]
    assert all(proves_itself(closure) for closure in closures)
    assert (closures[0].previous_report_id, closures[0].previous_chain_head) == (None, GENESIS.hex())
    assert closures[0].opening_counters is None
    for before, closure in pairwise(closures):
        assert (closure.previous_report_id, closure.previous_chain_head) == (before.report_id, before.chain_head)
        assert closure.first_seq == before.last_seq + 1
        assert closure.opening_counters == before.mcf_counters
    assert closures[1].chain_previous == closures[0].chain_head  # nothing in between
    assert closures[2].unexplained == 1


async def test_sender_schema_and_page_are_one(path):
    """Every field that is sent stands in the schema, every field of the schema is sent, and the page names what was added."""
    async with opened(path) as store:
        events = [json.loads(event) for event in await sent(store, await three_days(store))]
    properties = set(SCHEMA["$defs"]["closure"]["properties"])
    for event in events:
        Draft202012Validator(SCHEMA, format_checker=Draft202012Validator.FORMAT_CHECKER).validate(event)
        assert set(event["data"]) == properties - {"cash_count"}, "nobody counted the drawer"
        assert set(event) == set(SCHEMA["properties"])
    assert set(ClosureData.__struct_fields__) == properties
    added = properties - set(SCHEMA["$defs"]["closure"]["required"])
    assert {name for name in added if f"`{name}`" not in PAGE} == set()


async def test_the_same_bytes_later(path):
    """A closure replayed after others, and after a restart, is the same event to the byte."""
    async with opened(path) as store:
        till = await three_days(store)
        first = await sent(store, till)
    async with opened_till(path) as (store, till):
        await till.close()
        assert (await sent(store, till))[:3] == first


async def copied_after_a_closure(path) -> Path:
    """A copy of a ledger of one Z, made then."""
    copy = path.with_name("copy")
    async with opened(path) as store:
        await (await Till.of(store)).close()
    backup(path, copy, at=START)
    return copy


async def test_a_ledger_that_was_put_back(path):
    """It is the same ledger in another epoch: closures from before keep theirs, those made since have the new one."""
    copy = await copied_after_a_closure(path)
    async with opened(path) as store:
        lost = await Till.of(store)
        await lost.close()
        (_, gone) = read(await sent(store, lost))
    epochs = set()
    for at in (START + DAY, START + 2 * DAY):
        restore(copy, path, at=at)
        async with opened_till(path) as (store, till):
            await till.close()
            before, closure = read(await sent(store, till))
        assert (before.epoch, before.ledger_id) == (0, gone.ledger_id)
        assert closure.ledger_id == gone.ledger_id
        assert closure.previous_report_id == gone.previous_report_id  # which is how a fork is seen
        epochs.add(closure.epoch)
    assert len(epochs) == 2
    assert min(epochs) > gone.epoch


async def test_numbers_that_a_lost_ledger_gave(path):
    """After a restore the next Z names the numbers that this ledger will never send; the ones before and after it name none."""
    copy = await copied_after_a_closure(path)
    async with opened(path) as store:
        lost = await Till.of(store)
        for _ in range(2):
            await lost.close()
    restore(copy, path, at=START + DAY)
    async with opened_till(path) as (store, till):
        await till.close()
        await till.close()
        closures = read(await sent(store, till))
    assert [closure.z_number for closure in closures] == [1, 4, 5]
    assert [[(gap.first, gap.last) for gap in closure.gaps] for closure in closures] == [[], [(2, 3)], []]
    assert closures[1].gaps[0].known_from
    assert all(proves_itself(closure) for closure in closures)


async def test_a_time_that_was_repaired(path):
    """A closure made while the clock was ahead, whose time was put right since: what is sent is what its hash is over."""
    async with opened(path) as store:
        till = await three_days(store)
        before = await sent(store, till)
        later = "chained_at = created_at, chained_start = period_start, created_at = created_at - 999, period_end = period_end - 999"
        tamper(path, f"UPDATE closure SET {later} WHERE z_number = 3")  # noqa: S608  # a text of ours
        after = await sent(store, till)
    assert after == before
    assert all(proves_itself(each) for each in read(after))
