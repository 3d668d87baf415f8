"""What goes into a row comes out of it, small, and what did not come from us is called damage."""

import contextlib
import hashlib
import zlib

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.ledgers.ledger import invoice

from common.language import translate
from daemon.core.errors import LedgerUnusable
from daemon.core.invoice.invoice import Comment, Customer, Deferral, Invoice, Item, Payment, Psvb, TaxLine, Warn
from daemon.core.ledger.book import LastSeen
from daemon.core.ledger.entries import (
    Entry,
    OutageBegun,
    ReportAct,
    SaleDeferred,
    entry_bytes,
    read_entry,
    unreadable,
)
from daemon.core.machine.state import FiscalCounters, LastInvoice
from daemon.core.report.report_parts import digest_of
from daemon.store.tables.book import codec

texts = st.text(max_size=40)
numbers = st.integers(0, 2**53)
invoices = st.builds(
    Invoice,
    number=texts,
    type=st.sampled_from(["FV", "FA"]),
    price_mode=st.sampled_from(["TTC", "HT"]),
    operator_id=texts,
    operator_name=texts,
    isf=texts,
    customer=st.builds(Customer, client_type=st.sampled_from(["CC", "PM"]), ifu=texts, name=texts, email=texts),
    items=st.lists(
        st.builds(
            Item,
            name=texts,
            group=st.sampled_from("ABCP"),
            rate=numbers,
            price=numbers,
            quantity=numbers,
            amount_ttc=numbers,
            line_amount=numbers,
            item_type=st.sampled_from(["LOCBIE", "IMPSER"]),
            specific_tax=numbers,
        ),
        max_size=5,
    ).map(tuple),
    payments=st.lists(st.builds(Payment, method=st.sampled_from("EVC"), amount=numbers), max_size=3).map(tuple),
    taxes=st.lists(st.builds(TaxLine, group=texts, rate=numbers, ht=numbers, tva=numbers, ttc=numbers), max_size=3).map(
        tuple
    ),
    total_ttc=numbers,
    comments=st.lists(st.builds(Comment, label=texts, text=texts), max_size=2).map(tuple),
    nature=texts,
    reference=texts,
    psvb=st.none() | st.builds(Psvb, group=texts, base=numbers, rate=numbers, amount=numbers),
    warnings=st.lists(st.builds(Warn, code=texts, message=texts, item=st.integers(-1, 9)), max_size=2).map(tuple),
)


@given(invoices)
def test_an_invoice_survives_its_row(sale: Invoice) -> None:
    """Every field of any invoice is what it was."""
    content = codec.invoice_bytes(sale)
    assert codec.unpack(codec.pack(content)) == content
    assert codec.read_invoice(content) == sale


def test_an_early_invoice_reads_with_later_fields_missing() -> None:
    """A row of an older version ends earlier: what it does not have takes its default."""
    content = codec.invoice_bytes(invoice())
    assert content[0:3] == b"\xdc" + len(Invoice.__struct_fields__).to_bytes(2, "big")
    eleven = b"\xdc\x00\x0b" + content[3 : content.rindex(b"\x90\xa0\xa0\xc0\x90")]
    assert codec.read_invoice(eleven) == invoice()
    later = [getattr(codec.read_invoice(eleven), name) for name in Invoice.__struct_fields__[11:]]
    assert later == [(), "", "", None, (), 0, (), b"", 0, None, None]


