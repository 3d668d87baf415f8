"""The journal: search, and the details of one invoice."""

import secrets
from collections.abc import Sequence
from datetime import timedelta
from itertools import product
from typing import Any, Final, cast

import msgspec

from common.numbers import parse_integer
from daemon.api.http.answers import Reply
from daemon.api.page.downloads import range_of_query
from daemon.api.page.rendering import PeriodClosed
from daemon.api.page.screens.paper import is_first, printed
from daemon.api.page.views.machine_view import qr_picture
from daemon.api.page.visit import Visit, name_of, plain_ifu, render, screen, without_thousands
from daemon.core.errors import NotFound
from daemon.core.invoice.invoice import CREDITS, SALES
from daemon.core.ledger.attempt import OPEN, AttemptState, Record, is_test_code
from daemon.core.ledger.tally import contribution
from daemon.core.report.journal import Page, reason_text
from daemon.core.report.ranges import EVER
from daemon.core.report.receipt import receipt
from daemon.store.tables.book.closures import periods_of
from daemon.store.tables.book.deferred import is_number_in_use
from daemon.usecases.reports import journal, report
from daemon.usecases.reports.journal import Dated, Found, search, search_exactly
from daemon.usecases.worker.machine_worker import MachineWorker

PER_PAGE: Final = 50
ALL_CREDITS: Final = " ".join(CREDITS)
STATES: Final = ("certified", "refused", "abandoned", "begun", "disputed")


@screen("/ui/journal", "look")
async def journal_screen(visit: Visit) -> Reply:
    criteria = await _search_of(visit)
    found = await search(visit.worker, criteria)
    if not found.records and found.complete and criteria.amount is None and (amount := whole_amount(criteria.text)):
        found = await search(visit.worker, msgspec.structs.replace(criteria, text="", amount=amount))
    doubts = await _doubts(visit, criteria)
    if criteria.text and not found.records and not doubts:
        visit, found = await _elsewhere(visit, found)
    values = _query_values(visit)
    is_summed_up = any(values.values()) and not found.next and not criteria.before_seq
    more = visit.link("/ui/journal", **{**values, "before": found.next}) if found.next else ""
    return await render(
        visit,
        "journal.html",
        rows=[*doubts, *found.records],
        waits=not found.records and visit.worker.ledger.peek(is_number_in_use, visit.worker.book, criteria.text),
        more=more,
        complete=found.complete,
        total=_certified([record for record, _ in found.records]) if is_summed_up else None,
        states=STATES,
        types=SALES + CREDITS,
        all_credits=ALL_CREDITS,
        query=visit.query,
        chips=_chips(visit),
        is_filtered=any(visit.query.get(name) for name in ("amount", "type", "state", "from", "to")),
    )


async def _doubts(visit: Visit, criteria: Page) -> list[Dated]:
    """Possibly certified invoices of the machine and its spare that are not yet in the journal; shown first."""
    found: list[Dated] = []
    if criteria.before_seq or criteria.state not in (None, "disputed"):
        return found
    for worker, state in product(visit.worker.pair, OPEN):
        if state != criteria.state:
            page = msgspec.structs.replace(criteria, state=state, start=range_of_query(visit)[0])
            opened = (await search(worker, page)).records
            doubts = [record for record, _ in opened if not worker.attempts.is_ours(record)]
            found += [(msgspec.structs.replace(record, state="disputed"), 0) for record in doubts]
    return found


async def _elsewhere(visit: Visit, found: Found) -> tuple[Visit, Found]:
    """Searches the books of other machines, such as a spare, for the exact number or code; the found row links
    there."""
    for worker in visit.workers:
        there = msgspec.structs.replace(visit, query={**visit.query, "m": name_of(worker)})
        if worker.book.mode == visit.worker.book.mode and worker is not visit.worker:
            found_there = await search_exactly(worker, await _search_of(there))
            if found_there.records:
                return there, found_there
    return visit, found


