"""Renders templates, and words errors for the shop's staff.

Rendering takes milliseconds and compiling a template tens of them, on the event loop that also serves tills and
machines. So rendering yields after each slice, screens are rendered one at a time, and templates are compiled in a
thread."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import msgspec
import structlog

from common import numbers
from common.language import Counted, Language, Speaker, Text, translate
from common.web import charts
from common.web.assets import addresses, icon
from daemon.api import refusals
from daemon.core import errors
from daemon.core.audit import value_text
from daemon.core.ledger.attempt import DuplicateInvoice
from daemon.core.ledger.deferred import NotWaiting
from daemon.core.ledger.take_over import TakeOverRefused

if TYPE_CHECKING:  # loaded by the first screen, in a thread: many boxes never show one
    from jinja2 import Environment

log = structlog.get_logger(__name__)

STATIC: Final = {
    "tabler.css": "common.web",
    "kit.css": "common.web",
    "icon.svg": "common.web",
    "page.js": "daemon.api.page",
    "htmx.min.js": "daemon.api.page",
    "sse.min.js": "daemon.api.page",
}
SLICE: Final = 0.0003
"""Seconds of the loop per slice; a certification waits for the loop about a dozen times."""


class Rendering:
    """One per event loop."""

    def __init__(self) -> None:
        self._turn = asyncio.Lock()

    async def screen(self, template: str, values: Mapping[str, Any]) -> bytes:
        text: list[str] = []
        async with self._turn:
            if template not in _compiled:
                await asyncio.to_thread(compile_template, template)
            pieces = environment().get_template(template).generate(values)
            while _added_for(SLICE, pieces, text):  # noqa: ASYNC110  yields to others, waits for nothing
                await asyncio.sleep(0)
        return "".join(text).encode()


def _added_for(seconds: float, pieces: Iterator[str], text: list[str]) -> bool:
    """Adds pieces for `seconds`; True if there may be more."""
    until = time.perf_counter() + seconds
    for piece in pieces:
        text.append(piece)
        if time.perf_counter() >= until:
            return True
    return False


_compiled: Final[set[str]] = set()


def compile_template(name: str) -> None:
    """Compiles a template and those it extends, includes or imports."""
    from jinja2.meta import find_referenced_templates  # noqa: PLC0415  see above

    templates = environment()
    templates.get_template(name)
    assert templates.loader is not None  # noqa: S101  given below
    source, _, _ = templates.loader.get_source(templates, name)
    for other in find_referenced_templates(templates.parse(source)):
        if other is not None and other not in _compiled:
            compile_template(other)
    _compiled.add(name)


@cache
def environment() -> Environment:
    """Cached: templates do not change at run time."""
    from jinja2 import (  # noqa: PLC0415  see above
        ChoiceLoader,
        Environment,
        PackageLoader,
        StrictUndefined,
        select_autoescape,
    )

    loader = ChoiceLoader([PackageLoader("daemon.api.page"), PackageLoader("common.web")])
    templates = Environment(
        loader=loader, autoescape=select_autoescape(), undefined=StrictUndefined, trim_blocks=True, auto_reload=False
    )
    templates.filters |= {
        "number": numbers.amount,
        "money": numbers.money,
        "compact": numbers.compact,
        "scaled": numbers.scaled,
        "cell": charts.money_cell,
    }
    templates.globals |= {"icon": icon, "Counted": Counted, "value_text": value_text}
    templates.globals["assets"] = addresses(STATIC)
    return templates


class NotLoggedIn(Exception):
    """The person is redirected to the login."""


class Foreign(Exception):
    """A change requested by a page of another site."""


class ShareEnded(Exception):
    """The link to a shared invoice is too old, altered, or of an earlier process."""


class PeriodClosed(Exception):
    """The entry is before the last Z, and the role sees the open period only."""


class BoxFailed(Exception):
    """A command of the box failed; the message names it and, if known, the reason."""


class BoxRefused(BoxFailed):
    """Not possible at present, though nothing is broken; the message has the reason."""


class Fault(msgspec.Struct, frozen=True):
    status: int
    text: Text
    error: Exception | None = None

    def message(self, say: Speaker) -> str:
        """The message, with the error's detail if it has one."""
        sentence = self.text.in_language(say.language)
        has_detail = isinstance(self.error, WITH_DETAIL) and not isinstance(self.error, COMPLETE_TEXTS)
        detail = _detail(self.error, say.language) if has_detail else ""
        sentence, detail = sentence.removesuffix("."), detail.removesuffix(".")
        if "(" in detail:
            return say("{name}: {found}", name=sentence, found=detail) + "."
        return f"{sentence} ({detail})." if detail else f"{sentence}."


