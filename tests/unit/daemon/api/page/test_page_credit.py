"""A credit note on the whole of an invoice, made in the page, leaves nothing of it in any total."""

from decimal import Decimal
from types import SimpleNamespace
from typing import Any, cast

import msgspec
from hypothesis import assume, given
from hypothesis import strategies as st
from support.core_samples import RATES, body, read, record

from daemon.api.page.screens.selling import _left, credit_body
from daemon.core.errors import InvalidRequest
from daemon.core.invoice.invoice import TaxLine
from daemon.core.ledger.attempt import Record
from daemon.core.ledger.tally import add, contribution
from daemon.core.machine.agreement import agree
from daemon.core.machine.state import Subtotal

ALL = {f"line{at}": "1" for at in range(3)}


def decimals(most: int, places: int) -> st.SearchStrategy[Decimal]:
    return st.integers(1, most * 10**places).map(lambda value: Decimal(value) / 10**places)


def money(*, most: int = 20_000) -> st.SearchStrategy[int]:
    return st.integers(1, most)


PLAIN = st.fixed_dictionaries(
    {"name": st.just("Riz"), "taxGroup": st.sampled_from("ABCL")},
    optional={
        "itemType": st.sampled_from(("LOCBIE", "LOCSER")),
        "unitPrice": decimals(5000, 2),
        "quantity": st.one_of(st.integers(1, 400), decimals(9, 3)),
        "discount": money(most=3000),
        "originalPrice": decimals(6000, 2),
        "psvbGroup": st.sampled_from("ABCD"),
    },
)


@st.composite
def items(draw: st.DrawFn, mode: str) -> dict[str, Any]:
    found = draw(PLAIN)
    if "unitPrice" not in found or draw(st.booleans()):
        found["amountTtc"] = draw(money())
    if draw(st.booleans()):
        rate, quantity, price = draw(money(most=90)), draw(st.integers(1, 9)), draw(money(most=900))
        vat = Decimal(RATES[found["taxGroup"]]) / 10_000
        goods, tax = price * quantity, rate * quantity
        amount = (goods + tax) * (1 + vat) if mode == "HT" and draw(st.booleans()) else goods + tax * (1 + vat)
        taxed = {"unitPrice": price, "quantity": quantity, "specificTax": tax, "specificTaxRate": rate}
        found |= {**taxed, "amountTtc": int(amount) if amount == int(amount) else amount}
    return found


@st.composite
def sales(draw: st.DrawFn) -> Record:
    mode = draw(st.sampled_from(("TTC", "HT")))
    lines = draw(st.lists(items(mode), min_size=1, max_size=3))
    fields: dict[str, Any] = {"priceMode": mode}
    if draw(st.booleans()):
        fields["psvbGroup"] = draw(st.sampled_from("ABCD"))
    try:
        total = int(str(_total(lines, mode)))
        first = draw(st.integers(1, total))
        payments = [{"method": "E", "amount": first}, {"method": "M", "amount": total - first}]
        paid = [payment for payment in payments if payment["amount"]]
        return record(body(*lines, **fields, payments=paid))
    except InvalidRequest:
        assume(False)
        raise


def _total(lines: list[dict[str, Any]], mode: str) -> int:
    """What the invoice comes to, as its refusal tells it."""
    try:
        return read(body(*lines, pay=1, priceMode=mode)).total_ttc
    except InvalidRequest as refused:
        found = [error.message for error in refused.errors if error.field == "payments"]
        assume(found)
        return int(found[0].rpartition(" ")[2])


def credited(sale: Record, form: dict[str, str], *before: Record, rates: dict[str, int] = RATES) -> Record:
    """The credit note of a form, after others on that sale; `rates`: the machine's VAT rates now."""
    visit = SimpleNamespace(form={**form, "nature": "RAN"}, say=str, session=SimpleNamespace(name="awa"))
    return record({**credit_body(cast("Any", visit), sale, before, rates), "invoiceNumber": "AV-1"}, credit=True)


@given(sales())
def test_lines_that_are_credited_one_by_one_come_to_the_invoice(sale: Record) -> None:
    """Also without VAT, where the till's own amounts of the lines may come to another sum than was certified."""
    notes = [credited(sale, {f"line{at}": "1"}) for at in range(len(sale.invoice.items))]
    assert sum(note.total_ttc for note in notes) == sale.total_ttc


def by_pieces(count: int, total: int) -> tuple[Record, list[Record]]:
    """A sale of so many pieces, and a credit note of each."""
    sale = record(body({"name": "Riz", "taxGroup": "B", "quantity": count, "amountTtc": total}, pay=total))
    notes: list[Record] = []
    for _ in range(count):
        notes.append(credited(sale, {"line0": "1", "quantity0": "1"}, *notes))
    return sale, notes


def test_pieces_that_are_credited_one_by_one_come_to_the_line() -> None:
    """Three for 2 000 F: what rounding gave too much is taken off the last one; more than was sold is not reduced."""
    sale, notes = by_pieces(3, 2000)
    assert [note.total_ttc for note in notes] == [667, 667, 666]
    assert credited(sale, {"line0": "1", "quantity0": "2"}, *notes[:2]).total_ttc == 1333


