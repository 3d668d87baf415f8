"""A search of the journal goes back piece by piece, and what it finds does not depend on the pieces."""

from pathlib import Path

import pytest
from msgspec.structs import replace
from support.ledgers.ledger import code_of, invoice, opened_till
from support.ledgers.worker import worker_of

from daemon.core.invoice.invoice import Customer
from daemon.core.report.journal import Page
from daemon.usecases.reports import journal
from daemon.usecases.reports.journal import search
from daemon.usecases.worker.machine_worker import MachineWorker

EVER = Page(0, 1 << 53, limit=2)
AMOUNT = 777


async def everything(worker: MachineWorker, query: Page, before: int, stretch: int) -> tuple[list[str], int]:
    """The numbers of all pages, and how many answers that took; no answer goes through more than its two stretches."""
    numbers: list[str] = []
    answers = 0
    while True:
        found = await search(worker, query)
        seqs = [record.seq for record, _ in found.records]
        assert before - (found.next or 1) <= 2 * stretch
        assert len([seq for seq in seqs if seq >= found.next + stretch]) < query.limit or not query.text
        assert seqs[-1:] != [1] or not found.next or query.text
        before = found.next
        numbers += [record.number for record, _ in found.records]
        answers += 1
        if not query.text:
            assert len(found.records) <= query.limit
            assert found.complete is (len(found.records) == query.limit or not found.next)
        else:
            assert found.complete is (not found.next)
        if not found.next:
            return numbers, answers
        query = replace(query, before_seq=found.next)


@pytest.mark.parametrize("entries", [24, 25, 30])
@pytest.mark.parametrize("stretch", [1, 3, 7, 1000])
async def test_amounts_and_customers_are_found_in_any_pieces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stretch: int, entries: int
) -> None:
    """Every entry of that amount, customer and both, newest first, each once; no answer goes through more than its share."""
    for name, most in {"STRETCH": stretch, "SEARCH_SLICE": stretch, "SIFTED": 2, "BUDGET": 2 * stretch}.items():
        monkeypatch.setattr(journal, name, most)
    async with opened_till(tmp_path / "ledger.sqlite3") as (_, till):
        wanted = []
        for at in range(entries):
            sale = invoice(f"N-{at:02d}", amounts=(("B", AMOUNT if at % 5 == 0 else 1000 + at),))
            name = "Wend Panga" if at % 5 == 0 else "Sahel"
            sale = replace(sale, customer=replace(sale.customer, name=name))
            await till.certify(sale)
            wanted += [sale.number] if at % 5 == 0 else []
        worker = worker_of(till)
        by_amount, answers = await everything(worker, replace(EVER, amount=AMOUNT), entries + 1, stretch)
        by_customer, _ = await everything(worker, replace(EVER, text="wend"), entries + 1, stretch)
        each = replace(EVER, limit=1, type="FV")
        every_one, _ = await everything(worker, each, entries + 1, stretch)
        by_both, _ = await everything(worker, replace(EVER, text="wend", amount=AMOUNT), entries + 1, stretch)
        refused = replace(EVER, state="refused")
        nothing = (replace(EVER, amount=0), replace(EVER, amount=1), refused)
        none = [await everything(worker, entry, entries + 1, stretch) for entry in nothing]
    assert by_amount == wanted[::-1]
    assert sorted(by_customer) == sorted(wanted)
    assert by_customer == sorted(by_customer, reverse=True)
    assert by_both == by_customer
    assert [numbers for numbers, _ in none] == [[], [], []]
    assert every_one == [f"N-{at:02d}" for at in reversed(range(entries))]
    assert answers >= max(len(wanted) // EVER.limit, entries // (2 * stretch))


async def test_a_code_and_a_number_are_found_at_once(tmp_path: Path) -> None:
    """However it is written, whole or in part, and only within the range; what has not ended by its customer too."""
    async with opened_till(tmp_path / "ledger.sqlite3") as (_, till):
        records = [await till.certify(invoice(number)) for number in ("A-1", "A-12", "B-1")]
        worker = worker_of(till)
        code = code_of("A-12")
        dashed = "-".join(code[at : at + 4] for at in range(0, 24, 4)).lower()
        for text, numbers in (
            (code, ["A-12"]),
            (dashed, ["A-12"]),
            (f" {dashed} ", ["A-12"]),
            (code[:-1], []),
            ("A-1", ["A-1"]),
            ("A-", ["A-12", "A-1"]),
            ("-1", ["B-1", "A-12"]),
            ("", ["B-1", "A-12"]),
        ):
            found = await search(worker, replace(EVER, text=text))
            assert [record.number for record, _ in found.records] == numbers, text
            assert (found.complete, bool(found.next)) == (True, text in ("-1", "")), text
        begun = replace(invoice("C-1"), customer=Customer(name="Wend Panga"))
        await till.begin(begun)
        found = await search(worker, Page(0, 1 << 53, state="begun", text="wend"))
        assert [record.number for record, _ in found.records] == ["C-1"]
        at = records[1].ended_at
        for start, end, count in ((at, at + 1, 1), (at + 1, 1 << 53, 0), (0, at, 0)):
            found = await search(worker, Page(start, end, limit=2, text=code))
            assert len(found.records) == count
