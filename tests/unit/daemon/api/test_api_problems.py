import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from litestar.exceptions import HTTPException, MethodNotAllowedException, NotFoundException
from structlog.testing import capture_logs
from support.core_samples import NIM, record

from common.language import Text, translate
from daemon.api import refusals
from daemon.api.problems import KINDS, problem_answer
from daemon.core import errors
from daemon.core.errors import FieldError, without_paths
from daemon.core.ledger.attempt import DuplicateInvoice
from daemon.core.ledger.deferred import KeyRequired, NotWaiting, NumberWaits
from daemon.core.ledger.take_over import (
    MachineIsSpare,
    NotInUse,
    NumberReserved,
    PairNotCompared,
    TakeOverRefused,
    UnknownElsewhere,
)


def tree(root: type[Exception]) -> Iterator[type[Exception]]:
    yield root
    for child in root.__subclasses__():
        yield from tree(child)


EXAMPLES = [
    (refusals.InvalidJson("bad"), 400, "INVALID_JSON"),
    (refusals.Unauthenticated("who"), 401, "UNAUTHENTICATED"),
    (refusals.NimNotInScope(), 403, "NIM_NOT_IN_SCOPE"),
    (refusals.RoleNotAllowed("seller", "close"), 403, "ROLE_NOT_ALLOWED"),
    (refusals.WrongPassword(), 401, "WRONG_PASSWORD"),
    (refusals.WrongLane("relay"), 403, "WRONG_LANE"),
    (refusals.NotRelayed(), 404, "NOT_FOUND"),
    (errors.RequestExpired(), 410, "REQUEST_EXPIRED"),
    (errors.NotFound("no"), 404, "NOT_FOUND"),
    (DuplicateInvoice(record()), 409, "DUPLICATE_INVOICE"),
    (NumberWaits("F-1"), 409, "DUPLICATE_INVOICE"),
    (NotWaiting(), 409, "REQUEST_NOT_WAITING"),
    (KeyRequired([FieldError("Idempotency-Key", "has to be given")]), 400, "IDEMPOTENCY_KEY_REQUIRED"),
    (MachineIsSpare("EL02000099-1", "EL02000015-1"), 409, "MACHINE_IS_SPARE"),
    (NotInUse("its spare certifies"), 503, "BRIDGE_OFFLINE"),
    (NumberReserved("in doubt"), 503, "MACHINE_ATTENTION"),
    (PairNotCompared("not compared"), 503, "PAIR_NOT_COMPARED"),
    (UnknownElsewhere("in doubt"), 503, "BRIDGE_OFFLINE"),
    (errors.JoinFailed("the code is used"), 409, "INVALID_REQUEST"),
    (errors.KeyRevoked("another key"), 409, "INVALID_REQUEST"),
    (TakeOverRefused("no spare stands for EL02000015-1"), 409, "INVALID_REQUEST"),
    (errors.KeyReused(), 409, "IDEMPOTENCY_KEY_REUSED"),
    (errors.ZNumberUnknown("EL02000015-1"), 409, "Z_NUMBER_UNKNOWN"),
    (errors.LedgerMoved("gone"), 507, "STORAGE_FULL"),
    (errors.PeriodEnded(7), 409, "PERIOD_ENDED"),
    (errors.PeriodNotOver("2026-11", "2026-10"), 409, "PERIOD_NOT_OVER"),
    (errors.NothingToClose(), 409, "NOTHING_TO_CLOSE"),
    (errors.CreditExceedsOriginal("EL02000015-1-2", 100, 150, 20), 409, "CREDIT_EXCEEDS_ORIGINAL"),
    (errors.TooManyActs(60, 5), 429, "TOO_MANY_REQUESTS"),
    (refusals.BodyTimeout(), 408, "REQUEST_TIMEOUT"),
    (refusals.TooLarge("big"), 413, "TOO_LARGE"),
    (refusals.UnsupportedMediaType("text"), 415, "UNSUPPORTED_MEDIA_TYPE"),
    (refusals.Misdirected(), 421, "MISDIRECTED_REQUEST"),
    (errors.InvalidRequest([FieldError("items[2].taxGroup", "unknown")]), 422, "INVALID_REQUEST"),
    (errors.MachineRefused("E:No amount!"), 422, "MACHINE_REFUSED"),
    (refusals.TooManyRequests("slow down", 7), 429, "TOO_MANY_REQUESTS"),
    (errors.MachineNonsense("what"), 502, "BRIDGE_ERROR"),
    (errors.MachineError("what"), 502, "BRIDGE_ERROR"),
    (errors.MachineOffline("gone", 3), 503, "BRIDGE_OFFLINE"),
    (errors.LineLost("gone"), 503, "BRIDGE_OFFLINE"),
    (errors.NothingDone(errors.LineLost("gone"), "nothing was closed"), 503, "BRIDGE_OFFLINE"),
    (errors.CertifiedElsewhere("EL02000099-1", "CODE", "F-1"), 503, "MACHINE_ATTENTION"),
    (errors.MachineBusy("queue"), 503, "MACHINE_BUSY"),
    (errors.MachineAttention("found"), 503, "MACHINE_ATTENTION"),
    (errors.PrinterFailed("the printer is out of paper"), 503, "PRINTER_UNAVAILABLE"),
    (errors.StorageFull("full"), 507, "STORAGE_FULL"),
    (errors.OutcomeNotStored(), 507, "STORAGE_FULL"),
    (errors.LedgerUnusable("broken"), 503, "LEDGER_DAMAGED"),
    (errors.LedgerInUse(Path("ledger"), "7", None, is_command=False), 503, "LEDGER_DAMAGED"),
    (errors.EntryDamaged(7, "F-7"), 503, "LEDGER_DAMAGED"),
    (errors.KeyUseLost(), 503, "LEDGER_DAMAGED"),
    (errors.StorageError("broken"), 500, "INTERNAL_ERROR"),
    (errors.McfdError("broken"), 500, "INTERNAL_ERROR"),
    (RuntimeError("broken"), 500, "INTERNAL_ERROR"),
    (NotFoundException(), 404, "NOT_FOUND"),
    (MethodNotAllowedException(headers={"allow": "GET"}), 405, "METHOD_NOT_ALLOWED"),
    (HTTPException(status_code=400), 400, "BAD_REQUEST"),
    (HTTPException(status_code=418), 500, "INTERNAL_ERROR"),
]


