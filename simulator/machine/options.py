"""What kind of machine is simulated: identity, habits, and how it treats credit notes."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Literal

import msgspec

from simulator.machine.habits import FirmwareHabits
from simulator.machine.taxes import DEFAULT_RATES

NIM_FORMAT = re.compile(r"[A-Z]{2}[0-9]{8}(?:-[0-9]{1,4})?")

Clock = Callable[[], datetime]
CreditStyle = Literal["pending", "silent", "syn"]


class SimulatorOptions(FirmwareHabits, frozen=True, kw_only=True):
    """`credit_style`: while the tax server checks a credit note (`credit_check` seconds), 38h is answered `P:…` at
    once (pending), or late with nothing in between (silent), or late with SYN in between (syn).

    `log_limit`: how many certified invoices are remembered for tests; 0 keeps none."""

    nim: str = "EL02000015-1"
    ifu: str = "00084440Y"
    test_mode: bool = False
    rates: Mapping[str, int] = msgspec.field(default_factory=lambda: dict(DEFAULT_RATES))
    taxpayer: tuple[str, str, str, str, str, str] = (
        "MAISON FASO",
        "01 BP 1234",
        "Avenue Kwamé Nkrumah, secteur 4",
        "Ouagadougou",
        "+226 25 30 00 00",
        "contact@maison-faso.bf",
    )
    credit_check: float = 0.0
    credit_style: CreditStyle = "pending"
    server_interval: float = 60.0
    log_limit: int = 100_000

    def __post_init__(self) -> None:
        if not NIM_FORMAT.fullmatch(self.nim):
            raise ValueError(f"{self.nim!r} is not a NIM: two letters, eight digits, '-' and a number")


class MachineClock:
    """The machine's battery-backed clock: UTC, with an offset that a test may move."""

    def __init__(self, offset: timedelta = timedelta()) -> None:
        self.offset = offset

    def __call__(self) -> datetime:
        return datetime.now(UTC) + self.offset

    def set(self, now: datetime) -> None:
        self.offset = now - datetime.now(UTC)


def digits14(moment: datetime) -> str:
    text = moment.isoformat(timespec="seconds")  # three times as quick as strftime
    return text[:4] + text[5:7] + text[8:10] + text[11:13] + text[14:16] + text[17:19]
