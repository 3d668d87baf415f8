"""What a setup finds at the ports, what it makes beside the configuration, and its result."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec

from common.language import Text
from daemon.core.machine.state import PortReading, Silence

SILENCES: Final = {
    "silent": Text("no answer"),
    "stranger": Text("something answers, but not as a fiscal machine"),
}


@dataclass(frozen=True)
class PortResult:
    """One port and what came of asking it."""

    port: str
    found: PortReading | Silence

    @property
    def nim(self) -> str:
        return self.found.state.nim if isinstance(self.found, PortReading) else ""

    @property
    def silence(self) -> Text | None:
        """What was there instead of a machine; None where one answered."""
        if isinstance(self.found, PortReading):
            return None
        return SILENCES.get(self.found.why) or self.found.reason

    def without_name(self, text: str) -> str:
        """What stands beside the name of the port, which some reasons begin with."""
        return text.removeprefix(self.port).lstrip(": \N{NO-BREAK SPACE}")


@dataclass(frozen=True)
class FirstPerson:
    """The technician who logs in first. Without a password one is made, and only where no one may log in yet."""

    name: str
    password: str = ""


@dataclass(frozen=True)
class MachineAccess:
    """What the tills of one machine need; `older_keys`, as id and label, stay valid."""

    nim: str
    address: str
    key: str = ""
    older_keys: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class SetupResult:
    """`previous` is the configuration that was replaced, `root` the certificate that tills have to trust; None where there is none.
    `session` logs in the first person who brought a password; `person` is None where none was made."""

    config: Path
    previous: Path | None
    root: Path | None
    machines: tuple[MachineAccess, ...]
    person: FirstPerson | None
    session: str
    scheme: str
    host: str
    port: int
    urls: tuple[str, ...]
    """By which tills and browsers reach it: addresses, then the host name."""


def for_till(access: MachineAccess) -> str:
    """What a till scans instead of typing."""
    return msgspec.json.encode({"url": access.address, "nim": access.nim, "key": access.key}).decode()
