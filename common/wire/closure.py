"""A closure (Z) in transit: CloudEvents 1.0, structured JSON; `docs/closure-event.schema.json` is the complete schema.
Fields may be added; none is renamed, dropped or retyped within version 1. An added field has a default here, which
a receiver reads in the event of an older box.

The chain head of a book at a closure is `SHA-256(previous ‖ MessagePack(list))`; a receiver can recompute it. The list
is flat except for the counters and begins with the kind, so that no closure can pass for a certification. Times are
milliseconds since 1970; the body is the bytes that the box stored, never encoded again.

A trial has no content: it shows before the first Z whether address, certificate and key are right. It is signed like a
closure and never stored: headquarters checks the signature and answers with a receipt."""

import hashlib
import re
from operator import attrgetter
from typing import Annotated, Final, Literal

import msgspec

from common.wire.errors import BadEvent, decoded
from common.wire.instants import instant_millis

GENESIS = bytes(32)
"""Chain head before the first entry of a book."""

Mode = Literal["live", "test"]
Whole = Annotated[int, msgspec.Meta(ge=1 - 2**53, le=2**53 - 1)]
"""Integers that JSON carries exactly everywhere."""
Count = Annotated[int, msgspec.Meta(ge=0, le=2**53 - 1)]
NIM: Final = re.compile(r"[A-Z]{2}[0-9]{8}(-[0-9]{1,9})?")
"""A machine's name, with its activation counter if it reports one."""
Nim = Annotated[str, msgspec.Meta(pattern=rf"^{NIM.pattern}\Z")]
Id = Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\Z")]
LedgerId = Annotated[str, msgspec.Meta(pattern=r"^([0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12})?\Z")]
Text = Annotated[str, msgspec.Meta(max_length=255)]

TYPES: dict[Mode, str] = {"live": "bf.mcfd.closure.v1", "test": "bf.mcfd.closure.test.v1"}
"""The second is for the sandbox: no tax, no money."""
CONTENT_TYPE = "application/cloudevents+json; charset=utf-8"
MAX_BYTES = 131_072
"""A closure has some ten kilobytes at most; a larger message is none."""
_HASH = re.compile(r"([0-9a-f]{64})?")

TRIAL_TYPE = "bf.mcfd.test.v1"
MAX_TRIAL_BYTES = 2048


class ChainLink(msgspec.Struct, frozen=True, kw_only=True):
    """The content of a closure's hash. `counters` are (tc, fvc, frc)."""

    z_number: int
    report_id: str
    period_start: int
    period_end: int
    created_at: int
    certs_count: int
    total_ttc: int
    counters: tuple[int, int, int]
    unexplained: int
    first_seq: int
    last_seq: int
    body: bytes


def closure_head(previous: bytes, link: ChainLink) -> bytes:
    """`previous` is the chain head before the closure: the report's `chain_previous`."""
    return chained(previous, "closure", *msgspec.structs.astuple(link))


def chained(previous: bytes, *content: object) -> bytes:
    """One link: the previous hash, and a flat list that begins with the kind."""
    return hashlib.sha256(previous + msgspec.msgpack.encode(content)).digest()


class Shape(msgspec.Struct, frozen=True, kw_only=True):
    """Unknown fields are of a later version, and ignored."""


class GroupTotal(Shape, frozen=True):
    group: Annotated[Text, msgspec.Meta(description="Tax group")]
    ht: Annotated[Whole, msgspec.Meta(description="Without VAT")]
    tva: Annotated[Whole, msgspec.Meta(description="VAT")]
    ttc: Annotated[Whole, msgspec.Meta(description="With VAT; `ht + tva = ttc`, always")]


class TypeTotal(Shape, frozen=True):
    invoice_type: Annotated[Text, msgspec.Meta(description="Invoice type")]
    count: Annotated[Count, msgspec.Meta(description="How many")]
    total_ttc: Annotated[Whole, msgspec.Meta(description="Positive, with VAT")]


class TypeGroupTotal(Shape, frozen=True):
    invoice_type: Annotated[Text, msgspec.Meta(description="Invoice type")]
    group: Annotated[Text, msgspec.Meta(description="Tax group")]
    ht: Annotated[Whole, msgspec.Meta(description="Without VAT")]
    tva: Annotated[Whole, msgspec.Meta(description="VAT")]
    ttc: Annotated[Whole, msgspec.Meta(description="With VAT; `ht + tva = ttc`, always")]


class PaymentTotal(Shape, frozen=True):
    method: Annotated[Text, msgspec.Meta(description="Letter")]
    label: Annotated[Text, msgspec.Meta(description="For people")]
    amount: Annotated[Whole, msgspec.Meta(description="XOF, net")]


