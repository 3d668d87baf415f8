"""Cash put into the drawer and taken out beside sales (decision 34): what was moved, and a form to note it."""

from __future__ import annotations

import hashlib
import secrets
from datetime import date, datetime
from typing import Any, Final

from daemon.api.http.answers import Reply
from daemon.api.page.days import day_of
from daemon.api.page.faults import fault_of
from daemon.api.page.visit import Visit, redirect, screen, shown
from daemon.core.clock import millis
from daemon.core.errors import InvalidRequest, TooManyCashMoves
from daemon.usecases.reports import report
from daemon.usecases.reports.move_cash import cash_moves, move_cash

PER_PAGE: Final = 200
LONGEST_KEY: Final = 64
BLANKS: Final = str.maketrans("", "", " \u00a0\u202f")
"""As people write thousands."""


@screen("/ui/cash", "look")
async def cash(visit: Visit) -> Reply:
    return await _screen(visit)


@screen("/ui/cash", "certify", change=True)
async def note(visit: Visit) -> Reply:
    """However often the form is sent, one movement; one that was changed meanwhile is another."""
    form = visit.form
    body = {
        "kind": form.get("kind", ""),
        "amount": _whole(form.get("amount", "")),
        "reason": form.get("reason", ""),
        "operatorName": visit.session.name,
    }
    key = form.get("key", "")[:LONGEST_KEY] or secrets.token_urlsafe(18)
    said = f"page cash {visit.worker.book.id} {body['kind']} {body['amount']} {body['reason']}"
    fingerprint = hashlib.sha256(said.encode()).digest()[:16]
    try:
        await move_cash(visit.worker, body, visit.call(f"page {key} {fingerprint.hex()}", fingerprint))
    except (InvalidRequest, TooManyCashMoves) as error:
        fault = fault_of(error)
        return await _screen(visit, status=fault.status, problem=fault.told(visit.say))
    return redirect(visit.link("/ui/cash", noted="1"))


async def _screen(visit: Visit, *, status: int = 200, problem: str = "") -> Reply:
    first, last = _range(visit)
    start, end = visit.day_bounds(first)[0], visit.day_bounds(last)[1]
    if not visit.may("report"):
        start = max(start, await report.period_start(visit.worker))
    after = visit.query.get("after", "")
    known = int(after) if after.isascii() and after.isdigit() and len(after) < 10 else 0  # noqa: PLR2004  digits
    found = await cash_moves(visit.worker, start, max(start, end), known, PER_PAGE)
    more = {"from": first.isoformat(), "to": last.isoformat(), "after": found.movements[-1].id if found.count else 0}
    return await shown(
        visit,
        "cash.html",
        status=status,
        problem=problem,
        done=visit.say("Noted.") if visit.query.get("noted") else "",
        found=found,
        rows=[(millis(datetime.fromisoformat(each.at)), each) for each in reversed(found.movements)],
        more=visit.link("/ui/cash", **more) if found.count == PER_PAGE else "",
        period=await report.x_report(visit.worker) if visit.may("report") else None,
        first=first,
        last=last,
        form=visit.form,
        key=secrets.token_urlsafe(18),
    )


def _range(visit: Visit) -> tuple[date, date]:
    """First and last day of the query; today for what it does not say."""
    first, last = day_of(visit.query.get("from", "")), day_of(visit.query.get("to", ""))
    first, last = first or last or visit.today(), last or visit.today()
    return (first, last) if first <= last else (last, first)


def _whole(text: str) -> Any:
    """A whole number, also as people write it ("15 000"); anything else stays as it is, to be refused: it is money."""
    plain = text.translate(BLANKS)
    return int(plain) if plain.isascii() and plain.isdigit() and len(plain) <= 15 else text or None  # noqa: PLR2004  digits


HANDLERS = (cash, note)
