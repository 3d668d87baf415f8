"""Texts of the data part, and numbers to the line (protocol section 2)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.errors import Unsendable
from bridge.fields import (
    Free,
    compose,
    cut,
    decode,
    escape,
    price,
    quantity,
    short_price,
    unescape,
)

ORDINARY = st.text(st.characters(exclude_categories=("Cc", "Cs"), exclude_characters="^"), max_size=80)


ON_THE_LINE = {
    "a,b": "a^x2c;b",
    "a\rb\nc": "a^xa;b^xd;c",
    "<a> & b": "^lt;a^gt; ^amp; b",
    "50 % de remise; ça va*": "50 % de remise; ça va*",
    "tab\tnul\0del\x7fc1\x85.": "tab nul del c1 .",
    "a^b": "a^b",
}


@pytest.mark.parametrize("text", ON_THE_LINE)
def test_texts_are_escaped_as_the_page_says(text: str) -> None:
    """The six escapes of section 2; other control characters become spaces; a caret stays."""
    assert escape(text) == ON_THE_LINE[text]


@given(ORDINARY.map(lambda text: text + "\r\n,<>&"))
def test_texts_come_back_as_they_went(text: str) -> None:
    """Escaping loses nothing but control characters."""
    assert unescape(escape(text)) == text


def test_a_caret_is_not_escaped_so_numbers_are_compared_as_the_machine_tells_them() -> None:
    """C fact: a number that holds an escape by chance comes back as what that escape stands for."""
    assert unescape(escape("A^lt;1")) == "A<1"
    assert unescape(escape("A\t1")) == "A 1"


@given(st.lists(st.tuples(st.text(max_size=90), st.booleans()), max_size=7), st.integers(0, 219))
def test_a_composed_text_fits_and_keeps_what_must_not_be_cut(parts, limit: int) -> None:
    """At most `limit` bytes of good UTF-8; fixed parts whole and in order; only free texts are shortened, from their end."""
    texts = [Free(text) if is_free else text for text, is_free in parts]
    fixed = sum(len(text.encode("utf-8", "replace")) for text, is_free in parts if not is_free)
    if fixed > limit:
        with pytest.raises(Unsendable):
            compose(texts, limit)
        return
    composed = compose(texts, limit)
    assert len(composed) <= limit
    rest = composed.decode()
    for text, is_free in parts:
        piece = escape(text) if is_free else text
        piece = piece.encode("utf-8", "replace").decode()
        if not is_free:
            assert piece in rest
            rest = rest[rest.index(piece) + len(piece) :]


@given(st.text(max_size=60), st.integers(0, 100))
def test_a_cut_ends_between_characters_and_between_escapes(text: str, limit: int) -> None:
    """What is left of a text is a beginning of it, in whole characters, and as long as fits."""
    left = cut(text, limit)
    clean = text.encode("utf-8", "replace").decode()
    assert len(left) <= limit
    assert unescape(escape(clean)).startswith(unescape(decode(left)))
    if len(escape(clean).encode()) <= limit:
        assert decode(left) == escape(clean)
    else:
        assert len(left) > limit - 6


def test_the_longest_texts_are_cut_first() -> None:
    """A short text next to a long one stays whole."""
    parts = [Free("nom " * 100), ",", Free("Ouaga"), ",", Free("12 rue X")]
    assert compose(parts, 60).endswith(b",Ouaga,12 rue X")
    assert len(compose(parts, 60)) == 60


def test_amounts_are_written_with_their_decimals() -> None:
    """Prices with two decimals, quantities with three, the specific rate without needless ones."""
    assert (price(1500000), price(5), price(1099)) == ("15000.00", "0.05", "10.99")
    assert (quantity(1000), quantity(1), quantity(12345)) == ("1.000", "0.001", "12.345")
    assert (short_price(5000), short_price(5025), short_price(5020)) == ("50", "50.25", "50.20")


def test_what_is_no_utf_8_is_read_as_windows_writes_it() -> None:
    """A name in CP1252 is readable; bytes that are good UTF-8 are never taken for it, unless the machine is known to speak it."""
    assert decode("Épicerie".encode()) == decode("Épicerie".encode("cp1252")) == "Épicerie"
    assert decode("É".encode(), "cp1252") == "Ã‰"
    assert [decode(bytes([byte])) for byte in (0x81, 0x80)] == ["\ufffd", "€"]


def test_texts_go_out_in_the_machine_s_code_page() -> None:
    """A character is one byte in CP1252, a cut ends at one, and what the code page lacks becomes a question mark."""
    assert compose([Free("Café né à Pô"), "\t"], 8, "cp1252") == "Café né".encode("cp1252") + b"\t"
    assert compose([Free("日x")], 8, "cp1252") == b"?x"


@pytest.mark.parametrize("free", ["", "ab"])
def test_what_must_not_be_cut_may_fill_the_frame(free: str) -> None:
    """To its last byte: of a free text beside it nothing is left. One byte more, and the error says how many there are."""
    assert compose(["x" * 10, Free(free)], 10) == b"x" * 10
    with pytest.raises(Unsendable, match="11 bytes that must not be cut do not fit into a frame's 10"):
        compose(["x" * 11, Free(free)], 10)


def test_no_byte_is_given_away_where_texts_are_cut() -> None:
    """What a short text leaves over goes to the long ones, in equal shares."""
    assert compose([Free("aa"), Free("b" * 9), Free("c" * 9)], 12) == b"aa" + b"b" * 5 + b"c" * 5
    assert compose([Free("a" * 9), Free("b" * 9), Free("c" * 9)], 9) == b"aaabbbccc"
    assert compose([Free("aaa"), Free("b" * 9)], 7) == b"aaabbbb"