class NatureTotal(Shape, frozen=True):
    nature: Annotated[Text, msgspec.Meta(description="COR, RAN, RAM or RRR")]
    label: Annotated[Text, msgspec.Meta(description="For people")]
    count: Annotated[Count, msgspec.Meta(description="How many")]
    total: Annotated[Whole, msgspec.Meta(description="Positive, with VAT")]


class CreditNotes(Shape, frozen=True):
    count: Annotated[Count, msgspec.Meta(description="How many")]
    total: Annotated[Whole, msgspec.Meta(description="Positive, with VAT")]


class Withholding(Shape, frozen=True):
    """PSVB: `rate` in percent, `base` and `amount` in whole XOF."""

    group: Annotated[Text, msgspec.Meta(description="PSVB group A…D")]
    base: Annotated[Whole, msgspec.Meta(description="What it is taken on, XOF")]
    rate: Annotated[int | float, msgspec.Meta(description="Percent")]
    amount: Annotated[Whole, msgspec.Meta(description="Withheld, XOF, rounded half up")]


class CashDrawer(Shape, frozen=True):
    """`expected` is what the period should have left in the drawer: cash payments + stamp duty + deposits -
    withdrawals."""

    deposits: Annotated[Whole, msgspec.Meta(description="Put into the drawer, XOF")]
    withdrawals: Annotated[Whole, msgspec.Meta(description="Taken out, XOF, positive")]
    expected: Annotated[
        Whole, msgspec.Meta(description="Cash payments + stamp duty + deposits - withdrawals of the period")
    ]


class CounterValues(Shape, frozen=True):
    tc: Annotated[Count, msgspec.Meta(description="All transactions the machine recorded, its own reports included")]
    fvc: Annotated[Count, msgspec.Meta(description="Sales invoices (FV, FT)")]
    frc: Annotated[Count, msgspec.Meta(description="Credit notes")]


class CashCount(Shape, frozen=True):
    counted: Annotated[Whole, msgspec.Meta(description="What was in the drawer at the closure, counted by a person")]
    difference: Annotated[Whole, msgspec.Meta(description="Counted less what was expected; below 0 what is missing")]


class WaitingSales(Shape, frozen=True):
    """In X and Z, outside every total."""

    count: Annotated[Count, msgspec.Meta(description="Sales that wait for their certification")]
    total: Annotated[Whole, msgspec.Meta(description="What they come to, with VAT; in no other figure of the report")]


class ZGap(Shape, frozen=True):
    """Z numbers `first` to `last` that the ledger will never send: they were given by one that it has replaced;
    `known_from` says who remembers."""

    first: Count
    last: Count
    known_from: Text = ""


class ClosureData(Shape, frozen=True):
    """`data` of the event: the Z report as the till got it, whose amounts are whole XOF, and what proves it."""

    kind: Literal["Z"]
    nim: Nim
    period_start: str
    period_end: str
    certs_count: Count
    total_ttc: Whole
    total_ht: Whole
    total_tva: Whole
    by_group: tuple[GroupTotal, ...]
    by_type: tuple[TypeTotal, ...]
    fvc_start: Count
    fvc_end: Count
    z_number: Count
    report_id: Id
    created_at: str
    mcf_counters: CounterValues
    mode: Mode
    box: Text
    by_type_and_group: tuple[TypeGroupTotal, ...] = ()
    by_payment: tuple[PaymentTotal, ...] = ()
    credit_notes: CreditNotes = CreditNotes(0, 0)
    specific_tax: Whole = 0
    psvb: tuple[Withholding, ...] = ()
    incomplete: Count = 0
    unexplained: Count = 0
    reductions: Whole = 0
    by_nature: tuple[NatureTotal, ...] = ()
    isfs: tuple[Text, ...] = ()
    letterhead: Text = ""
    stamp_duty: Whole = 0
    cash: CashDrawer | None = None
    """None in the event of a box without cash figures."""
    cash_count: CashCount | msgspec.UnsetType = msgspec.UNSET
    """Left out if it was not counted."""
    waiting: WaitingSales | msgspec.UnsetType = msgspec.UNSET
    """Left out by a box that certifies no sale later."""
    chain_previous: str = ""
    """Chain head before the closure: of the last entry of its period, or of the previous closure if there is none."""
    chain_head: str = ""
    ledger_id: LedgerId = ""
    """Id of the ledger's file, for its whole life; the book of a machine's next taxpayer has its own."""
    epoch: Count = 0
    """At the time of the closure; a restore from a backup increases it."""
    previous_report_id: Id | None = None
    """None for the first closure of a book."""
    previous_chain_head: str = GENESIS.hex()
    first_seq: Count = 0
    """Range of the book's entries; `last_seq` is one less than `first_seq` in an empty period."""
    last_seq: Count = 0
    opening_counters: CounterValues | None = None
    """The machine's at the beginning of the period; None if the ledger does not have them (a book's first closure)."""
    gaps: tuple[ZGap, ...] = ()
    """Between the previous closure and this one."""
    body: str = ""
    """The report as the box stored it, byte for byte in UTF-8: `chain_head` includes it."""
    key_id: Text = ""
    """Id of the first signing key."""


