"""Why an attempt ended that certified nothing: as the ledger stores it, and as `GET …/requests/{key}` answers it later."""

from typing import Final

from common.language import Text, sentence
from common.language.reasons import FRAME_OVERFLOW, Reason, code_of, codes_of, from_stored
from daemon.core.errors import (
    CreditExceedsOriginal,
    InvalidRequest,
    LedgerMoved,
    LineLost,
    MachineAttention,
    MachineBusy,
    MachineNonsense,
    MachineOffline,
    MachineRefused,
    McfdError,
    NothingDone,
    RequestExpired,
    StorageFull,
)
from daemon.core.ledger.attempt import Record, was_not_sent
from daemon.core.ledger.take_over import NumberReserved, PairNotCompared

MAY_BE_SENT_AGAIN: Final = Text("nothing was certified, and the invoice may be sent again")
NEVER_SENT: Final = Text("nothing was sent to the machine, and the invoice may be sent again")
KINDS: Final[dict[str, type[McfdError]]] = {
    kind.__name__: kind
    for kind in (MachineAttention, MachineBusy, NumberReserved, PairNotCompared, StorageFull, LedgerMoved)
}
"""Errors before 38h that need no more than their sentence, by the names that stored reasons have for them."""


def reason_of(error: McfdError, how: Reason) -> Reason:
    """`how` with what the error says and its kind, from which `failure_of` makes it again."""
    return how(cause=sentence(error), kind=type(error).__name__)


def failure_of(record: Record) -> McfdError:
    """What the request of an attempt that ended refused or abandoned was answered."""
    reason = from_stored(record.reason)
    if record.state == "refused":
        of_machine = not codes_of(reason) or code_of(reason) == FRAME_OVERFLOW.code
        return MachineRefused(reason) if of_machine else MachineNonsense(reason)
    match reason.values:
        case {"cause": str(cause), "kind": str(kind)}:
            return _error_of(kind, cause)
    if was_not_sent(record.reason):
        return MachineOffline(NEVER_SENT)
    return NothingDone(LineLost(reason), MAY_BE_SENT_AGAIN)


def _error_of(kind: str, cause: str) -> McfdError:
    """MachineOffline for any other kind: nothing was certified, and it may be tried again."""
    match kind, cause:
        case "CreditExceedsOriginal", Reason(values=sums):
            return CreditExceedsOriginal(**sums)
        case "InvalidRequest", fault:
            field, _, message = fault.partition(": ")
            return InvalidRequest.at(field, message)
        case "RequestExpired", _:
            return RequestExpired()
    return KINDS.get(kind, MachineOffline)(cause)
