"""Tallies: what an ended attempt adds to the totals."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.core_samples import body, credit_body, item, record

from daemon.core.ledger.attempt import NOT_SENT
from daemon.core.ledger.tally import add, contribution, subtract

TALLIES = st.dictionaries(
    st.sampled_from(["FV.n", "FV.ttc", "FV.B.ttc", "FA.n", "pay.E", "incomplete", "specific"]),
    st.integers(-(10**15), 10**15).filter(bool),
)


def test_a_sale_counts_by_type_group_and_payment():
    """Number and total of its type, VAT of each group, and its payments; nothing is kept as zero."""
    sale = body(
        item(amountTtc=15000),
        item(taxGroup="A", amountTtc=500),
        payments=[{"method": "E", "amount": 15000}, {"method": "M", "amount": 300}, {"method": "E", "amount": 200}],
    )
    assert contribution(record(sale)) == {
        "FV.n": 1,
        "FV.ttc": 15500,
        "FV.A.ht": 500,
        "FV.A.ttc": 500,
        "FV.B.ht": 12712,
        "FV.B.tva": 2288,
        "FV.B.ttc": 15000,
        "pay.E": 15200,
        "pay.M": 300,
    }


def test_a_credit_note_is_positive_under_its_type_and_negative_in_what_was_paid():
    """Payments, specific tax and withholding are kept net of credit notes."""
    taxed = item(unitPrice=1050, quantity=2, amountTtc=2218, specificTax=100, specificTaxRate=50)
    assert contribution(record(credit_body(taxed, psvbGroup="B"), credit=True)) == {
        "FA.n": 1,
        "FA.ttc": 2218,
        "FA.B.ht": 1880,
        "FA.B.tva": 338,
        "FA.B.ttc": 2218,
        "pay.E": -2218,
        "specific": -100,
        "psvb.B.base": -2218,
        "psvb.B.amount": -22,
        "nature.COR.n": 1,
        "nature.COR.ttc": 2218,
    }


def test_an_attempt_that_did_not_certify_is_incomplete():
    """Begun on the machine and not certified: one more `incomplete`, unless nothing was ever sent. Asking of what has not ended is a mistake of the caller."""
    for state in ("refused", "abandoned"):
        assert contribution(record(state=state, reason="E:No amount!")) == {"incomplete": 1}
        assert contribution(record(state=state, reason=NOT_SENT)) == {}
    for state in ("begun", "disputed"):
        with pytest.raises(ValueError, match=state):
            contribution(record(state=state))


@given(TALLIES, TALLIES, TALLIES)
def test_tallies_add_up(a, b, c):
    """Order and grouping do not matter, and no zero is kept. The difference of two running tallies is exactly what ended between them."""
    assert add(a, b) == add(b, a)
    assert add(add(a, b), c) == add(a, add(b, c))
    assert all(add(a, b).values())
    assert subtract(add(a, b), b) == a
    assert subtract(a, a) == {}
