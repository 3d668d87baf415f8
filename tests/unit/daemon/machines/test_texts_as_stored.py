"""Texts that do not fit a frame (SFE 2.4): what is printed is what the machine holds, and the till hears of it."""

import msgspec
import pytest
from support.core_samples import DEFAULTS, RATES, body, item

from bridge.commands import MachineHabits
from daemon.core.errors import InvalidRequest
from daemon.core.invoice.intake import read_invoice
from daemon.machines.adapter import as_stored

LONG = "Société Nationale de Distribution des Produits Alimentaires du Burkina"
ADDRESS = (
    "Avenue de la Résistance du 17 mai, porte 1234, secteur 4, arrondissement 1, face à la grande poste de la ville"
)
FITTING = {"clientType": "PM", "ifu": "00012345X", "name": "SONADIPA SARL"}


def read(request, *, strict=False, habits=None):
    store = as_stored if habits is None else lambda invoice: as_stored(invoice, habits)
    defaults = msgspec.structs.replace(DEFAULTS, as_stored=store)
    return read_invoice(request, defaults=defaults, rates=RATES, strict=strict)


def cut(invoice):
    return [(warn.field, warn.item) for warn in invoice.warnings if warn.code == "TEXT_CUT"]


def test_what_does_not_fit_is_cut_for_paper_too():
    """Item, address and comment: the invoice has what the machine gets, and a second look cuts no more."""
    request = body(item(), item(name="é" * 200), customer={**FITTING, "address": "é" * 200}, comments=["ok", "&" * 200])
    invoice = read(request)
    assert cut(invoice) == [("customer.address", -1), ("items[1].name", 1), ("comments[1]", -1)]
    assert 60 < len(invoice.items[1].name) < 100
    assert invoice.comments[1].text == "&" * len(invoice.comments[1].text)
    assert as_stored(invoice) is invoice
    with pytest.raises(InvalidRequest) as caught:
        read(request, strict=True)
    assert [error.field for error in caught.value.errors] == ["customer.address", "items[1].name", "comments[1]"]


@pytest.mark.parametrize("kind", ["PM", "PC"])
def test_the_name_of_a_company_is_not_cut(kind):
    """It says who may deduct the VAT: 422 with the length that fits beside address and contact."""
    customer = {**FITTING, "clientType": kind, "name": LONG * 2, "address": ADDRESS}
    with pytest.raises(InvalidRequest, match=r"customer\.name.* \d+ characters") as caught:
        read(body(customer=customer))
    assert [error.field for error in caught.value.errors] == ["customer.name"]
    person = read(body(customer={**customer, "clientType": "PP"}))
    assert ("customer.name", -1) in cut(person)


@pytest.mark.parametrize("kind", ["PM", "PP"])
def test_what_the_machine_s_code_page_lacks_is_on_paper_as_it_is_stored(kind):
    """Letters of the country's languages on a machine that writes as Windows does: a warning, also where `name_bytes` cuts."""
    customer = {**FITTING, "clientType": kind, "name": "SARL Ŋaba Ɛ"}
    request = body(
        item(name="Dɔlɔ 1 l", code="Ɔ1"), item(name="Café œuvre €"), customer=customer, comments=["Barka, Ɩdrissa"]
    )
    invoice = read(request, habits=MachineHabits(code_page="cp1252"))
    assert (invoice.customer.name, invoice.items[0].name, invoice.items[0].code) == ("SARL ?aba ?", "D?l? 1 l", "?1")
    assert (invoice.items[1].name, invoice.comments[0].text) == ("Café œuvre €", "Barka, ?drissa")
    assert cut(invoice) == [("customer.name", -1), ("items[0].name", 0), ("items[0].code", 0), ("comments[0]", -1)]
    assert "customer.name: " in str(invoice.warnings[0].text)
    assert "cut" not in str(invoice.warnings[0].text)
    short = read(body(item(name="Dɔlɔ 1 l")), habits=MachineHabits(code_page="cp1252", name_bytes=4))
    assert (short.items[0].name, cut(short)) == ("D?l?", [("items[0].name", 0)])


def test_a_machine_that_takes_short_names_only():
    """`name_bytes` of its habits. Texts that fit are kept, whatever they hold, also what the line escapes."""
    invoice = read(body(item(name="Huile de palme 5 L")), habits=MachineHabits(name_bytes=10))
    assert (invoice.items[0].name, cut(invoice)) == ("Huile de p", [("items[0].name", 0)])
    request = body(item(name="Crème <brûlée>, 2 & 3", code="A,1"), customer=FITTING, comments=["Merci, à bientôt"])
    invoice = read(request)
    assert cut(invoice) == []
    assert (invoice.items[0].name, invoice.comments[0].text) == ("Crème <brûlée>, 2 & 3", "Merci, à bientôt")
