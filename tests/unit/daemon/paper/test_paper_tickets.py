"""Every document on paper, as a person reads it in `tickets/`: `MCFD_WRITE_TICKETS=1 pytest …` writes them anew."""

import html
import os
import re
import unicodedata
from decimal import Decimal
from pathlib import Path
from typing import get_args

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from paper_samples import CREDIT, RATES, SALE, documents, record, shop
from support.paper.escpos import printed

from daemon.core.invoice.intake import Defaults, read_invoice
from daemon.core.invoice.invoice import invoice_without_lines
from daemon.core.ledger.deferred import DeferredSale
from daemon.paper.escpos import CODE_PAGES, as_escpos
from daemon.paper.html import as_html
from daemon.paper.invoice import invoice_document, waiting_document
from daemon.paper.layout import WIDTHS, Document, Element, Logo, Pair, QrCode, Table, TextLine, Title, as_text, rows
from daemon.paper.shop import Style

TICKETS = Path(__file__).parent / "tickets"
NAMES = tuple(documents("fr"))


def ticket(certified, owner=None, width=48):
    """As text, in French, with blanks for no-break spaces."""
    document = invoice_document(certified, owner or shop(), Style("fr"))
    return as_text(document, width).replace("\N{NO-BREAK SPACE}", " ")


def compare(name, expected):
    file = TICKETS / name
    if os.environ.get("MCFD_WRITE_TICKETS"):
        file.write_text(expected)
    assert expected == file.read_text()


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("language", ["fr", "en"])
@pytest.mark.parametrize("name", NAMES)
def test_text_is_the_ticket_of_the_folder(name, language, width):
    """As text, each document is what a person has read and found right, and no line is wider than the paper."""
    text = as_text(documents(language)[name], width)
    assert max(map(len, text.splitlines())) <= width
    compare(f"{name}.{language}.{width}.txt", text)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("language", ["fr", "en"])
@pytest.mark.parametrize("name", NAMES)
def test_escpos_prints_what_the_text_says(name, language, width):
    """Read back by a decoder of the makers' tables, the bytes for the printer give the lines of the text, in every code page."""
    document = documents(language)[name]
    expected = [row.text for row in rows(document, width) if hasattr(row, "text")]
    for page in CODE_PAGES:
        out = printed(as_escpos(document, width, page))
        assert out.initialized
        assert out.cut
        assert [text for text, _, _ in out.lines if text or not out.codes] == [
            text for text in expected if text or not out.codes
        ]
    compare(f"{name}.{language}.{width}.escpos.txt", out.picture())


def test_html_is_the_page_of_the_folder():
    """Every element but the logo, as a person has looked at it in a browser; the folder holds what stands in the body."""
    pages = documents("fr")
    sold = [element for element in pages["articles"].elements if isinstance(element, Table)]
    both = Document("FV-2026-0001", "fr", (*pages["sale"].elements, *sold))
    assert {type(element) for element in both.elements} == set(get_args(Element)) - {Logo}
    head, _, body = as_html(both, 48).partition("<body>\n")
    assert head.startswith('<!doctype html>\n<html lang="fr">\n')
    assert "<title>FV-2026-0001</title>" in head
    compare("every-element.fr.html", body.removesuffix("</body>\n</html>\n"))


@pytest.mark.parametrize("language", ["fr", "en"])
@pytest.mark.parametrize("name", NAMES)
def test_html_says_what_the_text_says(name, language):
    """As HTML, each document is one page that asks nothing of the network and says, in order, what the text says; the code is drawn."""
    document = documents(language)[name]
    page = as_html(document, 48)
    assert "http" not in page.replace("http://www.w3.org/2000/svg", "")
    assert f'<html lang="{language}">' in page
    without_code, codes = re.subn(r"<svg.*?</svg>", "", page.partition("<body>")[2], flags=re.DOTALL)
    contents = [element.content for element in document.elements if isinstance(element, QrCode)]
    assert codes == len(contents)
    text = squeezed(re.sub("[\N{UPPER HALF BLOCK}\N{LOWER HALF BLOCK}\N{FULL BLOCK}]", "", as_text(document, 48)))
    assert squeezed(html.unescape(re.sub(r"<[^>]+>", "", without_code))) == text.replace("-" * 48, "")


@pytest.mark.parametrize(("figure", "is_table"), [("847 457,63", True), ("847 457 627 118,64", False)])
def test_figures_of_html_stay_on_the_paper(figure, is_table):
    """Three columns of twelve digits are wider than any roll: each row becomes pairs, as in text."""
    document = Document("x", "fr", (Table(("Groupe", "HT", "TVA", "TTC"), (("B 18 %", *[figure] * 3),)),))
    page = as_html(document, 48)
    assert (page.count("<table>"), page.count(figure)) == (is_table, 3)


