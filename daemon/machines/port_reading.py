"""What a look at a machine gives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from common.language import Text
from daemon.core.machine.state import MachineState, ServerLink

Why = Literal["busy", "missing", "permission", "silent", "stranger", "other"]


@dataclass(frozen=True)
class PortReading:
    """C1h, C2h and the six lines of 2Bh, at one moment."""

    state: MachineState
    link: ServerLink
    taxpayer: tuple[str, ...]
    read_at: int = 0
    """When it was read by the box's clock (ms): the machine's time is compared with that, however long the person thinks meanwhile."""


@dataclass(frozen=True)
class Silence:
    """Why nothing was read: another program holds the line (`busy`), no answer (`silent`), or something that is no
    machine does (`stranger`)."""

    reason: Text
    why: Why

    @property
    def busy(self) -> bool:
        return self.why == "busy"
