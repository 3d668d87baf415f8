"""Why a machine certifies nothing: the code of the register of outages, from the code that the loss of the line has."""

from typing import get_args

import pytest

from bridge.errors import LineDown, PortUnavailable
from common.language import Text, sentence
from common.language.reasons import (
    ADDRESS_SILENT,
    LEDGER_FAILED,
    LINE_BUSY,
    NO_ANSWER,
    NOT_ACTIVATED,
    OUTCOME_NOT_SETTLED,
    PORT_MISSING,
    SWITCHED_OFF,
)
from daemon.core.errors import LineLost, StorageFull
from daemon.core.ledger.entries import OutageReason
from daemon.usecases.worker.machine_workers import OUTAGES, outage_of

CASES: list[tuple[object, str]] = [
    (NO_ANSWER(after="C1h"), "no_answer"),
    (LINE_BUSY, "no_answer"),
    (PortUnavailable("tcp://10.0.0.9:4001", "missing", ADDRESS_SILENT), "no_answer"),
    (PortUnavailable("/dev/mcf", "missing", PORT_MISSING), "line_lost"),
    (OUTCOME_NOT_SETTLED(error=LineLost(sentence(LineDown(NO_ANSWER)))), "no_answer"),
    (LineLost(NOT_ACTIVATED), "deactivated"),
    (LEDGER_FAILED(cause=StorageFull(Text("no room"))), "disk"),
    (SWITCHED_OFF, "line_lost"),
    (Text("the machine does not answer, as an old version would have said"), "line_lost"),
]


@pytest.mark.parametrize(("reason", "outage"), CASES, ids=[str(reason) for reason, _ in CASES])
def test_the_reason_decides_by_its_code(reason: object, outage: str) -> None:
    """However deep it lies; the words of a sentence decide nothing."""
    assert outage_of(reason) == outage


def test_only_outages_of_the_register_are_named() -> None:
    """The table has no other values."""
    assert set(OUTAGES.values()) < set(get_args(OutageReason))
