"""The table from errors to `application/problem+json` (RFC 9457, decision 11)."""

from typing import Annotated, Final

import msgspec
import structlog
from litestar.exceptions import HTTPException
from msgspec import Meta

from common.front_config import ERRORS as FRONT_ERRORS
from common.language import Language, Text, translate
from common.problems import problem_type
from daemon.api import refusals
from daemon.api.http.answers import PROBLEM, Answer, Header
from daemon.core import errors
from daemon.core.errors import FieldError, without_paths
from daemon.core.ledger import take_over
from daemon.core.ledger.attempt import DuplicateInvoice, Record
from daemon.core.ledger.deferred import KeyRequired, NotWaiting, NumberWaits
from daemon.core.report.receipt import Receipt, receipt

log = structlog.get_logger(__name__)

OUTCOME_UNKNOWN: Final = Text(
    "The line to the machine was lost before its answer, and the outcome is not known yet. Send the same request again with "
    "the same Idempotency-Key: it gets the outcome as soon as the machine has answered, and nothing is certified twice."
)
OUTCOME_NOT_STORED: Final = Text(
    "The machine certified the invoice, but the box cannot store that at the moment: its disk is full, or its ledger's file is gone. Once that "
    "is mended, send the same request again with the same Idempotency-Key: it gets the certification once it is stored, and nothing is certified twice."
)
OFFLINE_RETRY: Final = 2
PRINTER_RETRY: Final = 10
HTTP_CODES: Final[dict[int, tuple[str, Text]]] = {
    400: ("BAD_REQUEST", Text("The request cannot be read")),
    404: ("NOT_FOUND", Text("Not found")),
    405: ("METHOD_NOT_ALLOWED", Text("The method is not allowed here")),
    408: ("REQUEST_TIMEOUT", Text("The request took too long to arrive")),
    413: ("TOO_LARGE", Text("The body is too large")),
    429: ("TOO_MANY_REQUESTS", Text("Too many requests")),
}
_PORT_ERRORS: Final = (errors.MachineOffline, errors.NothingDone, errors.LedgerUnusable)
HTTP_DETAILS: Final = {
    404: Text("there is nothing at this path"),
    405: Text("this path does not take this method; the Allow header says which it takes"),
}


class Kind(msgspec.Struct, frozen=True):
    """`detail`: sent instead of the error's text, which is for the log and may contain a path. `retry_after`: seconds,
    unless the error has its own."""

    status: int
    code: str
    title: str
    detail: str = ""
    retry_after: int = 0


INTERNAL = Kind(
    500,
    "INTERNAL_ERROR",
    Text("Internal error"),
    Text("mcfd failed here; its log has the reason under this request_id"),
)

CONFLICT: Final = Kind(409, "INVALID_REQUEST", Text("The request cannot be accepted"))
OFFLINE: Final = Kind(503, "BRIDGE_OFFLINE", Text("The machine cannot be reached"), retry_after=OFFLINE_RETRY)
UNKNOWN: Final = Kind(
    503, "BRIDGE_OFFLINE", Text("The outcome is not known yet"), OUTCOME_UNKNOWN, retry_after=OFFLINE_RETRY
)
UNDECIDED: Final = Kind(503, "MACHINE_ATTENTION", Text("An operator has to settle what was found on the machine"))
DAMAGED: Final = Kind(503, "LEDGER_DAMAGED", Text("The ledger is damaged"))