IN_DOUBT: Final = Text("It is not known yet what became of it. Send it again: nothing is done twice.")
NOT_ANY_MORE: Final = Text("This decision does not fit any more.")
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
    errors.TooManyActs: (429, Text("This was done very often within an hour; try again later.")),
    errors.CreditExceedsOriginal: (409, Text("Credits would exceed the original invoice")),
    ShareEnded: (404, Text("This link is no longer valid: ask the shop for another one.")),
    errors.NotFound: (404, Text("There is nothing at this address.")),
    errors.InvalidRequest: (422, Text("This cannot be taken as it is.")),
    errors.PeriodEnded: (409, Text("The day was closed meanwhile: look at what will be closed now.")),
    errors.ZNumberUnknown: (409, Text("The last Z number has to be said first")),
    errors.MachineAttention: (503, Text("The machine needs a decision first.")),
    errors.MachineOffline: (503, Text("The machine does not answer; nothing was done.")),
    errors.MachineBusy: (503, Text("The machine is busy; nothing was done. Try again.")),
    errors.NothingDone: (503, Text("The machine does not answer; nothing was done.")),
    errors.CertifiedElsewhere: (503, Text("The machine needs a decision first.")),
    errors.LineLost: (503, IN_DOUBT),
    errors.OutcomeNotStored: (507, IN_DOUBT),
    errors.MachineError: (502, Text("The machine did not do it.")),
    errors.PrinterFailed: (503, Text("The receipt printer did not print; put it right, go back and press again")),
    errors.StorageFull: (507, Text("It cannot be stored; nothing was done.")),
    DuplicateInvoice: (409, Text("This number is certified already.")),
    TakeOverRefused: (409, NOT_ANY_MORE),
    NotWaiting: (409, NOT_ANY_MORE),
}
UNKNOWN = Text("A fault of mcfd; it is in the log.")
WITH_DETAIL = (
    errors.InvalidRequest,
    errors.CreditExceedsOriginal,
    errors.MachineError,
    errors.ZNumberUnknown,
    errors.PrinterFailed,
    errors.StorageFull,
    BoxFailed,
    TakeOverRefused,
)

COMPLETE_TEXTS = (
    errors.MachineOffline,
    errors.MachineBusy,
    errors.MachineAttention,
    errors.LineLost,
    errors.OutcomeNotStored,
)
"""Errors whose sentence is complete for the shop's staff."""


def fault_of(error: Exception) -> Fault:
    """The fault of the nearest known class; unknown errors are logged with a traceback. A known error loses its
    traceback, whose frames refer to this fault and would keep the request in memory until garbage collection."""
    for kind in type(error).__mro__:
        if kind in FAULTS:
            status, text = FAULTS[kind]
            return Fault(status, text, error.with_traceback(None))
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
    "invoice": Text("Invoice"),
    "items": Text("Lines"),
    "lines": Text("Lines"),
    "nature": Text("Nature"),
    "quantity": Text("Quantity"),
    "kind": Text("Movement"),
    "machines": Text("Machines"),
    "year": Text("Year"),
    "customer": Text("Customer"),
    "customer.name": Text("Name"),
    "customer.ifu": Text("IFU"),
    "payments": Text("Payment"),
    "period": Text("Period"),
    "code": Text("Code"),
    "time": Text("Time"),
    "counters": Text("Counters"),
    "last_z": Text("Last Z"),
    "sure": Text("Confirmation"),
}
"""Field names as on the screen."""
ITEM_FIELDS = {
    "name": Text("Article"),
    "unitPrice": Text("Price"),
    "quantity": Text("Quantity"),
    "taxGroup": Text("Group"),
    "amountTtc": Text("Amount"),
}
ITEM_FIELD: Final = re.compile(r"items\[([0-9]+)\]\.(\w+)")
PAID_FIELD: Final = re.compile(r"payments\[[0-9]+\]\.amount")
LINE = Text("line {line}")
NAMED = Text("{name}: {found}")
SEPARATOR = Text("; ")


def _field(name: str) -> Text | str:
    """The name on the screen of a request's field."""
    if found := ITEM_FIELD.fullmatch(name):
        return NAMED(name=LINE(line=int(found[1]) + 1), found=ITEM_FIELDS.get(found[2], found[2]))
    return FIELDS["payments"] if PAID_FIELD.fullmatch(name) else FIELDS.get(name, name)


def _named(error: errors.FieldError) -> Text:
    """The field as on the screen, and what is wrong with it; some messages begin with the field themselves."""
    name, found = _field(error.field), error.message
    if isinstance(found, Text) and found.values.get("field") == error.field:
        return found(**{**found.values, "field": name})
    return NAMED(name=name, found=found)


def _detail(error: Exception | None, language: Language) -> str:
    """The detail in the person's language if it is a Text; contains no path of the box."""
    if isinstance(error, errors.InvalidRequest):
        details = [_named(each).in_language(language) for each in error.errors]
        return errors.without_paths(SEPARATOR.in_language(language).join(details), language)
    if isinstance(error, errors.CreditExceedsOriginal):
        return Text("{total} of it is left", total=numbers.money(error.left_ttc or 0)).in_language(language)
    noun = errors.FILE if isinstance(error, BoxFailed) else errors.PORT
    return errors.without_paths(str(translate(error, language)), language, noun)
