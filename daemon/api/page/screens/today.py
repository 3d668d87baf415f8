"""The start screen: today's sales, X and Z. After the first start: whether the machine answers, and a free test
invoice."""

import secrets
from collections.abc import AsyncGenerator, Mapping, Sequence
from heapq import merge
from typing import Any, Final

import msgspec

from common.language import Counted, Speaker
from common.language.reasons import from_stored
from common.numbers import money, parse_integer
from daemon.api.http.answers import Reply, Stream
from daemon.api.page.downloads import change_in_percent
from daemon.api.page.screens.closures import LONGEST_KEY, certified_too, count_of
from daemon.api.page.screens.paper import printed
from daemon.api.page.views.machine_view import machine_view
from daemon.api.page.views.sales_state import last_z_unknown, sales_state, without_last_z
from daemon.api.page.visit import (
    POLICY,
    Visit,
    html,
    name_of,
    redirect,
    render,
    screen,
    without_thousands,
)
from daemon.core.audit import Call
from daemon.core.clock import HOUR
from daemon.core.errors import (
    FieldError,
    InvalidRequest,
    MachineError,
    NotFound,
    PeriodEnded,
    StorageError,
    ZNumberUnknown,
)
from daemon.core.ledger.attempt import Record
from daemon.core.money import MAX_AMOUNT
from daemon.core.report.fiscal_reports import ZReport
from daemon.core.report.machine_info import tax_server
from daemon.store.tables.book.deferred import backlog
from daemon.store.tables.book.uniqueness import find_key
from daemon.store.tables.z_papers import unprinted
from daemon.usecases.certification.certify import certify
from daemon.usecases.delivery.events import has_come
from daemon.usecases.reports import journal, report
from daemon.usecases.reports.close_period import check_closable, close_period
from daemon.usecases.reports.report import latest, sales_between, totals_by_hour
from daemon.usecases.worker.machine_worker import MachineWorker

LATEST: Final = 8
AGAIN: Final = 2.7
"""Seconds until a second notification of a screen, after the next tick."""
BEAT: Final = 5.0
"""Seconds between signs of life, and between checks for a take-over by the spare."""
CHANGE: Final = b"event: change\ndata: 1\n\n"
NOTES: Final = (10_000, 5000, 2000, 1000, 500)
COINS: Final = (500, 250, 200, 100, 50, 25, 10, 5)
"""Of the CFA franc."""
MAX_DIGITS: Final = 13
_hours_cache: dict[tuple[int, int], int] = {}


@screen("/ui/", "look")
async def today(visit: Visit) -> Reply:
    return await render(visit, "today.html", **await _figures(visit))


@screen("/ui/today", "look", unattended=True)
async def today_part(visit: Visit) -> Reply:
    """The part of the screen that is reloaded at each event."""
    return await render(visit, "today_part.html", **await _figures(visit))


@screen("/ui/state", "look", unattended=True)
async def state(visit: Visit) -> Reply:
    """The banner, loaded by every screen."""
    return await html(visit.request, visit.page, "state.html", state=await sales_state(visit))


async def _figures(visit: Visit) -> dict[str, Any]:
    worker, day = visit.worker, visit.today()
    start, end = visit.day_bounds(day)
    before, _ = visit.day_bounds(type(day).fromordinal(day.toordinal() - 7))
    count = (end - start) // HOUR
    now = worker.now()
    hours, hours_before = [await _by_hour(worker, at, count) for at in (start, before)]
    opening = _opening_hours(hours, hours_before)
    sales = await sales_between(worker, start, end)
    by_now = await sales_between(worker, before, before + min(now, end) - start)
    periods = await report.open_periods(worker) if visit.may("report") else []
    open_pair = zip(worker.pair, periods, strict=False)
    begun = [each.aggregate for each, found in open_pair if each is worker or found.certs_count]
    return {
        "machines": [machine_view(each, visit) for each in visit.deps.workers.all() if each.book.mode == "live"],
        "damage": [from_stored(found).in_language(visit.language) for found in visit.deps.damage()],
        "disk": from_stored(visit.deps.disk()).in_language(visit.language),
        "unprinted": _unprinted(visit) if visit.may("report") else [],
        "sales": sales,
        "change": change_in_percent(sales.total, by_now.total),
        "hours": [_hour_bar(visit, at, hours[at], hours_before[at]) for at in opening],
        "hours_before": [hours_before[at] for at in opening],
        "latest": await _latest(visit),
        "periods": periods,
        "since": min((each.period_start for each in begun if each and each.period_start), default=0),
        "drawer": report.drawer(periods) if periods else None,
    }


def _unprinted(visit: Visit) -> list[tuple[int, str]]:
    """Number and screen of each Z that should have printed itself."""
    pair = [(each, worker) for worker in visit.worker.pair for each in worker.ledger.peek(unprinted, worker.book)]
    return [(each, visit.link(f"/ui/closures/{each}", m=name_of(worker))) for each, worker in pair]


async def _by_hour(worker: MachineWorker, start: int, count: int) -> list[int]:
    found = [await totals_by_hour(each, start, count, _hours_cache) for each in worker.pair]
    return [sum(hour) for hour in zip(*found, strict=True)]


