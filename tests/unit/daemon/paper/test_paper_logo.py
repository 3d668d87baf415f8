"""The shop's logo: every kind of PNG read, and what a receipt printer and a browser make of it."""

import base64
import contextlib
import re
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st
from paper_samples import SALE, record, shop
from support.paper.escpos import printed
from support.paper.png import png

from daemon.paper.escpos import as_escpos
from daemon.paper.html import as_html
from daemon.paper.invoice import invoice_document
from daemon.paper.layout import as_text
from daemon.paper.logo import LARGEST, NotAPicture, raster, read_png
from daemon.paper.shop import Style

CROSS = [
    "#.......#",
    ".#.....#.",
    "..#...#..",
    "...#.#...",
    "....#....",
    "...#.#...",
    "..#...#..",
    ".#.....#.",
    "#.......#",
]
FILTERS = (0, 1, 2, 3, 4)


def drawn(black, white, **kind):
    return png([[black if dot == "#" else white for dot in row] for row in CROSS], filters=FILTERS, **kind)


KINDS = {
    "grey, 1 bit": drawn(0, 1, kind=0, depth=1),
    "grey, 2 bits": drawn(0, 3, kind=0, depth=2),
    "grey, 4 bits": drawn(0, 15, kind=0, depth=4),
    "grey": drawn(0, 255, kind=0),
    "grey, 16 bits": drawn(0, 65535, kind=0, depth=16),
    "colour": drawn((10, 0, 90), (255, 255, 255), kind=2),
    "colour, 16 bits": drawn((0, 0, 9000), (65535, 65535, 65535), kind=2, depth=16),
    "palette, 1 bit": drawn(1, 0, kind=3, depth=1, palette=b"\xff\xff\xff\x00\x00\x40"),
    "palette": drawn(1, 0, kind=3, palette=b"\x00\x00\x00\x00\x00\x40", alphas=b"\x00"),
    "grey on nothing": drawn((0, 255), (0, 0), kind=4),
    "colour on nothing": drawn((0, 0, 0, 255), (0, 0, 0, 0), kind=6),
    "colour on nothing, 16 bits": drawn((0, 0, 0, 65535), (0, 0, 0, 0), kind=6, depth=16),
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_png_prints_the_same_dots(kind):
    """Of whatever depth, colours, filters and transparency: what is dark is a dot, what is light or transparent is paper."""
    (picture,) = printed(as_escpos(document(KINDS[kind]), 48)).pictures
    assert [row[:9] for row in picture] == CROSS
    assert {row[9:] for row in picture} == {"." * 7}


@pytest.mark.parametrize(("width", "dots"), [(32, 256), (42, 384), (48, 384)])
def test_a_large_logo_is_made_smaller(width, dots):
    """Two thirds of the paper at the most, 30 mm high at the most, its proportions kept; a small one stays as it is."""
    (wide,) = printed(as_escpos(document(png([[0] * 700 for _ in range(100)])), width)).pictures
    assert (len(wide[0]), len(wide)) == (dots, 100 * dots // 700)
    (tall,) = printed(as_escpos(document(png([[0] * 100 for _ in range(1000)])), width)).pictures
    assert (len(tall[0]), len(tall)) == (24, 240)
    assert set(wide[0]) == set(tall[0]) == {"#"}


def test_the_logo_stands_above_everything():
    """On paper and in a browser it is the first thing; as text there is none, and nothing else changes."""
    with_logo, without = document(KINDS["grey"]), document(b"")
    assert as_text(with_logo, 48) == as_text(without, 48)
    assert printed(as_escpos(with_logo, 48)).text == "\n" + printed(as_escpos(without, 48)).text
    page = as_html(with_logo, 48)
    first, content = re.search(
        r'<body>\s*<(\w+) class="logo" alt="" src="data:image/png;base64,([^"]+)">', page
    ).groups()
    assert (first, base64.b64decode(content)) == ("img", KINDS["grey"])
    assert "<img" not in as_html(without, 48)


GOOD = KINDS["grey"]
BAD = {
    "it is no PNG": b"GIF89a",
    "it is damaged": GOOD[:-20],
    f"it is larger than {LARGEST // 1024} kB": GOOD + bytes(LARGEST),
    "it has more than 300000 pixels; make it smaller, as 600 by 300": png([[0] * 1000 for _ in range(301)]),
}


@pytest.mark.parametrize("why", BAD)
def test_a_logo_that_cannot_be_read_is_told_and_left_out(why):
    """The reason in words; the document is printed without it."""
    with pytest.raises(NotAPicture, match=re.escape(why)):
        read_png(BAD[why])
    assert printed(as_escpos(document(BAD[why]), 48)).pictures == []


def test_a_bomb_is_not_unpacked():
    """A small file whose pixels would unpack to a hundred megabytes is damaged, and costs no more memory than a picture."""
    bomb = png([[0] * 8 for _ in range(8)], after=bytes(100_000_000))
    assert len(bomb) < LARGEST
    tracemalloc.start()
    with pytest.raises(NotAPicture, match="it is damaged"):
        read_png(bomb)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 5_000_000


@given(at=st.integers(0, len(GOOD) - 1), byte=st.binary(max_size=2))
def test_a_damaged_file_is_never_more_than_unreadable(at, byte):
    """Whatever a stick has made of it: a picture, or a reason; never another error."""
    damaged = GOOD[:at] + byte + GOOD[at + 1 :]
    with contextlib.suppress(NotAPicture):
        read_png(damaged)
    assert isinstance(raster(damaged, 48), bytes)


def document(logo):
    return invoice_document(record(SALE), shop(logo=logo), Style("fr"))
