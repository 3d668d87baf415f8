import re

import pytest

from common.language import chosen
from common.numbers import amount, compact, money, percentage, plain_cell, scaled
from common.web.charts import bars


def test_numbers_are_grouped_in_threes_and_lose_no_digit():
    """A space at which no line is broken, and which receipt printers have, in English as in French. A rate is in hundredths of a percent."""
    assert (amount(1234567), amount(-1234), amount(999)) == ("1\xa0234\xa0567", "-1\xa0234", "999")
    assert money(1500) == "1\xa0500\xa0F\xa0CFA"
    assert (percentage(1800, "fr"), percentage(550, "en")) == ("18\xa0%", "5.5%")
    for value, decimals, french, english in (
        (1500, 3, "1,5", "1.5"),
        (-25, 2, "-0,25", "-0.25"),
        (2000, 3, "2", "2"),
        (12345678, 2, "123\xa0456,78", "123\xa0456.78"),
    ):
        assert (scaled(value, decimals, "fr"), scaled(value, decimals, "en")) == (french, english)


@pytest.mark.parametrize(
    ("choice", "accepted", "language"),
    [
        ("en", "fr", "en"),
        ("", "en-GB,fr;q=0.5", "en"),
        ("", "fr;q=0.4, en;q=0.9", "en"),
        ("de", "de", "fr"),
        ("", "", "fr"),
        ("", "en;q=0", "fr"),
        ("", "en;q=x, nan;q=nan, EN-us;q=0.1", "en"),
    ],
)
def test_the_language_of_a_page(choice, accepted, language):
    """The person's choice, then what the browser prefers, then the configuration's."""
    assert chosen(choice, accepted, "fr") == language


def test_a_narrow_cell_has_three_digits():
    """Rounded half up, and never four digits; what has no more of them stands as it is."""
    values = (0, 450, 1500, 924_499, 999_499, 999_500, 1_008_000, 9_994_999, 9_995_000, 2_600_000_000, -12_345)
    visible = ", ".join(compact(value, "en").replace("\N{NO-BREAK SPACE}", " ") for value in values)
    assert visible == "0, 450, 1.5 k, 924 k, 999 k, 1 M, 1.01 M, 9.99 M, 10 M, 2.6 bn, -12.3 k"
    assert (compact(1_250_000, "fr"), compact(2_600_000_000, "fr")) == ("1,25\xa0M", "2,6\xa0Md")
    assert compact(10**16, "fr") == amount(10**16)


@pytest.mark.parametrize(
    "most", [999, 1500, 37_500, 950_000, 8_400_000, 420_000_000, 2_600_000_000, 749_999_999_997, 10**12]
)
def test_what_stands_beside_an_axis_is_short(most):
    """Six characters at the most, whatever a year has sold: more of them are cut off at the left, and "1 000 M" is read as "000 M" on a phone."""
    axis = re.findall(r'class="axis"[^>]*>([^<]*)<', bars([("", most, "")], "sales", language="fr"))
    assert len(axis) == 5
    assert [text for text in axis if len(text) > 6] == []
    english = bars([("", most, "")], "sales", language="en")
    assert not re.search(r'class="axis"[^>]*>([^<]*,|[^<]*Md)', english)


@pytest.mark.parametrize(
    ("text", "cell"),
    [
        ("=cmd|'/c calc'!A1", "'=cmd|'/c calc'!A1"),
        ("Riz;=cmd|'/c calc'!A1", "Riz;'=cmd|'/c calc'!A1"),
        ('Riz; "=1+1', "Riz; \"'=1+1"),
        ("-5", "'-5"),
        ("@SUM(A1)", "'@SUM(A1)"),
        ("\t+1", "'\t'+1"),
        ("\uff1d1+1", "'\uff1d1+1"),
        ("Riz 25 kg - promo", "Riz 25 kg - promo"),
        ("a=b; c", "a=b; c"),
        (";=1", "';'=1"),
        ("", ""),
    ],
)
def test_no_formula_comes_out(text, cell):
    """What a spreadsheet would take for one (attack 8): at its start, or behind a semicolon, at which a French one begins another cell; other text stays as it is."""
    assert plain_cell(text) == cell