async def _latest(visit: Visit) -> list[tuple[Record, str]]:
    """Newest first, each with its link; those of closed periods only if the role sees them."""
    pair, found = visit.worker.pair, []
    for each in pair:
        dated = await journal.dated(each, await latest(each, LATEST))
        found.append([(record, each) for record, z in dated if not z or visit.may("report")])
    newest = list(merge(*found, key=lambda row: -row[0].begun_at))[:LATEST]
    named = [(record, {"m": name_of(each)} if len(pair) > 1 else {}) for record, each in newest]
    return [(record, visit.link(f"/ui/journal/{record.seq}", **query)) for record, query in named]


def _opening_hours(*days: Sequence[int]) -> range:
    """From the first to the last hour with a sale on any of the days; usual hours without sales."""
    sold = [at for day in days for at, total in enumerate(day) if total] or [8, 17]
    return range(max(0, min(sold) - 1), min(len(days[0]), max(sold) + 2))


def _hour_bar(visit: Visit, at: int, total: int, before: int) -> tuple[str, int, str]:
    words = visit.say("{name}: {value}", name=f"{at} h", value=f"{money(total)} ({money(before)})")
    return f"{at} h", total, words


@screen("/ui/x", "report")
async def x_screen(visit: Visit) -> Reply:
    own, *others = await report.open_periods(visit.worker)
    elsewhere = certified_too(visit, [each.nim for each in others if each.certs_count])
    return await render(visit, "report.html", report=own, what="x", elsewhere=elsewhere, done=printed(visit))


async def _dialogue(visit: Visit) -> Reply:
    """Shows what will be closed; the key identifies one Z, however often and by whomever it is sent."""
    last = [await report.last_z(each) for each in visit.worker.pair]
    periods = await report.open_periods(visit.worker)
    if await _closed_together(visit) is None:
        del periods[1:]
    key = visit.form.get("key", "")[:LONGEST_KEY]
    form = visit.form if key and _is_current(visit, key, last) else {}
    return await render(
        visit,
        "confirm_z.html",
        periods=periods,
        expected=report.drawer(periods).expected,
        machine=machine_view(visit.worker, visit),
        key=key if form else " ".join(map(str, last[: len(periods)])),
        notes=NOTES,
        coins=COINS,
        form=form,
        waits=await _waiting(visit),
    )


confirm_z = screen("/ui/z", "close")(_dialogue)


async def _waiting(visit: Visit) -> list[str]:
    """What the Z will not include yet, and what headquarters lacks."""
    worker, say = visit.worker, visit.say
    found = last_z_unknown(visit, [each for each in without_last_z(visit) if each in worker.pair])
    found += [say("at the machine now: {count}", count=worker.waiting)] if worker.waiting else []
    if later := sum([(await each.ledger.read(backlog, each.book)).count for each in worker.pair]):
        one, several = "{count} sale waits for its certification", "{count} sales wait for their certification"
        found.append(say(Counted(one, several, later)))
    if (other := await _closed_together(visit)) is not None:
        note = say("the period of {nim} is closed with it", nim=other.book.nim)
        found.append(note if other.connected else say("{note}, without that machine", note=note))
    if any([(await visit.page.decisions.case(each.book)).attempt for each in worker.pair]):
        found.append(say("an invoice of which it is not known whether it was certified"))
    if worker.server_link and (unsent := tax_server(worker.server_link, worker.now()).waiting):
        found.append(say("invoices that the machine has still to send to the tax server: {count}", count=unsent))
    if unsent := sum(each.waiting for each in await visit.backlogs()):
        found.append(say("closures that headquarters has not had yet: {count}", count=unsent))
    return found


@screen(
    "/ui/z",
    "close",
    change=True,
    form=_dialogue,
    faults=(MachineError, InvalidRequest, PeriodEnded, StorageError, ZNumberUnknown),
)
async def close_z(visit: Visit) -> Reply:
    """If the machine does not answer, the dialogue is shown again with the same key. A repetition with another count
    names the valid one."""
    key = visit.form.get("key", "")[:LONGEST_KEY] or secrets.token_urlsafe(18)
    counted, query = read_count(visit.form, visit.say), {}
    after, after_other = _numbers_of(key)
    if (other := await _closed_together(visit, key)) is not None:
        if not _is_current(visit, key, [last := await report.last_z(visit.worker)]):
            raise PeriodEnded(last)
        if not _has_closed(visit, visit.worker, key):
            await check_closable(visit.worker)  # before the other's Z is made
        before = await close_period(other, _call_of_z(visit, other, key), after=after_other)
        query = {"other": before.value.z_number}
        drawer = msgspec.json.decode(before.value.body, type=ZReport).cash
        if counted is not None and not isinstance(drawer, msgspec.UnsetType):
            counted = max(0, counted - drawer.expected)  # both share one drawer
    done = await close_period(visit.worker, _call_of_z(visit, visit.worker, key), counted, after)
    stands = count_of(msgspec.json.decode(done.value.body, type=ZReport)) == counted
    return redirect(visit.link(f"/ui/closures/{done.value.z_number}", **{"new" if stands else "again": "1"}, **query))


