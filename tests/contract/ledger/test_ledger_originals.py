"""Credit notes never exceed their original: however the reference is written, whichever machine of the box certifies (X10, Y5)."""

import asyncio
import random
import sqlite3
import tempfile
from collections import Counter
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.ledgers.ledger import IFU, NIM, Till, invoice, opened, opened_till, query

from daemon.core.errors import CreditExceedsOriginal, InvalidRequest, MachineBusy
from daemon.core.invoice.invoice import Invoice
from daemon.core.invoice.number import read_reference
from daemon.core.ledger.attempt import Attempt, Outcome, Record
from daemon.core.machine.state import FiscalCounters
from daemon.store.maintenance.verify import verify
from daemon.store.store import Store
from daemon.store.tables.book import attempts, originals
from daemon.store.tables.book.epochs import book_of_taxpayer
from daemon.store.tables.journal import credits_on

OTHER = "EL02000099-1"


def credit(number: str, reference: str, amount: int, type_: str = "FA") -> Invoice:
    """As intake leaves it: with the one form of its reference."""
    normalised = str(read_reference(reference) or reference)
    return invoice(number, type_=type_, amounts=(("B", amount),), reference=normalised)


def reference_to(sale: Record) -> str:
    assert sale.counters
    return f"{sale.nim}-{sale.counters.fvc}"


async def export(till: Till, number: str, amount: int) -> None:
    """Sold by a machine that counts exports in TC alone: it has the FVC of the sale before."""
    sale = invoice(number, type_="EV", amounts=(("B", amount),))
    attempt_id = await till.begin(sale)
    counters = msgspec.structs.replace(till.counters, tc=till.counters.tc + 1)
    outcome = Outcome(msgspec.structs.replace(till.word(sale), counters=counters), sale, amount, till.at)
    till.counters = counters
    await till.store.ledger.write(till.store.ledger.certify, till.book, attempt_id, outcome)


def spelt(reference: str, dice: random.Random) -> str:
    short, activation, counter = reference.split("-")
    dash = dice.choice("-\u2011\u2013")
    return dash.join(
        (
            dice.choice((short, short.lower())),
            dice.choice(("", "0", "00")) + activation,
            dice.choice(("", "000")) + counter,
        )
    )


steps = st.lists(
    st.one_of(
        st.tuples(st.just("sell"), st.booleans(), st.sampled_from(["FV", "FT", "EV", "ET"]), st.integers(1, 100)),
        st.tuples(
            st.just("credit"),
            st.booleans(),
            st.integers(0, 30),
            st.integers(1, 60),
            st.sampled_from(["", "fail", "dispute"]),
        ),
    ),
    min_size=5,
    max_size=40,
)


