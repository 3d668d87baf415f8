"""Unknown fields, anywhere in a body (decision 27)."""

import copy
import re
from decimal import Decimal

import msgspec
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from support.core_samples import body, credit_body, item, read, record

from daemon.core.errors import InvalidRequest
from daemon.core.invoice.invoice import NO_ITEM
from daemon.core.invoice.unknown import (
    FIELDS,
    LONGEST_NAME,
    MAX_FIELDS,
    refusals_of,
    unknown_fields,
    unknown_of,
    warnings_of,
)
from daemon.core.report.receipt import receipt

WHOLE = {
    "customer": {"clientType": "PM", "ifu": "00012345X", "name": "SARL"},
    "comments": [{"label": "A", "text": "un"}, "deux"],
    "psvbGroup": "A",
}


def sale(**fields):
    return body(item(code="R25"), item(name="Sucre"), **copy.deepcopy(WHOLE), **fields)


def notes_on(request, **options):
    """The paths of the unknown fields, with what was probably meant."""
    found = {}
    for each in receipt(record(request, **options)).warnings:
        if each.code == "UNKNOWN_FIELD":
            assert f"{each.field}: is not a known field" in each.message
            found[each.field] = each.message.partition("did you mean ")[2].rstrip("?")
    return found


@pytest.mark.parametrize(
    ("place", "name", "path", "near"),
    [
        ((), "price_mode", "price_mode", "priceMode"),
        ((), "custmer", "custmer", "customer"),
        ((), "InvoiceNumber", "InvoiceNumber", "invoiceNumber"),
        ((), "remarque", "remarque", ""),
        ((), "z" * 40, "z" * 40, ""),
        ((), "z" * 41, "z" * 40 + "…", ""),
        (("customer",), "type", "customer.type", "customer.clientType"),
        (("items", 1), "prix", "items[1].prix", ""),
        (("items", 1), "qty", "items[1].qty", "items[1].quantity"),
        (("items", 0), "unit_price", "items[0].unit_price", "items[0].unitPrice"),
        (("payments", 0), "amout", "payments[0].amout", "payments[0].amount"),
        (("comments", 0), "lable", "comments[0].lable", "comments[0].label"),
        ((), "creditNoteRef", "creditNoteRef", ""),
    ],
)
def test_a_field_that_nobody_knows_is_told(place, name, path, near):
    """At any depth, with its path, and with the field that was probably meant where one is near."""
    request = sale()
    at = request
    for step in place:
        at = at[step]
    at[name] = "x"
    assert notes_on(request) == {path: near}


def test_only_a_field_of_an_item_is_told_with_its_index():
    """The second of its kind anywhere: a till marks that line of its own screen, and none for what stands elsewhere."""
    request = sale(payments=[{"method": "E", "amount": 20_000}, {"method": "M", "amount": 10_000}])
    for place in (request, request["customer"], request["items"][1], request["payments"][1], request["comments"][0]):
        place["strange"] = 1
    items = {each.field: each.item for each in receipt(record(request)).warnings}
    assert items == dict.fromkeys(
        ("strange", "customer.strange", "payments[1].strange", "comments[0].strange"), None
    ) | {"items[1].strange": 1}
    assert {each.item for each in warnings_of(unknown_of({"strange": 1}, frozenset()))} == {NO_ITEM}


def test_what_is_known_is_not_told():
    """A body with every field there is has no such warning; the fields of a credit note are known in one."""
    assert notes_on(sale()) == {}
    assert notes_on(credit_body(creditNoteNature="COR"), credit=True) == {}
    assert notes_on(sale(remarque=None)) == {}  # null stands for nothing


PLACES = [(), ("customer",), ("items", 0), ("items", 1), ("payments", 0), ("comments", 0)]


@given(
    place=st.sampled_from(PLACES), name=st.text(min_size=1, max_size=60), value=st.integers() | st.lists(st.integers())
)
def test_any_extra_field_anywhere_is_told_and_changes_nothing_else(place, name, value):
    """Whatever its name and value: one warning, a refusal under `strict`, and the invoice as without it."""
    request = sale()
    at = request
    for step in place:
        at = at[step]
    kind = next(iter(place), "")
    if name in FIELDS[kind]:
        return
    at[name] = value
    invoice, plain = read(request), read(sale())
    assert len(invoice.warnings) == len(plain.warnings) + 1
    assert msgspec.structs.replace(invoice, warnings=()) == msgspec.structs.replace(plain, warnings=())
    with pytest.raises(InvalidRequest) as refused:
        read(request, strict=True)
    (error,) = refused.value.errors
    assert error.field.endswith(name[:LONGEST_NAME] + ("…" if len(name) > LONGEST_NAME else ""))


