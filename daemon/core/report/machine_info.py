"""The answer of `GET …/info`: a machine and its link to the tax server, as read at one moment."""

from __future__ import annotations

import msgspec

from common.language import Counted, Text
from daemon.core.clock import machine_millis
from daemon.core.invoice.taxes import percent
from daemon.core.ledger.book import Book
from daemon.core.machine.nim import short_nim
from daemon.core.machine.state import FiscalCounters, MachineState, ServerLink

DAY_MS = 86_400_000
ALERT_DAYS = 7
"""Without contact to the tax server for longer, the law wants the user told, daily (protocol 4)."""


def last_contact(days: int | None) -> Text:
    """How long ago the machine met the tax server; None for never."""
    if days is None:
        return Text("no contact known")
    if not days:
        return Text("last contact today")
    return Counted("last contact {count} day ago", "last contact {count} days ago", days)


class Merchant(msgspec.Struct, frozen=True, rename="camel"):
    commercial_name: str
    address: str
    city: str
    zone: str
    email: str
    phone: str


class TaxServer(msgspec.Struct, frozen=True, rename="camel"):
    """`waiting` transactions are in the machine and not yet acknowledged; `days_since_contact` is None before the first."""

    last_contact: str
    acknowledged: int
    waiting: int
    state: str
    last_error: str
    days_since_contact: int | None
    alert: bool


class CounterValues(msgspec.Struct, frozen=True):
    tc: int
    fvc: int
    frc: int


class MachineInfo(msgspec.Struct, frozen=True, rename="camel"):
    """`mode` is the key's: live or test; `test_mode` of a live book is whether its machine's codes are those of a test; `clock_drift` is box
    minus machine, in seconds."""

    nim: str
    nim_short: str
    ifu: str
    mode: str
    datetime: str
    counters: CounterValues
    merchant: Merchant
    rates: dict[str, int | float]
    tax_server: TaxServer
    clock_drift: int | None
    read_at: str
    test_mode: bool


def machine_info(
    book: Book,
    state: MachineState,
    link: ServerLink,
    taxpayer: tuple[str, ...],
    *,
    drift: float | None,
    read_at: str,
    now: int,
    test_mode: bool = False,
) -> MachineInfo:
    """`taxpayer` is I0…I5 of 2Bh: trade name, two lines of address, city, phone, e-mail; rates are given in percent."""
    name, address, address_more, city, phone, email = taxpayer
    return MachineInfo(
        nim=book.nim,
        nim_short=short_nim(book.nim),
        ifu=state.ifu,
        mode=book.mode,
        datetime=state.time,
        counters=_counters(state.counters),
        merchant=Merchant(name, address, city, address_more, email, phone),
        rates={group: percent(rate) for group, rate in sorted(state.rates.items())},
        tax_server=tax_server(link, now),
        clock_drift=None if drift is None else round(drift),
        read_at=read_at,
        test_mode=test_mode,
    )


def tax_server(link: ServerLink, now: int) -> TaxServer:
    contact = machine_millis(link.last_contact)
    silence = None if contact is None else now - contact
    return TaxServer(
        last_contact=link.last_contact,
        acknowledged=link.acknowledged,
        waiting=max(0, link.held - link.acknowledged),
        state=link.state,
        last_error=link.error,
        days_since_contact=None if silence is None else max(0, silence // DAY_MS),
        alert=silence is not None and silence > ALERT_DAYS * DAY_MS,
    )


def _counters(counters: FiscalCounters) -> CounterValues:
    return CounterValues(counters.tc, counters.fvc, counters.frc)
