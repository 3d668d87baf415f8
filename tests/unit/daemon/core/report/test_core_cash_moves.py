"""A movement of cash as a till writes it, and other acts beside sales in the journal."""

from decimal import Decimal

import msgspec
import pytest

from daemon.core.errors import InvalidRequest
from daemon.core.invoice.intake import Defaults
from daemon.core.ledger.entries import (
    CashMove,
    CopyAct,
    Gap,
    OutageBegun,
    OutageEnded,
    OutageNotified,
    Placed,
    ReportAct,
    entry_bytes,
)
from daemon.core.report.acts import journal_act, moved, read_move
from daemon.core.report.journal_csv import COLUMNS, csv_act

NIM, MINUTE = "EL02000015-1", "1970-01-01T00:01:00.000Z"
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
    answer = moved(Placed(3, 7, 0, 60_000, entry_bytes(move)), NIM, warnings)
    assert (answer.id, answer.at, answer.nim, answer.amount, answer.warnings) == (3, MINUTE, NIM, 500, warnings)


ACTS = [
    (
        CopyAct("CODE", "=F-1", 2),
        {"state": "copy", "invoiceNumber": "=F-1", "codeSecef": "CODE", "copy": 2},
        {"state": "copy", "invoiceNumber": "'=F-1", "codeSecef": "CODE", "reason": "2"},
    ),
    (
        ReportAct("X", '{"total":1}'),
        {"state": "report", "kind": "X", "number": None, "report": {"total": 1}},
        {"state": "report", "reason": "X"},
    ),
    (
        ReportAct("articles", "{}", 4, 9),
        {"state": "report", "kind": "articles", "number": 4, "report": {}},
        {"state": "report", "reason": "articles 4"},
    ),
    (
        OutageBegun(1, NIM, "line_lost", 5_000),
        {"state": "outage", "outage": 1, "reason": "line_lost", "from": "1970-01-01T00:00:55.000Z"},
        {"state": "outage", "begunAt": "1970-01-01T00:00:55.000Z", "reason": "1 line_lost"},
    ),
    (
        OutageEnded(1, 2_000),
        {"state": "outage.ended", "outage": 1, "to": "1970-01-01T00:00:58.000Z"},
        {"state": "outage.ended", "endedAt": "1970-01-01T00:00:58.000Z", "reason": "1"},
    ),
    (
        OutageNotified(1, "administration", "A-7", 59_000),
        {"state": "outage.notified", "outage": 1, "who": "administration", "reference": "A-7"}
        | {"notifiedAt": "1970-01-01T00:00:59.000Z"},
        {"state": "outage.notified", "begunAt": "1970-01-01T00:00:59.000Z", "reason": "1 administration A-7"},
    ),
    (
        CashMove("withdrawal", 500, "bank", "7", "Awa"),
        {"state": "withdrawal", "amount": 500, "reason": "bank", "operatorId": "7", "operatorName": "Awa"},
        {"state": "withdrawal", "cash": "-500", "reason": "bank", "operatorId": "7", "operatorName": "Awa"},
    ),
]


@pytest.mark.parametrize("z_number", [0, 5])
@pytest.mark.parametrize(("act", "answer", "cells"), ACTS)
def test_each_act_beside_sales_is_a_line_of_the_journal(act, answer, cells, z_number: int) -> None:
    """In the answer to a till and in the CSV file. An entry of an outage is written later: it has how long that had lasted, or how long ago it was."""
    placed, z = Placed(3, 7, 0, 60_000, entry_bytes(act)), z_number or None
    line = msgspec.to_builtins(journal_act(placed, z_number, NIM), builtin_types=(msgspec.Raw,))
    if "report" in line:
        line["report"] = msgspec.json.decode(line["report"])
    assert line == {"id": 3, "nim": NIM, "at": MINUTE, "zNumber": z, **answer}
    expected = {"begunAt": MINUTE, "endedAt": MINUTE, **({"zNumber": str(z)} if z else {}), **cells}
    row = dict(zip(COLUMNS, map(str, csv_act(placed, z_number)), strict=True))
    assert {name: cell for name, cell in row.items() if cell != "None"} == expected
