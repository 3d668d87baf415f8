"""The original sale of a credit note (SECeF 2.12.4): the reference names a machine, an activation and a counter; the
type of the credit note names the family. The sale is found in the books of any machine of this box, by any name it has
had, if it is of the same taxpayer, or of one that the credit note's machine had before."""

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
    """The NIM of a machine in one epoch of one book. `goes_on`: its counters continued in the next epoch. `is_own`: the
    book is of the credit note's taxpayer or machine, or its taxpayer is not known."""

    book_id: int
    epoch: int
    nim: str
    is_present: bool
    """The present NIM, of the present taxpayer."""
    goes_on: bool = False
    is_own: bool = True


class PossibleOriginal(NamedTuple):
    """A sale that a reference may mean. `moved`: 0 if it was counted in TC alone, so that its FC is that of the sale
    before. `credited`: sum of certified and disputed credit notes on it; `claimed`: that, and those without an outcome
    yet. `is_guess`: chosen by the amount, from several."""

    id: int
    number: str
    type: str
    total_ttc: int
    moved: int
    credited: int
    claimed: int
    is_guess: bool = False

    def is_credited_by(self, credit_type: str) -> bool:
        """Whether that type may credit it. With an unknown type, only an export may leave FVC unchanged."""
        if self.type in (*SALES, *CREDITS):
            return self.type in ORIGINALS[credit_type]
        return bool(self.moved) or credit_type == "EA"


def locate(reference: Reference, names: Sequence[Name]) -> tuple[Place, ...]:
    """Where to search the sale: first in the epochs that the reference names, then the newest; empty for a machine or
    activation unknown to the books. `names`: all names of the reference's machine. InvalidRequest for an activation
    that it never had or had for another taxpayer, or for a reference without activation to a machine that always had
    one."""
    wanted = reference.activation
    found = [name for name in names if activation_of(name.nim) == wanted]
    names = [name for name in names if name.is_own]
    if own := [name for name in found if name.is_own]:
        return _numbering(names, _newest(own))
    if found:
        raise InvalidRequest.at(FIELD, Text("is a sale of another taxpayer"))
    if wanted is None:
        raise InvalidRequest.at(FIELD, Text("lacks the activation counter: <NIM>-<ACTIVATION>-<FVC of the original>"))
    activations = [activation for name in names if (activation := activation_of(name.nim)) is not None]
    if wanted == 0 or wanted > max(activations, default=wanted):
        message = Text("names the activation {wanted}, which this machine never had", wanted=wanted)
        raise InvalidRequest.at(FIELD, message)
    return _numbering(names, [name for name in names if name.is_present and activation_of(name.nim) is None])


def _newest(names: Iterable[Name]) -> list[Name]:
    """The newest name of each book."""
    return list({name.book_id: name for name in sorted(names)}.values())


def _numbering(names: Sequence[Name], wanted: Sequence[Name]) -> tuple[Place, ...]:
    """The epochs of `wanted`, and the neighbours whose counters continue. Within such a run a counter names one sale,
    unless a reset machine reached the same counters before it was read: so the wanted epochs come first."""
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
    """Reads `originalInvoiceNumber` by the rules of an invoice number; InvalidRequest."""
    errors: list[FieldError] = []
    number = Fields(body, "", errors).number(ORIGINAL_NUMBER, SHORT_LENGTH)
    if errors:
        raise InvalidRequest(errors)
    return number


def one_reference(found: Sequence[tuple[str, int]], sent: object) -> str:
    """The reference of the sale that is meant. `found`: NIM and FVC of each sale with that number; `sent`:
    `creditNoteRef` of the request. InvalidRequest for no sale, for several without `sent`, and if `sent` means another
    sale."""
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
    reference: str,
    credit_type: str,
    amount: int,
    candidates: Sequence[PossibleOriginal],
    *,
    leeway: int = 0,
    is_named: bool = False,
) -> PossibleOriginal | None:
    """The sale on which a credit note of that amount (whole XOF) is booked; None if the ledger has none with that
    counter. It may exceed the sale by `leeway`: the machine's total may be lower by that much. `is_named`: the
    candidates have the number that the till sent of the sale.

    A machine may count exports in TC alone. Then several sales have the same counter, and the one whose remaining
    amount fits best is taken. InvalidRequest for a sale of the other family; CreditExceedsOriginal; MachineBusy if
    another credit note has to end first."""
    originals = [each for each in candidates if each.is_credited_by(credit_type)]
    if not originals:
        if others := [each for each in candidates if each.moved or is_named]:
            types = ", ".join(ORIGINALS[credit_type])
            fault = Text(
                "is a {type}; {credit} credits {types} only", type=others[0].type, credit=credit_type, types=types
            )
            raise InvalidRequest.at(ORIGINAL_NUMBER if is_named else FIELD, fault)
        return None
    fits = [each for each in originals if each.claimed + amount - leeway <= each.total_ttc]
    if fits:
        return min(fits, key=lambda each: each.total_ttc - each.claimed)._replace(is_guess=len(fits) > 1)
    if any(each.credited + amount - leeway <= each.total_ttc for each in originals):
        raise MachineBusy(
            Text("another credit note on {reference} has no outcome yet; nothing was sent", reference=reference)
        )
    nearest = max(originals, key=lambda each: each.total_ttc - each.credited)
    left = nearest.total_ttc - nearest.credited
    raise CreditExceedsOriginal(reference, nearest.total_ttc, nearest.credited + amount, left)


def booked_on(credit_type: str, amount: int, candidates: Sequence[PossibleOriginal]) -> int:
    """As `choose`, for a credit note that is certified already and may exceed the sale: the sale's id, 0 for none."""
    originals = [each for each in candidates if each.is_credited_by(credit_type)] or list(candidates)
    fits = [each for each in originals if each.claimed + amount <= each.total_ttc]
    best = min(fits, key=lambda each: each.total_ttc - each.claimed, default=originals[0] if originals else None)
    return best.id if best else 0