def test_text_has_the_code_in_blocks():
    """SFE 2.30: a module wide and two high; too wide for 32 columns; printed with correction M in modules of six dots."""
    segno = pytest.importorskip("segno")
    content = "BFSECEF01;EL02000015;7C0MWH2RQJ4T9XK3VZ5B8NDP;00084440Y;20261120101530"
    modules = [list(row) for row in segno.make_qr(content, error="m").matrix]
    sale = documents("fr")["sale"]
    lines = [line[5:] for line in as_text(sale, 48).splitlines() if re.search("[▀▄█]", line)]
    read = [[int(char in upper) for char in line.ljust(len(modules))] for line in lines for upper in ("▀█", "▄█")]
    assert read[: len(modules)] == modules
    narrow = as_text(sale, 32)
    assert "BFSECEF01" not in narrow
    assert not re.search("[▀▄█]", narrow)
    assert printed(as_escpos(sale, 32)).codes == [(content, 6, "M")]


def test_the_law_s_words_stand_in_french_on_each_document():
    """SFE 3 e to i and s, 4.3 d, annex: with the translation beside them in another language."""
    visible = {name: as_text(document, 48) for name, document in documents("en").items()}
    for name, words in {
        "duplicate": ["DUPLICATA", "FACTURE DE VENTE", "[PM] Personne morale", "Réf. exo.", "Montant timbre quittance"],
        "credit-note": ["FACTURE D'AVOIR", "RAM Avoir suite reprise biens/services", "[CC] Client comptant"],
        "x-periodic": ["RAPPORT X PÉRIODIQUE", "RRR Remise, ristourne, rabais"],
        "z": ["RAPPORT Z"],
    }.items():
        for word in words:
            assert word in visible[name], (name, word)
    for kind, words in (("EV", "EXPORTATION"), ("FT", "D'ACOMPTE")):
        result = as_text(invoice_document(record({**SALE, "invoiceType": kind}), shop("en"), Style("en")), 48)
        assert words in result


def test_a_machine_s_cents_are_printed_as_it_told_them():
    """SFE 2.4, 6.7: 2 288.14 stays so on paper; the API's amounts are whole."""
    certified = record(CREDIT, credit=True)
    line = msgspec.structs.replace(certified.invoice.taxes[0], tva_hundredths=228_814)
    result = msgspec.structs.replace(certified, invoice=msgspec.structs.replace(certified.invoice, taxes=(line,)))
    assert "12 711,86   2 288,14   15 000" in ticket(result)


def test_what_was_taken_over_from_the_machine_says_no_more_than_that_told():
    """A credit note whose lines, nature and customer no one knows: no amount of its taxes stands there, not even nought."""
    certified = record(CREDIT, credit=True, invoice=invoice_without_lines("FA-9", "FA", 15_000))
    text = ticket(certified)
    assert ("FACTURE D'AVOIR" in text, "TOTAL TTC" in text) == (True, True)
    assert not re.search("Nature|Origin|Client|Total HT|TVA|Opérateur", text)


def test_the_lines_of_a_slip_have_the_cents_of_the_invoice():
    """A machine with two decimals on a line: 30 x 33.49 without tax is 1 004.70 before its certification as after it."""
    item = {"name": "Article", "taxGroup": "B", "unitPrice": Decimal("33.49"), "quantity": 30}
    body = {**SALE, "priceMode": "HT", "items": [item], "payments": [{"method": "E", "amount": 1186}], "psvb": None}
    defaults = Defaults("7", "Awa", "ISF1", line_cents=True)
    certified = record(body, invoice=read_invoice(body, defaults=defaults, rates=RATES))
    sale = DeferredSale(1, "k", b"", "r", certified.number, "FV", 1186, certified.begun_at, "a")
    slip = as_text(waiting_document(sale, certified.invoice, shop(), Style("fr"), ""), 48)
    for text in (ticket(certified), slip.replace("\N{NO-BREAK SPACE}", " ")):
        assert "1 004,7" in text


@pytest.mark.parametrize(
    ("before", "line"),
    [
        (1200, "Prix avant remise                    1 200 TTC"),
        (800, "Prix avant modification                800 TTC"),
        (1000, ""),
    ],
)
def test_a_price_before_a_rise_is_no_price_before_a_reduction(before, line):
    """SFE 3 n: a reduction or any other change of the price; a price that has not changed stands there once."""
    item = {"name": "Article", "taxGroup": "B", "unitPrice": 1000, "originalPrice": before}
    certified = record({**SALE, "items": [item], "payments": [{"method": "E", "amount": 1000}], "psvbGroup": None})
    lines = [text.strip() for text in ticket(certified).splitlines() if "Prix avant" in text]
    assert lines == ([line] if line else [])


