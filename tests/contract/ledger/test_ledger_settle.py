"""What an operator decides is entered with its reason, and work goes on from it."""

import json
from functools import partial
from pathlib import Path

import pytest
from support.ledgers.ledger import IFU, Till, code_of, invoice, settlements

from common.language import Text
from common.language.reasons import from_stored
from daemon.core.audit import Actor
from daemon.core.errors import NotFound
from daemon.core.events import ATTENTION
from daemon.core.ledger.attempt import NOT_CERTIFIED, DuplicateInvoice, Outcome, Record
from daemon.core.ledger.decision import Decision
from daemon.core.ledger.paper import PaperInvoice
from daemon.core.ledger.verdict import foreign_count
from daemon.core.machine.state import Certified, FiscalCounters, MachineState
from daemon.store.decisions import DecisionNote
from daemon.store.maintenance.housekeeping import mark_restored
from daemon.store.maintenance.verify import verify
from daemon.store.store import Store
from daemon.store.tables.audit import newest_entries
from daemon.store.tables.book import attempts, uniqueness
from daemon.store.tables.book.attempts import unfinished
from daemon.store.tables.book.books import book_state, books_perhaps_to_decide, new_book
from daemon.store.tables.book.epochs import book_of_taxpayer
from daemon.store.tables.events import events_after
from daemon.usecases.delivery.events import data_of


async def disputed(till: Till, number: str = "F-1") -> int:
    attempt_id = await till.begin(invoice(number), key=number.rjust(16).encode(), body=b"body")
    await till.store.ledger.dispute(till.book, attempt_id, f"{number} is unknown", at=till.at)
    return attempt_id


async def abandon(till: Till, attempt_id: int, reason: str = "x") -> Record:
    decisions, note = till.store.decisions, DecisionNote(reason, till.at)
    return await decisions.write(decisions.abandon, till.book, attempt_id, note=note)


async def certify(till: Till, attempt_id: int, word: Certified, reason: str = "x") -> Record:
    decisions, note = till.store.decisions, DecisionNote(reason, till.at)
    return await decisions.write(decisions.certify, till.book, attempt_id, word, note=note)


async def adopt(till: Till, state: MachineState, unexplained: int = 0, reason: str = "x") -> Record | None:
    decisions, note = till.store.decisions, DecisionNote(reason, till.at)
    return await decisions.write(decisions.adopt, till.book, state, unexplained=unexplained, note=note)


async def test_settled_as_certified(store: Store, till: Till, path: Path) -> None:
    """The machine's evidence becomes the outcome: a record like any other, in the totals, found under its key."""
    attempt_id = await disputed(till)
    assert [record.id for record in await store.decisions.read(unfinished, till.book, "disputed")] == [attempt_id]
    word = Certified(code_of("F-1"), "20251206100000", IFU, FiscalCounters(1, 1, 0))
    record = await certify(till, attempt_id, word, "seen on the receipt")
    assert (record.state, record.seq, record.reason) == ("certified", 1, "seen on the receipt")
    assert (record.line_ms, record.duration_ms) == (0, 0)
    state = store.ledger.peek(book_state, till.book)
    assert (state.attention, state.counters, state.last_number) == ("", FiscalCounters(1, 1, 0), "F-1")
    use = store.ledger.peek(uniqueness.find_key, till.book, b"F-1".rjust(16))
    assert use.record == record
    assert (await store.ledger.aggregate(till.book)).running["FV.n"] == 1
    [settlement] = await store.decisions.read(settlements, till.book)
    assert (settlement.decision, settlement.attempt_id) == ("certified", attempt_id)
    assert (settlement.attention, settlement.reason) == ("F-1 is unknown", "seen on the receipt")
    assert [e.type for e in store.events.peek(events_after, till.book, 0, 100)] == [
        "cert.in_doubt",
        "mcf.attention",
        "cert.issued",
    ]
    assert verify(path).clean


async def test_the_event_of_a_doubt_says_ever_the_same(store: Store, till: Till) -> None:
    """Also once it is known what became of it: its id at a webhook is made of what it says, and it may be sent again."""
    attempt_id = await disputed(till)
    event, *_ = store.events.peek(events_after, till.book, 0, 100)
    before = await data_of(store.ledger, till.book, event)
    assert json.loads(before)["reason"] == "F-1 is unknown"
    await abandon(till, attempt_id, "seen on the receipt")
    assert await data_of(store.ledger, till.book, event) == before


