"""What the reports X, Z and A are made of: one line of each of their tables.

What stands above and below the documents of a shop, and the names of what is on them: kept by version, so that a copy is its original for ever (0047 art. 23).

A version is named by the digest of its content. An invoice and a Z hold that name, and so does the chain."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Annotated

import msgspec
from msgspec import Meta

from daemon.core.machine.state import FiscalCounters

DIGEST_LENGTH = 8
_encoder = msgspec.msgpack.Encoder(order="deterministic")


class GroupTotal(msgspec.Struct, frozen=True):
    group: Annotated[str, Meta(description="Tax group")]
    ht: Annotated[int, Meta(description="Without VAT")]
    tva: Annotated[int, Meta(description="VAT")]
    ttc: Annotated[int, Meta(description="With VAT; `ht + tva = ttc`, always")]


class TypeTotal(msgspec.Struct, frozen=True):
    invoice_type: Annotated[str, Meta(description="Invoice type")]
    count: Annotated[int, Meta(description="How many")]
    total_ttc: Annotated[int, Meta(description="Positive, with VAT")]


class TypeGroupTotal(msgspec.Struct, frozen=True):
    invoice_type: Annotated[str, Meta(description="Invoice type")]
    group: Annotated[str, Meta(description="Tax group")]
    ht: Annotated[int, Meta(description="Without VAT")]
    tva: Annotated[int, Meta(description="VAT")]
    ttc: Annotated[int, Meta(description="With VAT; `ht + tva = ttc`, always")]


class PaymentTotal(msgspec.Struct, frozen=True):
    method: Annotated[str, Meta(description="Letter")]
    label: Annotated[str, Meta(description="For people")]
    amount: Annotated[int, Meta(description="XOF, net")]


class NatureTotal(msgspec.Struct, frozen=True):
    nature: Annotated[str, Meta(description="COR, RAN, RAM or RRR")]
    label: Annotated[str, Meta(description="For people")]
    count: Annotated[int, Meta(description="How many")]
    total: Annotated[int, Meta(description="Positive, with VAT")]


class CreditNotes(msgspec.Struct, frozen=True):
    count: Annotated[int, Meta(description="How many")]
    total: Annotated[int, Meta(description="Positive, with VAT")]


class Withholding(msgspec.Struct, frozen=True):
    """PSVB: `rate` in percent, `base` and `amount` in whole XOF."""

    group: Annotated[str, Meta(description="PSVB group A…D")]
    base: Annotated[int, Meta(description="What it is taken on, XOF")]
    rate: Annotated[int | float, Meta(description="Percent")]
    amount: Annotated[int, Meta(description="Withheld, XOF, rounded half up")]


class CashDrawer(msgspec.Struct, frozen=True):
    """`expected` is what the period should have left in the drawer: cash payments + stamp duty + deposits - withdrawals."""

    deposits: Annotated[int, Meta(description="Put into the drawer, XOF")]
    withdrawals: Annotated[int, Meta(description="Taken out, XOF, positive")]
    expected: Annotated[int, Meta(description="Cash payments + stamp duty + deposits - withdrawals of the period")]


class CounterValues(msgspec.Struct, frozen=True):
    tc: Annotated[int, Meta(description="All transactions the machine recorded, its own reports included")]
    fvc: Annotated[int, Meta(description="Sales invoices (FV, FT)")]
    frc: Annotated[int, Meta(description="Credit notes")]


class ClosureSummary(msgspec.Struct, frozen=True):
    z_number: Annotated[int, Meta(description="Sequential for each NIM, from 1")]
    period_start: Annotated[str, Meta(description="Start of the period")]
    period_end: Annotated[str, Meta(description="End of the period")]
    total_ttc: Annotated[int, Meta(description="With VAT, net")]
    certs_count: Annotated[int, Meta(description="Certifications in it")]


def counter_values(counters: FiscalCounters) -> CounterValues:
    return CounterValues(counters.tc, counters.fvc, counters.frc)


class Letterhead(msgspec.Struct, frozen=True, omit_defaults=True):
    """`taxpayer` are I0 to I5 of 2Bh, empty while the machine has not sent them; `name` and `address` are the shop's own words for that time. `labels` name
    the methods of payment by language, `natures`, `clients` and `comments` what their letters stand for. `logo` is a PNG."""

    taxpayer: tuple[str, ...] = ()
    name: str = ""
    address: str = ""
    cadastral: str = ""
    phone: str = ""
    email: str = ""
    accounts: tuple[str, ...] = ()
    regime: str = ""
    tax_office: str = ""
    labels: Mapping[str, Mapping[str, str]] = {}
    natures: Mapping[str, str] = {}
    clients: Mapping[str, str] = {}
    comments: Mapping[str, str] = {}
    logo: bytes = b""

    @property
    def trade_name(self) -> str:
        return (self.taxpayer[0] if self.taxpayer else "") or self.name


_decoder = msgspec.msgpack.Decoder(Letterhead)


def letterhead_bytes(letterhead: Letterhead) -> bytes:
    return _encoder.encode(letterhead)


def read_letterhead(content: bytes) -> Letterhead:
    """msgspec.MsgspecError when the bytes are none."""
    return _decoder.decode(content)


def digest_of(content: bytes) -> bytes:
    return hashlib.sha256(content).digest()[:DIGEST_LENGTH]
