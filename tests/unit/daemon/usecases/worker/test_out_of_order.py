"""Why a machine certifies nothing: the code of the register of outages, from the code that the loss of the line has."""

import asyncio
from types import SimpleNamespace
from typing import Any, get_args

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
from daemon.core.errors import KeyUseLost, LineLost, MachineAttention, MachineRefused, McfdError, StorageFull
from daemon.core.ledger.entries import OutageReason
from daemon.core.ledger.take_over import NotInUse, NumberReserved, UnknownElsewhere
from daemon.usecases.worker.machine_workers import OUTAGES, outage_of, register_refusal

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


REFUSED = MachineRefused("ER 11")


@pytest.mark.parametrize(
    ("state", "error", "expected"),
    [
        ({"obstacle": "another machine"}, MachineAttention("another machine"), ["attention"]),
        ({}, LineLost(NO_ANSWER(after="C1h")), ["no_answer"]),
        ({"obstacle": "another machine"}, StorageFull(Text("no room")), ["disk"]),
        ({"refuses_all": True}, REFUSED, ["blocked"]),
        ({}, REFUSED, []),
        ({"closing": True, "refuses_all": True}, REFUSED, []),
        ({"closing": True}, LineLost(NO_ANSWER(after="C1h")), []),
        ({"connected": False}, NotInUse(Text("the spare certifies")), []),
        ({"connected": False}, NumberReserved("in doubt"), []),
        ({"connected": False}, UnknownElsewhere(Text("the other one knows")), []),
        ({}, KeyUseLost(), []),
    ],
)
async def test_a_refused_till_begins_an_outage(state: dict[str, object], error: McfdError, expected: list[str]) -> None:
    """Unless the invoice, the other machine of the pair or the daemon's stop is why."""
    registered: list[str] = []
    tasks: list[asyncio.Task[Any]] = []

    async def register(reason: str) -> None:
        registered.append(reason)

    worker: Any = SimpleNamespace(**{"obstacle": "", "refuses_all": False, "connected": True, "closing": False} | state)
    worker.register_outage = register
    worker.spawn = lambda work, _: tasks.append(asyncio.ensure_future(work))

    async def work() -> None:
        raise error

    request = asyncio.ensure_future(work())
    await asyncio.wait([request])
    register_refusal(worker, request)
    await asyncio.gather(*tasks)
    assert registered == expected


def test_only_outages_of_the_register_are_named() -> None:
    """The table has no other values."""
    assert set(OUTAGES.values()) < set(get_args(OutageReason))