def test_the_form_of_an_invoice_on_disk_never_changes() -> None:
    """Rows are kept for ten years: structs are arrays, and what a row of then does not have was nothing."""
    line = ["Riz", "B", 1800, 100, 1000, 100, 100]
    before = ["F-1", "FV", "TTC", "7", "Caisse 7", "1", [], [line], [["E", 100]], [["B", 1800, 85, 15, 100]], 100]
    added = [[["A", "x"]], "", "", ["A", 100, 200, 2], [["CODE", "x"]], 0, [["B", 1, 2, 0]], b"", 0, [5, "line_lost"]]
    sale = codec.read_invoice(msgspec.msgpack.encode([*before, *added]))
    assert sale == Invoice(
        *before[:6],
        Customer("CC", "", "", "", "", "", ""),
        (Item(*line, "LOCBIE", "", 0, 0, "", "", 0, 0, 0, 0, "", "", 0),),
        (Payment("E", 100),),
        (TaxLine("B", 1800, 85, 15, 100, 0),),
        100,
        (Comment("A", "x"),),
        psvb=Psvb("A", 100, 200, 2),
        warnings=(Warn("CODE", "x", -1, ""),),
        stamp_duty=0,
        more_psvb=(Psvb("B", 1, 2, 0),),
        edition=0,
        deferred=Deferral(5, "line_lost", 0, ""),
    )
    written = msgspec.msgpack.decode(codec.invoice_bytes(sale))
    assert (written[6], written[7][0][:7], written[9]) == (["CC", *[""] * 6], line, [[*before[9][0], 0]])
    assert written[11:] == [*added[:4], [["CODE", "x", -1, ""]], *added[5:9], [5, "line_lost", 0, ""], None]
    assert digest_of(b"a letterhead").hex() == "c54a341f72a71641"
    last = LastSeen(LastInvoice("F-1", "C", "20260731093000", "FV", 100))
    assert msgspec.json.encode(last) == b'{"last":["F-1","C","20260731093000","FV",100]}'


EARLY: dict[Entry, dict[str, object]] = {
    ReportAct("X", "{}", 0, 0): {"type": "report", "kind": "X", "body": "{}"},
    SaleDeferred("F-1", "FV", 590, 5, "line_lost", 0, ""): {"type": "deferred", "number": "F-1", "kind": "FV"}
    | {"total_ttc": 590, "sold_at": 5, "reason": "line_lost"},
    OutageBegun(1, "EL02000015-1", "disk", 7, refused=False, incident=""): {"type": "outage", "number": 1}
    | {"nim": "EL02000015-1", "reason": "disk", "lasted": 7},
}


@pytest.mark.parametrize("entry", EARLY)
def test_an_early_entry_reads_with_later_fields_missing(entry: Entry) -> None:
    """In the chain it stays for ten years as it was written; what it does not have was nothing."""
    assert read_entry(msgspec.json.encode(EARLY[entry])) == read_entry(entry_bytes(entry)) == entry


def test_a_record_that_cannot_be_read_has_no_figures() -> None:
    """It stands in the journal by its place, its number and its reason; nothing of it is in a sum."""
    lost = unreadable(7, 3, "F-1", "EL02000015-1")
    assert (lost.id, lost.seq, lost.number, lost.nim, lost.state) == (7, 3, "F-1", "EL02000015-1", "damaged")
    assert (lost.begun_at, lost.ended_at, lost.total_ttc, lost.invoice.total_ttc, lost.chained_at) == (0, 0, 0, 0, 0)
    assert (lost.base, lost.counters, lost.line_ms, lost.duration_ms) == (FiscalCounters(0, 0, 0), None, 0, 0)
    assert ("damaged" in lost.reason, unreadable(7, 3, "", "", "why").reason) == (True, "why")


def test_a_receipt_is_small() -> None:
    """Ten ordinary lines take about 250 bytes; the row with all its indexes has a kilobyte."""
    names = [
        "Riz 25kg",
        "Huile 1L",
        "Sucre 1kg",
        "Savon",
        "Lait 400g",
        "Farine 5kg",
        "Eau minérale",
        "Pain",
        "Thé",
        "Sel",
    ]
    items = tuple(
        Item(name, "B", 1800, 100 * (137 + 731 * at), 1000 * (1 + at % 3), (137 + 731 * at) * (1 + at % 3), 1)
        for at, name in enumerate(names)
    )
    sale = Invoice(
        "F2026-000123", "FV", "TTC", "1", "Caisse 1", "1", Customer(), items, (Payment("E", 61733),), (), 61733
    )
    assert len(codec.pack(codec.invoice_bytes(sale))) < 300


