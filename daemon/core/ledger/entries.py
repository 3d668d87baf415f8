"""What a book says of itself between its records, chained like them: an activation, numbers that are gone, a time that was
repaired, cash that was put into the drawer or taken out, a month or a year that was closed, an outage, a spare that has taken over.

An entry stands after the record `after_seq` and the closure `after_z`; several at one place stand in the order they were written.

What stands in the journal for an entry whose row is damaged: its place and number, as far as they can be read."""

from __future__ import annotations

from typing import Literal, TypeVar

import msgspec

from common.language import Text
from daemon.core.invoice.invoice import invoice_without_lines
from daemon.core.ledger.attempt import Record
from daemon.core.ledger.book import Tally
from daemon.core.ledger.take_over import TakeOverStep
from daemon.core.machine.state import FiscalCounters

CashKind = Literal["deposit", "withdrawal"]

ReportKind = Literal["X", "A", "articles"]

CalendarKind = Literal["month", "year"]

OutageReason = Literal["line_lost", "no_answer", "blocked", "deactivated", "attention", "disk", "box_off"]
"""`blocked`: the machine refuses every invoice before it is opened, as when the tax server has not heard of it for too long; `disk`: the box cannot
store a certification; `box_off`: seen at the next start."""
Recipient = Literal["administration", "distributor"]
"""Who has to be notified of an outage (arrêté 2025-0049, article 7 c)."""


class Epoch(msgspec.Struct, frozen=True, tag="epoch"):
    """The machine was activated anew for the same taxpayer (decision 33): its name went from `was` to `nim`, its counters from `before` to
    `now`. Credit notes look for their original in their own epoch; the first one has number 1 and no entry."""

    number: int
    was: str
    nim: str
    ifu: str
    before: FiscalCounters
    now: FiscalCounters


class Gap(msgspec.Struct, frozen=True, tag="gap"):
    """The Z numbers `first` to `last` were given by a ledger that this one has replaced (decision 30); `known_from` says who remembers."""

    first: int
    last: int
    known_from: str


class TimeRepair(msgspec.Struct, frozen=True, tag="time"):
    """The records from `first_seq` and the closures from `first_z` on, up to this entry, were written with a clock that was `ahead` ms ahead
    (decision 21). What they are taken for since: that much earlier, not before `floor` and not after the entry. Their hashes hold what was
    written at the time."""

    first_seq: int
    first_z: int
    ahead: int
    floor: int
    reason: str


class CashMove(msgspec.Struct, frozen=True, tag="cash"):
    """Cash put into the drawer or taken out beside sales (decision 34); `amount` in whole XOF, above 0. The machine does not know of it."""

    kind: CashKind
    amount: int
    reason: str
    operator_id: str
    operator_name: str


class CopyAct(msgspec.Struct, frozen=True, tag="copy"):
    """A duplicate of the certified invoice of that code was given out (SFE 2.11), the `copy`-th of it."""

    code: str
    number: str
    copy: int


class ReportAct(msgspec.Struct, frozen=True, tag="report"):
    """A report was given out (SFE 2.23): `body` is its JSON as it was. `number` is that of a closed report of articles, 0 of a look; `upto_seq` says how
    far it goes."""

    kind: ReportKind
    body: str
    number: int = 0
    upto_seq: int = 0


class CalendarClosed(msgspec.Struct, frozen=True, tag="calendar"):
    """A month or a year was closed (0047 art. 23): `period` is `2026-01` or `2026`, `body` its report as JSON. It holds the Zs after the number
    `after_z` up to `upto_z`, the records up to `upto_seq`; `running` are the totals of the book up to there. A `number` that does not follow
    the one before it was given by a ledger that this one has replaced."""

    kind: CalendarKind
    number: int
    period: str
    after_z: int
    upto_z: int
    upto_seq: int
    running: Tally
    body: str


class SaleDeferred(msgspec.Struct, frozen=True, tag="deferred"):
    """A sale was taken on to be certified later; `sold_at` in ms."""

    number: str
    kind: str
    total_ttc: int
    sold_at: int
    reason: str
    outage: int = 0
    """Number of the outage that lasted, 0 for none."""
    digest: str = ""
    """Of its key, its request and the invoice, which stand beside the chain until it is certified; empty before 0.7."""


class SaleDecided(msgspec.Struct, frozen=True, tag="deferred.decided"):
    """One that waited was taken back (`withdrawn`) or was refused by the machine (`refused`, since 0.7), its number free again; or a person said that it
    was not certified (`released`)."""

    number: str
    decision: Literal["withdrawn", "refused", "released"]
    reason: str