async def test_what_else_the_machine_certified_is_not_forgotten_over_a_settlement(store: Store, till: Till) -> None:
    """Two strangers' invoices before ours: they are in no total, so the next Z says how many there were."""
    attempt_id = await disputed(till)
    till.counters = FiscalCounters(3, 3, 0)
    word = Certified(code_of("F-1"), "20251206100000", IFU, till.counters)
    await certify(till, attempt_id, word, "seen on the receipt")
    closure = await till.close()
    assert (closure.certs_count, closure.unexplained) == (1, 2)


async def test_settled_as_abandoned(store: Store, till: Till, path: Path) -> None:
    """The number and the key are free again."""
    attempt_id = await disputed(till)
    record = await abandon(till, attempt_id, "no receipt came out")
    assert (record.state, record.seq, record.reason) == ("abandoned", 1, "no receipt came out")
    assert (store.ledger.peek(book_state, till.book)).attention == ""
    assert store.ledger.peek(uniqueness.find_key, till.book, b"F-1".rjust(16)) is None
    assert (await till.certify(invoice("F-1"))).seq == 2
    with pytest.raises(NotFound):
        await certify(till, attempt_id, Certified("X", "20251206100000", IFU, till.counters), "late")
    assert len(await store.decisions.read(settlements, till.book)) == 1
    assert verify(path).clean


async def test_attention_stays_while_another_attempt_is_disputed(store: Store, till: Till) -> None:
    """Two unknown outcomes are two decisions."""
    first, second = await disputed(till, "F-1"), await disputed(till, "F-2")
    await abandon(till, second, "no")
    assert (store.ledger.peek(book_state, till.book)).attention == "F-1 is unknown"
    await abandon(till, first, "no")
    assert (store.ledger.peek(book_state, till.book)).attention == ""


async def test_a_ledger_behind_its_machine_adopts_the_last_invoice(store: Store, till: Till, path: Path) -> None:
    """After a backup was put back: the machine's last number is never given out again, its counters are the known ones, and
    an invoice with unknown lines is in no total but in `unexplained` of the next Z."""
    await till.sell()
    await store.ledger.set_attention(till.book, "the ledger is behind", at=till.at)
    till.counters = FiscalCounters(5, 4, 0)
    lost = invoice("F-77", amounts=(("B", 900),))
    record = await adopt(till, till.state(lost), 3, "restored backup")
    assert (record.state, record.number, record.total_ttc, record.code) == ("certified", "F-77", 900, code_of("F-77"))
    assert (record.invoice.items, record.reason) == ((), "restored backup")
    with pytest.raises(DuplicateInvoice):
        await till.begin(invoice("F-77"))
    state = store.ledger.peek(book_state, till.book)
    assert (state.attention, state.counters, state.last_number, state.unexplained) == (
        "",
        FiscalCounters(5, 4, 0),
        "F-77",
        3,
    )
    closure = await till.close()
    assert (closure.certs_count, closure.total_ttc, closure.unexplained) == (1, 15000, 3)
    [settlement] = await store.decisions.read(settlements, till.book)
    assert (settlement.decision, settlement.attempt_id) == ("adopted", record.id)
    assert verify(path).clean


async def test_adopting_what_is_known_enters_nothing_twice(store: Store, till: Till, path: Path) -> None:
    """A machine whose last invoice is in the ledger, or that has none, gives its counters and no record."""
    await till.sell()
    last = invoice("S-1")
    till.counters = FiscalCounters(9, 1, 0)
    assert await adopt(till, till.state(last), 0, "reports") is None
    assert await adopt(till, till.state(), 0, "none") is None
    state = store.ledger.peek(book_state, till.book)
    assert (state.counters, state.last_seq) == (FiscalCounters(9, 1, 0), 1)
    assert verify(path).clean


async def test_a_book_is_to_decide_once_it_is_in_attention(store: Store, till: Till) -> None:
    """Of several books only this one is read; in a ledger in good order none is."""
    await store.ledger.write(new_book, "EL02000077-1", "live")
    assert store.ledger.peek(books_perhaps_to_decide) == await store.decisions.open_cases() == []
    await store.ledger.set_attention(till.book, Text("a"), at=till.at)
    (case,) = await store.decisions.open_cases()
    assert store.ledger.peek(books_perhaps_to_decide) == [case.state.book] == [till.book]


async def test_whatever_sets_attention_is_an_event(store: Store, till: Till) -> None:
    """By what a machine says, by what another machine says of it, and in the commit of a certification."""
    ledger = store.ledger
    await ledger.set_attention(till.book, Text("a"), at=till.at)
    await ledger.attend_machine(till.book.nim, Text("b"), at=till.at)
    await ledger.attend_machine("EL02000099-1", Text("no book of this ledger"), at=till.at)
    sale = invoice("F-1")
    outcome = Outcome(till.word(sale), sale, sale.total_ttc, till.at)
    await ledger.write(ledger.certify_settled, till.book, await till.begin(sale), outcome, Text("c"))
    assert ledger.peek(book_state, till.book).attention == "c"
    events = [event.detail for event in ledger.peek(events_after, till.book, 0, 100) if event.type == ATTENTION]
    assert events == ["a", "b", "c"]


