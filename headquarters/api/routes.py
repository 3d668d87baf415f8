"""HTTP routes. For boxes: `POST /closures` and `POST /presence` (Standard Webhooks, one key per box), `POST /join`
with a one-time code (`common.wire.joining`). For programs: `/v1`."""

from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta, tzinfo
from difflib import get_close_matches
from typing import TypeVar

import msgspec
from litestar import Response, get, post
from litestar.exceptions import NotFoundException

from common.numbers import parse_integer
from common.wire.closure import MAX_BYTES, read_trial
from common.wire.errors import BadQuery, decoded
from common.wire.instants import instant_text, now_millis
from common.wire.joining import MAX_BYTES as MAX_JOIN_BYTES
from common.wire.joining import JoinAnswer
from common.wire.presence import PresenceAnswer
from common.wire.signing import ID, DeliveryReceipt, receipt_of
from headquarters.api.callers import AnyRequest, address_of_request, authenticate, mark_key_accepted
from headquarters.core.checks import machine_of
from headquarters.core.reception import DAY_BEGINS, Message, MessageRefused
from headquarters.intake.joining import JoinService
from headquarters.intake.reception import Reception
from headquarters.intake.threads import Threads
from headquarters.store.book.closures import StoreOutcome
from headquarters.store.figures import ClosureLine, CursorPlace, Order
from headquarters.store.findings import MAX_ID, StoredFinding, for_programs
from headquarters.store.store import HqStore

MAX_ROWS = 1000
ALIKE = 0.7
"""Likeness of letters from which a parameter's name is misspelt."""
CURSOR = "c"
FOREIGN_CURSOR = "not what an answer has given"
MILLI = timedelta(milliseconds=1)
T = TypeVar("T")
START = datetime(1970, 1, 1, tzinfo=UTC)


class Note(msgspec.Struct, frozen=True):
    note: str = ""


@post("/closures", status_code=200, request_max_body_size=None)
async def receive_closure(request: AnyRequest, reception: Reception) -> Response[DeliveryReceipt]:
    """200 with a receipt: stored durably, or a trial. 409 with a receipt: already stored. No other answer confirms
    delivery."""
    message = await _message(request)
    outcome = StoreOutcome.STORED
    if (trial := read_trial(message.body)) is not None:
        await reception.trial(message, trial)
    else:
        outcome = await reception.closure(message)
    mark_key_accepted(request)
    if outcome is StoreOutcome.FORK:
        raise MessageRefused("fork", "another closure has this number or id; this one is kept as evidence")
    receipt = receipt_of(message.headers[ID], message.body)
    return Response(receipt, status_code=200 if outcome is StoreOutcome.STORED else 409)


@post("/presence", status_code=200, request_max_body_size=None)
async def receive_presence(request: AnyRequest, reception: Reception) -> PresenceAnswer:
    """200 with the closures to send again."""
    answer = await reception.presence(await _message(request))
    mark_key_accepted(request)
    return answer


@post("/join", status_code=200, request_max_body_size=MAX_JOIN_BYTES)
async def join(request: AnyRequest, joining: JoinService) -> JoinAnswer:
    """200 with the box's configuration; idempotent."""
    address = address_of_request(request, is_direct=joining.is_direct)
    answer = await joining.join(_signature(request), await request.body(), address)
    mark_key_accepted(request)
    return answer


@get("/v1/closures")
async def closures(request: AnyRequest, store: HqStore, threads: Threads, zone: tzinfo) -> dict[str, object]:
    """`nim`, `from` and `to` (a date means the whole day, `to` inclusive; an instant needs its offset), oldest first;
    `mode=test` for the sandbox. At most 1 000; `next` is the `from` of the next page. With `after` (initially empty)
    in order of arrival: the answer's `after` returns later arrivals, even if created earlier."""
    await authenticate(request, store, threads)
    query = _query(request, "nim", "from", "to", "mode", "after")
    order: Order = "arrived" if "after" in query else "made"
    after = _place(query.get("after" if order == "arrived" else "from") or "")
    start = 0 if order == "made" and after else _instant(query.get("from"), "from", zone, 0)
    if order == "arrived" and query.get("after") and after is None:
        raise BadQuery("after", FOREIGN_CURSOR)
    lines = await threads.run(
        store.figures.lines,
        mode=_choice(query, "mode", {"": "live", "live": "live", "test": "test"}),
        machine=_machine(query),
        start=start or 0,
        end=_instant(query.get("to"), "to", zone, 1),
        order=order,
        after=after,
        limit=MAX_ROWS,
    )
    content: dict[str, object] = {"closures": [_closure_json(line) for line in lines]}
    if order == "arrived":
        content["after"] = _cursor(lines[-1].place(order)) if lines else query.get("after")
    elif len(lines) == MAX_ROWS:
        content["next"] = _cursor(lines[-1].place(order))
    return content