def test_the_last_piece_of_an_invoice_takes_what_rounding_has_left() -> None:
    """Four pieces for 2 001 F: three at 500 F leave 501; a franc of the sale could be credited by no form."""
    _, notes = by_pieces(4, 2001)
    assert [note.total_ttc for note in notes] == [500, 500, 500, 501]


def test_of_lines_with_one_name_the_one_is_credited_that_was_chosen() -> None:
    """A till that calls everything "Divers": the line is recognised by its price, with and without VAT."""
    lines = [
        {"name": "Divers", "taxGroup": "B", "unitPrice": 10_000, "quantity": 1},
        {"name": "Divers", "taxGroup": "B", "unitPrice": 500, "quantity": 3},
    ]
    for mode, total in (("TTC", 11_500), ("HT", 13_570)):
        sale = record(body(*lines, priceMode=mode, pay=total))
        note = credited(sale, {"line1": "1", "quantity1": "2"})
        assert _left(sale.invoice, [note]) == [1000, 1000]
        assert _left(sale.invoice, [note, credited(sale, {"line0": "1"}, note)]) == [0, 1000]


def test_a_line_without_a_withholding_is_credited_without_one() -> None:
    """Of an invoice whose other line names its group."""
    lines = [
        {"name": "Riz", "taxGroup": "B", "amountTtc": 1000},
        {"name": "Fer", "taxGroup": "B", "amountTtc": 5000, "psvbGroup": "B"},
    ]
    sale = record(body(*lines))
    assert [(each.group, each.base) for each in sale.invoice.withholdings] == [("B", 5000)]
    assert credited(sale, {"line0": "1"}).invoice.withholdings == ()
    assert [(each.group, each.base) for each in credited(sale, {"line1": "1"}).invoice.withholdings] == [("B", 5000)]


@given(sales())
def test_nothing_is_left_of_an_invoice_that_is_credited_whole(sale: Record) -> None:
    """Neither of its taxes, nor of how it was paid, the specific tax, the withholding and the reductions."""
    credit = credited(sale, ALL)
    assert credit.total_ttc == sale.total_ttc
    for tally in (contribution(credit), contribution(sale)):
        assert tally
    left = add(contribution(sale), contribution(credit))
    counted = {name: value for name, value in left.items() if name.partition(".")[0] not in ("FV", "FA", "nature")}
    assert counted == {}
    groups = {(line.group, line.ht, line.tva) for line in sale.invoice.taxes}
    assert {(line.group, line.ht, line.tva) for line in credit.invoice.taxes} == groups


def test_a_line_without_vat_below_half_a_franc() -> None:
    """It is certified as one franc, whatever amount the till sent, and credited as one; it was credited with the till's amount, beyond the sale."""
    lines = [
        {"name": "Riz", "taxGroup": "A", "unitPrice": 1},
        {"name": "Clou", "taxGroup": "A", "unitPrice": Decimal("0.01"), "amountTtc": 2},
    ]
    sale = record(body(*lines, priceMode="HT", pay=2))
    assert [item.line_amount for item in sale.invoice.items] == [1, 1]
    assert credited(sale, ALL).total_ttc == sale.total_ttc == 2
    taxed = {**lines[1], "specificTax": 5, "specificTaxRate": 5, "amountTtc": 6}
    sale = record(body(lines[0], taxed, priceMode="HT", pay=7))
    assert [item.line_amount for item in sale.invoice.items] == [1, 6]  # the tax is folded into the price
    assert credited(sale, ALL).total_ttc == sale.total_ttc


def test_a_sale_without_vat_is_credited_whole_after_a_change_of_the_rates() -> None:
    """In prices with VAT, at the total that was paid: at the new rate the prices come to another one, and the form was refused."""
    sale = record(body({"name": "Riz", "taxGroup": "B", "unitPrice": 1000}, priceMode="HT", pay=1180))
    for rate in (1000, 2000):
        credit = credited(sale, ALL, rates={**RATES, "B": rate})
        assert (credit.invoice.price_mode, credit.total_ttc) == ("TTC", 1180)
    assert credited(sale, ALL).invoice.price_mode == "HT"


def test_the_machine_s_total_is_a_franc_apart() -> None:
    """In HT mode it counts; a credit note is computed from the prices again, and paid by what they come to."""
    lines = [{"name": "Riz", "taxGroup": "B", "unitPrice": 33, "quantity": 1}]
    payments = [{"method": "M", "amount": 9}, {"method": "E", "amount": 30}]
    sale = record(body(*lines, priceMode="HT", payments=payments))
    apart = agree(sale.invoice, Subtotal(40, (TaxLine("B", 1800, 33, 7, 40),), 0))
    sale = msgspec.structs.replace(sale, invoice=apart, total_ttc=40)
    assert [payment.amount for payment in apart.payments] == [9, 31]
    credit = credited(sale, ALL)
    assert {(each.method, each.amount) for each in credit.invoice.payments} == {("E", 30), ("M", 9)}