def test_every_error_of_both_trees_is_in_the_table() -> None:
    """A new error needs its answer in the table, and its example here: so the one above is the whole of decision 11."""
    found = {*tree(errors.McfdError), *tree(refusals.Refusal)} - {refusals.Refusal}
    expected = {each for each in found if each.__module__.startswith("daemon.")}  # the simulation has one of its own
    assert expected == set(KINDS) <= {type(error) for error, _, _ in EXAMPLES}


@pytest.mark.parametrize(("error", "status", "code"), EXAMPLES, ids=lambda value: type(value).__name__)
def test_a_problem_has_its_status_code_and_members(error: Exception, status: int, code: str) -> None:
    """RFC 9457's members, `code` for programs, `error` for clients of the hosted service, the request's id."""
    answer = problem_answer(error, "r-1")
    body = json.loads(answer.body)
    assert answer.status == body["status"] == status
    assert body["code"] == code
    assert body["type"] == "urn:mcfd:problem:" + code.lower().replace("_", "-")
    assert body["error"] == body["detail"] != ""
    assert body["title"]
    assert body["request_id"] == "r-1"
    assert (b"content-type", b"application/problem+json") in answer.headers


def test_an_invalid_request_is_told_in_the_language_of_its_till() -> None:
    """Each field's fault, in the sentence as in the list."""
    error = errors.InvalidRequest([FieldError("from", Text("is given twice"))])
    for language, words in (("en", "is given twice"), ("fr", translate(Text("is given twice"), "fr"))):
        body = json.loads(problem_answer(error, "r-1", language).body)
        assert body["detail"] == f"from: {words}"
        assert body["errors"] == [{"field": "from", "message": words}]
    assert translate(Text("is given twice"), "fr") != "is given twice"