def test_a_dictionary_never_changes() -> None:
    """Rows are kept for ten years: a change of the words is a new dictionary with a new number."""
    digests = {number: hashlib.sha256(words).hexdigest()[:16] for number, words in codec._DICTIONARIES.items()}
    assert digests == {1: "689371f553dda9d5", 2: "095a8f13423de2cb"}


@pytest.mark.parametrize("payload", [b"", b"\x00abc", b"\x63abc", b"\x01", b"\x01\xff\xff\xff", b"\x01\x00"])
def test_rubbish_is_damage(payload: bytes) -> None:
    """A payload that cannot be unpacked is LedgerUnusable, with what to do in its text."""
    with pytest.raises(LedgerUnusable, match="mcfd restore"):
        codec.unpack(payload)


@given(st.binary(max_size=60), st.dictionaries(st.text(max_size=12), st.integers(-(2**53), 2**53)))
def test_any_bytes_give_an_invoice_or_damage(rubbish: bytes, tally: dict[str, int]) -> None:
    """Whatever stands in a row, reading it does not end in an error of a library. Totals survive their row."""
    with contextlib.suppress(LedgerUnusable):
        codec.read_invoice(codec.unpack(b"\x01" + rubbish))
    assert codec.read_tally(codec.tally_bytes(tally)) == tally


def test_the_numbers_of_a_tallys_keys_never_change() -> None:
    """Nor for the totals: a new key gets a number at the end. Every key that the core counts by has one. A machine that names its rates in another order has not changed them."""
    names = "\n".join(codec._NAMES.values()).encode()
    assert hashlib.sha256(names).hexdigest()[:16] == "46be98e8d70275b2"
    expected = {"FV.n", "EA.P.ttc", "pay.A", "specific", "incomplete", "psvb.D.amount"}
    assert codec._NUMBERS.keys() >= expected
    day = {"FV.n": 1, "FV.ttc": 15000, "FV.B.ht": 12712, "FV.B.tva": 2288, "FV.B.ttc": 15000}
    assert len(codec.tally_bytes(day)) <= 20
    assert codec.rates_text({"B": 1800, "A": 0}) == codec.rates_text({"A": 0, "B": 1800}) == '{"A":0,"B":1800}'


def test_what_an_older_program_wrote_is_read() -> None:
    """Keys by name and the first dictionary, as rows had them before."""
    tally = {"FV.n": 1, "FV.B.ttc": 15000, "pay.E": 15000}
    assert codec.read_tally(msgspec.msgpack.encode(tally)) == tally
    deflater = zlib.compressobj(6, zlib.DEFLATED, -12, 5, zlib.Z_DEFAULT_STRATEGY, codec._DICTIONARIES[1])
    content = codec.invoice_bytes(invoice("F-1"))
    assert codec.unpack(b"\x01" + deflater.compress(content) + deflater.flush()) == content


@pytest.mark.parametrize(
    ("read", "content"),
    [
        (codec.read_tally, b"\x00"),
        (codec.read_tally, b"\xc1"),
        (codec.read_tally, b"\x81\xcd\x27\x10\x01"),  # the number 10 000 has no name
        (codec.read_tally, b"\x81\xff\x01"),
        (codec.read_rates, "x"),
    ],
)
def test_damaged_totals_and_rates_are_told_with_a_way_out(read, content) -> None:
    """No traceback for an operator: LedgerUnusable, which says what to do, in the reader's language."""
    with pytest.raises(LedgerUnusable, match="mcfd restore --keep-newer") as refusal:
        read(content)
    assert "remettez la dernière sauvegarde" in str(translate(refusal.value, "fr"))


@pytest.mark.parametrize("unknown", [(), (0,), (1,), (2,), (0, 1, 2)])
def test_counters_are_known_together_or_not_at_all(unknown: tuple[int, ...]) -> None:
    """One that is missing makes three that were never read."""
    rows = [None if at in unknown else at for at in range(3)]
    assert codec.counters_of(*rows) == (None if unknown else FiscalCounters(0, 1, 2))
