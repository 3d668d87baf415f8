"""Entries of a book beside its records, in the same chain: activations, lost numbers and records, time repairs, cash
movements, copies, reports, closed months and years, deferred sales, outages, decisions on a spare.

An entry follows the record `after_seq` and the closure `after_z`; entries at one place are in the order of writing."""

from __future__ import annotations

from typing import Literal, TypeVar

import msgspec

from common.language import Text
from daemon.core.invoice.invoice import invoice_without_lines
from daemon.core.ledger.attempt import Record
from daemon.core.ledger.book import Tally
from daemon.core.ledger.take_over import TakeOverStep
from daemon.core.machine.state import NO_COUNTERS, FiscalCounters

CashKind = Literal["deposit", "withdrawal"]

ReportKind = Literal["X", "A", "articles"]

CalendarKind = Literal["month", "year"]

OutageReason = Literal["line_lost", "no_answer", "blocked", "deactivated", "attention", "disk", "box_off"]
"""`blocked`: the machine refuses to open any invoice, for example after too long without the tax server. `disk`: the
box cannot store a certification. `box_off`: found at the next start."""
Recipient = Literal["administration", "distributor"]
"""Who has to be notified of an outage (arrêté 2025-0049, article 7 c)."""


class Epoch(msgspec.Struct, frozen=True, tag="epoch"):
    """The machine was activated again for the same taxpayer (decision 33): its name changed from `was` to `nim`, its
    counters from `before` to `now`. A credit note finds its original by epoch. The first epoch has number 1 and no
    entry."""

    number: int
    was: str
    nim: str
    ifu: str
    before: FiscalCounters
    now: FiscalCounters


class Gap(msgspec.Struct, frozen=True, tag="gap"):
    """The ledger that this one replaced gave the Z numbers `first` to `last` (decision 30); `known_from` is the source
    of that knowledge."""

    first: int
    last: int
    known_from: str


class RecordsLost(msgspec.Struct, frozen=True, tag="lost"):
    """A restore mended the ledger without the records `first_seq` to `last_seq`, which a disk has lost. What follows them
    in the chain has the hash `next_hash` (hex; empty for this entry), and nothing confirms it. `tally`: what they
    counted, by the totals; None if it is in that of the next such entry."""

    first_seq: int
    last_seq: int
    next_hash: str
    tally: Tally | None

    def has(self, seq: int) -> bool:
        return self.first_seq <= seq <= self.last_seq


class TimeRepair(msgspec.Struct, frozen=True, tag="time"):
    """Records from `first_seq` and closures from `first_z` up to this entry were written with a clock that was `ahead`
    ms fast (decision 21). Since then their times count as that much earlier, not before `floor` and not after the
    entry. Their hashes keep the original times."""

    first_seq: int
    first_z: int
    ahead: int
    floor: int
    reason: str


class CashMove(msgspec.Struct, frozen=True, tag="cash"):
    """A cash movement beside sales (decision 34); `amount` in whole XOF, above 0. It is not sent to the machine."""

    kind: CashKind
    amount: int
    reason: str
    operator_id: str
    operator_name: str


class CopyAct(msgspec.Struct, frozen=True, tag="copy"):
    """The `copy`-th duplicate of the certified invoice with that code (SFE 2.11)."""

    code: str
    number: str
    copy: int


class ReportAct(msgspec.Struct, frozen=True, tag="report"):
    """A report that was issued (SFE 2.23): `body` is its JSON. `number` is that of a closed report of articles, 0 if it
    closes nothing; `upto_seq` is the last record in it."""

    kind: ReportKind
    body: str
    number: int = 0
    upto_seq: int = 0


class CalendarClosed(msgspec.Struct, frozen=True, tag="calendar"):
    """A closed month or year (0047 art. 23): `period` is `2026-01` or `2026`, `body` its report as JSON. It covers the
    Zs after `after_z` up to `upto_z` and the records up to `upto_seq`; `running` are the book's totals up to there. If
    `number` does not follow the previous one, a ledger that this one replaced gave the numbers between."""

    kind: CalendarKind
    number: int
    period: str
    after_z: int
    upto_z: int
    upto_seq: int
    running: Tally
    body: str