def _numbers_of(key: str) -> tuple[int | None, int | None]:
    """The last Z of each book of the pair as the form showed them, the displayed one first."""
    own, _, other = key.partition(" ")
    return parse_integer(own, LONGEST_KEY), parse_integer(other, LONGEST_KEY)


def _is_current(visit: Visit, key: str, last: Sequence[int]) -> bool:
    """Whether the form's period is the open one, or was closed by this form. `last`: the last Z of each book."""
    return _has_closed(visit, visit.worker, key) or _numbers_of(key)[0] in (None, last[0])


def _has_closed(visit: Visit, worker: MachineWorker, key: str) -> bool:
    """Whether the form with `key` has closed that book."""
    return bool(worker.ledger.peek(find_key, worker.book, _call_of_z(visit, worker, key).key_hash))


def _call_of_z(visit: Visit, worker: MachineWorker, key: str) -> Call:
    return visit.call(f"page {key} {worker.book.id}", f"page z {worker.book.id}")


async def _closed_together(visit: Visit, key: str = "") -> MachineWorker | None:
    """The other machine of the pair if it worked in this period or the take-over lasts: both books are closed
    together. Also if the form with `key` has closed that book but not yet this one."""
    other = visit.worker.spare or visit.worker.first
    if other is None:
        return None
    is_lasting = other.is_replaced or other.stands_for is not None
    if is_lasting or (key and _has_closed(visit, other, key)):
        return other
    period = await report.x_report(other)
    has_worked = period.certs_count or (period.cash and (period.cash.deposits or period.cash.withdrawals))
    return other if has_worked else None


@screen("/ui/live", "look", whole=False)
async def live(visit: Visit) -> Reply:
    """Server-sent events: `change` if a screen of this machine should reload."""
    return Stream(
        _changes(visit),
        media_type=b"text/event-stream; charset=utf-8",
        headers=((b"x-accel-buffering", b"no"), *POLICY),
        place=visit.deps.event_streams.take(visit.holder),
        stopping=visit.deps.stopping,
        endless=True,
    )


async def _changes(visit: Visit) -> AsyncGenerator[bytes, None]:
    """Events of the displayed machine, and of its spare after a take-over."""
    yield b": open\n\n"
    while visit.is_logged_in():
        worker, patience = visit.worker, BEAT
        with visit.deps.notifier.listening(worker.book) as news:
            while visit.is_logged_in() and visit.worker is worker:
                news.clear()
                has_news = await has_come(news, patience)
                again = (not has_news and patience == AGAIN) or visit.worker is not worker
                yield CHANGE if has_news or again else b": beat\n\n"
                patience = AGAIN if has_news else BEAT


AMOUNT: Final = 100


@screen("/ui/welcome", "administer")
async def welcome(visit: Visit) -> Reply:
    workers = visit.deps.workers.all()
    return await render(
        visit,
        "welcome.html",
        machines=[machine_view(each, visit) for each in workers if each.book.mode == "live"],
        test_machine=next((name_of(each) for each in workers if each.book.mode == "test"), ""),
        key=secrets.token_urlsafe(9),
    )


@screen("/ui/box/test-invoice", "administer", change=True)
async def test_invoice(visit: Visit) -> Reply:
    """Certifies a test invoice on the simulated machine; repeated forms make one invoice."""
    worker = visit.worker
    if worker.book.mode != "test":
        raise NotFound("this is no test machine")
    key = visit.form.get("key", "")[:20] or secrets.token_urlsafe(9)
    body = {
        "invoiceNumber": f"TEST-{key}",
        "invoiceType": "FV",
        "items": [{"name": visit.say("Test"), "taxGroup": "B", "unitPrice": AMOUNT, "quantity": 1}],
        "payments": [{"method": "E", "amount": AMOUNT}],
    }
    done = await certify(worker, body, visit.call(f"page test {key}", f"page test {key}"))
    return redirect(visit.link(f"/ui/journal/{done.value.seq}"))


def read_count(form: Mapping[str, str], say: Speaker) -> int | None:
    """The cash count: notes and coins, or one total; None if not counted. Raises InvalidRequest."""
    pieces = [
        (value, form.get(f"{kind}{value}", "")) for kind, values in (("n", NOTES), ("c", COINS)) for value in values
    ]
    typed = form.get("counted", "")
    if not typed and not any(text for _, text in pieces):
        return None
    wrong = FieldError("counted", say("must be a whole number of francs, 0 or more"))
    sums = [value * _whole(text, wrong) for value, text in pieces if text]
    total = sum(sums) if sums else _whole(typed, wrong)
    if sums and typed and _whole(typed, wrong) != total:
        raise InvalidRequest.at("counted", say("notes and coins come to another sum"))
    if total > MAX_AMOUNT:
        raise InvalidRequest([wrong])
    return total


def _whole(text: str, wrong: FieldError) -> int:
    if (number := parse_integer(without_thousands(text), MAX_DIGITS)) is None:
        raise InvalidRequest([wrong])
    return number