KINDS: Final[dict[type[Exception], Kind]] = {
    refusals.InvalidJson: Kind(400, "INVALID_JSON", Text("The body is not valid JSON")),
    refusals.Unauthenticated: Kind(401, "UNAUTHENTICATED", Text("A valid API key is needed")),
    refusals.NimNotInScope: Kind(403, "NIM_NOT_IN_SCOPE", Text("The key is for another NIM")),
    refusals.RoleNotAllowed: Kind(403, "ROLE_NOT_ALLOWED", Text("The role of the key does not allow this")),
    refusals.WrongLane: Kind(403, "WRONG_LANE", Text("The key is not valid by this way")),
    refusals.NotRelayed: Kind(404, "NOT_FOUND", Text("Not found")),
    refusals.WrongPassword: Kind(401, "WRONG_PASSWORD", Text("The name or the password is wrong")),
    refusals.BodyTimeout: Kind(408, "REQUEST_TIMEOUT", Text("The request took too long to arrive")),
    refusals.TooLarge: Kind(413, "TOO_LARGE", Text("The body is too large")),
    refusals.UnsupportedMediaType: Kind(415, "UNSUPPORTED_MEDIA_TYPE", Text("The body has to be JSON")),
    refusals.Misdirected: Kind(421, "MISDIRECTED_REQUEST", Text("The Host header names another server")),
    refusals.TooManyRequests: Kind(429, "TOO_MANY_REQUESTS", Text("Too many requests")),
    errors.InvalidRequest: Kind(422, "INVALID_REQUEST", Text("The request cannot be accepted")),
    KeyRequired: Kind(400, "IDEMPOTENCY_KEY_REQUIRED", Text("An Idempotency-Key is needed")),
    DuplicateInvoice: Kind(409, "DUPLICATE_INVOICE", Text("The invoice number is already certified")),
    NumberWaits: Kind(409, "DUPLICATE_INVOICE", Text("The invoice number is taken by a sale that waits")),
    NotWaiting: Kind(
        409,
        "REQUEST_NOT_WAITING",
        Text("The request does not wait any more"),
        Text("it has ended, the machine is at it, or its till waits for the answer; GET says what became of it"),
    ),
    take_over.MachineIsSpare: Kind(409, "MACHINE_IS_SPARE", Text("The machine is the spare of another one")),
    errors.KeyReused: Kind(409, "IDEMPOTENCY_KEY_REUSED", Text("The Idempotency-Key stands for another request")),
    errors.ZNumberUnknown: Kind(409, "Z_NUMBER_UNKNOWN", Text("The last Z number has to be said first")),
    errors.PeriodEnded: Kind(409, "PERIOD_ENDED", Text("The period was closed meanwhile")),
    errors.PeriodNotOver: Kind(409, "PERIOD_NOT_OVER", Text("The month or year is not over")),
    errors.NothingToClose: Kind(409, "NOTHING_TO_CLOSE", Text("There is nothing to close")),
    errors.CreditExceedsOriginal: Kind(
        409, "CREDIT_EXCEEDS_ORIGINAL", Text("Credits would exceed the original invoice")
    ),
    take_over.TakeOverRefused: CONFLICT,
    take_over.NotInUse: OFFLINE,
    take_over.NumberReserved: UNDECIDED,
    take_over.PairNotCompared: Kind(
        503, "PAIR_NOT_COMPARED", Text("The other machine of the pair was not compared yet")
    ),
    take_over.UnknownElsewhere: UNKNOWN,
    errors.JoinFailed: CONFLICT,
    errors.KeyRevoked: CONFLICT,
    errors.TooManyActs: Kind(429, "TOO_MANY_REQUESTS", Text("Too many requests")),
    errors.RequestExpired: Kind(410, "REQUEST_EXPIRED", Text("The request came too late")),
    errors.NotFound: Kind(404, "NOT_FOUND", Text("Not found")),
    errors.MachineRefused: Kind(422, "MACHINE_REFUSED", Text("The machine refused")),
    errors.MachineOffline: OFFLINE,
    errors.MachineBusy: Kind(503, "MACHINE_BUSY", Text("The machine is busy"), retry_after=OFFLINE_RETRY),
    errors.LineLost: UNKNOWN,
    errors.CertifiedElsewhere: Kind(503, "MACHINE_ATTENTION", Text("Another machine certified the invoice")),
    errors.NothingDone: Kind(
        503, "BRIDGE_OFFLINE", Text("The line to the machine was lost"), retry_after=OFFLINE_RETRY
    ),
    errors.MachineNonsense: Kind(502, "BRIDGE_ERROR", Text("The machine's answer makes no sense")),
    errors.MachineAttention: UNDECIDED,
    errors.MachineError: Kind(502, "BRIDGE_ERROR", Text("The machine failed")),
    errors.PrinterFailed: Kind(
        503, "PRINTER_UNAVAILABLE", Text("The receipt printer did not print"), retry_after=PRINTER_RETRY
    ),
    errors.StorageFull: Kind(
        507,
        "STORAGE_FULL",
        Text("No room to store a certification"),
        Text("nothing was sent; free disk space on the box"),
    ),
    errors.LedgerMoved: Kind(
        507,
        "STORAGE_FULL",
        Text("The ledger's file is gone"),
        Text(
            "nothing was sent; the ledger's file was moved, deleted or replaced while mcfd ran: put it back to its place, and only then restart mcfd"
        ),
    ),
    errors.OutcomeNotStored: Kind(507, "STORAGE_FULL", Text("The outcome is not stored yet"), OUTCOME_NOT_STORED),
    errors.LedgerUnusable: DAMAGED,
    errors.LedgerInUse: DAMAGED,
    errors.EntryDamaged: DAMAGED,
    errors.KeyUseLost: DAMAGED,
    errors.StorageError: INTERNAL,
    errors.McfdError: INTERNAL,
}
"""All error classes of both trees; a base class serves new subclasses that are missing here."""


CODES: Final = sorted(
    {
        *(kind.code for kind in KINDS.values()),
        *(code for code, _ in HTTP_CODES.values()),
        *(code for code, _, _ in FRONT_ERRORS.values()),
    }
)