def _chips(visit: Visit) -> list[tuple[str, str, bool]]:
    """Usual searches: label, link, whether it is the current one."""
    today, say = visit.today(), visit.say
    begins = {
        say("Today"): today,
        say("This week"): today - timedelta(days=today.weekday()),
        say("This month"): today.replace(day=1),
    }
    presets: dict[str, dict[str, str]] = {
        say("All"): {},
        **{words: {"from": first.isoformat(), "to": today.isoformat()} for words, first in begins.items()},
        say("In doubt"): {"state": "disputed"},
        say("Refused"): {"state": "refused"},
        say("Credit notes"): {"type": ALL_CREDITS},
    }
    current = {name: value for name, value in _query_values(visit).items() if value}
    return [(words, visit.link("/ui/journal", **query), query == current) for words, query in presets.items()]


@screen("/ui/journal/{seq:int}", "look")
async def invoice_screen(visit: Visit) -> Reply:
    record, z_number = await _entry(visit)
    content = receipt(record) if record.state == "certified" else None
    credits_ = await journal.credits_of(visit.worker, record) if record.state == "certified" else ()
    picture = await qr_picture(content.qr_content) if content else ""
    return await render(
        visit,
        "invoice.html",
        record=record,
        is_test=is_test_code(record.code),
        reason=reason_text(record, visit.language),
        z=z_number,
        receipt=content,
        picture=picture,
        credits=credits_,
        done=printed(visit) or _form_outcome(visit),
        can_credit=can_credit(visit, record) and sum(each.total_ttc for each in credits_) < record.total_ttc,
        first="1" if content and await is_first(visit, record) else "",
        form_key=secrets.token_urlsafe(9),
    )


def _form_outcome(visit: Visit) -> str:
    """The result of the form that redirected here."""
    if visit.query.get("again"):
        return visit.say(
            "The form had made this invoice already, and made no other. Another sale begins with an empty form."
        )
    return visit.say("Certified.") if visit.query.get("new") else ""


def can_credit(visit: Visit, record: Record) -> bool:
    is_sale = record.state == "certified" and record.type in SALES and bool(record.invoice.items)
    return is_sale and visit.may("certify") and not certifier(visit).is_retired


def certifier(visit: Visit) -> MachineWorker:
    """The machine that certifies for the selected one: of a pair the one that is in use, and for one that is no longer
    configured another one of its taxpayer, if there is one."""
    own = visit.worker
    others = (each for each in visit.deps.workers.all() if (each.book.mode, each.ifu) == (own.book.mode, own.ifu))
    return (next(others, own) if own.is_retired else own.first or own).in_use


async def record_of(visit: Visit) -> Record:
    return (await _entry(visit))[0]


async def _entry(visit: Visit) -> Dated:
    """The entry in the path. Raises NotFound, or PeriodClosed if the role sees the open period only."""
    seq, worker = int(visit.request.path_params["seq"]), visit.worker
    found = await worker.journal.page(worker.book, Page(*EVER, before_seq=seq + 1, limit=1))
    if not found or found[0].seq != seq:
        raise NotFound("there is no such entry")
    record = await worker.journal.with_counter(worker.book, found[0])
    (z_number,) = await worker.journal.read(periods_of, worker.book, [record])
    if z_number and not visit.may("report"):
        raise PeriodClosed
    return record, z_number


def _certified(records: Sequence[Record]) -> int | None:
    """Net total in XOF; None without a certified invoice."""
    certified = [record for record in records if record.state == "certified"]
    return sum(report.net_total(contribution(each)) for each in certified) if certified else None


async def _search_of(visit: Visit) -> Page:
    query = visit.query
    start, end = range_of_query(visit)
    if not visit.may("report"):
        start = max(start, await report.period_start(visit.worker))
    state = query.get("state", "")
    return Page(
        start,
        end,
        text=plain_ifu(query.get("q", "")[:64]),
        amount=whole_amount(query.get("amount", "")),
        type=query.get("type", "") if query.get("type") in (*SALES, *CREDITS, ALL_CREDITS) else "",
        state=cast("AttemptState", state) if state in STATES else None,
        before_seq=parse_integer(query.get("before", "")) or 0,
        limit=PER_PAGE,
    )


def whole_amount(text: str) -> int | None:
    """The amount in the text, if it may be one: "15 000 F" is."""
    return parse_integer(without_thousands(text), 15)


def _query_values(visit: Visit) -> dict[str, Any]:
    return {name: visit.query.get(name) for name in ("q", "amount", "type", "state", "from", "to")}