def misspelt(draw, name):
    """As people mistype: two letters changed about, one left out or doubled, another case, underscores."""
    at = draw(st.integers(0, len(name) - 2))
    return draw(
        st.sampled_from(
            [
                name[:at] + name[at + 1] + name[at] + name[at + 2 :],
                name[:at] + name[at + 1 :],
                name[: at + 1] + name[at:],
                name.upper(),
                name.capitalize(),
                re.sub(r"([A-Z])", lambda found: f"_{found[1].lower()}", name),
                re.sub(r"([A-Z])", lambda found: f"-{found[1].lower()}", name),
            ]
        )
    )


@given(place=st.sampled_from(PLACES), data=st.data())
def test_any_misspelt_field_anywhere_is_told(place, data):
    """Whichever known field is misspelt, and wherever: a warning with its path where the sale goes through without it, and beside what it is
    refused for where it does not; under `strict` it is always refused."""
    request = sale()
    at = request
    for step in place:
        at = at[step]
    kind = next(iter(place), "")
    name = data.draw(st.sampled_from(sorted(at)))
    wrong = misspelt(data.draw, name)
    assume(wrong not in FIELDS[kind])
    at[wrong] = at.pop(name)
    path = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in place).removeprefix(".")
    path = f"{path}.{wrong}" if path else wrong
    try:
        found = [warn.field for warn in read(request).warnings if warn.code == "UNKNOWN_FIELD"]
    except InvalidRequest as refused:
        found = [error.field for error in refused.errors if "is not a known field" in error.message]
    assert found == [path]
    with pytest.raises(InvalidRequest) as refused:
        read(request, strict=True)
    assert path in [error.field for error in refused.value.errors]


def test_what_is_missing_is_told_with_what_was_written_instead():
    """`payment` for `payments`, `qty` for `quantity`: the refusal names the field that was meant, and no other one."""
    request = sale(remarque="x")
    request["payment"] = request.pop("payments")
    request["items"][0]["qty"] = 2
    with pytest.raises(InvalidRequest) as refused:
        read(request)
    assert [(error.field, str(error.message)) for error in refused.value.errors] == [
        ("payments", "is required"),
        ("payment", "is not a known field; did you mean payments?"),
        ("items[0].qty", "is not a known field; did you mean items[0].quantity?"),
    ]


def test_many_are_told_in_a_bounded_answer():
    """Thousands of unknown fields make a hundred warnings and one that says that there are more."""
    for count in (99, 100, 101, 5000):
        strange = {f"field{number}": number for number in range(count)}
        for found in (unknown_fields(strange, credit=False), unknown_of(strange, frozenset())):
            texts = [str(warn.text) for warn in warnings_of(found)]
            assert ["more fields" in each for each in texts] == [False] * min(count, 100) + [True] * (count > 100)
            assert len(refusals_of(found)) == min(count, 100)


def test_only_the_first_are_compared_with_what_is_known():
    """To say what was meant costs time: twenty are, of a body and of a flat one, the others are only named."""
    strange = {f"payments{'_' * (at + 1)}": 1 for at in range(21)}
    for found in (unknown_fields(strange, credit=False), unknown_of(strange, frozenset({"payments"}))):
        assert [bool(each.near) for each in found] == [True] * 20 + [False]


def test_an_amount_that_was_never_sent_says_where_it_comes_from():
    """1250 × 1.235 is 1543.75: the till hears which two fields gave that, and what is certified."""
    invoice = read(body({"name": "Riz", "taxGroup": "B", "unitPrice": 1250, "quantity": Decimal("1.235")}, pay=1544))
    assert [str(warn.text) for warn in invoice.warnings] == ["unitPrice × quantity is 1543.75: rounded to 1544"]


def test_a_body_of_unknown_fields_alone_takes_no_time():
    """One more is looked at than is listed, so that it can be said that there are more: not all 80 000 that a body has room for."""
    body = {f"strange{number}": 1 for number in range(1000)}
    assert len(unknown_fields(body, credit=False)) == MAX_FIELDS + 1
    assert len(unknown_of(body, frozenset({"amount"}))) == MAX_FIELDS + 1