@get("/v1/findings")
async def findings(request: AnyRequest, store: HqStore, threads: Threads) -> dict[str, object]:
    """`open=true` or `open=false`, `nim`; newest first. At most 1 000; `next` is the `before` of the next page."""
    await authenticate(request, store, threads)
    query = _query(request, "open", "nim", "before")
    is_open = _choice(query, "open", {"": None, "true": True, "false": False})
    before = parse_integer(query.get("before") or str(MAX_ID), 10)
    if before is None:
        raise BadQuery("before", FOREIGN_CURSOR)
    found = await threads.run(
        store.findings.listed, is_open=is_open, machine=_machine(query), before=before, limit=MAX_ROWS
    )
    content: dict[str, object] = {"findings": [_finding(one) for one in found]}
    return content | ({"next": found[-1].id} if len(found) == MAX_ROWS else {})


@post("/v1/findings/{id_:int}/seen", status_code=200)
async def mark_seen(request: AnyRequest, store: HqStore, threads: Threads, id_: int) -> dict[str, bool]:
    caller = await authenticate(request, store, threads, "accountant")
    if not await threads.run(store.findings.mark_seen, id_, caller.name, now_millis()):
        raise NotFoundException(detail="no new open finding of that id")
    return {"seen": True}


@post("/v1/findings/{id_:int}/solve", status_code=200)
async def solve(request: AnyRequest, store: HqStore, threads: Threads, id_: int) -> dict[str, bool]:
    caller = await authenticate(request, store, threads, "accountant")
    note = decoded(await request.body(), Note).note
    if not await threads.run(store.findings.solve, id_, caller.name, note, now_millis()):
        raise NotFoundException(detail="no open finding of that id")
    return {"solved": True}


async def _message(request: AnyRequest) -> Message:
    """Reads at most one byte more than the maximum of a closure."""
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > MAX_BYTES:
            break
    return Message(via="https", headers=_signature(request), body=bytes(body[: MAX_BYTES + 1]))


def _signature(request: AnyRequest) -> dict[str, str]:
    return {name: text for name, text in request.headers.items() if name.startswith("webhook-")}


def _query(request: AnyRequest, *names: str) -> Mapping[str, str]:
    """The parameters of the URL. Raises 422 for a misspelt one, which would be ignored, and for one given twice."""
    query = request.query_params
    for name in query:
        if name in names:
            if len(query.getall(name)) > 1:
                raise BadQuery(name, "is given twice")
        elif near := get_close_matches(name.lower(), names, n=1, cutoff=ALIKE):
            raise BadQuery(name, f"is not a known parameter; did you mean {near[0]}?")
    return query


def _choice(query: Mapping[str, str], name: str, values: Mapping[str, T]) -> T:
    """The value of a query parameter; empty means absent. Raises 422."""
    try:
        return values[query.get(name, "")]
    except KeyError:
        raise BadQuery(name, f"has to be {' or '.join(filter(None, values))}") from None


def _machine(query: Mapping[str, str]) -> str | None:
    """The requested machine; None for all."""
    nim = query.get("nim", "")
    if "\0" in nim:
        raise BadQuery("nim", "holds a character that no NIM has")
    return machine_of(nim) if nim else None


def _cursor(place: CursorPlace) -> str:
    return CURSOR + msgspec.json.encode(place).hex()


def _place(text: str) -> CursorPlace | None:
    """None for an invalid cursor."""
    if not text.startswith(CURSOR):
        return None
    try:
        return msgspec.json.decode(bytes.fromhex(text.removeprefix(CURSOR)), type=CursorPlace)
    except (ValueError, msgspec.MsgspecError):
        return None


def _closure_json(line: ClosureLine) -> dict[str, object]:
    times = ("period_start", "period_end", "created_at", "received_at")
    return {
        "id": line.id,
        "nim": line.nim,
        "z_number": line.z,
        "day": line.day,
        **{name: instant_text(getattr(line, name)) for name in times},
        "certs_count": line.certs,
        "total_ttc": line.ttc,
        "total_ht": line.ht,
        "total_tva": line.tva,
        "by_group": [{"group": group, "ht": ht, "tva": tva, "ttc": ttc} for group, ht, tva, ttc in line.groups],
        "by_payment": [{"label": label, "amount": amount} for label, amount in line.payments],
        "proven": line.proven,
        "replaced_by": line.replaced_by,
    }


def _finding(one: StoredFinding) -> dict[str, object]:
    """The finding as JSON, without empty fields."""
    fields = for_programs(one) | {name: getattr(one, name) for name in ("mode", "seen_by", "note")}
    return {name: value for name, value in fields.items() if value not in (None, "")}


def _instant(text: str | None, field: str, zone: tzinfo, days: int) -> int | None:
    """Milliseconds. A date is the shop's day, as on the page; `days` are added to it, so that `to` is inclusive.
    Raises 422."""
    if not text:
        return None
    try:
        if len(text) == len("2026-01-31"):
            begins = (START + DAY_BEGINS).time()
            day = min(date.fromisoformat(text), date.max - timedelta(days))  # some tills use 9999-12-31 for "no end"
            at = datetime.combine(day + timedelta(days), begins, zone)
        else:
            at = datetime.fromisoformat(text)
        return (at - START) // MILLI
    except (ValueError, TypeError, OverflowError):
        raise BadQuery(field, "neither a date nor an instant with its offset") from None
