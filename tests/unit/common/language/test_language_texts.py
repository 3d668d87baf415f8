import re
import runpy
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from common.language import Counted, Speaker, Text, ambient, catalogue, translated

ROOT = Path(__file__).parents[4]
PO = ROOT / "common/language/locales/fr/LC_MESSAGES/mcfd.po"
SCRIPT = ROOT / "packaging/texts.py"


@pytest.fixture(scope="module")
def texts():
    return SimpleNamespace(**runpy.run_path(str(SCRIPT)))


@pytest.fixture(scope="module")
def code(texts):
    """Every text in the code; to find them takes a second."""
    return texts.found()


def compiled(po, tmp_path):
    """By our own compiler, as the build runs it."""
    file = tmp_path / "fr/LC_MESSAGES/mcfd.po"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(po)
    subprocess.run([sys.executable, ROOT / "packaging/catalogue.py", tmp_path], check=True, timeout=60)
    return file.with_suffix(".mo").read_bytes()


def test_the_compiled_catalogue_is_that_of_the_source(tmp_path):
    """What runs is what a translator wrote: where this fails, `make venv` compiles."""
    assert PO.with_suffix(".mo").read_bytes() == compiled(PO.read_text(), tmp_path)


def test_a_text_is_told_in_either_language():
    """A text is English until it is told; texts inside it are told in its language too. Braces in a value are characters. One without a translation stops nothing."""
    text = Text("No. {number}", number=Text("Customer"))
    assert text == "No. Customer"
    assert text.in_language("fr") == "N° Client"
    assert text.in_language("en") == "No. Customer"
    assert text(number=7).in_language("fr") == "N° 7"
    assert text(number="{0.__class__}").in_language("fr") == "N° {0.__class__}"
    assert Speaker("fr")("No. {number}", number="{x}") == "N° {x}"
    assert (translated("nobody says this", "fr"), translated("", "fr")) == ("nobody says this", "")
    assert catalogue("en").gettext("Customer") == "Customer"


@pytest.mark.parametrize(
    ("number", "english", "french"),
    [
        (0, "0 Z closures", "0 clôture Z"),
        (1, "1 Z closure", "1 clôture Z"),
        (2, "2 Z closures", "2 clôtures Z"),
    ],
)
def test_a_number_has_its_own_plural_in_each_language(number, english, french):
    """None is several in English and one in French; alone, inside another sentence, and with the number written as people do."""
    text = Counted("{count} Z closure", "{count} Z closures", number)
    assert (str(text), text.in_language("en"), text.in_language("fr")) == (english, english, french)
    assert Speaker("fr")(text) == french
    assert Speaker("fr")("{name}: {value}", name="X", value=text) == f"X\N{NO-BREAK SPACE}: {french}"
    assert (
        Counted("{count} record", "{count} records", 1000, count="1 000").in_language("fr") == "1 000 enregistrements"
    )


def test_no_text_leaves_the_plural_to_the_reader(texts, code):
    """Neither the code nor a catalogue has "record(s)" or "clôture(s)"."""
    catalogues = [texts.load(path) for path in texts.sources(texts.FOLDER)]
    rows = [
        text
        for message in code
        if message.id
        for form in (message.id, *(each[message.id].string for each in catalogues))
        for text in texts.forms(form)
    ]
    assert [text for text in rows if re.search(r"\w\((s|es|e|x)\)", text)] == []


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({}, "fr"),
        ({"LANG": "C.UTF-8"}, "fr"),
        ({"LANG": "en_US.UTF-8"}, "en"),
        ({"LANG": "en_US.UTF-8", "LC_ALL": "fr_BF.UTF-8"}, "fr"),
        ({"LANG": "fr_FR", "LC_MESSAGES": "en_GB"}, "en"),
    ],
)
def test_the_terminal_is_french_unless_it_says_english(environ, expected):
    """French is the default of the shop; an English locale gets English."""
    assert ambient(environ) == expected


def test_french_has_one_apostrophe():
    """The straight one, which is on every keyboard and in the code pages of receipt printers; both side by side look like a fault."""
    assert re.findall("^(?!msgid|#).*\N{RIGHT SINGLE QUOTATION MARK}.*$", PO.read_text(), re.MULTILINE) == []


@pytest.mark.parametrize("month", ["avril 2026", "août 2026", "octobre 2026"])
def test_no_month_needs_an_elision(month):
    """French says "d'août": no sentence has "de" before a month that is put in."""
    assert not re.search(r"\bde [ao]", Speaker("fr")("VAT of {month}", month=month))


@pytest.mark.parametrize("folder", ["common/web", "daemon/api/page", "headquarters/page"])
def test_no_template_has_a_colon_of_french(folder):
    """With a space in front: what both languages write differently is a text."""
    sheets = {path.name: path.read_text() for path in (ROOT / folder / "templates").glob("*.html")}
    assert sheets
    assert [name for name, sheet in sheets.items() if re.search(r"[}\w>\"] : [{\w<\"]|\" : \"", sheet)] == []