class Problem(msgspec.Struct, frozen=True, omit_defaults=True):
    """`error` repeats `detail` for clients of the hosted service."""

    type: Annotated[str, Meta(description="Names the code")]
    title: Annotated[str, Meta(description="The kind of problem")]
    status: Annotated[int, Meta(description="The HTTP status")]
    detail: Annotated[str, Meta(description="What went wrong this time")]
    code: Annotated[
        str,
        Meta(description=f"For programs. A later version may have more of them; these are known: {', '.join(CODES)}"),
    ]
    error: Annotated[str, Meta(description="The same as `detail`, for clients of the hosted service")]
    request_id: Annotated[str, Meta(description="To find it in the log")]
    errors: Annotated[
        tuple[FieldError, ...], Meta(description="INVALID_REQUEST: each fault, with the path of its field")
    ] = ()
    certification: Annotated[
        Receipt | None, Meta(description="DUPLICATE_INVOICE: the certification the number had")
    ] = None
    original_ttc: Annotated[int | None, Meta(description="CREDIT_EXCEEDS_ORIGINAL: total of the original, XOF")] = None
    credited_ttc: Annotated[
        int | None, Meta(description="CREDIT_EXCEEDS_ORIGINAL: what its credits would come to with this one, XOF")
    ] = None
    left_ttc: Annotated[
        int | None,
        Meta(
            description="CREDIT_EXCEEDS_ORIGINAL: what is left of the original, XOF: the `amountTtc` of a last credit note in TTC"
        ),
    ] = None


def problem_answer(error: Exception, request_id: str, language: Language = "en") -> Answer:
    """The answer to an error. `language`: of `title`, `detail` and messages."""
    if isinstance(error, HTTPException):
        return _http_problem(error, request_id, language)
    kind = _kind(error)
    if kind is INTERNAL or isinstance(error, errors.LedgerUnusable):
        log.error("request.failed", request_id=request_id, exc_info=error)
    return _answer(problem_of(error, request_id, language), _headers(error, kind))


def problem_of(error: Exception, request_id: str, language: Language = "en") -> Problem:
    kind = _kind(error)
    problem = _problem(kind, kind.detail or _text(error, language), request_id, language)
    return msgspec.structs.replace(problem, **_members(error, language))


def _kind(error: Exception) -> Kind:
    return next((KINDS[cls] for cls in type(error).__mro__ if cls in KINDS), INTERNAL)


def _text(error: Exception, language: Language) -> str:
    """The error's text; paths, which only errors of a port or the ledger contain, are replaced."""
    if isinstance(error, errors.InvalidRequest):
        return "; ".join(f"{fault.field}: {fault.message}" for fault in _translated_faults(error, language))
    text = str(translate(error, language))
    return without_paths(text, language) if isinstance(error, _PORT_ERRORS) else text


def _translated_faults(error: errors.InvalidRequest, language: Language) -> tuple[FieldError, ...]:
    """The field errors with translated messages as strings."""
    return tuple(FieldError(fault.field, str(translate(fault.message, language))) for fault in error.errors)


def _problem(kind: Kind, detail: str, request_id: str, language: Language) -> Problem:
    detail = str(translate(detail, language))
    return Problem(
        type=problem_type(kind.code),
        title=str(translate(kind.title, language)),
        status=kind.status,
        detail=detail,
        code=kind.code,
        error=detail,
        request_id=request_id,
    )


def _answer(problem: Problem, headers: tuple[Header, ...]) -> Answer:
    body = msgspec.json.encode(problem)
    return Answer(body, status=problem.status, media_type=PROBLEM, headers=headers)


def _members(error: Exception, language: Language) -> dict[str, object]:
    match error:
        case errors.InvalidRequest():
            return {"errors": _translated_faults(error, language)}
        case DuplicateInvoice(record=Record() as record):
            return {"certification": receipt(record, language)}
        case errors.CreditExceedsOriginal():
            sums = ("original_ttc", "credited_ttc", "left_ttc")
            return {name: getattr(error, name) for name in sums}
        case _:
            return {}


def _headers(error: Exception, kind: Kind) -> tuple[Header, ...]:
    if isinstance(error, refusals.Unauthenticated):
        challenge = f', error="{error.challenge}"' if error.challenge else ""
        return ((b"www-authenticate", f'Bearer realm="mcfd"{challenge}'.encode()),)
    if isinstance(error, refusals.BodyTimeout):
        return ((b"connection", b"close"),)  # the rest of the body may never come
    retry_after = getattr(error, "retry_after", kind.retry_after)
    return ((b"retry-after", b"%d" % retry_after),) if retry_after else ()


def _http_problem(error: HTTPException, request_id: str, language: Language) -> Answer:
    """The answer to Litestar's errors: unknown path, method not allowed, unreadable request."""
    status = error.status_code
    if status not in HTTP_CODES:
        log.error("request.failed", request_id=request_id, exc_info=error)
        return _answer(_problem(INTERNAL, INTERNAL.detail, request_id, language), ())
    headers = tuple((name.lower().encode(), value.encode()) for name, value in (error.headers or {}).items())
    kind = Kind(status, *HTTP_CODES[status])
    return _answer(_problem(kind, HTTP_DETAILS.get(status, kind.title), request_id, language), headers)
