"""Texts of the data part, and numbers to the line (protocol section 2)."""

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
    """The six escapes of section 2; other control characters become spaces; a caret stays, so a number that holds an escape by chance comes back as what
    that escape stands for (C fact)."""
    assert escape(text) == ON_THE_LINE[text]
    assert unescape(escape("A^lt;1")) == "A<1"


@given(ORDINARY.map(lambda text: text + "\r\n,<>&"))
def test_texts_come_back_as_they_went(text: str) -> None:
    """Escaping loses nothing but control characters."""
    assert unescape(escape(text)) == text


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


@pytest.mark.parametrize(
    ("parts", "limit", "composed"),
    [
        ([Free("aa"), Free("b" * 9), Free("c" * 9)], 12, "aabbbbbccccc"),
        ([Free("a" * 9), Free("b" * 9), Free("c" * 9)], 9, "aaabbbccc"),
        ([Free("aaa"), Free("b" * 9)], 7, "aaabbbb"),
        ([Free("nom " * 9), ",", Free("Ouaga"), ",", Free("12 rue X")], 26, "nom nom nom,Ouaga,12 rue X"),
        (["x" * 10, Free("")], 10, "x" * 10),
        (["x" * 10, Free("ab")], 10, "x" * 10),
        ([Free("Café né à Pô"), "\t"], 8, "Café né\t"),
        ([Free("日x")], 8, "?x"),
    ],
)
def test_no_byte_is_given_away_where_texts_are_cut(parts, limit: int, composed: str) -> None:
    """The longest texts are cut first, what a short one leaves over goes to them in equal shares, and what must not be cut may fill the frame to its last byte.
    In CP1252 a character is one byte, a cut ends at one, and what the code page lacks becomes a question mark."""
    assert compose(parts, limit, "cp1252") == composed.encode("cp1252")
    with pytest.raises(Unsendable, match="11 bytes that must not be cut do not fit into a frame's 10"):
        compose(["x" * 11, *parts[:0]], 10)