class OutageBegun(msgspec.Struct, frozen=True, tag="outage"):
    """A machine cannot certify (arrêté 2025-0049, article 7): when this was written that had lasted for `lasted` ms. Numbers begin at 1 in each book.
    `refused`: a till was refused for it; `incident`: of the line's recorder, empty without one."""

    number: int
    nim: str
    reason: OutageReason
    lasted: int
    refused: bool = False
    incident: str = ""


class OutageEnded(msgspec.Struct, frozen=True, tag="outage.ended"):
    """It can certify again, since `ago` ms before this was written."""

    number: int
    ago: int


class OutageNotified(msgspec.Struct, frozen=True, tag="outage.notified"):
    """A notification of it at `notified_at` (ms), under that reference."""

    number: int
    who: Recipient
    reference: str
    notified_at: int


class SpareDecided(msgspec.Struct, frozen=True, tag="spare"):
    """What a person decided on a machine that is out of order, or is lost, in its book and in that of the other one of the pair alike; `nim` is the
    machine, `spare` the other one; `number` is that of the invoice which was in doubt, where it was not certified."""

    step: TakeOverStep
    nim: str
    spare: str
    reason: str
    number: str = ""


Entry = (
    Epoch
    | Gap
    | TimeRepair
    | CashMove
    | CopyAct
    | ReportAct
    | CalendarClosed
    | SaleDeferred
    | SaleDecided
    | OutageBegun
    | OutageEnded
    | OutageNotified
    | SpareDecided
)
Act = CashMove | CopyAct | ReportAct | OutageBegun | OutageEnded | OutageNotified
"""What the journal tells beside certifications."""


class CashTotal(msgspec.Struct, frozen=True):
    """What was put in and what was taken out, whole XOF, both positive."""

    deposits: int = 0
    withdrawals: int = 0

    def plus(self, move: CashMove) -> CashTotal:
        if move.kind == "deposit":
            return CashTotal(self.deposits + move.amount, self.withdrawals)
        return CashTotal(self.deposits, self.withdrawals + move.amount)


NO_CASH = CashTotal()


E = TypeVar("E", bound=msgspec.Struct)


class Placed(msgspec.Struct, frozen=True):
    """An entry in its place; `body` are its bytes as they were chained, `at` in ms; `chained_at` is what the hash holds instead of `at`
    where the time was repaired since, else 0."""

    id: int
    after_seq: int
    after_z: int
    at: int
    body: bytes
    hash: bytes = b""
    chained_at: int = 0

    @property
    def entry(self) -> Entry:
        return read_entry(self.body)

    def entry_of(self, kind: type[E]) -> E:
        """TypeError for one of another kind."""
        entry = self.entry
        if not isinstance(entry, kind):
            raise TypeError(f"entry {self.id} is no {kind.__name__}")
        return entry


_decoder: msgspec.json.Decoder[Entry] = msgspec.json.Decoder(Entry)


def entry_bytes(entry: Entry) -> bytes:
    return msgspec.json.encode(entry, enc_hook=str)  # a text is stored as its sentence


def read_entry(body: bytes) -> Entry:
    """msgspec.MsgspecError when the bytes are no entry of this version."""
    return _decoder.decode(body)


def read_gaps(content: str) -> tuple[Gap, ...]:
    """From a JSON list of them."""
    return msgspec.json.decode(content, type=tuple[Gap, ...])


def repaired(at: int, repair: TimeRepair, ceiling: int) -> int:
    """What a time that was written with the wrong clock is taken for; in the same order as what was written."""
    return min(max(at - repair.ahead, repair.floor), ceiling)


def unreadable(record_id: int, seq: int, number: str, nim: str, reason: str = "") -> Record:
    return Record(
        id=record_id,
        number=number,
        type="",
        state="damaged",
        begun_at=0,
        base=FiscalCounters(0, 0, 0),
        total_ttc=0,
        invoice=invoice_without_lines(number, "", 0),
        seq=seq,
        reason=reason or str(Text("this entry cannot be read: its row is damaged")),
        nim=nim,
    )


def readable_move(placed: Placed, nim: str) -> Placed | Record:
    """An act of the journal, or what stands for one that cannot be read."""
    try:
        if isinstance(placed.entry, Act):
            return placed
    except (msgspec.MsgspecError, UnicodeError):
        pass
    reason = Text("entry {number} cannot be read: its row is damaged", number=placed.id)
    return unreadable(placed.id, 0, "", nim, str(reason))
