"""A movement of cash as a till writes it, and other acts beside sales in the journal."""

from decimal import Decimal

import pytest

from daemon.core.errors import InvalidRequest
from daemon.core.invoice.intake import Defaults
from daemon.core.ledger.entries import CashMove, Gap, OutageBegun, OutageEnded, Placed, entry_bytes
from daemon.core.report.acts import JournalOutage, journal_act, read_move

DEFAULTS = Defaults("1", "Caisse 1", "1")
FLOAT: dict[str, object] = {"amount": 500, "kind": "deposit", "reason": "float"}


@pytest.mark.parametrize(
    ("more", "who"),
    [
        ({}, ("1", "Caisse 1")),
        ({"operatorId": "7", "operatorName": "Awa"}, ("7", "Awa")),
        ({"operatorName": ""}, ("1", "Caisse 1")),
    ],
)
def test_a_movement_is_read_with_who_made_it(more: dict[str, object], who: tuple[str, str]) -> None:
    """Whom the till names, or else the machine's configuration."""
    assert read_move({**FLOAT, **more}, defaults=DEFAULTS, strict=True) == (CashMove("deposit", 500, "float", *who), ())


@pytest.mark.parametrize(
    ("more", "named"),
    [
        ({"amount": None}, ["amount"]),
        ({"amount": "x"}, ["amount"]),
        ({"amount": 0}, ["amount"]),
        ({"amount": 0.5}, ["amount"]),
        ({"amount": Decimal("0.5")}, ["amount"]),
        ({"kind": None}, ["kind"]),
        ({"kind": "gift"}, ["kind"]),
        ({"reason": None}, ["reason"]),
        ({"reason": ""}, ["reason"]),
        ({"reason": "  "}, ["reason"]),
        ({"reason": 5}, ["reason"]),
        ({"operatorName": "A\x00"}, ["operatorName"]),
        ({"colour": "red"}, ["colour"]),
        ({"amount": None, "kind": None, "reason": None}, ["amount", "kind", "reason"]),
    ],
)
def test_what_is_missing_or_wrong_is_named(more: dict[str, object], named: list[str]) -> None:
    """Each field once, all of them together; with strictness also what nobody knows."""
    with pytest.raises(InvalidRequest) as refused:
        read_move({**FLOAT, **more}, defaults=DEFAULTS, strict=True)
    assert [error.field for error in refused.value.errors] == named


def test_what_is_no_movement_is_not_taken_for_one() -> None:
    """Other entries stand in the same table. What nobody knows is told where it is not refused: the movement stands."""
    placed = Placed(3, 7, 0, 0, entry_bytes(Gap(1, 2, "operator")))
    with pytest.raises(TypeError, match="entry 3 is no CashMove"):
        placed.entry_of(CashMove)
    move, warnings = read_move({**FLOAT, "colour": "red"}, defaults=DEFAULTS, strict=False)
    assert (move.amount, len(warnings), "colour" in str(warnings[0])) == (500, 1, True)


def test_the_journal_says_since_when_the_machine_could_not_certify_and_since_when_it_can() -> None:
    """An entry is written later: it has how long that had lasted, or how long ago it was."""
    begun, ended = OutageBegun(1, "EL02000015-1", "line_lost", 5_000), OutageEnded(1, 2_000)
    lines = [journal_act(Placed(3, 7, 0, 60_000, entry_bytes(each)), 0, "EL02000015-1") for each in (begun, ended)]
    assert [(line.from_, line.to) for line in lines if isinstance(line, JournalOutage)] == [
        ("1970-01-01T00:00:55.000Z", None),
        (None, "1970-01-01T00:00:58.000Z"),
    ]