class CloudEvent(Shape, frozen=True):
    specversion: Literal["1.0"]
    id: str
    source: str
    type: str
    subject: str
    time: str
    datacontenttype: Literal["application/json"]

    def check(self, **expected: str) -> None:
        """Raises BadEvent, naming the field, if a field does not agree with `data`."""
        for field, content in expected.items():
            if getattr(self, field) != content:
                raise BadEvent(field, f"does not agree with data ({content})")


class ClosureEvent(CloudEvent, frozen=True):
    data: ClosureData

    @property
    def nim(self) -> str:
        return self.data.nim


def read_closure(content: bytes) -> ClosureEvent:
    """Raises BadEvent, naming the field, unless it is one closure whose fields agree with each other. `proves_itself`
    checks its figures, and the signature its sender."""
    if len(content) > MAX_BYTES:
        raise BadEvent("", f"larger than {MAX_BYTES} bytes")
    event = decoded(content, ClosureEvent)
    _check(event)
    return event


def _check(event: ClosureEvent) -> None:
    data = event.data
    event.check(
        source=f"/mcf/{data.nim}",
        subject=str(data.z_number),
        id=data.report_id,
        type=TYPES[data.mode],
        time=data.created_at,
    )
    if data.z_number < 1:
        raise BadEvent("data.z_number", "is below 1")
    for field in ("period_start", "period_end", "created_at"):
        instant_millis(getattr(data, field), f"data.{field}")
    for field in ("chain_previous", "chain_head", "previous_chain_head"):
        _hash(getattr(data, field), f"data.{field}")
    if not all(1 <= gap.first <= gap.last < data.z_number for gap in data.gaps):
        raise BadEvent("data.gaps", "are not numbers before this one")
    if data.body:
        _check_body(data)


_FIELDS = ClosureData.__struct_fields__
_values = attrgetter(*_FIELDS)
_Stored = msgspec.defstruct(
    "_Stored",
    [(field.name, field.type | msgspec.UnsetType, msgspec.UNSET) for field in msgspec.structs.fields(ClosureData)],
    frozen=True,
)
"""The stored report: those fields of a closure that the box's version had."""


def _check_body(data: ClosureData) -> None:
    """Each field beside the body must equal the one in it: what is read is what is proven."""
    expected = _values(data)
    stored = _values(decoded(data.body, _Stored, "data.body"))
    found = tuple(
        beside if inside is msgspec.UNSET else inside for inside, beside in zip(stored, expected, strict=True)
    )
    if found != expected:
        wrong = next(field for field, inside, beside in zip(_FIELDS, found, expected, strict=True) if inside != beside)
        raise BadEvent(f"data.{wrong}", "is not what the body says")


def link_of(data: ClosureData) -> ChainLink:
    """The content of `chain_head`."""
    counters = data.mcf_counters
    return ChainLink(
        z_number=data.z_number,
        report_id=data.report_id,
        period_start=instant_millis(data.period_start, "data.period_start"),
        period_end=instant_millis(data.period_end, "data.period_end"),
        created_at=instant_millis(data.created_at, "data.created_at"),
        certs_count=data.certs_count,
        total_ttc=data.total_ttc,
        counters=(counters.tc, counters.fvc, counters.frc),
        unexplained=data.unexplained,
        first_seq=data.first_seq,
        last_seq=data.last_seq,
        body=data.body.encode(),
    )


def proves_itself(data: ClosureData) -> bool:
    """Whether `chain_head` is this closure's hash; False also for an older box's closure, which has no body."""
    if not (data.body and data.chain_head and data.chain_previous):
        return False
    return closure_head(bytes.fromhex(data.chain_previous), link_of(data)).hex() == data.chain_head


def _hash(text: str, field: str) -> None:
    if _HASH.fullmatch(text) is None:
        raise BadEvent(field, "is not a SHA-256 in hex")


class TrialData(Shape, frozen=True):
    nim: Nim
    box: Text = ""
    key_id: Text = ""
    """Id of the first signing key."""


class Trial(Shape, frozen=True, kw_only=True):
    specversion: Literal["1.0"] = "1.0"
    id: Text
    source: Text
    type: Literal["bf.mcfd.test.v1"] = "bf.mcfd.test.v1"
    subject: Text = "test"
    time: Text
    datacontenttype: Literal["application/json"] = "application/json"
    data: TrialData


def encode_trial(trial: Trial) -> bytes:
    return msgspec.json.encode(trial)


def read_trial(content: bytes) -> Trial | None:
    """None if it is not a trial."""
    if len(content) > MAX_TRIAL_BYTES or TRIAL_TYPE.encode() not in content:
        return None
    try:
        return decoded(content, Trial)
    except BadEvent:
        return None
