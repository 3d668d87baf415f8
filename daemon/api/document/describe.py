"""How a handler says what it is, for the OpenAPI document: `@get(..., doc=Doc(...))`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec
from litestar import post
from litestar.handlers import HTTPRouteHandler

from daemon.core import errors
from daemon.core.ledger.attempt import DuplicateInvoice
from daemon.core.roles import Right
from daemon.language import Text

Errors = tuple[type[Exception], ...]


class Parameter(msgspec.Struct, frozen=True):
    """One of the query; `schema` is its JSON schema."""

    name: str
    schema: dict[str, Any]
    text: str


class Media(msgspec.Struct, frozen=True):
    """Another form of the answer; `schema` is its JSON schema."""

    type: str
    schema: dict[str, Any]


class Doc(msgspec.Struct, frozen=True, kw_only=True):
    """Texts of the catalogue, which the document has in French, then in English. `answer` is the type that goes out as JSON (None: it never does), `media` are
    the other forms of it, `also` other statuses with their type and text, `mentions` types that a schema refers to, `problems` what
    may go wrong beside what every request may meet; `open` needs no key, and `right` is what a key needs (nobody but a technician has
    what was not given one); a `lasting` answer goes on for as long as its reader wants."""

    tag: str
    summary: str
    text: str
    answer: Any
    status: int = 200
    answer_text: str = "OK"
    also: dict[int, tuple[Any, str]] = {}
    body: Any = None
    body_required: bool = True
    example: Any = None
    media: tuple[Media, ...] = ()
    mentions: tuple[Any, ...] = ()
    path: tuple[Parameter, ...] = ()
    query: tuple[Parameter, ...] = ()
    headers: tuple[Parameter, ...] = ()
    problems: Errors = ()
    open: bool = False
    right: Right = "administer"
    lasting: bool = False


def change(path: str, doc: Doc, **options: Any) -> Callable[[Callable[..., Any]], HTTPRouteHandler]:
    """POST; answered with the status that its document says."""
    return post(path, status_code=doc.status, doc=doc, **options)


AT_THE_MACHINE: Final[Errors] = (
    errors.MachineOffline,
    errors.MachineBusy,
    errors.LineLost,
    errors.NothingDone,
    errors.MachineAttention,
    errors.MachineNonsense,
    errors.MachineRefused,
)
"""Whatever needs the machine may meet these."""

REPLAYABLE: Final[Errors] = (errors.KeyReused, errors.InvalidRequest)
"""Whatever takes an Idempotency-Key: one that stands for another request, one that is malformed."""

STORED: Final[Errors] = (errors.StorageFull, errors.LedgerUnusable)
"""Whatever writes to the ledger."""

CERTIFYING: Final[Errors] = (*AT_THE_MACHINE, *REPLAYABLE, DuplicateInvoice, *STORED)


def both(text: str, between: str = " · ") -> str:
    """French first, then English; what is no text of the catalogue goes out as it is. Plain spaces: it is Markdown, which programs wrap."""
    if not isinstance(text, Text):
        return text
    return text.told("fr").replace("\N{NO-BREAK SPACE}", " ") + between + text


_MOMENT = {
    "type": "string",
    "examples": ["2026-01-31", "2026-01-31T08:00:00Z"],
    "anyOf": [{"format": "date"}, {"format": "date-time"}],
}
RANGE: Final = (
    Parameter(
        "from",
        _MOMENT,
        Text(
            "Start: a date (that whole day in the configured time zone) or an RFC 3339 timestamp with offset; default 31 days "
            "before `to`."
        ),
    ),
    Parameter(
        "to",
        _MOMENT,
        Text("End: a date (included) or an instant (excluded); default now."),
    ),
)


def paging(limit: str, after: str, *, most: int, last: int) -> tuple[Parameter, Parameter]:
    """`limit` and `after` of a list by number, with what is said of each; `most` entries of numbers up to `last`."""
    return (
        Parameter("limit", {"type": "integer", "minimum": 1, "maximum": most, "default": most}, limit),
        Parameter("after", {"type": "integer", "minimum": 0, "maximum": last, "default": 0}, after),
    )


STRICT: Final = Parameter(
    "Mcfd-Strict",
    {"type": "string", "enum": ["true", "false"], "default": "false"},
    Text(
        "`true`: a field that is not known is refused (422) instead of being told in `warnings`, as for a strict key."
    ),
)
Z_NUMBER: Final = Parameter("z", {"type": "string"}, Text("Z number or `report_id`"))
CODE: Final = Parameter("code", {"type": "string"}, Text("with or without dashes"))