@settings(max_examples=settings.default.max_examples * 3 // 5)
@given(steps, st.randoms(use_true_random=False))
def test_what_is_credited_never_exceeds_its_sale(history: list[tuple], dice: random.Random) -> None:
    """Over two machines, all types, every spelling and every end of a credit note: what fits is taken, what does not is refused, to the franc."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "ledger.sqlite3"
        asyncio.run(_never_exceeds(path, history, dice))
        assert verify(path).clean


async def _never_exceeds(path: Path, history: list[tuple], dice: random.Random) -> None:
    async with opened(path) as store:
        tills = await Till.of(store), await Till.of(store, OTHER)
        sales: list[Record] = []
        taken: Counter[str] = Counter()
        for at, (kind, is_other, *rest) in enumerate(history):
            till = tills[is_other]
            if kind == "sell":
                sales.append(await till.certify(invoice(f"N-{at}", type_=rest[0], amounts=(("B", rest[1]),))))
                continue
            which, amount, end = rest
            if not sales:
                continue
            sale = sales[which % len(sales)]
            type_ = "EA" if sale.type in ("EV", "ET") else "FA"
            note = credit(f"N-{at}", spelt(reference_to(sale), dice), amount, type_)
            if taken[sale.number] + amount > sale.total_ttc:
                with pytest.raises(CreditExceedsOriginal):
                    await till.begin(note)
                continue
            attempt_id = await till.begin(note)
            if end == "fail":
                await store.ledger.write(attempts.end, till.book, attempt_id, "refused", "E:no", at=till.at)
                continue
            taken[sale.number] += amount
            if end == "dispute":
                await store.ledger.dispute(till.book, attempt_id, "unknown", at=till.at)
            else:
                await till.finish(attempt_id, note)


async def test_an_export_and_the_sale_whose_counter_it_has_are_credited_apart(till: Till) -> None:
    """Each of them to its own total."""
    same = reference_to(await till.sell(10_000))
    for number, amount in (("E-1", 5_000), ("E-2", 3_000)):
        await export(till, number, amount)
    for number, amount, type_ in (
        ("C-1", 10_000, "FA"),
        ("C-2", 3_000, "EA"),
        ("C-3", 2_000, "EA"),
        ("C-4", 3_000, "EA"),
    ):
        await till.certify(credit(number, same, amount, type_))
    for type_ in ("FA", "EA"):
        with pytest.raises(CreditExceedsOriginal):
            await till.begin(credit("C-5", same, 1, type_))


async def test_an_export_right_after_an_activation_hides_no_sale_before_it(store: Store, till: Till) -> None:
    """It has the counter of the last sale before the activation, whose limit stays (seed 880157)."""
    sale = await till.sell(10_000)
    state = msgspec.structs.replace(till.state(), nim="EL02000015-2")
    till.book = await store.ledger.begin_epoch(till.book, state, "EL02000015-2", at=till.at)
    await export(till, "E-1", 5_000)
    await till.certify(credit("C-1", reference_to(sale), 10_000))
    with pytest.raises(CreditExceedsOriginal):
        await till.begin(credit("C-2", reference_to(sale), 1))


async def test_an_activation_that_never_was_is_refused(store: Store, till: Till) -> None:
    """One that was is not, though its sales are in no ledger; nor is a machine of elsewhere."""
    await till.sell(10_000)
    for reference in ("EL02000015-2-1", "EL02000015-0-1", "EL02000015-1"):
        with pytest.raises(InvalidRequest, match="creditNoteRef"):
            await till.begin(credit("C-1", reference, 1))
    till.book = await store.ledger.begin_epoch(till.book, till.state(), "EL02000015-3", at=till.at)
    name = read_reference("EL02000015-2-1")
    assert name
    assert store.ledger.peek(originals.places, till.book.id, name) == ()
    note = credit("C-2", "EL02000015-2-1", 20_000)
    assert not store.ledger.peek(originals.find, till.book, note)
    assert store.ledger.peek(originals.find, till.book, credit("C-3", "EL02000015-1-1", 1))
    assert not await store.ledger.write(originals.claim, till.book, await till.begin(note), note)


async def test_of_two_machines_at_once_not_both_credit_a_sale(store: Store, till: Till) -> None:
    """While one has no outcome, the other gets an error and comes again; in doubt and disputed it counts; once it has failed it does not."""
    other = await Till.of(store, OTHER)
    sale = await till.sell(10_000)
    first, second = credit("C-1", reference_to(sale), 6_000), credit("C-2", reference_to(sale), 6_000)
    attempt_id = await till.begin(first)
    with pytest.raises(MachineBusy):
        await other.begin(second)
    await store.ledger.write(attempts.end, till.book, attempt_id, "refused", "E:no", at=till.at)
    await other.certify(credit("C-3", reference_to(sale), 6_000))
    with pytest.raises(CreditExceedsOriginal) as refused:
        await till.begin(credit("C-4", reference_to(sale), 6_000))
    assert (refused.value.original_ttc, refused.value.credited_ttc) == (10_000, 12_000)
    assert [note.number for note in await store.journal.read(credits_on, sale.id)] == ["C-3"]


async def test_a_credit_note_before_its_sale_counts_once_that_is_sold(store: Store, till: Till) -> None:
    """By another machine, which cannot know that there is no such invoice yet; a counter that another program had is no sale of ours."""
    other = await Till.of(store, OTHER)
    await till.sell(500)
    for at, reference in enumerate((f"{NIM}-2", f"{NIM}-3", f"{NIM}-2")):
        await other.certify(credit(f"C-{at}", reference, 3_000))
    till.counters = FiscalCounters(2, 2, 0)
    sale = await till.sell(10_000)
    assert sale.counters.fvc == 3
    with pytest.raises(CreditExceedsOriginal) as refused:
        await till.begin(credit("C-4", reference_to(sale), 8_000))
    assert refused.value.credited_ttc == 11_000
    await till.certify(credit("C-5", reference_to(sale), 7_000))
    assert [note.number for note in await store.journal.read(credits_on, sale.id)] == ["C-1", "C-5"]


@pytest.mark.parametrize("is_disputed", [False, True])
async def test_a_credit_note_under_way_before_its_sale_counts_once_that_is_sold(
    store: Store, till: Till, is_disputed: bool
) -> None:
    """The machine that has it is silent, or an operator is asked about it, and the sale is entered late: no second one takes what it may have taken."""
    other = await Till.of(store, OTHER)
    note = credit("C-1", f"{NIM}-1", 6_000)
    attempt_id = await other.begin(note)
    if is_disputed:
        await store.ledger.dispute(other.book, attempt_id, "unknown", at=other.at)
    sale = await till.sell(10_000)
    with pytest.raises(CreditExceedsOriginal if is_disputed else MachineBusy):
        await till.begin(credit("C-2", reference_to(sale), 6_000))
    await other.finish(attempt_id, note)
    with pytest.raises(CreditExceedsOriginal) as refused:
        await till.begin(credit("C-3", reference_to(sale), 6_000))
    assert refused.value.credited_ttc == 12_000


async def test_a_credit_note_that_has_not_had_its_turn_takes_nothing(store: Store, till: Till) -> None:
    """It is looked at when it has; which of two is first is decided at the machines."""
    other = await Till.of(store, OTHER)
    sale = await till.sell(10_000)
    note = credit("C-1", reference_to(sale), 6_000)
    waiting = await store.ledger.write(attempts.begin, other.book, Attempt(note, other.counters, other.at, "request"))
    await till.certify(credit("C-2", reference_to(sale), 6_000))
    with pytest.raises(CreditExceedsOriginal):
        await store.ledger.write(originals.claim, other.book, waiting, note)


async def test_sales_of_another_taxpayer_are_not_credited(store: Store, till: Till) -> None:
    """Two machines of two taxpayers on one box: by reference, or by a number that both have used. A credit note of the one took the sale of the
    other, whose own was refused then."""
    other = await Till.of(store, OTHER)
    for each, ifu in ((till, IFU), (other, "00099999Z")):
        state = msgspec.structs.replace(each.state(), ifu=ifu)
        await store.ledger.reconcile(each.book, state, unexplained=0, at=each.at)
    sale, theirs = await till.sell(10_000), await other.sell(500)
    assert sale.number == theirs.number
    assert store.ledger.peek(attempts.sales_of_number, till.book, sale.number) == [sale]
    assert store.ledger.peek(attempts.sales_of_number, other.book, sale.number) == [theirs]
    with pytest.raises(InvalidRequest, match="another taxpayer"):
        await other.begin(credit("C-1", reference_to(sale), 10_000))
    await till.certify(credit("C-2", reference_to(sale), 10_000))
    assert [note.number for note in await store.journal.read(credits_on, sale.id)] == ["C-2"]


async def test_sales_of_a_taxpayer_that_the_machine_had_before(store: Store, till: Till) -> None:
    """Its IFU may have been wrong: they are credited up to their totals, by reference, and by a number that was not used since."""
    for each in (10_000, 300):
        await till.sell(each)
    await store.ledger.reconcile(till.book, till.state(), unexplained=0, at=till.at)
    before, till.book = till.book, await store.decisions.write(book_of_taxpayer, till.book, "EL02000015-2", "00099999Z")
    state = msgspec.structs.replace(till.state(), ifu="00099999Z")
    await store.ledger.reconcile(till.book, state, unexplained=0, at=till.at)
    till.sold, till.counters = 0, FiscalCounters(0, 0, 0)
    sale = await till.sell(500)
    numbers = {number: store.ledger.peek(attempts.sales_of_number, till.book, number) for number in ("S-1", "S-2")}
    assert numbers["S-1"] == [sale]
    assert [found.total_ttc for found in numbers["S-2"]] == [300]
    assert [found.total_ttc for found in store.ledger.peek(attempts.sales_of_number, before, "S-1")] == [10_000]
    await till.certify(credit("C-1", f"{NIM}-1", 10_000))
    with pytest.raises(CreditExceedsOriginal):
        await till.begin(credit("C-2", f"{NIM}-1", 1))


async def test_a_sandbox_and_the_live_machine_know_nothing_of_each_other(store: Store, till: Till) -> None:
    """The same NIM, two modes: a credit note is booked in its own."""
    sandbox = await Till.of(store, NIM, "test")
    await till.sell(10_000)
    await sandbox.sell(500)
    await sandbox.certify(credit("C-1", f"{NIM}-1", 500))
    await till.certify(credit("C-1", f"{NIM}-1", 10_000))


async def test_the_machine_s_total_has_to_fit_too(store: Store, till: Till) -> None:
    """In HT mode it may be a franc more than ours (decision 24): nothing is certified then. A sale of elsewhere has no limit here."""
    sale = await till.sell(10_000)
    note = credit("C-1", reference_to(sale), 10_000)
    attempt_id = await till.begin(note)
    with pytest.raises(CreditExceedsOriginal) as refused:
        await store.ledger.write(attempts.amend, till.book, attempt_id, credit("C-1", reference_to(sale), 10_001))
    assert (refused.value.original_ttc, refused.value.credited_ttc) == (10_000, 10_001)
    await store.ledger.write(attempts.amend, till.book, attempt_id, credit("C-1", reference_to(sale), 9_999))
    assert store.ledger.peek(originals.rates_withheld, till.book, credit("C-3", "RRR", 10_000)) == {}
    attempt_id = await till.begin(credit("C-2", f"{OTHER}-7", 10_000))
    await store.ledger.write(attempts.amend, till.book, attempt_id, credit("C-2", f"{OTHER}-7", 10_001))


async def test_what_an_older_mcfd_booked_on_nothing_counts(path: Path) -> None:
    """0.1.0 did not see that `-01-1`, and a note by the box's other machine, are of a sale: after the upgrade they are."""
    async with opened(path) as store:
        till, other = await Till.of(store), await Till.of(store, OTHER)
        sale = await till.sell(10_000)
        for at, (by, reference) in enumerate(((till, "EL02000015-01-1"), (other, f"{NIM}-1"), (till, f"{NIM}-1"))):
            await by.certify(invoice(f"C-{at}", type_="FA", amounts=(("B", 3_000),), reference=reference))
        await till.certify(invoice("C-9", type_="FA", amounts=(("B", 3_000),), reference="RRR"))
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE certification SET original_id = NULL")
    async with opened_till(path) as (store, till):
        with pytest.raises(CreditExceedsOriginal) as refused:
            await till.begin(credit("C-4", reference_to(sale), 2_000))
        assert refused.value.credited_ttc == 11_000
        await till.certify(credit("C-5", reference_to(sale), 1_000))
        assert len(await store.journal.read(credits_on, sale.id)) == 4
    assert not query(
        path, "SELECT id FROM certification WHERE type = 'FA' AND original_id IS NULL AND state = 'certified'"
    )
