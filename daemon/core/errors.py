"""What can go wrong, in the field's words; `api/problems.py` maps each class to one problem+json answer.

McfdError
├── InvalidRequest        the till sent something that cannot be certified (422)
├── DuplicateInvoice      this NIM has certified that number already (409)
├── KeyReused             the Idempotency-Key came with another request (409)
├── ZNumberUnknown        the last Z number of this machine is not known (409)
├── PeriodEnded          another Z has closed the period meanwhile (409)
├── PeriodNotOver         the month or year is not over, or nothing is left to close (409)
├── NothingToClose        nothing was sold since the last report of articles (409)
├── CreditExceedsOriginal credits would exceed the invoice they refer to (409)
├── RequestExpired        it came, or had its turn, after the time that its client gave it; nothing was sent (410)
├── TooManyActs           a key or a person has moved cash, or requested paper, too often within an hour (429)
├── NotFound              no such record in this book (404)
├── MachineError          the machine or its line
│   ├── MachineRefused    the machine refused, in its own words; nothing was certified (422)
│   ├── MachineOffline    no machine to ask at the moment; nothing was sent (503)
│   ├── MachineBusy       the queue is full or patience ended; nothing was sent (503)
│   ├── LineLost          the line died in the middle of a command; its effect is unknown (503)
│   │   ├── NothingDone   … and it is known that nothing came of it (503)
│   │   └── CertifiedElsewhere  … and another machine has certified it (503)
│   ├── MachineNonsense   the machine answers, but not as the protocol says (502)
│   └── MachineAttention  an operator has to settle what was found (503)
├── PrinterFailed         the receipt printer is gone, out of paper or too slow (503)
└── StorageError
    ├── StorageFull       no room, or read-only; noticed before the machine is used (507)
    │   ├── LedgerMoved       its file is not where it was opened; noticed within seconds (507)
    │   └── OutcomeNotStored  the machine certified, and the ledger does not take it at the moment (507)
    └── LedgerUnusable    damaged, newer, or held by another daemon: the start is refused (503)
        ├── LedgerInUse   another process writes it
        └── EntryDamaged  one row cannot be read
"""

import re
from pathlib import Path
from typing import Annotated, Self

import msgspec
from msgspec import Meta

from common.language import Language, Text
from common.language.reasons import (
    CERTIFIED_ELSEWHERE,
    CREDIT_EXCEEDS_ORIGINAL,
    CREDIT_EXCEEDS_REST,
    KEY_REUSED,
    REQUEST_EXPIRED,
    from_stored,
)

_PATH = re.compile(r"(?<![\w/])/(?:[\w.@+-]+/)*[\w.@+-]+")
PORT, FILE = Text("the port"), Text("a file of the box")
"""What is said for a path."""


class FieldError(msgspec.Struct, frozen=True):
    """One fault of a request: `field` is a path as `items[2].taxGroup`."""

    field: Annotated[str, Meta(description="Path, as `items[2].taxGroup`")]
    message: Annotated[str, Meta(description="What is wrong with it")]


class McfdError(Exception):
    """Root of every error that has an answer of its own."""


class InvalidRequest(McfdError):
    def __init__(self, errors: list[FieldError]) -> None:
        self.errors = tuple(errors)
        super().__init__("; ".join(f"{e.field}: {e.message}" for e in errors))

    @classmethod
    def at(cls, field: str, message: str) -> Self:
        """With this one fault."""
        return cls([FieldError(field, message)])


class KeyReused(McfdError):
    def __init__(self) -> None:
        super().__init__(KEY_REUSED)


class ZNumberUnknown(McfdError):
    """The last Z is unknown after a restore (decision 30); an operator enters it from paper."""

    def __init__(self, nim: str) -> None:
        super().__init__(
            Text(
                "the last Z of {nim} is not known after a restore, and no Z is made before a technician has entered its number "
                "from paper",
                nim=nim,
            )
        )


class PeriodEnded(McfdError):
    """`z_number` is the last Z, which the caller did not expect."""

    def __init__(self, z_number: int) -> None:
        super().__init__(
            Text(
                "the period was closed meanwhile: the last Z is number {z_number}; nothing was closed",
                z_number=z_number,
            )
        )


class PeriodNotOver(McfdError):
    """`period` is the month or year that was named, `last` the last one that is closed; each may be empty."""

    def __init__(self, period: str, last: str) -> None:
        if period:
            detail = Text("{period} is not over; nothing was closed", period=period)
        elif last:
            detail = Text("nothing is over since {last}, which is closed; nothing was closed", last=last)
        else:
            detail = Text("nothing is over yet; nothing was closed")
        super().__init__(detail)


class NothingToClose(McfdError):
    def __init__(self) -> None:
        super().__init__(Text("nothing was certified since the report before; nothing was closed"))


