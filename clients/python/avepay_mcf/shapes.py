"""What comes back. Fields that a later mcfd adds are ignored."""

from __future__ import annotations

import msgspec


class Got(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    pass


class TaxDetail(Got, frozen=True, kw_only=True):
    group: str
    label: str
    ht: int
    tva: int
    ttc: int


class Warned(Got, frozen=True, kw_only=True):
    code: str
    message: str
    item: int | None = None
    field: str = ""


class Receipt(Got, frozen=True, kw_only=True):
    code_secef: str
    invoice_number: str
    invoice_type: str
    total_ttc: int
    nim: str
    ifu: str
    date_time: str
    qr_content: str
    tc: int
    fvc: int
    frc: int
    certified_at: str
    tax_details: tuple[TaxDetail, ...] = ()
    warnings: tuple[Warned, ...] = ()
    counters: str = ""
    stamp_duty: int = 0


class Preview(Got, frozen=True, kw_only=True):
    total_ttc: int
    tax_details: tuple[TaxDetail, ...] = ()
    warnings: tuple[Warned, ...] = ()


class FieldFault(Got, frozen=True, kw_only=True):
    field: str
    message: str


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """`code` is for programs, `detail` for the screen."""

    code: str
    status: int = 0
    title: str = ""
    detail: str = ""
    request_id: str = ""
    errors: tuple[FieldFault, ...] = ()
    certification: Receipt | None = None
    original_ttc: int | None = None
    credited_ttc: int | None = None


class RequestState(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a request: `status` is waiting, on_the_line, in_doubt, certified, refused, abandoned or answered."""

    status: str
    receipt: Receipt | None = None
    problem: Problem | None = None
