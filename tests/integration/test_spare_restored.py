"""An older copy of the ledger is put back into a shop with a spare: what either machine has certified since the copy is certified by neither again."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest
from support.ledgers.ledger import IFU, NIM, Till, invoice, opened
from support.memory_shop import LAST, MemoryShop, in_service
from support.spare import PERSON, SPARE, PairedShop, paired

from daemon.app import runtime
from daemon.core.audit import key_hash_of
from daemon.core.clock import DAY
from daemon.core.errors import MachineBusy
from daemon.core.ledger.attempt import DuplicateInvoice
from daemon.core.ledger.decision import DecisionRefused
from daemon.core.ledger.entries import SpareDecided
from daemon.core.ledger.take_over import PairNotCompared
from daemon.store.maintenance.backup import backup, restore
from daemon.store.maintenance.verify import verify
from daemon.store.tables.audit import newest_entries
from daemon.store.tables.book import deferred, entries, settlements, take_overs, uniqueness
from daemon.store.tables.book.books import book_state, open_book

pytestmark = pytest.mark.quick_timers


class Shop:
    """`copy` is taken of the shop that runs; `restored` is the shop after it was put back."""

    def __init__(self, folder: Path) -> None:
        self.ledger, self.saved = folder / "ledger", folder / "saved"

    def copy(self) -> None:
        assert backup(self.ledger, self.saved, at=1).clean

    @contextlib.asynccontextmanager
    async def restored(self, before: PairedShop) -> AsyncIterator[PairedShop]:
        restore(self.saved, self.ledger, at=2)
        async with paired(self.ledger, on=before) as shop:
            yield shop
        assert verify(self.ledger).clean


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop(tmp_path)


def count(shop: PairedShop, number: str) -> int:
    return [entry.number for at in (shop.first, shop.spare) for entry in at.on_machine].count(number)


async def declare_lost(shop: PairedShop, at: MemoryShop) -> None:
    case = await shop.store.decisions.case(at.worker.book)
    assert case.is_open
    assert case.choices == ("lost",)
    await shop.store.decisions.carry_out(
        case, "lost", reason="burnt; its paper was looked at", at=at.worker.now(), by=PERSON
    )


async def refused(shop: PairedShop, *numbers: str) -> None:
    """Each is held, with a word that names both machines."""
    for number in numbers:
        with pytest.raises(PairNotCompared) as caught:
            await shop.certify(number, key=number)
        for nim in (shop.first.nim, shop.spare.nim):
            assert nim in str(caught.value)


async def sells_on(shop: PairedShop) -> None:
    """B is what the machine has certified since the copy: a duplicate from then on, and on one machine; C is sold."""
    with pytest.raises(DuplicateInvoice):
        await shop.certify("B", key="B")
    assert (await shop.certify("C")).value.nim == shop.in_use.book.nim
    assert (count(shop, "B"), count(shop, "C")) == (1, 1)


@pytest.mark.parametrize(
    ("before_copy", "since", "is_spare"),
    [
        ("certify A", "certify B; first_dies", False),
        ("take_over; certify A", "take_back; certify B; first_dies", False),
        ("certify A", "first_dies; take_over; certify B; spare_dies; first_returns", True),
    ],
    ids=["the spare takes over after the restore", "taken back since", "taken over since, and the machine is back"],
)
async def test_the_machine_that_may_have_certified_since_the_copy_is_asked_first(
    shop: Shop, before_copy: str, since: str, is_spare: bool
) -> None:
    """B was certified by the machine that is away when the copy is put back: the other one certifies nothing before it was asked, and a person has looked."""
    async with paired(shop.ledger) as before:
        await play(before, before_copy)
        shop.copy()
        await play(before, since)
    async with shop.restored(before) as after:
        at = after.spare if is_spare else after.first
        if not is_spare and "take_back" not in since:
            await after.take_over()
        assert not (after.first if is_spare else after.spare).worker.attention
        await refused(after, "B", "C")
        at.session.plug()
        await at.until(lambda: at.worker.attention, "what it has certified found")
        await refused(after, "B")  # until somebody has said what that was
        await at.decide("adopt")
        await sells_on(after)
        assert after.in_use.book.nim == (after.first if is_spare else after.spare).nim


async def play(shop: PairedShop, steps: str) -> None:
    for step in steps.split("; "):
        match step.split():
            case ["certify", number]:
                await shop.certify(number, key=number)
            case ["spare_dies"]:
                await shop.unplug(shop.spare)
            case ["first_returns"]:
                shop.first.session.plug()
            case [name]:
                await getattr(shop, name)()


async def test_a_take_over_that_lasted_at_the_time_of_the_copy(shop: Shop) -> None:
    """The spare itself is asked at once; the dead machine may have been taken back since."""
    async with paired(shop.ledger) as before:
        await before.first_dies()
        await before.take_over()
        await before.certify("A")
        shop.copy()
        await before.certify("B", key="B")
    async with shop.restored(before) as after:
        assert after.spare.worker.attention
        await after.spare.decide("adopt")
        await refused(after, "C")
        await declare_lost(after, after.first)
        await sells_on(after)


async def test_a_copy_that_is_older_than_the_spare(shop: Shop) -> None:
    """Nothing in it says that there is one; what it has certified counts all the same."""
    async with in_service(shop.ledger) as alone:
        await alone.certify("A")
        shop.copy()
    async with paired(shop.ledger, on=alone) as before:
        await before.take_over()
        await before.certify("B", key="B")
        await before.unplug(before.spare)
    for file in shop.ledger.parent.glob("ledger*"):  # on another disk, which remembers nothing
        file.unlink()
    async with shop.restored(before) as after:
        await refused(after, "B", "C")
        after.spare.session.plug()
        await after.spare.until(lambda: after.spare.worker.attention, "what the spare has certified found")
        await after.spare.decide("adopt")
        await sells_on(after)


@pytest.mark.parametrize(
    "lost",
    ["a copy without any book", "a copy without any book, on another disk", "everything but the high-water file"],
)
async def test_a_ledger_that_knows_neither_machine(shop: Shop, lost: str) -> None:
    """What the high-water file remembers of a dead machine is enough, or that another ledger was here of which it knows nothing: its spare certifies
    nothing before that machine was asked."""
    async with opened(shop.ledger):
        shop.copy()
    async with paired(shop.ledger) as before:
        await before.certify("B", key="B")
        await before.first_dies()
    if lost.startswith("a copy"):
        for file in shop.ledger.parent.glob("ledger*") if "another disk" in lost else ():
            file.unlink()
        restore(shop.saved, shop.ledger, at=2)
    else:
        for name in ("ledger", "ledger-wal", "ledger-shm"):
            shop.ledger.with_name(name).unlink(missing_ok=True)
    async with paired(shop.ledger, on=before) as after:
        await after.take_over()
        await refused(after, "B", "C")
        await after.first_returns_in_attention()
        await after.first.decide("adopt")
        await sells_on(after)
        assert [entry.number for entry in after.spare.on_machine] == ["C"]


async def test_a_spare_that_this_ledger_never_met_needs_no_answer(tmp_path: Path) -> None:
    """A new box with a spare in its cupboard sells before that machine was ever connected."""
    async with paired(tmp_path / "ledger") as other_box:
        await other_box.unplug(other_box.spare)
    async with paired(tmp_path / "new" / "ledger", on=other_box) as shop:
        await shop.certify("A")
        assert count(shop, "A") == 1


async def test_a_spare_that_is_bought_after_a_restore_on_another_disk_needs_no_answer(shop: Shop) -> None:
    """The machine that sells was compared with the copy; its new spare was never connected."""
    async with paired(shop.ledger.with_name("another")) as other_box:
        await other_box.unplug(other_box.spare)
    async with in_service(shop.ledger, on=other_box.first.session) as alone:
        await alone.certify("A")
        shop.copy()
    for file in shop.ledger.parent.glob("ledger*"):
        file.unlink()
    restore(shop.saved, shop.ledger, at=2)
    async with in_service(shop.ledger, on=alone.session) as alone:
        await alone.certify("B")
    async with paired(shop.ledger, on=other_box) as after:
        await after.certify("C")
        assert count(after, "C") == 1


async def test_once_both_machines_were_asked_nothing_is_held(shop: Shop) -> None:
    """Neither has certified since the copy: no person is needed."""
    async with paired(shop.ledger) as before:
        await before.certify("A")
        shop.copy()
    async with shop.restored(before) as after:
        await after.certify("B")
        assert not (await after.store.decisions.case(after.first.worker.book)).is_open


async def test_a_machine_that_is_said_to_be_lost_is_in_both_chains_and_is_asked_when_it_answers_all_the_same(
    shop: Shop,
) -> None:
    async with paired(shop.ledger) as before:
        shop.copy()
        await before.certify("A")
        await before.first_dies()
    async with shop.restored(before) as after:
        await after.take_over()
        await declare_lost(after, after.first)
        for at in (after.first, after.spare):
            rows = [each.entry for each in after.store.ledger.peek(entries.entries, at.worker.book)]
            last = rows[-1]
            assert isinstance(last, SpareDecided)
            assert (last.step, last.nim, last.reason) == ("lost", after.first.nim, "burnt; its paper was looked at")
        (noted,) = await after.store.ledger.read(newest_entries, 1)
        assert (noted.action, noted.actor, noted.detail["decision"]) == ("attempt.settled", "user:awa", "lost")
        await after.certify("B")
        case = await after.store.decisions.case(after.first.worker.book)
        with pytest.raises(DecisionRefused):
            await after.store.decisions.carry_out(case, "lost", reason="again", at=1)
        await after.first_returns_in_attention()


async def test_a_machine_that_was_asked_cannot_be_said_to_be_lost(shop: Shop) -> None:
    """What it says is to be looked at."""
    async with paired(shop.ledger) as before:
        shop.copy()
        await before.certify("A")
    async with shop.restored(before) as after:
        first = after.first.worker.book
        await after.first.until(lambda: after.store.ledger.peek(settlements.read_evidence, first), "its word")
        case = await after.store.decisions.case(first)
        assert case.choices == ("adopt",)
        assert case.obstacle("lost") == "does not fit"


async def test_a_sale_that_waits_is_looked_at_by_a_person_once_a_machine_is_said_to_be_lost(shop: Shop) -> None:
    """It may be one that the lost machine has certified since the copy."""
    async with paired(shop.ledger) as before:
        shop.copy()
        await before.certify("A")
        await before.first_dies()
    async with shop.restored(before) as after:
        await after.take_over()
        await after.unplug(after.spare)
        await after.defer("A", "a")
        await declare_lost(after, after.first)
        after.spare.session.plug()
        await after.spare.connected()
        (sale,) = after.store.ledger.peek(deferred.open_sales, after.spare.worker.book, 0, 10)
        assert sale.state == "doubtful"


OTHER, THIRD = "00099999Z", "EL02000077-1"


async def test_two_taxpayers_that_were_taken_for_a_pair_hold_each_other_up_in_nothing(tmp_path: Path) -> None:
    """Paired by the configuration before the spare had said its taxpayer: a number is free at the other, and after a restore neither waits for the
    other one."""
    async with opened(tmp_path / "ledger") as store:
        await store.ledger.open_pairs([(NIM, SPARE)], (NIM, SPARE))
        first, spare = await Till.of(store), await Till.of(store, SPARE)
        await first.certify(invoice("F-1"))
        with pytest.raises(DuplicateInvoice):
            await spare.begin(invoice("F-1"))
        await know_taxpayer(first, IFU)
        await know_taxpayer(spare, OTHER)
        await spare.begin(invoice("F-1"))
    restored_to_itself(tmp_path)
    async with opened(tmp_path / "ledger") as store:
        for nim in (NIM, SPARE):
            book = await store.ledger.write(open_book, nim, "live")
            assert store.ledger.peek(take_overs.not_compared, book) is None
            assert not store.ledger.peek(take_overs.is_awaited, book)


async def test_a_pair_that_is_not_configured_any_more_is_none_unless_one_has_stood_for_the_other(
    tmp_path: Path,
) -> None:
    """Also of one taxpayer: each machine numbers for itself again from the next start on. Not while it is unknown, after a restore, what they did."""
    async with opened(tmp_path / "ledger") as store:
        await store.ledger.open_pairs([(NIM, SPARE), (NIM, THIRD)], (NIM, SPARE, THIRD))
        first, spare, third = [await Till.of(store, nim) for nim in (NIM, SPARE, THIRD)]
        await store.decisions.take_over(first.book, third.book, reason="burnt", at=first.at)
        await store.decisions.take_back(first.book, reason="repaired", at=first.at)
        await first.certify(invoice("F-1"))
    restored_to_itself(tmp_path)
    async with opened(tmp_path / "ledger") as store:
        first, spare, third = [await Till.of(store, nim) for nim in (NIM, SPARE, THIRD)]
        await store.ledger.open_pairs([], (NIM, SPARE, THIRD))
        with pytest.raises(DuplicateInvoice):
            await spare.begin(invoice("F-1"))
        for till in (first, spare, third):
            await know_taxpayer(till, IFU)
        await store.ledger.open_pairs([], (NIM, SPARE, THIRD))
        await spare.certify(invoice("F-1"))
        with pytest.raises(DuplicateInvoice):
            await third.begin(invoice("F-1"))
    assert verify(tmp_path / "ledger").clean


async def know_taxpayer(till: Till, ifu: str) -> None:
    """The machine is greeted, and agrees with the ledger."""
    state = msgspec.structs.replace(till.state(), nim=till.book.nim, ifu=ifu)
    await till.store.ledger.reconcile(till.book, state, unexplained=0, at=till.at)


def restored_to_itself(folder: Path) -> None:
    assert backup(folder / "ledger", folder / "saved", at=1).clean
    restore(folder / "saved", folder / "ledger", at=2)


async def test_a_machine_that_leaves_the_configuration_keeps_its_numbers(tmp_path: Path) -> None:
    """Its spare is the machine from then on, without a take-over: what the first has certified, or may have, is not certified again."""
    async with opened(tmp_path / "ledger") as store:
        await store.ledger.open_pairs([(NIM, SPARE)], (NIM, SPARE))
        first, spare = await Till.of(store), await Till.of(store, SPARE)
        await first.certify(invoice("F-1"))
        await first.begin(invoice("F-2"))
        await store.ledger.open_pairs([], (SPARE,))
        with pytest.raises(DuplicateInvoice):
            await spare.begin(invoice("F-1"))
        with pytest.raises(MachineBusy):
            await spare.begin(invoice("F-2"))


async def test_a_number_that_two_machines_gave_before_they_became_a_pair_hides_none_that_is_free(
    tmp_path: Path,
) -> None:
    """Each had its own series until then; the lowest free number of the common one is the next."""
    async with opened(tmp_path / "ledger") as store:
        first, spare = await Till.of(store), await Till.of(store, SPARE)
        for till, numbers in ((first, ("FV-1", "FV-3")), (spare, ("FV-1", "FV-4"))):
            for number in numbers:
                await till.certify(invoice(number))
        await store.ledger.open_pairs([(NIM, SPARE)], (NIM, SPARE))
        assert store.ledger.peek(uniqueness.count_numbers, first.book, "FV-", 1) == (3, 4)


async def test_what_waits_at_a_machine_that_becomes_the_spare_is_certified(tmp_path: Path) -> None:
    """By the one that was its spare until then."""
    async with paired(tmp_path / "ledger") as shop:
        await shop.unplug(shop.first)
        await shop.defer("F-1", "key")
    async with opened(tmp_path / "ledger") as store:
        await store.ledger.open_pairs([(SPARE, NIM)], (SPARE, NIM))
        book = await store.ledger.write(open_book, SPARE, "live")
        sale = store.ledger.peek(deferred.next_waiting, book, ())
        assert sale.number == "F-1"


async def test_a_take_over_that_the_configuration_ends_does_not_move_the_book_to_a_wrong_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with paired(tmp_path / "ledger") as shop:
        await shop.take_over()
        worker, spare = shop.first.worker, shop.spare.worker
        worker.spare = spare.first = None
        wrong = worker.now() + 3660 * DAY
        monkeypatch.setattr(runtime, "now_millis", lambda: wrong)
        await runtime.end_without_pair(shop.store, (worker, spare))
        assert shop.store.ledger.peek(take_overs.lasting, worker.book) is None
        assert shop.store.ledger.peek(book_state, worker.book).last_at < wrong


async def test_a_sale_that_waits_and_was_begun_by_the_other_machine(shop: Shop) -> None:
    """In the copy it is in doubt at the spare; after it, the spare had not certified it, and the machine that was taken back did. A person decides
    whether it waits again, also where that machine was compared first."""
    async with paired(shop.ledger) as before:
        await before.first_dies()
        await before.defer("D", key="D")
        stopped = asyncio.ensure_future(before.spare.stop_at(LAST))
        await before.take_over()
        await stopped
        await before.is_cut(before.spare)
        shop.copy()
        await before.first_returns()
        await before.take_back()
        before.spare.session.plug()
        await before.first.until(lambda: count(before, "D") == 1, "D certified")
        await before.certify("E")
        await before.unplug(before.spare)
    async with shop.restored(before) as after:
        await after.first.until(lambda: after.first.worker.attention, "what the machine has certified found")
        await after.first.decide("adopt")
        after.spare.session.plug()
        await after.spare.connected()
        sale = after.store.ledger.peek(deferred.by_key, after.first.worker.book, key_hash_of("D"))
        assert (sale and sale.state, count(after, "D")) == ("doubtful", 1)