class SaleDeferred(msgspec.Struct, frozen=True, tag="deferred"):
    """A sale accepted for later certification; `sold_at` in ms since 1970."""

    number: str
    kind: str
    total_ttc: int
    sold_at: int
    reason: str
    outage: int = 0
    """Number of the outage that lasted, 0 for none."""
    digest: str = ""
    """Hash of its key, request and invoice, which are stored outside the chain until certified; empty before 0.7."""


class SaleDecided(msgspec.Struct, frozen=True, tag="deferred.decided"):
    """The end of a deferred sale without certification: the till withdrew it (`withdrawn`), the machine refused it
    (`refused`, since 0.7), or a person decided that it was not certified (`released`). Its number is free again."""

    number: str
    decision: Literal["withdrawn", "refused", "released"]
    reason: str


class OutageBegun(msgspec.Struct, frozen=True, tag="outage"):
    """A machine cannot certify (arrêté 2025-0049, article 7), since `lasted` ms before this entry. Numbers begin at 1
    in each book. `refused`: a till was refused for it. `incident`: name of the line's recording, empty without one."""

    number: int
    nim: str
    reason: OutageReason
    lasted: int
    refused: bool = False
    incident: str = ""


class OutageEnded(msgspec.Struct, frozen=True, tag="outage.ended"):
    """The machine can certify again, since `ago` ms before this entry."""

    number: int
    ago: int


class OutageNotified(msgspec.Struct, frozen=True, tag="outage.notified"):
    """The outage was notified at `notified_at` (ms since 1970) under `reference`."""

    number: int
    who: Recipient
    reference: str
    notified_at: int


class SpareDecided(msgspec.Struct, frozen=True, tag="spare"):
    """A person's decision on a machine that is out of order or lost, entered in the books of both machines of the pair.
    `nim` is the machine, `spare` the other one; `number` is the invoice in doubt that was decided as not certified."""

    step: TakeOverStep
    nim: str
    spare: str
    reason: str
    number: str = ""


Entry = (
    Epoch
    | Gap
    | RecordsLost
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
"""Entries that the journal shows beside certifications."""


class CashTotal(msgspec.Struct, frozen=True):
    """Sums of deposits and withdrawals, whole XOF, both positive."""

    deposits: int = 0
    withdrawals: int = 0

    def plus(self, move: CashMove) -> CashTotal:
        if move.kind == "deposit":
            return CashTotal(self.deposits + move.amount, self.withdrawals)
        return CashTotal(self.deposits, self.withdrawals + move.amount)


NO_CASH = CashTotal()


E = TypeVar("E", bound=msgspec.Struct)


class Placed(msgspec.Struct, frozen=True):
    """A stored entry: `body` are its bytes in the chain, `at` in ms since 1970. `chained_at` is the original time in
    the hash if `at` was repaired since, else 0."""

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
        """TypeError if the entry is of another kind."""
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


def repaired(at: int, repair: TimeRepair, ceiling: int) -> int:
    """The repaired time of `at` (ms); the order of times is preserved."""
    return min(max(at - repair.ahead, repair.floor), ceiling)


def unreadable(record_id: int, seq: int, number: str, nim: str, reason: str = "") -> Record:
    return Record(
        id=record_id,
        number=number,
        type="",
        state="damaged",
        begun_at=0,
        base=NO_COUNTERS,
        total_ttc=0,
        invoice=invoice_without_lines(number, "", 0),
        seq=seq,
        reason=reason or str(Text("this entry cannot be read: its row is damaged")),
        nim=nim,
    )


def readable_move(placed: Placed, nim: str) -> Placed | Record:
    """An act for the journal, or a record in its place if the row cannot be read."""
    try:
        if isinstance(placed.entry, Act):
            return placed
    except (msgspec.MsgspecError, UnicodeError):
        pass
    reason = Text("entry {number} cannot be read: its row is damaged", number=placed.id)
    return unreadable(placed.id, 0, "", nim, str(reason))
