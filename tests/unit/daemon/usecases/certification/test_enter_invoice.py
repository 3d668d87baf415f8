"""What is believed of the answer to 38h."""

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from support.core_samples import record

from daemon.core.errors import MachineRefused
from daemon.core.machine.state import Certified, FiscalCounters
from daemon.usecases.certification.enter_invoice import OutcomeUnknown, close

BEFORE = FiscalCounters(5, 3, 2)


@dataclass
class Answering:
    """A machine that answers 38h with those counters, or refuses."""

    counters: FiscalCounters | None

    async def certify(self, *_: object) -> Certified:
        if self.counters is None:
            raise MachineRefused("E:no")
        return Certified("CODE", "20261122120000", "00084440Y", self.counters, "")


@pytest.mark.parametrize(
    ("kind", "expected", "believed"),
    [
        ("FV", FiscalCounters(6, 4, 2), True),
        ("FV", FiscalCounters(7, 4, 3), True),
        ("FV", FiscalCounters(5, 4, 2), False),
        ("FV", FiscalCounters(4, 4, 2), False),
        ("FV", FiscalCounters(6, 3, 2), False),
        ("EV", FiscalCounters(6, 3, 2), True),
        ("EV", FiscalCounters(6, 2, 2), False),
        ("FV", None, False),
    ],
)
async def test_an_answer_to_38h_is_believed_where_its_counters_moved(
    kind: str, expected: FiscalCounters | None, believed: bool
) -> None:
    """TC always, and that of its type where it counts at all; of every other answer, and of a refusal, only the machine's next word tells."""
    invoice = msgspec.structs.replace(record().invoice, type=kind)
    machine: Any = Answering(expected)
    worker: Any = SimpleNamespace(counters=BEFORE, book=None, ledger=SimpleNamespace(peek=lambda *_: False))
    if believed:
        assert (await close(worker, machine, invoice)).counters == expected
    else:
        with pytest.raises(OutcomeUnknown):
            await close(worker, machine, invoice)
