"""A cell that a spreadsheet would take for a formula (attack 8)."""

import pytest

from common.numbers import plain_cell


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
    """At its start, or behind a semicolon, at which a French spreadsheet begins another cell; other text stays as it is."""
    assert plain_cell(text) == cell
