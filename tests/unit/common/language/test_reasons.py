"""Reasons: what is stored is a code with values, what is read is a sentence, in any language, for ever."""

import json
import string

import pytest

from common.language import LANGUAGES, Text
from common.language.reasons import (
    CERTIFIED_ELSEWHERE,
    MAX_DEPTH,
    NO_ANSWER,
    OUTCOME_NOT_SETTLED,
    PORT_BUSY,
    PORT_UNAVAILABLE,
    REASONS,
    Reason,
    codes_of,
    from_stored,
    to_stored,
)
from daemon.core.errors import LineLost

SAME_IN_BOTH = {"port_unavailable", "fold_unreadable"}


@pytest.mark.parametrize("reason", REASONS.values(), ids=REASONS)
def test_each_reason_comes_back_from_its_column(reason: Reason) -> None:
    """Code and values, and the sentence in both languages; one code, one reason, in snake case."""
    named = [name for _, name, _, _ in string.Formatter().parse(reason.message) if name]
    values = {name: f"V{place}" for place, name in enumerate(named)} or {"after": "C0h"}
    value = reason(**values)
    assert json.loads(to_stored(value)) == {"code": reason.code, "values": values}
    back = from_stored(to_stored(value))
    assert isinstance(back, Reason)
    assert (back.code, back.values, str(back)) == (value.code, value.values, str(value))
    assert back.in_language("fr") == value.in_language("fr") != str(value) or reason.code in SAME_IN_BOTH
    assert REASONS[reason.code] is reason
    assert reason.code.isidentifier()
    assert reason.code.islower()
    assert list(map(str, REASONS.values())).count(str(reason)) == 1


def test_a_reason_within_a_reason_is_told_in_the_same_language() -> None:
    """Stored one in the other; an error counts as the reason it was raised with."""
    error = LineLost(PORT_UNAVAILABLE(port="/dev/mcf", cause=PORT_BUSY))
    back = from_stored(to_stored(OUTCOME_NOT_SETTLED(error=error)))
    assert codes_of(back) == ("outcome_not_settled", "port_unavailable", "port_busy")
    assert back.in_language("fr").endswith("/dev/mcf\N{NO-BREAK SPACE}: un autre programme s'en sert")


@pytest.mark.parametrize(
    "words",
    [
        "the machine does not answer to 38h (as 0.2.0 wrote it)",
        "E: NUMERO DEJA UTILISE {",
        "",
        '{"code": "of_a_newer_version", "values": {}}',
        '{"code": "no_answer"}',
        '{"code": "other_machine", "values": {}}',
        '{"code": "no_answer", "values": ["C0h"]}',
        '{"code":',
        '{"code": "outcome_not_settled", "values": {"error": ' * (MAX_DEPTH + 2),
    ],
)
def test_what_is_no_reason_of_ours_is_shown_as_it_stands(words: str) -> None:
    """The machine's own words, an old row, a newer version's code, a damaged one."""
    back = from_stored(words)
    assert (str(back), back.in_language("fr"), codes_of(back)) == (words, words, ())


def test_text_without_a_code_is_stored_as_it_is() -> None:
    """As what a machine answers; a value that is no text or number is stored as its words."""
    assert to_stored("E: REFUS") == to_stored(Text("E: REFUS")) == "E: REFUS"
    assert json.loads(to_stored(CERTIFIED_ELSEWHERE(number="F-1", found=Text("EL02"), code=OSError(5, "io"))))[
        "values"
    ] == {"number": "F-1", "found": "EL02", "code": "[Errno 5] io"}


def test_what_is_told_is_a_plain_string_in_either_language() -> None:
    """It goes into JSON and MessagePack, whose encoders take no subclass of `str`; also where a text was made of a text."""
    for text in (
        Text(Text("not a sentence of ours")),
        from_stored("E:REFUS"),
        NO_ANSWER,
        PORT_UNAVAILABLE(port="p", cause=PORT_BUSY),
    ):
        assert {type(text.in_language(language)) for language in LANGUAGES} == {str}
