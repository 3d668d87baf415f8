"""Client that certifies invoices through mcfd; repeats a request with the same key until an answer. See README.md."""

from __future__ import annotations

import ssl
import time
import uuid
from collections.abc import Callable, Mapping
from typing import Any, Self
from urllib.parse import quote

import httpx
import msgspec

from avepay_mcf.signing import PRIVATE, RequestSignature

AGAIN = frozenset({408, 410, 429, 502, 503, 504, 507})
ONCE_MORE = frozenset({"BRIDGE_ERROR", "INTERNAL_ERROR"})  # repeated once, then for a person
WAIT = 2.0  # seconds, where the answer does not say
LOOK_AFTER = "GATEWAY_TIMEOUT"
UNKNOWN = frozenset({LOOK_AFTER, "OUTCOME_UNKNOWN"})
STOP = ONCE_MORE | {"BOX_AMBIGUOUS", "MACHINE_ATTENTION", "PAIR_NOT_COMPARED", "LEDGER_DAMAGED", "Z_NUMBER_UNKNOWN"}


class Got(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Decoded answer; fields of later versions of mcfd are ignored."""


class TaxDetail(Got, frozen=True, kw_only=True):
    group: str
    label: str
    ht: int
    tva: int
    ttc: int


class Warned(Got, frozen=True, kw_only=True):
    code: str
    message: str
    item: int | None = None
    field: str = ""


class Receipt(Got, frozen=True, kw_only=True):
    code_secef: str
    invoice_number: str
    invoice_type: str
    total_ttc: int
    nim: str
    ifu: str
    date_time: str
    qr_content: str
    tc: int
    fvc: int
    frc: int
    certified_at: str
    tax_details: tuple[TaxDetail, ...] = ()
    warnings: tuple[Warned, ...] = ()
    counters: str = ""
    stamp_duty: int = 0


class Preview(Got, frozen=True, kw_only=True):
    total_ttc: int
    tax_details: tuple[TaxDetail, ...] = ()
    warnings: tuple[Warned, ...] = ()


class FieldFault(Got, frozen=True, kw_only=True):
    field: str
    message: str


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """`code` is for programs, `detail` for the screen."""

    code: str
    status: int = 0
    title: str = ""
    detail: str = ""
    request_id: str = ""
    errors: tuple[FieldFault, ...] = ()
    certification: Receipt | None = None
    original_ttc: int | None = None
    credited_ttc: int | None = None
    left_ttc: int | None = None


class RequestState(msgspec.Struct, frozen=True, kw_only=True):
    """`status` is waiting, on_the_line, in_doubt, certified, refused, abandoned or answered."""

    status: str
    receipt: Receipt | None = None
    problem: Problem | None = None


class McfError(Exception):
    """Base class of all errors."""


class NoAnswer(McfError):
    """No answer within the client's patience. Repeat it later with the same key: it is certified at most once."""

    def __init__(self, key: str, last: str) -> None:
        self.key = key
        super().__init__(f"no answer yet ({last}); send the same again with the key {key!r}")


class Answered(McfError):
    """mcfd refused the request; it has certified nothing."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        super().__init__(f"{problem.code}: {problem.detail}")

    @property
    def code(self) -> str:
        return self.problem.code


class NeedsAPerson(Answered):
    """Stop selling, and call the box's support."""


class NotAllowed(Answered):
    """A valid key with this right is needed."""


class Refused(Answered):
    """Correct the request and send it with a new key."""


class InvalidRequest(Refused):
    @property
    def errors(self) -> tuple[FieldFault, ...]:
        return self.problem.errors


class MachineRefused(Refused):
    """The message is the machine's own."""


class DuplicateInvoice(Refused):
    @property
    def certification(self) -> Receipt | None:
        """The certification with this number: of this sale or of another one."""
        return self.problem.certification


class CreditExceedsOriginal(Refused):
    """Both totals are in `problem`."""


_BY_CODE: dict[str, type[Answered]] = {
    "INVALID_REQUEST": InvalidRequest,
    "MACHINE_REFUSED": MachineRefused,
    "DUPLICATE_INVOICE": DuplicateInvoice,
    "CREDIT_EXCEEDS_ORIGINAL": CreditExceedsOriginal,
}


def error_of(problem: Problem, status: int) -> Answered:
    """The error of a problem; an unknown code is classified by its status."""
    if problem.code in STOP:
        return NeedsAPerson(problem)
    if found := _BY_CODE.get(problem.code):
        return found(problem)
    if status in (401, 403):
        return NotAllowed(problem)
    return NeedsAPerson(problem) if status >= 500 else Refused(problem)  # noqa: PLR2004  # a status


class Mcf:
    """One till at one machine. Bodies: docs/integrate.md. `till` is the prefix of each key and unique in the shop.
    `patience` limits a call, `timeout` one attempt (seconds). A signing `key` (`whsk_…`, relay) is not sent; it needs
    the extra `signed`. `verify`: the box's authority (`mcfd tls export-ca`); `test`: `Mcfd-Test` for a test key."""

    def __init__(
        self,
        url: str,
        key: str,
        nim: str,
        *,
        till: str,
        patience: float = 120.0,
        timeout: float = 60.0,
        verify: ssl.SSLContext | str | bool = True,
        language: str = "fr",
        test: str = "",
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        context = ssl.create_default_context(cafile=verify) if isinstance(verify, str) else verify
        headers = {"Accept-Language": language}
        auth = RequestSignature(key, timeout) if key.startswith(PRIVATE) else None
        if auth is None:
            headers["Authorization"] = f"Bearer {key}"
        self.till = till
        self.patience = patience
        self.test = test
        self._base = f"/v1/mcf/{nim}"
        self._sleep = sleep
        self._http = httpx.Client(base_url=url, headers=headers, timeout=timeout, verify=context, auth=auth)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._http.close()

    def certify(self, invoice: Mapping[str, Any], *, key: str = "") -> Receipt:
        """The receipt; repetitions return the same one. The default key contains the invoice's number. If the box
        assigns the numbers, store a key of your own with the invoice."""
        return self._receipt("/certify", invoice, key)

    def credit_note(self, credit: Mapping[str, Any], *, key: str = "") -> Receipt:
        """Like `certify`; the tax server checks it, which may take a minute."""
        return self._receipt("/credit-note", credit, key)

    def preview(self, invoice: Mapping[str, Any]) -> Preview:
        """Totals and warnings of the invoice, without certification."""
        path = "/credit-note" if invoice.get("invoiceType") in ("FA", "EA") else "/certify"
        answer = self._send("POST", f"{path}?dry_run=true", invoice, f"{self.till}-preview-{uuid.uuid4()}")
        return msgspec.json.decode(answer.content, type=Preview)

    def find_request(self, key: str) -> RequestState | None:
        """State of the request with this key; None if unknown."""
        try:
            answer = self._send("GET", _state_of(key))
        except Refused as error:
            if error.code == "NOT_FOUND":
                return None
            raise
        return msgspec.json.decode(answer.content, type=RequestState)

    def close_period(self, *, key: str) -> dict[str, Any]:
        """Closes the period (Z). `key` is the till's name for this closing, such as its date; it makes one Z."""
        return self._object("POST", "/reports/z", {}, f"{self.till}-z-{key}")

    def move_cash(self, kind: str, amount: int, reason: str, *, key: str) -> dict[str, Any]:
        """`kind` is `deposit` or `withdrawal`."""
        body = {"kind": kind, "amount": amount, "reason": reason}
        return self._object("POST", "/cash", body, f"{self.till}-cash-{key}")

    def ticket(self, code: str, *, width: int = 42, html: bool = False) -> str:
        """The ticket as text of `width` characters, or as HTML with the QR code."""
        form = "format=html" if html else f"width={width}"
        return self._send("GET", f"/certifications/{code}/ticket?{form}").text

    def get(self, path: str, **query: Any) -> Any:
        """Reads any other resource: `info`, `reports/x`, `certifications`."""
        return msgspec.json.decode(self._send("GET", f"/{path}?{httpx.QueryParams(query)}").content)

    def _receipt(self, path: str, invoice: Mapping[str, Any], key: str) -> Receipt:
        key = key or self._key_of(path, invoice)
        answer = self._send("POST", path, invoice, key)
        if answer.status_code == 202:  # noqa: PLR2004  # a status
            return self._later(key)
        return msgspec.json.decode(answer.content, type=Receipt)

    def _later(self, key: str) -> Receipt:
        """Waits for the certification of an accepted sale."""
        deadline = time.monotonic() + self.patience
        while (found := self._look(key)) is None or found.receipt is None:
            if found is not None and found.problem is not None:
                raise error_of(found.problem, found.problem.status)
            self._wait(WAIT, deadline, key, "accepted, and not certified yet")
        return found.receipt

    def _key_of(self, path: str, invoice: Mapping[str, Any]) -> str:
        number = invoice.get("invoiceNumber")
        if not number:
            raise ValueError("an invoice without a number needs a key of its own")
        return f"{self.till}{path.replace('/', '-')}-{number}"

    def _object(self, method: str, path: str, body: object = None, key: str = "") -> dict[str, Any]:
        return msgspec.json.decode(self._send(method, path, body, key).content, type=dict[str, Any])

    def _send(self, method: str, path: str, body: object = None, key: str = "") -> httpx.Response:
        content = None if body is None else msgspec.json.encode(body)
        headers = {"Content-Type": "application/json"} if content is not None else {}
        if key:
            headers["Idempotency-Key"] = key
        if self.test and method == "POST":
            headers["Mcfd-Test"] = self.test
        deadline, once_more = time.monotonic() + self.patience, True
        while True:
            try:
                answer = self._http.request(method, self._base + path, content=content, headers=headers)
            except httpx.TransportError as error:
                wait, last, is_lost = WAIT, type(error).__name__, True
            else:
                if answer.is_success:
                    return answer
                problem = _problem(answer)
                is_lost = problem.code in UNKNOWN
                may_pass = answer.status_code in AGAIN and problem.code not in STOP
                if not may_pass and not (once_more and problem.code in ONCE_MORE):
                    raise error_of(problem, answer.status_code)
                once_more = once_more and problem.code not in ONCE_MORE
                wait, last = _retry_after(answer), f"{problem.code}: {problem.detail}"
            self._wait(wait, deadline, key, last)
            found = self._look(key) if is_lost and key and path in ("/certify", "/credit-note") else None
            if found is not None and found.receipt is not None:  # otherwise the same is sent again, which is as safe
                return httpx.Response(200, content=msgspec.json.encode(found.receipt))

    def _look(self, key: str) -> RequestState | None:
        """One attempt of `find_request`. None if it fails, which says nothing about the request. Raises Refused for a
        sale that was taken back: sent again, it would be certified."""
        try:
            answer = self._http.get(self._base + _state_of(key))
            found = msgspec.json.decode(answer.content, type=RequestState) if answer.is_success else None
        except (httpx.TransportError, msgspec.DecodeError):
            return None
        if found is not None and found.status == "abandoned" and found.problem is None:
            raise Refused(
                Problem(code="TAKEN_BACK", status=409, detail="the sale was accepted for later, and taken back since")
            )
        return found

    def _wait(self, seconds: float, deadline: float, key: str, last: str) -> None:
        if time.monotonic() + seconds > deadline:
            raise NoAnswer(key, last)
        self._sleep(seconds)


def _state_of(key: str) -> str:
    return f"/requests/{quote(key, safe='')}"


def _problem(answer: httpx.Response) -> Problem:
    """Intermediaries may answer without a problem document."""
    try:
        return msgspec.json.decode(answer.content, type=Problem)
    except msgspec.DecodeError:
        code = {502: "BAD_GATEWAY", 504: LOOK_AFTER}.get(answer.status_code, "UNKNOWN")
        return Problem(code=code, status=answer.status_code, detail=answer.text[:200])


def _retry_after(answer: httpx.Response) -> float:
    text = answer.headers.get("Retry-After", "")
    return float(text) if text.isascii() and text.isdigit() else WAIT
