"""The counters of a certification as the law wants them on paper: CPIT/FDOC ITL (SECeF 2.10.4, decision 35)."""

import asyncio
import contextlib
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from unittest import mock

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.ledgers.ledger import Till, invoice, opened_till

from daemon.core.ledger.attempt import NOT_STATED, Outcome, Record
from daemon.core.machine.state import Certified, FiscalCounters
from daemon.core.report.receipt import counters_text, receipt
from daemon.store.maintenance.verify import verify
from daemon.store.store import Store
from daemon.store.tables.journal import find_code

TYPES = ("FV", "FT", "EV", "ET", "FA", "EA")
CLASSES = {
    "FVC and FRC": (),
    "each type": TYPES,
    "the law's families": ("FV FT", "EV ET", "FA", "EA"),
}


@dataclass
class Counting:
    """A machine's way to count; `is_local`: FVC leaves exports out."""

    classes: tuple[str, ...]
    is_local: bool
    sold: Counter[str] = field(default_factory=Counter)

    def certify(self, type_: str) -> tuple[FiscalCounters, int]:
        self.sold[type_] += 1
        sales = ("FV", "FT") if self.is_local else ("FV", "FT", "EV", "ET")
        now = FiscalCounters(
            self.sold.total(), sum(map(self.sold.__getitem__, sales)), self.sold["FA"] + self.sold["EA"]
        )
        own = [each.split() for each in self.classes if type_ in each.split()]
        if not own:
            return now, now.frc if type_ in ("FA", "EA") else now.fvc
        return now, sum(map(self.sold.__getitem__, own[0]))


async def certified(till: Till, type_: str, counters: FiscalCounters, fc: int | None) -> Record:
    till.sold += 1
    till.at += 1000
    sale = invoice(f"N-{till.sold}", type_=type_, reference="RRR" if type_ in ("FA", "EA") else "")
    attempt_id = await till.begin(sale)
    word = Certified(f"CODE-{till.sold}", "20251206100000", "00084440Y", counters, fc=fc)
    return await till.store.ledger.write(
        till.store.ledger.certify, till.book, attempt_id, Outcome(word, sale, sale.total_ttc, till.at)
    )


@settings(max_examples=settings.default.max_examples * 4 // 5)
@given(
    st.sampled_from([*CLASSES]),
    st.booleans(),
    st.lists(st.tuples(st.sampled_from(TYPES), st.sampled_from(["told", "told", "lost", "stranger"])), max_size=25),
    st.integers(0, 25),
)
def test_what_stands_on_paper_is_the_machine_s_counter_or_a_question_mark(
    classes: str, is_local: bool, history: list[tuple[str, str]], older: int
) -> None:
    """However a machine counts: a counter that it told is that one, one that it did not tell is the right one or none; for exports always none.
    The first `older` are of 0.1.0, which kept none."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "ledger.sqlite3"
        asyncio.run(_is_right(path, Counting(CLASSES[classes], is_local), history, older))
        assert verify(path).clean


async def _is_right(path: Path, machine: Counting, history: list[tuple[str, str]], older: int) -> None:
    right: dict[str, tuple[int, bool]] = {}
    async with opened_till(path) as (_, till):
        for at, (type_, how) in enumerate(history):
            counters, fc = machine.certify(type_)
            if how != "stranger":
                with by_an_older_mcfd() if at < older else contextlib.nullcontext():
                    record = await certified(till, type_, counters, fc if how == "told" else None)
                right[record.code] = fc, how == "told" and at >= older
    async with opened_till(path) as (store, till):
        for code, (fc, is_reported) in right.items():
            stored = await store.journal.read(find_code, till.book, code)
            assert stored
            found = (await store.journal.with_counter(till.book, stored)).fc
            assert found in ({fc} if is_reported else {fc, NOT_STATED})
            if stored.type not in ("FV", "FT", "FA") and not is_reported:
                assert found == NOT_STATED == -1  # in rows for ever


@pytest.mark.parametrize("classes", CLASSES.values())
async def test_a_shop_of_local_sales_knows_its_counters_without_being_told(
    store: Store, till: Till, classes: tuple[str, ...]
) -> None:
    """Nothing else was counted, so FC is FVC, and FRC for its credit notes, whatever the machine's habit."""
    machine = Counting(classes, is_local=False)
    texts = [
        counters_text(await certified(till, type_, machine.certify(type_)[0], None)) for type_ in ("FV", "FA", "FV")
    ]
    assert texts == ["1/1 FV", "1/2 FA", "2/3 FV"]


async def test_a_receipt_says_them_for_ever(store: Store, till: Till) -> None:
    """What was not certain at the certification stays a question mark, also when it would be later; what 0.1.0 answered has none, and its paper says
    what is certain now."""
    with by_an_older_mcfd():
        older = await certified(till, "FV", FiscalCounters(408, 290, 7), 290)
    lost = await certified(till, "FV", FiscalCounters(410, 292, 7), None)
    export = await certified(till, "EV", FiscalCounters(411, 293, 7), None)
    assert counters_text(await store.journal.with_counter(till.book, older)) == "?/408 FV"
    result = await certified(till, "FV", FiscalCounters(412, 294, 7), 294)
    zero = await certified(till, "ET", FiscalCounters(413, 294, 7), 0)
    counters = [receipt(each).counters for each in (older, lost, export, result, zero)]
    assert counters == [msgspec.UNSET, "?/410 FV", "?/411 EV", "294/412 FV", "0/413 ET"]
    for record in (older, lost, export, result, zero):
        assert await store.journal.read(find_code, till.book, record.code) == record
    assert counters_text(await store.journal.with_counter(till.book, older)) == "290/408 FV"
    assert await store.journal.with_counter(till.book, lost) == lost


def by_an_older_mcfd() -> contextlib.AbstractContextManager[object]:
    """0.1.0 did not keep the counter of the type."""
    return mock.patch("daemon.store.tables.book.attempts._counter", return_value=None)
