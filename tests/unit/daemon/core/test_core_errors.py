"""What each error says of itself: a person reads it in an answer, in a log or under a command."""

import pytest
from support.core_samples import record

from daemon.core.errors import (
    CreditExceedsOriginal,
    FieldError,
    InvalidRequest,
    KeyReused,
    MachineAttention,
    MachineBusy,
    MachineOffline,
    MachineRefused,
    McfdError,
    NothingDone,
    OutcomeNotStored,
    ZNumberUnknown,
)
from daemon.core.ledger.attempt import DuplicateInvoice


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (InvalidRequest([FieldError("isf", "is required"), FieldError("items", "must be a list")]),
         "isf: is required; items: must be a list"),
        (KeyReused(), "this Idempotency-Key was used for another request"),
        (ZNumberUnknown("EL02000015-1"),
         "the last Z number is not known after a restore: `mcfd machine last-z EL02000015-1 NUMBER`, from the last Z on paper"),
        (CreditExceedsOriginal("EL02000015-1-291", 1000, 1200),
         "credits of EL02000015-1-291 would come to 1200, the original is 1000"),
        (DuplicateInvoice(record()), "invoice number 'FV-1' is already certified"),
        (MachineRefused("E:busy"), "the machine refused: E:busy"),
        (MachineOffline("no machine on the port", 5), "no machine on the port"),
        (MachineBusy("the queue is full", 5), "the queue is full"),
        (NothingDone(OSError("gone"), "nothing was sent"), "the line to the machine was lost (gone); nothing was sent"),
        (MachineAttention("the counters went down"), "the counters went down"),
        (OutcomeNotStored(), "the machine certified the invoice, but it cannot be stored at the moment"),
    ],
    ids=lambda each: type(each).__name__ if isinstance(each, McfdError) else "",
)  # fmt: skip
def test_an_error_says_what_happened_and_to_whom(error: McfdError, says: str) -> None:
    """One sentence with the names, numbers and amounts that it was made of, and nothing else of them."""
    assert str(error) == says
