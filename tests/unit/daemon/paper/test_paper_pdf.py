"""Documents as PDF: what a reader of PDF finds in them."""

import io
import subprocess
import sys

import pypdf
import pytest
from click.testing import CliRunner
from fontTools.ttLib import TTFont

from daemon.cli import root
from daemon.paper import pdf
from daemon.paper.layout import Document, Pair, QrCode, Rule, Table, TextLine, Title
from daemon.paper.pdf import FONTS, as_pdf


def _read(content):
    return pypdf.PdfReader(io.BytesIO(content))


def test_a_document_is_pages_of_a4_with_its_fonts_and_all_its_text():
    """Every word is found again, across pages; all fonts are embedded, nothing else is needed to show it."""
    rows = tuple((f"Thé à la menthe n° {number}", "2,5", f"{number} 000") for number in range(90))
    elements = (
        Title("FACTURE DE VENTE"),
        TextLine("Maison Faso, « Œuvre »", "center"),
        Rule(),
        Table(("Article", "Qté", "TTC"), rows),
        Pair("Total TTC", "15 000", bold=True),
        QrCode("BFSECEF01;EL02000015;7C0MWH2RQJ4T9XK3VZ5B8NDP"),
        TextLine("Un texte " * 60),
    )
    document = _read(as_pdf(Document("FV-1", "fr", elements)))
    assert [round(side) for side in document.pages[0].mediabox[2:]] == [595, 842]
    assert len(document.pages) > 1
    heads = [f"FV-1, {number}" in page.extract_text() for number, page in enumerate(document.pages, 1)]
    assert heads == [False] + [True] * (len(heads) - 1)
    text = " ".join(page.extract_text() for page in document.pages)
    assert all(
        word in text for word in ("FACTURE DE VENTE", "« Œuvre »", "Thé à la menthe n° 89", "Total TTC", "15 000")
    )
    fonts = [font for page in document.pages for font in page["/Resources"]["/Font"].get_object().values()]
    assert all("/FontFile2" in font.get_object()["/DescendantFonts"][0]["/FontDescriptor"] for font in fonts)


@pytest.mark.parametrize(("options", "sides"), [([], (842, 595)), (["--size", "A5"], (595, 420))])
def test_the_sign_at_the_till_says_the_words_of_the_law(options, sides):
    """`mcfd poster > poster.pdf`: one page, landscape, A4 unless said otherwise (arrêté 2025-0049, art. 6 c)."""
    result = CliRunner().invoke(root, ["poster", *options])
    (page,) = _read(result.stdout_bytes).pages
    assert tuple(round(side) for side in page.mediabox[2:]) == sides
    assert page.extract_text().split() == ["EXIGEZ", "LA", "FACTURE", "ELECTRONIQUE", "CERTIFIEE"]


@pytest.mark.parametrize("lines", [40, 44, 48, 52, 54])
def test_what_proves_a_certification_stands_on_one_page(lines):
    """Code, NIM and QR code are not parted, whatever stands above them."""
    proof = (Rule(), TextLine("7C0M-WH2R", "center"), Pair("NIM", "EL02000015-1"), QrCode("BFSECEF01"), TextLine("end"))
    elements = (*(TextLine(f"Article {number}") for number in range(lines)), *proof)
    *above, last = (page.extract_text() for page in _read(as_pdf(Document("FV-1", "fr", elements))).pages)
    assert all(word in last for word in ("7C0M-WH2R", "NIM", "end"))
    assert "".join([*above, last]).count("NIM") == 1


def test_a_letter_that_the_fonts_lack_is_a_question_mark():
    """An article in Chinese or Arabic letters does not vanish from its line, and what stands beside it is printed."""
    (page,) = _read(
        as_pdf(Document("FV-1", "fr", (TextLine("日本 قهوة Riz"), Pair("日", "1\N{NO-BREAK SPACE}000 B"))))
    ).pages
    assert page.extract_text().split() == ["??", "????", "Riz", "?", "1", "000", "B"]


def test_an_article_and_its_price_stand_on_one_page():
    """Each page begins with an article, wherever the one before is full."""
    lines = [each for at in range(70) for each in (TextLine(f"Article {at}"), Pair("1 x 500", f"{at} B", indent=2))]
    pages = _read(as_pdf(Document("FV-1", "fr", (TextLine("head"), *lines)))).pages
    firsts = [page.extract_text().splitlines()[1] for page in pages]
    assert len(pages) > 2
    assert all(first.startswith("Article") for first in firsts), firsts


@pytest.mark.parametrize("name", ["sans", "sans-bold", "mono"])
def test_the_fonts_have_the_letters_of_the_country(name):
    """A customer's name is printed as it is written; a font that lacks a letter prints an empty box."""
    letters = "ɛƐɔƆɩƖʋƲŋŊɲƝɓƁɗƊƴƳãẽĩõũÃẼĨÕŨ\N{COMBINING TILDE}ʼ№"
    font = TTFont(FONTS / f"{name}.ttf")
    assert {ord(letter) for letter in letters} <= set(font.getBestCmap())


def test_a_pdf_that_takes_too_long_has_failed(monkeypatch):
    """As one that cannot be made: a certification is answered without it."""
    monkeypatch.setattr(pdf, "_LONGEST_S", 0.001)
    with pytest.raises(pdf.PdfFailed):
        as_pdf(Document("FV-1", "fr", (TextLine("head"),)))


def test_nothing_is_said_of_a_library_that_the_package_leaves_out() -> None:
    """Without Pillow, as on a box, a command that makes PDFs writes nothing on stderr."""
    code = "import sys; sys.modules['PIL'] = None; from daemon.paper.pdf import new_pdf; new_pdf('fr', 'x')"
    done = subprocess.run([sys.executable, "-c", code], check=True, text=True, capture_output=True)
    assert done.stderr == ""
