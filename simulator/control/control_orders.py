"""What a test may tell a running simulator: one JSON object per line, one JSON object back (docs/simulator.md)."""

from __future__ import annotations

from typing import Literal

import msgspec
from msgspec import UNSET, UnsetType

from simulator.line.session import Direction, When
from simulator.machine import habits
from simulator.machine.options import CreditStyle


class _Order(msgspec.Struct, tag_field="do", forbid_unknown_fields=True, kw_only=True):
    pass


class Unplug(_Order, tag="unplug"):
    """`seconds` null: until plug."""

    seconds: float | None = None


class Plug(_Order, tag="plug"):
    pass


class Reboot(_Order, tag="reboot"):
    """A power cut: dark for `seconds`; with `nim`, another machine comes up."""

    seconds: float = 0.3
    nim: str = ""


class ForeignInvoice(_Order, tag="foreign-invoice"):
    total: int = 1000
    type: Literal["FV", "FT", "EV", "ET", "FA", "EA"] = "FV"
    number: str = ""


class LoseInvoice(_Order, tag="lose-invoice"):
    pass


class LeaveOpen(_Order, tag="leave-open"):
    """Another program begins an invoice, and goes away."""


class SilenceOrder(_Order, tag="silence"):
    """`seconds` null: until speak."""

    seconds: float | None = None


class Speak(_Order, tag="speak"):
    pass


class AddFault(_Order, tag="fault"):
    spec: str


class SetFaults(_Order, tag="faults"):
    """Instead of those so far; an empty spec ends them."""

    spec: str = ""
    seed: int = 0


class SetMode(_Order, tag="mode"):
    mode: Literal["active", "not activated", "blocked", "deactivated"]


class TaxServerOrder(_Order, tag="tax-server"):
    """Only what is given changes; `last_contact` in 14 digits."""

    reachable: bool | UnsetType = UNSET
    acknowledged: int | UnsetType = UNSET
    last_contact: str | UnsetType = UNSET
    state: Literal["CON", "TRA", "DIS"] | UnsetType = UNSET
    error: str | UnsetType = UNSET


class SetClock(_Order, tag="clock"):
    """`now` in 14 digits, or `offset` in seconds from the true time."""

    now: str = ""
    offset: float = 0.0


class Think(_Order, tag="think"):
    ms: float


class SetOptions(_Order, tag="options"):
    """See `options.Options` and `habits.Habits`; `rates` in hundredths of a percent for the groups that change."""

    ifu: str | UnsetType = UNSET
    test_mode: bool | UnsetType = UNSET
    credit_check: float | UnsetType = UNSET
    credit_style: CreditStyle | UnsetType = UNSET
    short_nim: bool | UnsetType = UNSET
    dashed_codes: bool | UnsetType = UNSET
    close_prefix: bool | UnsetType = UNSET
    close_number: bool | UnsetType = UNSET
    plain_taxpayer: bool | UnsetType = UNSET
    fc_per_type: bool | UnsetType = UNSET
    fvc_local: bool | UnsetType = UNSET
    odd_types: bool | UnsetType = UNSET
    no_codes: bool | UnsetType = UNSET
    vat: habits.Vat | UnsetType = UNSET
    vat_per_line: bool | UnsetType = UNSET
    groups_without_vat: bool | UnsetType = UNSET
    untaxed_specific: bool | UnsetType = UNSET
    line_decimals: bool | UnsetType = UNSET
    untold_specific: bool | UnsetType = UNSET
    numbers: habits.Numbers | UnsetType = UNSET
    texts: habits.Texts | UnsetType = UNSET
    times: habits.Times | UnsetType = UNSET
    fields: habits.Fields | UnsetType = UNSET
    code_page: habits.CodePage | UnsetType = UNSET
    full_customer: bool | UnsetType = UNSET
    whole_close: bool | UnsetType = UNSET
    name_most: int | UnsetType = UNSET
    echo: bool | UnsetType = UNSET
    halves: float | UnsetType = UNSET
    wake: float | UnsetType = UNSET
    clock_offset: float | UnsetType = UNSET
    rates: dict[str, int] | UnsetType = UNSET


class SetCounters(_Order, tag="counters"):
    tc: int | UnsetType = UNSET
    fvc: int | UnsetType = UNSET
    frc: int | UnsetType = UNSET


class TakeSnapshot(_Order, tag="snapshot"):
    """`log`: with the certified invoices whose TC is above `since`."""

    log: bool = True
    since: int = 0


class PauseAt(_Order, tag="pause-at"):
    """The `frame`-th frame of all, or the `next`-th from now on."""

    when: When
    direction: Direction
    frame: int = 0
    next: int = 0


class Resume(_Order, tag="resume"):
    pass


class Stop(_Order, tag="stop"):
    pass


Order = (
    Unplug
    | Plug
    | Reboot
    | ForeignInvoice
    | LoseInvoice
    | LeaveOpen
    | SilenceOrder
    | Speak
    | AddFault
    | SetFaults
    | SetMode
    | TaxServerOrder
    | SetClock
    | Think
    | SetOptions
    | SetCounters
    | TakeSnapshot
    | PauseAt
    | Resume
    | Stop
)
