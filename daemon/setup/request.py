"""Results of a setup: what is at the ports, what is made, and the outcome."""

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
    """The result for one port."""

    port: str
    found: PortReading | Silence

    @property
    def nim(self) -> str:
        return self.found.state.nim if isinstance(self.found, PortReading) else ""

    @property
    def silence(self) -> Text | None:
        """What is there instead of a machine; None if one answered."""
        if isinstance(self.found, PortReading):
            return None
        return SILENCES.get(self.found.why) or self.found.reason

    def without_name(self, text: str) -> str:
        """A text without the port's name, with which some reasons begin."""
        return text.removeprefix(self.port).lstrip(": \N{NO-BREAK SPACE}")


@dataclass(frozen=True)
class FirstPerson:
    """The technician who logs in first. Without a password one is made, and only if no person may log in yet."""

    name: str
    password: str = ""


@dataclass(frozen=True)
class MachineAccess:
    """Data for the tills of one machine; `older_keys`, as id and label, stay valid."""

    nim: str
    address: str
    key: str = ""
    older_keys: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class SetupResult:
    """`previous` is the replaced configuration, `root` the certificate for the tills; None if there is none. `session`
    logs in a first person with a given password; `person` is None if none was made."""

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
    """For tills and browsers: addresses, then the host name."""


def for_till(access: MachineAccess) -> str:
    """The content of a QR code that a till scans."""
    return msgspec.json.encode({"url": access.address, "nim": access.nim, "key": access.key}).decode()