class CreditExceedsOriginal(McfdError):
    """Whole XOF: what the original was, what its credits would come to, and what is left of it (None in a reason that
    mcfd 0.15 stored)."""

    def __init__(self, reference: str, original_ttc: int, credited_ttc: int, left_ttc: int | None = None) -> None:
        self.reference = reference
        self.original_ttc = original_ttc
        self.credited_ttc = credited_ttc
        self.left_ttc = left_ttc
        sums = {"reference": reference, "credited_ttc": credited_ttc, "original_ttc": original_ttc}
        super().__init__(
            CREDIT_EXCEEDS_ORIGINAL(**sums) if left_ttc is None else CREDIT_EXCEEDS_REST(**sums, left_ttc=left_ttc)
        )


class TooManyActs(McfdError):
    """`retry_after` in seconds."""

    def __init__(self, most: int, retry_after: int) -> None:
        self.retry_after = retry_after
        super().__init__(Text("this may be done {most} times an hour; nothing was noted", most=most))


class RequestExpired(McfdError):
    def __init__(self, why: Text = REQUEST_EXPIRED) -> None:
        super().__init__(why)


class NotFound(McfdError):
    pass


class MachineError(McfdError):
    pass


class MachineRefused(MachineError):
    """`is_open`: it had taken C3h and C0h of the invoice before."""

    def __init__(self, text: str, *, is_open: bool = False) -> None:
        self.text = from_stored(text)
        self.is_open = is_open
        super().__init__(Text("the machine refused: {text}", text=self.text))


class MachineOffline(MachineError):
    def __init__(self, detail: str, retry_after: int = 2) -> None:
        self.retry_after = retry_after
        super().__init__(detail)


class MachineBusy(MachineError):
    def __init__(self, detail: str, retry_after: int = 2) -> None:
        self.retry_after = retry_after
        super().__init__(detail)


class LineLost(MachineError):
    pass


class NothingDone(LineLost):
    """`detail` says what did not happen."""

    def __init__(self, cause: Exception, detail: str) -> None:
        super().__init__(Text("the line to the machine was lost ({cause}); {detail}", cause=cause, detail=detail))


class CertifiedElsewhere(LineLost):
    """Another machine answered 38h, since cables were exchanged: it has certified the invoice, with `code`."""

    def __init__(self, nim: str, code: str, number: str) -> None:
        self.nim, self.code = nim, code
        super().__init__(CERTIFIED_ELSEWHERE(number=number, found=nim, code=code))


class MachineNonsense(MachineError):
    pass


class MachineAttention(MachineError):
    """`found` is what an operator needs to see, in one sentence."""

    def __init__(self, found: str) -> None:
        self.found = found
        super().__init__(from_stored(found))


class PrinterFailed(McfdError):
    """Why nothing, or not all, came out of the receipt printer; the document can be requested again."""


class StorageError(McfdError):
    pass


class StorageFull(StorageError):
    pass


class LedgerMoved(StorageFull):
    """The ledger's file was moved, deleted or replaced while it was open."""


class OutcomeNotStored(StorageFull):
    def __init__(self) -> None:
        super().__init__(Text("the machine certified the invoice, but it cannot be stored at the moment"))


class LedgerUnusable(StorageError):
    pass


class LedgerInUse(LedgerUnusable):
    """By a daemon, which answers at its socket `control`, or by a command."""

    def __init__(self, ledger: Path, process: str, control: Path | None, *, is_command: bool) -> None:
        self.control = control
        self.is_command = is_command
        text = Text("{ledger} is in use by another mcfd (process {process}); stop that one first")
        if not is_command:
            text = Text(
                "{ledger} is in use by another mcfd (process {process}); stop that one first (the service: sudo systemctl stop mcfd)"
            )
        super().__init__(text(ledger=ledger, process=process or "?"))


class EntryDamaged(LedgerUnusable):
    def __init__(self, seq: object, number: object) -> None:
        self.seq = seq if isinstance(seq, int) else 0
        self.number = number if isinstance(number, str) else ""
        super().__init__(
            Text(
                "entry {seq} (invoice {number!r}) of the ledger cannot be read; put the last backup back with `mcfd restore --keep-newer`",
                seq=self.seq,
                number=self.number,
            )
        )


class KeyUseLost(LedgerUnusable):
    """A damaged ledger has lost what was done with an Idempotency-Key."""

    def __init__(self) -> None:
        super().__init__(
            Text(
                "what was done with this Idempotency-Key is lost in a damaged ledger: look for it on the machine's paper"
            )
        )


def without_paths(text: str, language: Language = "en", noun: Text = PORT) -> str:
    """No path of the box leaves in a body (decision 11): each is the `noun`."""
    return _PATH.sub(noun.in_language(language), str(text))


class JoinFailed(McfdError):
    """The box has not joined a headquarters; nothing has changed."""


class KeyRevoked(JoinFailed):
    """Headquarters does not take this key any more; another one is made."""
