"""Rows of the tables in the reports X, Z and A; and the letterhead of a shop's documents.

Letterheads are stored by version, so that a copy always equals its original (0047 art. 23). A version is named by the
digest of its content; invoices, Zs and the chain have that name."""

import hashlib
from collections.abc import Mapping
from typing import Annotated

import msgspec
from msgspec import Meta

from common.wire.closure import CounterValues
from daemon.core.machine.state import FiscalCounters

DIGEST_LENGTH = 8
_encoder = msgspec.msgpack.Encoder(order="deterministic")


class ClosureSummary(msgspec.Struct, frozen=True):
    z_number: Annotated[int, Meta(description="Sequential for each NIM, from 1")]
    period_start: Annotated[str, Meta(description="Start of the period")]
    period_end: Annotated[str, Meta(description="End of the period")]
    total_ttc: Annotated[int, Meta(description="With VAT, net")]
    certs_count: Annotated[int, Meta(description="Certifications in it")]


def counter_values(counters: FiscalCounters) -> CounterValues:
    return CounterValues(counters.tc, counters.fvc, counters.frc)


class Letterhead(msgspec.Struct, frozen=True, omit_defaults=True):
    """`taxpayer`: I0 to I5 of 2Bh, empty until the machine has sent them; until then `name` and `address` from the
    configuration. `labels`: names of the payment methods by language; `natures`, `clients`, `comments`: meanings of
    their letters. `logo`: a PNG."""

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