def body_of(error: Exception) -> dict[str, Any]:
    return json.loads(problem_answer(error, "r").body)


def test_a_problem_carries_what_its_till_needs() -> None:
    """A duplicate its certification (decision 5), a credit over its original the sums, a lost line the same key again."""
    certification = body_of(DuplicateInvoice(record()))["certification"]
    assert (certification["codeSecef"], certification["nim"]) == (record().code, NIM)
    body = body_of(errors.CreditExceedsOriginal("X-1", 100, 150, 20))
    assert (body["original_ttc"], body["credited_ttc"], body["left_ttc"]) == (100, 150, 20)
    detail = body_of(errors.LineLost("port /dev/ttyACM0 vanished"))["detail"]
    assert ("same Idempotency-Key" in detail, "tty" in detail) == (True, False)


@pytest.mark.parametrize(
    ("error", "header"),
    [
        (refusals.Unauthenticated("x"), (b"www-authenticate", b'Bearer realm="mcfd", error="invalid_token"')),
        (refusals.Unauthenticated("x", challenge=""), (b"www-authenticate", b'Bearer realm="mcfd"')),
        (MethodNotAllowedException(headers={"allow": "GET"}), (b"allow", b"GET")),
        (errors.MachineOffline("gone", 3), (b"retry-after", b"3")),
        (errors.MachineBusy("queue"), (b"retry-after", b"2")),
        (errors.LineLost("gone"), (b"retry-after", b"2")),
        (refusals.TooManyRequests("slow", 41), (b"retry-after", b"41")),
    ],
)
def test_a_header_says_how_to_go_on(error: Exception, header: tuple[bytes, bytes]) -> None:
    """RFC 6750: a challenge, and what was wrong when a key was sent; what a 405 allows; what passes by itself says when to come back."""
    assert header in problem_answer(error, "r").headers


def test_no_path_of_the_box_leaves() -> None:
    """Decision 11; words of machine and till stay as they are, and of an unforeseen error nothing leaves but the log has it."""
    assert without_paths("cannot open /dev/mcf-EL02000015: gone") == "cannot open the port: gone"
    stored = "[Errno 2] No such file: '{}'"
    assert without_paths(stored.format("/var/lib/mcfd/mcfd.sqlite3-wal")) == stored.format("the port")
    units = "15000 XOF/unit, and/or 18/100"
    assert without_paths(units) == units
    for error in (
        errors.MachineRefused("/dev/null full"),
        errors.InvalidRequest([FieldError("x", "/FV/1 is no number")]),
    ):
        assert "/" in body_of(error)["detail"]
    with capture_logs() as lines:
        answer = problem_answer(RuntimeError("secret /etc/mcfd/key"), "r-9")
    assert b"secret" not in answer.body
    assert b"/etc" not in answer.body
    assert [(line["event"], line["request_id"]) for line in lines] == [("request.failed", "r-9")]
    assert isinstance(lines[0]["exc_info"], RuntimeError)


def test_an_error_that_is_made_of_names_and_numbers_is_a_sentence() -> None:
    """In the language of its till; the other errors are given theirs."""
    takes_text = (
        *(refusals.Unauthenticated, refusals.TooManyRequests, errors.InvalidRequest),
        *(errors.MachineOffline, errors.MachineBusy),
    )
    for error, _, _ in EXAMPLES:
        if type(error) in KINDS and "__init__" in vars(type(error)):
            (sentence,) = error.args
            assert isinstance(sentence, str if isinstance(error, takes_text) else Text), type(error)
