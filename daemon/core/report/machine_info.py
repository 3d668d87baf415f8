"""The answer of `GET …/info`: a machine and its link to the tax server, as read at one moment."""

from typing import Annotated

import msgspec
from msgspec import Meta

from common.language import Counted, Text
from common.wire.closure import CounterValues
from daemon.core.certified_core import CORE_VERSION, core_digest
from daemon.core.clock import DAY, machine_millis
from daemon.core.invoice.taxes import percent
from daemon.core.ledger.book import Book
from daemon.core.machine.state import MachineState, ServerLink, short_nim
from daemon.core.report.report_parts import counter_values

WARN_DAYS = 5
"""Without contact to the tax server for so long, page and doctor warn."""
ALERT_DAYS = 7
"""Without contact to the tax server for longer, the law wants a daily warning (protocol 4)."""


def last_contact(days: int | None) -> Text:
    """How long ago the machine met the tax server; None for never."""
    if days is None:
        return Text("no contact known")
    if not days:
        return Text("last contact today")
    return Counted("last contact {count} day ago", "last contact {count} days ago", days)


class Merchant(msgspec.Struct, frozen=True, rename="camel"):
    commercial_name: Annotated[str, Meta(description="Trade name")]
    address: Annotated[str, Meta(description="Address")]
    city: Annotated[str, Meta(description="City")]
    zone: Annotated[str, Meta(description="Second line of the address")]
    email: Annotated[str, Meta(description="E-mail")]
    phone: Annotated[str, Meta(description="Phone")]


class TaxServer(msgspec.Struct, frozen=True, rename="camel"):
    """`waiting`: transactions in the machine that are not acknowledged; `days_since_contact`: None before the first."""

    last_contact: Annotated[str, Meta(description="14 digits; empty before the first contact")]
    acknowledged: Annotated[int, Meta(description="Transactions the tax server has acknowledged")]
    waiting: Annotated[int, Meta(description="Transactions still to be sent")]
    state: Annotated[str, Meta(description="CON, TRA, or DIS (no session open, the normal idle state)")]
    last_error: Annotated[str, Meta(description="The machine's own words")]
    days_since_contact: Annotated[int | None, Meta(description="Null before the first contact")]
    alert: Annotated[bool, Meta(description="True after more than 7 days without contact: a daily warning is due")]


class CertifiedCore(msgspec.Struct, frozen=True):
    """What was homologated, as it runs."""

    version: Annotated[str, Meta(description="Of the certified core")]
    digest: Annotated[str, Meta(description="SHA-256 over its sources")]


class MachineInfo(msgspec.Struct, frozen=True, rename="camel"):
    """`mode`: of the key, live or test. `test_mode`: of a live book, whether the machine gives test codes.
    `clock_drift`: box minus machine, in seconds."""

    nim: Annotated[str, Meta(description="The NIM of the path")]
    nim_short: Annotated[str, Meta(description="Without the activation counter")]
    ifu: Annotated[str, Meta(description="IFU of the taxpayer")]
    mode: Annotated[str, Meta(description="live, or test for the sandbox")]
    datetime: Annotated[str, Meta(description="The machine's clock, 14 digits")]
    counters: Annotated[CounterValues, Meta(description="The machine's counters")]
    merchant: Annotated[Merchant, Meta(description="Who the machine is registered for")]
    rates: Annotated[
        dict[str, int | float], Meta(description="VAT rate in percent by tax group, as the machine holds them")
    ]
    tax_server: Annotated[TaxServer, Meta(description="The machine's link to the tax server")]
    clock_drift: Annotated[int | None, Meta(description="Seconds the box is ahead of the machine")]
    read_at: Annotated[str, Meta(description="When it was read")]
    test_mode: Annotated[
        bool,
        Meta(description="Of a live key: whether the machine's codes begin with TESTFACT, which have no fiscal value"),
    ]
    core: Annotated[CertifiedCore, Meta(description="The part of mcfd that was homologated, as it runs")]
    stands_for: Annotated[
        str | msgspec.UnsetType,
        Meta(description="Of a spare that has taken over: the machine in whose place it certifies; else left out"),
    ] = msgspec.UNSET
    spare: Annotated[
        str | msgspec.UnsetType, Meta(description="The spare of this machine; left out where it has none")
    ] = msgspec.UNSET


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
        counters=counter_values(state.counters),
        merchant=Merchant(name, address, city, address_more, email, phone),
        rates={group: percent(rate) for group, rate in sorted(state.rates.items())},
        tax_server=tax_server(link, now),
        clock_drift=None if drift is None else round(drift),
        read_at=read_at,
        test_mode=test_mode,
        core=CertifiedCore(CORE_VERSION, core_digest()),
    )


def tax_server(link: ServerLink, now: int) -> TaxServer:
    contact = machine_millis(link.last_contact)
    silence = None if contact is None else now - contact
    return TaxServer(
        last_contact=link.last_contact,
        acknowledged=link.acknowledged,
        waiting=max(0, link.documents - link.acknowledged),
        state=link.state,
        last_error=link.error,
        days_since_contact=None if silence is None else max(0, silence // DAY),
        alert=silence is not None and silence > ALERT_DAYS * DAY,
    )
