"""The closure of a month or a year as it is sent: CloudEvents 1.0, structured JSON, beside the closures of days
(`common.wire.closure`).

Fields may be added; none is renamed, dropped or retyped within version 1."""

import re
from typing import Literal

import msgspec

from common.wire.closure import CloudEvent, Count, Id, LedgerId, Mode, Nim, Shape, Text, Whole
from common.wire.errors import BadEvent, decoded
from common.wire.instants import instant_millis

CalendarKind = Literal["month", "year"]
TYPES: dict[tuple[str, Mode], str] = {
    ("month", "live"): "bf.mcfd.month.v1",
    ("month", "test"): "bf.mcfd.month.test.v1",
    ("year", "live"): "bf.mcfd.year.v1",
    ("year", "test"): "bf.mcfd.year.test.v1",
}
_PERIODS = {"month": re.compile(r"[0-9]{4}-(0[1-9]|1[0-2])", re.ASCII), "year": re.compile(r"[0-9]{4}", re.ASCII)}


class CalendarGrandTotal(Shape, frozen=True):
    """Of the book since its beginning."""

    certs_count: Count
    total_ttc: Whole
    total_ht: Whole
    total_tva: Whole


class CalendarData(Shape, frozen=True):
    """`data` of the event: the report, and its proof. `body` is the report as the box stores it, byte for byte;
    `chain_head` is its hash in the book's chain."""

    kind: CalendarKind
    nim: Nim
    number: Count
    period: Text
    report_id: Id
    created_at: str
    certs_count: Count
    total_ttc: Whole
    total_ht: Whole
    total_tva: Whole
    z_count: Count
    first_z: Count | None
    last_z: Count | None
    grand_total: CalendarGrandTotal
    mode: Mode
    box: Text
    z_chain_head: Text = ""
    chain_previous: Text = ""
    chain_head: Text = ""
    ledger_id: LedgerId = ""
    epoch: Count = 0
    body: str = ""
    key_id: Text = ""


class CalendarEvent(CloudEvent, frozen=True):
    data: CalendarData

    @property
    def nim(self) -> str:
        return self.data.nim


class _Kind(msgspec.Struct):
    type: str = ""


def is_calendar(content: bytes) -> bool:
    """Whether a message has the type of a calendar closure. BadEvent where it cannot be read at all."""
    return decoded(content, _Kind).type in TYPES.values()


def read_calendar(content: bytes) -> CalendarEvent:
    """Raises BadEvent, naming the field, unless it is one closure whose fields agree with each other."""
    event = decoded(content, CalendarEvent)
    data = event.data
    event.check(
        source=f"/mcf/{data.nim}",
        subject=str(data.number),
        id=data.report_id,
        type=TYPES[data.kind, data.mode],
        time=data.created_at,
    )
    if not _PERIODS[data.kind].fullmatch(data.period):
        raise BadEvent("data.period", f"is no {data.kind}")
    instant_millis(data.created_at, "data.created_at")
    return event
