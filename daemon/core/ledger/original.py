"""Which sale a credit note is of: its reference names a machine, an activation and a counter, its own type the family (SECeF 2.12.4).

However a reference is written, the same sale is found: in the books of whatever machine of this box, by whichever of its names.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from common.language import Text
from daemon.core.errors import CreditExceedsOriginal, FieldError, InvalidRequest, MachineBusy
from daemon.core.invoice.fields import Fields
from daemon.core.invoice.invoice import CREDITS, SALES
from daemon.core.invoice.number import Reference, read_reference
from daemon.core.invoice.request import SHORT_LENGTH
from daemon.core.machine.state import activation_of

ORIGINALS: Final[Mapping[str, tuple[str, ...]]] = {"FA": ("FV", "FT"), "EA": ("EV", "ET")}
FIELD: Final = "creditNoteRef"
ORIGINAL_NUMBER: Final = "originalInvoiceNumber"
Place = tuple[int, int]
"""A book and an epoch."""


class Name(NamedTuple):
    """What a machine is called in one epoch of one book. `goes_on`: its counters did, in the epoch after that."""

    book_id: int
    epoch: int
    nim: str
    is_present: bool
    """The name of now, of the taxpayer of now."""
    goes_on: bool = False


class PossibleOriginal(NamedTuple):
    """A sale that a reference may mean. `moved`: the counter is its own, and not that of the sale before it. `credited` is what certified and disputed
    credit notes have taken of it, `claimed` that and those whose outcome is not known yet."""

    id: int
    number: str
    type: str
    total_ttc: int
    moved: int = 1
    credited: int = 0
    claimed: int = 0

    def is_credited_by(self, credit_type: str) -> bool:
        """A type in words of the machine's own says nothing; but only an export may leave FVC where it was."""
        if self.type in (*SALES, *CREDITS):
            return self.type in ORIGINALS[credit_type]
        return bool(self.moved) or credit_type == "EA"


def locate(reference: Reference, names: Sequence[Name]) -> tuple[Place, ...]:
    """Where the sale is looked for, what the reference names first, then the newest: nowhere for a machine or an activation that these books do not know.
    `names` are those of the reference's machine. InvalidRequest for an activation that it never had, or none where there has always been one."""
    wanted = reference.activation
    if found := [name for name in names if activation_of(name.nim) == wanted]:
        return _numbering(names, _newest(found))
    if wanted is None:
        raise InvalidRequest.at(FIELD, Text("lacks the activation counter: <NIM>-<ACTIVATION>-<FVC of the original>"))
    activations = [activation for name in names if (activation := activation_of(name.nim)) is not None]
    if wanted == 0 or (activations and wanted > max(activations)):
        message = Text("names the activation {wanted}, which this machine never had", wanted=wanted)
        raise InvalidRequest.at(FIELD, message)
    return _numbering(names, [name for name in names if name.is_present and activation_of(name.nim) is None])


def _newest(names: Iterable[Name]) -> list[Name]:
    """Of each book."""
    return list({name.book_id: name for name in sorted(names)}.values())


def _numbering(names: Sequence[Name], wanted: Sequence[Name]) -> tuple[Place, ...]:
    """Their epochs, and those before and after with which the counters seem to go on. There a counter names one sale, unless a reset machine had come to
    the same counters by the time it was read: so their own epochs come first."""
    runs: list[list[Name]] = []
    for name in sorted(names):
        if runs and runs[-1][-1].goes_on and runs[-1][-1].book_id == name.book_id:
            runs[-1].append(name)
        else:
            runs.append([name])
    found = [name for run in runs if not set(wanted).isdisjoint(run) for name in run]
    own = set(wanted)
    found.sort(key=lambda name: (name in own, name.book_id, name.epoch), reverse=True)
    return tuple((name.book_id, name.epoch) for name in found)


def read_original_number(body: dict[str, object]) -> str:
    """As an invoice number is read; InvalidRequest."""
    errors: list[FieldError] = []
    number = Fields(body, "", errors).number(ORIGINAL_NUMBER, SHORT_LENGTH)
    if errors:
        raise InvalidRequest(errors)
    return number


def one_reference(found: Sequence[tuple[str, int]], sent: object) -> str:
    """Of the sales of one number, each by NIM and FVC, the one that is meant; `sent` is what stands in the reference's own field. InvalidRequest for
    none, for several where nothing was sent, and where another one was."""
    references = [reference for nim, fvc in found if (reference := read_reference(f"{nim}-{fvc}"))]
    names = ", ".join(map(str, references))
    if not references:
        raise _wrong_number(Text("is not the number of a certified sale of this box"))
    if sent is not None:
        other = read_reference(sent) if isinstance(sent, str) else None
        references = [each for each in references if other in (each, each._replace(activation=None))]
        if not references:
            raise _wrong_number(Text("is {references}, and creditNoteRef says another one", references=names))
    if len(references) > 1:
        raise _wrong_number(Text("is the number of several sales ({references}): send creditNoteRef", references=names))
    return str(references[0])


def _wrong_number(message: str) -> InvalidRequest:
    return InvalidRequest.at(ORIGINAL_NUMBER, message)


def choose(
    reference: str, credit_type: str, amount: int, candidates: Sequence[PossibleOriginal]
) -> PossibleOriginal | None:
    """The sale that a credit note of that amount (whole XOF) is booked on; None where the ledger has none of that counter.

    A machine may count exports in TC alone: then several have the counter of the sale before them, and the one that the amount fits best is meant.
    InvalidRequest for a sale of the other family, CreditExceedsOriginal, and MachineBusy where another credit note decides first."""
    originals = [each for each in candidates if each.is_credited_by(credit_type)]
    if not originals:
        if others := [each for each in candidates if each.moved]:
            raise InvalidRequest.at(FIELD, _other_family(credit_type, others[0]))
        return None
    fits = [each for each in originals if each.claimed + amount <= each.total_ttc]
    if fits:
        return min(fits, key=lambda each: each.total_ttc - each.claimed)
    if any(each.credited + amount <= each.total_ttc for each in originals):
        raise MachineBusy(
            Text("another credit note on {reference} has no outcome yet; nothing was sent", reference=reference)
        )
    nearest = max(originals, key=lambda each: each.total_ttc - each.credited)
    raise CreditExceedsOriginal(reference, nearest.total_ttc, nearest.credited + amount)


def _other_family(credit_type: str, found: PossibleOriginal) -> str:
    return Text(
        "is a {type}; {credit} credits {types} only",
        type=found.type,
        credit=credit_type,
        types=", ".join(ORIGINALS[credit_type]),
    )


def booked_on(credit_type: str, amount: int, candidates: Sequence[PossibleOriginal]) -> int:
    """The same for a credit note that is certified already, which may be more than fits: the id, 0 where there is no such sale."""
    originals = [each for each in candidates if each.is_credited_by(credit_type)] or list(candidates)
    fits = [each for each in originals if each.claimed + amount <= each.total_ttc]
    best = min(fits, key=lambda each: each.total_ttc - each.claimed, default=originals[0] if originals else None)
    return best.id if best else 0
