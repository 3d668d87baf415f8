import pytest

from common.language import chosen
from common.numbers import amount, compact, money, percentage, scaled


def test_amounts_are_grouped_in_threes():
    """A space at which no line is broken, and which receipt printers have; a comma on English paper."""
    assert (amount(1234567), amount(-1234), amount(999)) == ("1\xa0234\xa0567", "-1\xa0234", "999")
    assert amount(1234567, "en") == "1,234,567"
    assert money(1500) == "1\xa0500\xa0F\xa0CFA"


@pytest.mark.parametrize(
    ("value", "decimals", "french", "english"),
    [
        (1500, 3, "1,5", "1.5"),
        (-25, 2, "-0,25", "-0.25"),
        (2000, 3, "2", "2"),
        (12345678, 2, "123\xa0456,78", "123,456.78"),
    ],
)
def test_quantities_lose_no_digit(value, decimals, french, english):
    assert (scaled(value, decimals, "fr"), scaled(value, decimals, "en")) == (french, english)


def test_a_rate_is_in_hundredths_of_a_percent():
    assert (percentage(1800, "fr"), percentage(550, "en")) == ("18\xa0%", "5.5%")


@pytest.mark.parametrize(
    ("choice", "accepted", "language"),
    [
        ("en", "fr", "en"),
        ("", "en-GB,fr;q=0.5", "en"),
        ("", "fr;q=0.4, en;q=0.9", "en"),
        ("de", "de", "fr"),
        ("", "", "fr"),
    ],
)
def test_the_language_of_a_page(choice, accepted, language):
    """The person's choice, then what the browser prefers, then the configuration's."""
    assert chosen(choice, accepted, "fr") == language


def test_a_narrow_cell_has_thousands_or_millions():
    """Rounded half up, and never four digits of thousands."""
    visible = {
        value: compact(value, "fr").replace("\N{NO-BREAK SPACE}", " ")
        for value in (0, 499, 500, 924_499, 999_499, 999_500, 1_008_000, 1_250_000, 9_994_999, 9_995_000)
    }
    assert list(visible.values()) == [
        "0 k",
        "0 k",
        "1 k",
        "924 k",
        "999 k",
        "1 M",
        "1,01 M",
        "1,25 M",
        "9,99 M",
        "10 M",
    ]
    assert compact(1_250_000, "en").endswith("1.25\N{NO-BREAK SPACE}M")