async def test_what_a_person_entered_meanwhile_is_no_foreign_invoice(store: Store, till: Till) -> None:
    """The outcome was found by the counters from before the decision: it counted that invoice as another program's."""
    ledger = store.ledger
    await till.sell()
    before = ledger.peek(book_state, till.book).counters
    later = await till.begin(invoice("later"))
    await till.sell()  # as if entered from paper
    word = till.word(invoice("later"))
    others = foreign_count(invoice("later"), before, word.counters)
    outcome = Outcome(word, invoice("later"), invoice("later").total_ttc, till.at, unexplained=others)
    await ledger.write(ledger.certify_settled, till.book, later, outcome, Text(""))
    assert (others, ledger.peek(book_state, till.book).unexplained) == (1, 0)


async def carried_out(till: Till, decision: Decision) -> tuple[str, str, str, dict[str, str]]:
    """As an operator decides, with what the ledger knows; the newest entry of the audit log."""
    case = await till.store.decisions.case(till.book)
    by = Actor("user:awa")
    await till.store.decisions.carry_out(case, decision, reason="on paper", at=till.at, by=by)
    assert (till.store.ledger.peek(book_state, till.book)).attention == ""
    (entry,) = await till.store.ledger.read(newest_entries, 1)
    return entry.action, entry.subject, entry.actor, dict(entry.detail)


@pytest.mark.parametrize(("decision", "state"), [("certified", "certified"), ("not-certified", "abandoned")])
async def test_a_decision_on_an_attempt_is_carried_out(
    store: Store, till: Till, decision: Decision, state: str
) -> None:
    """As the machine's evidence allows it, and in the audit log."""
    attempt_id = await disputed(till)
    last = invoice("F-1") if decision == "certified" else invoice("F-0")
    till.word(last)
    await store.ledger.store_evidence(till.book, till.state(last), at=till.at)
    case = await store.decisions.case(till.book)
    assert (case.attempt and case.attempt.id, case.evidence and case.evidence.at) == (attempt_id, till.at)
    result = await carried_out(till, decision)
    assert result == (
        *("attempt.settled", f"{till.book.nim} live", "user:awa"),
        {"decision": decision, "reason": "on paper", "number": "F-1"},
    )
    assert (store.ledger.peek(attempts.find_record, till.book, attempt_id)).state == state


async def test_the_machine_tells_more_of_its_last_invoice_than_its_paper(store: Store, till: Till, path: Path) -> None:
    """What was misread on paper, and confirmed, is not entered while the machine still tells that invoice; a stranger's before it is unexplained."""
    await disputed(till)
    last = invoice("F-1")
    till.word(invoice("a stranger's"))
    word = till.word(last)
    await store.ledger.store_evidence(till.book, till.state(last), at=till.at)
    case = await store.decisions.case(till.book)
    paper = PaperInvoice(word.code, word.time, (8, 9), as_printed=True)
    await store.decisions.carry_out(case, "certified", reason="on paper", at=till.at, paper=paper)
    state = store.ledger.peek(book_state, till.book)
    assert (state.counters, state.unexplained) == (word.counters, 1)
    assert verify(path).clean


async def test_a_decision_that_the_evidence_does_not_carry_is_not_entered(store: Store, till: Till) -> None:
    """ValueError, and everything is as it was."""
    attempt_id = await disputed(till)
    case = await store.decisions.case(till.book)
    for decision in ("certified", "adopt"):
        with pytest.raises(ValueError, match=r"machine unknown|does not fit"):
            await store.decisions.carry_out(case, decision, reason="x", at=till.at)
    assert (store.ledger.peek(attempts.find_record, till.book, attempt_id)).state == "disputed"
    assert await store.ledger.read(newest_entries, 100) == []


