"""The rule for a text of one line that a person enters."""

import re

import pytest

from common.one_line import NOT_BLANK, ONE_LINE, fault_of_line

LONGEST = 5


@pytest.mark.parametrize(
    ("text", "line", "label"),
    [
        ("été 1", True, True),
        ("a\N{NO-BREAK SPACE}b", True, True),
        ("", True, False),
        ("  ", True, False),
        ("\N{NO-BREAK SPACE}", True, False),
        ("a\nb", False, False),
        ("a\n", False, False),
        ("\x1b[2J", False, False),
        ("\x85", False, False),
        ("a\N{LINE SEPARATOR}", False, False),
        ("abcdef", False, False),
    ],
)
def test_a_line_is_short_and_shows_something(text: str, *, line: bool, label: bool) -> None:
    """Functions and patterns, which have no length, agree."""
    assert (fault_of_line(text, LONGEST, may_be_blank=True) is None, fault_of_line(text, LONGEST) is None) == (
        line,
        label,
    )
    if len(text) <= LONGEST:
        assert (bool(re.search(ONE_LINE, text)), bool(re.search(NOT_BLANK, text))) == (line, label)


def test_what_no_font_shows_is_no_label() -> None:
    """Nor what UTF-8 cannot carry."""
    assert fault_of_line("\N{ZERO WIDTH SPACE}\N{HANGUL FILLER}", LONGEST)
    assert fault_of_line("\ud800", LONGEST, may_be_blank=True)
