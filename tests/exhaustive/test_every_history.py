"""Every history up to a bound, with the product's own decisions (docs/reliability.md); one event more: `make simulate EVERY=1`."""

import functools
from pathlib import Path

import pytest
from exhaustive import real
from exhaustive.mistakes import FOUND_BY
from exhaustive.pieces import PIECES
from exhaustive.search import Found, Piece, search
from exhaustive.undecidable import described, needless, together
from simulation.patched import Mistake, applied

UNDECIDABLE = Path(__file__).with_name("undecidable.txt")
pieces = pytest.mark.parametrize("piece", PIECES, ids=lambda piece: piece.name)


@functools.cache
def found(piece: Piece) -> Found:
    return search(piece)


@pieces
@pytest.mark.parametrize("fewer", [1, pytest.param(0, marks=pytest.mark.long)])
def test_nothing_is_lost_and_nothing_doubled(piece: Piece, fewer: int) -> None:
    """Nothing certified twice, nothing entered twice or under another number or taxpayer, no certified number free, no Z number twice, no true decision
    refused: after each event of every history."""
    faults = (search(piece, piece.bound - fewer) if fewer else found(piece)).faults
    assert not faults, "\n".join(map(str, faults[:10]))


@pytest.mark.long
@pieces
def test_an_operator_is_asked_where_two_truths_give_the_same_evidence(piece: Piece) -> None:
    """And nowhere else, as far as the other truth is at most two events longer."""
    assert not needless(found(piece), together(map(found, PIECES)), piece.bound - 2)


@pytest.mark.long
def test_the_page_has_what_cannot_be_decided() -> None:
    """docs/reliability.md shows what the search gives."""
    assert described(together(map(found, PIECES))) in UNDECIDABLE.read_text()


@pytest.mark.long
@pytest.mark.parametrize(("name", "mistake"), FOUND_BY, ids=lambda value: getattr(value, "name", ""))
def test_a_deliberate_mistake_is_found(name: str, mistake: Mistake) -> None:
    """The search can fail."""
    piece = next(piece for piece in PIECES if piece.name.startswith(name))
    real.forget()
    try:
        with applied(mistake):
            assert search(piece, most=1).faults
    finally:
        real.forget()