async def test_attention_to_a_former_taxpayer_s_book_is_ended_by_a_person(store: Store, till: Till, path: Path) -> None:
    """A copy was put back, and its machine has another taxpayer since: nothing is in doubt by name, and no machine will ever tell."""
    await store.ledger.reconcile(till.book, till.state(), unexplained=0, at=till.at)
    await store.ledger.set_attention(till.book, Text("foreign invoices"), at=till.at)
    await store.ledger.store_evidence(till.book, till.state(), at=till.at)
    await store.decisions.write(mark_restored, till.at)
    assert (await store.decisions.case(till.book)).obstacle("adopt") == "machine unknown"
    await store.decisions.write(book_of_taxpayer, till.book, till.book.nim, "00099999Z")
    case = await store.decisions.case(till.book)
    await store.decisions.carry_out(case, "adopt", reason="its paper was looked at", at=till.at)
    assert store.ledger.peek(book_state, till.book).attention == ""
    (settled,) = store.ledger.peek(settlements, till.book)
    assert (settled.decision, settled.attempt_id, settled.reason) == ("adopted", 0, "its paper was looked at")
    (entry,) = await store.ledger.read(newest_entries, 1)
    assert (entry.action, entry.detail) == ("attempt.settled", {"decision": "adopt", "reason": settled.reason})
    assert verify(path).clean


async def test_a_machine_that_began_again_is_adopted_with_a_new_epoch(store: Store, till: Till, path: Path) -> None:
    """Its counters are below those known: what it counts now is all that is unexplained, whatever was told of before."""
    for _ in range(3):
        await till.sell()
    till.counters = FiscalCounters(2, 1, 1)
    lost = invoice("F-77")
    await adopt(till, till.state(lost), 9, "another board")
    state = store.ledger.peek(book_state, till.book)
    assert (state.epoch, state.counters, state.unexplained, state.last_number) == (
        2,
        FiscalCounters(2, 1, 1),
        2,
        "F-77",
    )
    assert verify(path).clean


async def test_a_number_under_way_is_not_entered_beside_its_attempt(store: Store, till: Till) -> None:
    """It has one holder: in a ledger that was put back the machine's last invoice is that attempt's outcome; in any other its process, or `recover`, goes
    on with it."""
    await till.sell()
    attempt_id = await till.begin(invoice("F-1"))
    till.word(invoice("F-1"))
    state = till.state(invoice("F-1"))
    assert await adopt(till, state, 0) is None
    assert [record.id for record in store.ledger.peek(attempts.unfinished, till.book)] == [attempt_id]


@pytest.mark.parametrize(
    ("last", "outcome"), [("F-1", ("certified", code_of("F-1"), "x")), ("S-1", ("abandoned", "", NOT_CERTIFIED))]
)
async def test_what_is_begun_in_a_ledger_that_was_put_back_is_settled_by_adopt(
    store: Store, till: Till, last: str, outcome: tuple[str, str, str]
) -> None:
    """It is of another time: the machine's last invoice is its outcome, and counted once; or else the machine has certified nothing since."""
    await till.sell()
    attempt_id = await till.begin(invoice("F-1"))
    if last == "F-1":
        till.word(invoice("F-1"))
    state = till.state(invoice(last))
    await store._open.writer._connection.run(partial(mark_restored, at=1))
    assert await adopt(till, state, 1 if last == "F-1" else 0) is None
    record = store.ledger.peek(attempts.find_record, till.book, attempt_id)
    assert (record.state, record.code, str(from_stored(record.reason))) == outcome
    assert (store.ledger.peek(book_state, till.book)).unexplained == 0
    assert store.ledger.peek(attempts.unfinished, till.book) == []


async def test_adopt_leaves_a_till_s_attempt_to_the_process_that_has_it(store: Store, till: Till) -> None:
    """Its intent is durable and it waits for its turn: ended by the decision, it would be certified all the same, and a second time at the till's retry."""
    await till.sell()
    doubtful, waiting = await till.begin(invoice("F-1")), await till.begin(invoice("F-2"))
    till.word(invoice("F-1"))
    state = till.state(invoice("F-1"))
    await store._open.writer._connection.run(partial(mark_restored, at=1))
    store.ledger.leave_to(till.book, lambda record: record.id == waiting)
    await adopt(till, state, 1)
    assert store.ledger.peek(attempts.find_record, till.book, doubtful).state == "certified"
    assert [record.id for record in store.ledger.peek(attempts.unfinished, till.book)] == [waiting]


@pytest.mark.parametrize(("expected", "taken"), [("FV", "FV"), ("EA", "EA"), ("AVOIR", "FV")])
async def test_a_machine_s_invoice_has_the_type_that_it_tells(
    store: Store, till: Till, path: Path, expected: str, taken: str
) -> None:
    """Some tell it in words of their own: these are kept in the record, whose invoice is a sale; `verify` can read it."""
    till.word(invoice("F-77"))
    state = till.state(invoice("F-77", type_=expected))
    record = await adopt(till, state, 0)
    assert (record.type, record.invoice.type) == (expected, taken)
    assert store.ledger.peek(attempts.find_number, till.book, "F-77") == record
    assert verify(path).clean
