"""What can go wrong at a screen, in words for whoever stands in the shop."""

from __future__ import annotations

import msgspec
import structlog

from common.language import Language, Speaker, Text, tell
from daemon.api import refusals
from daemon.core import errors
from daemon.core.ledger.attempt import DuplicateInvoice
from daemon.core.ledger.take_over import TakeOverRefused

log = structlog.get_logger(__name__)


class NotLoggedIn(Exception):
    """The person is shown the way in."""


class Foreign(Exception):
    """A change that a page of another site asked for."""


class PeriodClosed(Exception):
    """An entry that was before the last Z, for who may see the open period alone."""


class BoxFailed(Exception):
    """A command of the box did not do what it was asked for; which one, and why as far as it is known."""


class BoxRefused(BoxFailed):
    """As things are it cannot be done, and nothing is broken; why."""


class Fault(msgspec.Struct, frozen=True):
    status: int
    text: Text
    error: Exception | None = None

    def told(self, say: Speaker) -> str:
        """With what was wrong exactly, where the error knows it."""
        sentence = self.text.told(say.language)
        is_told = isinstance(self.error, TOLD) and not isinstance(self.error, SAID)
        detail = _detail(self.error, say.language) if is_told else ""
        return f"{sentence} ({detail})" if detail else sentence


FAULTS: dict[type[Exception], tuple[int, Text]] = {
    Foreign: (403, Text("This request comes from another site.")),
    PeriodClosed: (403, Text("This invoice is of a period that is closed; your role sees the open one.")),
    refusals.RoleNotAllowed: (403, Text("Your role does not permit this.")),
    refusals.TooManyRequests: (429, Text("Too many tries; wait a moment.")),
    refusals.WrongPassword: (401, Text("Wrong name or password.")),
    refusals.Refusal: (400, Text("This cannot be taken as it is.")),
    refusals.TooLarge: (413, Text("That is too much at once.")),
    BoxRefused: (409, Text("The box could not do it.")),
    BoxFailed: (500, Text("The box could not do it.")),
    errors.TooManyCashMoves: (429, Text("Cash was moved very often within an hour; try again later.")),
    errors.CreditExceedsOriginal: (409, Text("Credits would exceed the original invoice")),
    errors.NotFound: (404, Text("There is nothing at this address.")),
    errors.InvalidRequest: (422, Text("This cannot be taken as it is.")),
    errors.ZNumberUnknown: (409, Text("The last Z number has to be said first")),
    errors.MachineAttention: (503, Text("The machine needs a decision first.")),
    errors.MachineOffline: (503, Text("The machine does not answer; nothing was done.")),
    errors.MachineBusy: (503, Text("The machine is busy; nothing was done. Try again.")),
    errors.MachineError: (502, Text("The machine did not do it.")),
    errors.PrinterFailed: (503, Text("The receipt printer did not print")),
    errors.StorageFull: (507, Text("The disk is full; nothing was done.")),
    DuplicateInvoice: (409, Text("This number is certified already.")),
    TakeOverRefused: (409, Text("This decision does not fit any more.")),
}
UNKNOWN = Text("A fault of mcfd; it is in the log.")
TOLD = (
    errors.InvalidRequest,
    errors.MachineError,
    errors.ZNumberUnknown,
    errors.PrinterFailed,
    BoxFailed,
    TakeOverRefused,
)

SAID = (errors.MachineOffline, errors.MachineBusy, errors.MachineAttention)
"""Whose sentence says all that there is to say to who stands in the shop."""


def fault_of(error: Exception) -> Fault:
    """The nearest class that is known; anything else is logged with its trace."""
    for kind in type(error).__mro__:
        if kind in FAULTS:
            status, text = FAULTS[kind]
            return Fault(status, text, error)
    log.error("page.failed", exc_info=error)
    return Fault(500, UNKNOWN)


FIELDS = {
    "name": Text("Name"),
    "password": Text("Password"),
    "current": Text("Current password"),
    "again": Text("New password, again"),
    "role": Text("Role"),
    "label": Text("Till"),
    "till": Text("Till"),
    "until": Text("Until"),
    "decision": Text("Decision"),
    "reason": Text("Reason"),
    "amount": Text("Amount"),
    "counted": Text("Counted in the drawer"),
    "lines": Text("Lines"),
    "nature": Text("Nature"),
    "quantity": Text("Quantity"),
    "kind": Text("Movement"),
    "machines": Text("Machines"),
}
"""What a field is called on the screen."""
NAMED = Text("{name}: {found}")


def _detail(error: Exception | None, language: Language) -> str:
    """In the person's language as far as it was written as a text; no path of the box is in it."""
    if isinstance(error, errors.InvalidRequest):
        told = [NAMED(name=FIELDS.get(e.field, e.field), found=e.message).told(language) for e in error.errors]
        return errors.without_paths("; ".join(told), language)
    return errors.without_paths(str(tell(error, language)), language)