def test_a_sandbox_ticket_is_no_invoice():
    """It says twice that it has no fiscal value; a real one never does. A copy is its original with DUPLICATA above."""
    tickets = {name: as_text(document, 42) for name, document in documents("fr").items()}
    assert tickets["test"].count("SANS VALEUR FISCALE") == 2
    assert "SANS VALEUR" not in tickets["credit-note"]
    original, copy = tickets["sale"].splitlines(), tickets["duplicate"].splitlines()
    assert [line for line in copy if line not in original] == ["DUPLICATA".center(42).rstrip()]
    assert len(copy) == len(original) + 1


def test_names_on_an_invoice_command_no_printer():
    """Whatever characters a name holds, the printer gets text: no command, no control character, no lost line; nor is it ever part of the page's markup."""
    document = Document("x", "fr", (TextLine("a\x1b@b\x1dV\x00\x07é\x9bœ’ɛ€∞"), TextLine("<script>x</script>&")))
    line, _ = [text for text, _, _ in printed(as_escpos(document, 48, "cp858")).lines if text]
    assert line == "a @b V  é oe'e€?"
    page = as_html(document, 48)
    assert "<script>" not in page
    assert "&lt;script&gt;x&lt;/script&gt;&amp;" in page


@pytest.mark.parametrize("page", CODE_PAGES)
def test_what_a_printer_lacks_is_replaced_before_lines_are_broken(page):
    """Figures stand at the right edge also behind letters that become two, in capitals as in capitalized words."""
    names = ("Œufs, la douzaine…", "BŒUF", "cœur – ½ l, ⅓ l", "Wẽnd Kʋʋni", "e\N{COMBINING ACUTE ACCENT}pices")
    document = Document("x", "fr", tuple(Pair(name, "1 500") for name in names))
    plain = ("Oeufs, la douzaine...", "BOEUF", "coeur - ½ l, 1/3 l", "Wend Kuuni", "épices")
    if page == "cp1252":
        plain = ("Œufs, la douzaine…", "BŒUF", "cœur – ½ l, 1/3 l", *plain[3:])
    lines = [line for line, _, _ in printed(as_escpos(document, 32, page)).lines]
    assert lines == [name + "1 500".rjust(32 - len(name)) for name in plain]


def test_what_the_shop_has_not_said_is_not_printed():
    """Without `[company]` and an unread machine a ticket still has all that the certification itself holds."""
    bare = shop(
        name="", address=(), cadastral="", phone="", email="", accounts=(), regime="", tax_office="", isf="", ifu=""
    )
    text = as_text(invoice_document(record(CREDIT, credit=True), bare, Style("fr")), 42)
    assert text.startswith("IFU 00084440Y".center(42).rstrip() + "\n" + "-" * 42)
    assert ": \n" not in text
    assert "7C0M-WH2R-QJ4T-9XK3-VZ5B-8NDP" in text


words = st.text(st.characters(exclude_categories=("Cc", "Cs", "Zl", "Zp")), max_size=90)
ELEMENTS = st.one_of(
    st.builds(Title, words),
    st.builds(TextLine, words, indent=st.integers(0, 60)),
    st.builds(Pair, words, words, indent=st.integers(0, 4)),
    st.builds(Table, st.just(("a", "b", "c")), st.lists(st.tuples(words, words, words), max_size=3).map(tuple)),
)


@given(element=ELEMENTS, width=st.sampled_from(WIDTHS))
def test_nothing_is_wider_than_the_paper(element, width):
    """Any text at any width: no row is wider than the paper, and the printer takes every row."""
    document = Document("x", "fr", (element,))
    text = list(rows(document, width))
    assert all(len(row.text) <= width for row in text)
    out = printed(as_escpos(document, width))
    assert out.cut
    assert all(len(row) <= width for row, _, _ in out.lines)


@given(text=words)
def test_no_word_is_lost(text):
    """Breaking a line loses and doubles no character but the spaces where it is broken."""
    view = "".join(row.text for row in rows(Document("x", "fr", (TextLine(text),)), 32))
    assert squeezed(view) == squeezed(text)


def squeezed(text):
    return "".join(char for char in text if not (char.isspace() or unicodedata.category(char) == "Zs"))
