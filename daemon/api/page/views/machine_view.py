"""State of a machine for people: word and colour, the finding if it needs attention, and charts of its line over the
last day, ten minutes per bar."""

import asyncio
import base64
from collections.abc import Sequence
from typing import Final

import msgspec

from common.language import Language, Text, reasons
from common.language.reasons import codes_of
from common.numbers import money
from daemon.api.box import LineSlot
from daemon.api.page.views.sales_state import refuses_since, wrong_clock
from daemon.api.page.visit import Visit, name_of
from daemon.core.clock import DAY
from daemon.core.errors import without_paths
from daemon.core.ledger.outage import Outage
from daemon.core.report.machine_info import ALERT_DAYS, WARN_DAYS, tax_server
from daemon.paper.logo import draw_qr
from daemon.store.tables.book.outages import last_outage, out_since
from daemon.usecases.worker.machine_worker import MachineWorker

FOREIGN: Final = Text(
    "The machine has certified invoices that this ledger does not know: another program used it, or an older copy of the ledger was put back."
)
LOST: Final = Text(
    "What this box had written down is missing from its ledger: the disk has damaged it, or an older copy was put in its place. Compare paper "
    "and tills with the journal."
)
PLAIN: Final = {
    reasons.OUTCOME_UNKNOWN.code: Text(
        "An invoice went to the machine and the answer was lost: it is not known whether it was certified."
    ),
    reasons.MACHINE_BEHIND.code: Text(
        "The machine has counted less than the ledger knows: it is another machine, or it was reset."
    ),
    reasons.FOREIGN_INVOICE.code: FOREIGN,
    reasons.FOREIGN_INVOICES.code: FOREIGN,
    reasons.ACTIVATED_SINCE_BACKUP.code: Text(
        "An older copy of the ledger was put back, and the machine has been activated anew since that copy was made: what it certified "
        "in between is in no ledger."
    ),
    reasons.CERTIFIED_ELSEWHERE.code: Text(
        "An invoice was certified by another machine than the one of this line: their cables were exchanged. It must not be certified again."
    ),
    reasons.WRITES_LOST.code: LOST,
    reasons.WRITES_LOST_WITH_LOG.code: LOST,
    reasons.LEDGER_EMPTY.code: Text(
        "This ledger is empty, but another one has worked with this machine: put that one back, or its newest copy (mcfd restore)."
    ),
}
"""Meaning of a finding, by its code."""


def in_plain_words(found: Text, language: Language) -> str:
    """The meaning; the finding's own text if its code is unknown."""
    return next((PLAIN[code] for code in codes_of(found) if code in PLAIN), found).in_language(language)


REMINDED: Final = 2 * DAY
SLOT_MS: Final = 600_000
EDGE: Final = 7
NAMED_HOURS: Final = 3
"""Hours between labels of bars."""

Bar = tuple[str, int, str]
"""For `common.web.charts.bars`."""


async def line_charts(visit: Visit, slots: Sequence[LineSlot]) -> list[tuple[str, list[Bar]]]:
    """Pairs of heading and bars, oldest first; none without a line. Yields to tills between the charts."""
    if not slots:
        return []
    by_time = {slot.at: slot for slot in slots}
    times = range(slots[-1].at - DAY + SLOT_MS, slots[-1].at + SLOT_MS, SLOT_MS)
    quiet = [
        by_time.get(at) or LineSlot(at=at, exchanges=0, retries=0, garbage=0, certified=0, line_ms=0) for at in times
    ]
    moved = _inside([_moved(visit, slot) for slot in quiet])
    await asyncio.sleep(0)
    timed = _inside([_timed(visit, slot) for slot in quiet])
    return [
        (visit.say("Exchanges, ten minutes a bar"), moved),
        (visit.say("Time on the line of a certification, ms"), timed),
    ]


def _inside(bars: list[Bar]) -> list[Bar]:
    """Removes labels of the first and last bars, which would be cut off."""
    edge = {*range(EDGE), *range(len(bars) - EDGE, len(bars))}
    return [("" if at in edge else name, value, words) for at, (name, value, words) in enumerate(bars)]


def _moved(visit: Visit, slot: LineSlot) -> Bar:
    words = visit.say(
        "{at}: {exchanges} exchanges, {retries} tried again, {garbage} bytes of noise",
        at=visit.clock(slot.at),
        exchanges=slot.exchanges,
        retries=slot.retries,
        garbage=slot.garbage,
    )
    return _name(visit, slot.at), slot.exchanges, words


def _timed(visit: Visit, slot: LineSlot) -> Bar:
    words = visit.say(
        "{at}: {count} certified, {took} ms each", at=visit.clock(slot.at), count=slot.certified, took=slot.line_ms
    )
    return _name(visit, slot.at), slot.line_ms, words


def _name(visit: Visit, at: int) -> str:
    hour, minute = visit.clock(at).split(":")
    return f"{int(hour)} h" if minute == "00" and int(hour) % NAMED_HOURS == 0 else ""


async def qr_picture(text: str) -> str:
    """A `data:` URL of the picture; drawn in a thread, so that tills do not wait."""
    return f"data:image/svg+xml;base64,{base64.b64encode(await asyncio.to_thread(draw_qr, text)).decode()}"


class MachineView(msgspec.Struct, frozen=True):
    name: str
    nim: str
    state: str
    """ready, busy, attention, off or offline"""
    word: str
    detail: str
    waiting: int
    days: int | None
    """since the last contact with the tax server; None if there was none"""
    days_colour: str
    unsent: int | None
    clock: str
    """what its clock says, if it is not what the box's says"""
    doubts: str
    """invoices in doubt"""
    unnotified: int
    """number of the outage that was not notified yet; 0 if none"""


def machine_view(worker: MachineWorker, visit: Visit) -> MachineView:
    state, word, detail = _state(worker, visit)
    link = None if worker.server_link is None else tax_server(worker.server_link, worker.now())
    days = link.days_since_contact if link else None
    outage = worker.ledger.peek(last_outage, worker.book)
    return MachineView(
        name=name_of(worker),
        nim=worker.book.nim,
        state=state,
        word=word,
        detail=detail,
        waiting=worker.waiting,
        days=days,
        days_colour="" if days is None or days < WARN_DAYS else "amber" if days < ALERT_DAYS else "bad",
        unsent=link.waiting if link else None,
        clock=wrong_clock(worker, visit),
        doubts="" if worker.connected else ", ".join(f"{r.number} ({money(r.total_ttc)})" for r in worker.unfinished),
        unnotified=outage.number
        if outage and visit.may("close") and _needs_notice(outage, worker, worker.now())
        else 0,
    )


def _needs_notice(outage: Outage, worker: MachineWorker, now: int) -> bool:
    """Whether somebody still has to be notified (arrêté 2025-0049, article 7 c): of an open outage, and for two days of
    one that lasted; a till may have been refused for a second, and a box is switched off every night."""
    if outage.notices or outage.is_open:
        return not outage.notices
    has_lasted = outage.reason != "box_off" and outage.duration(now) >= worker.limits.outage * 1000
    return has_lasted and now - outage.until < REMINDED


def _state(worker: MachineWorker, visit: Visit) -> tuple[str, str, str]:
    say = visit.say
    if worker.book.mode == "live" and visit.deps.is_disabled(worker.book.nim):
        return "off", say("switched off"), ""
    if worker.attention:
        return "attention", say("needs a decision"), in_plain_words(worker.attention, visit.language)
    if not worker.is_in_use:
        return _unused(worker, visit)
    if not worker.connected:
        since = worker.ledger.peek(out_since, worker.book) or worker.offline_since
        return "offline", _absent(since, visit), _reason_text(worker.offline_reason, visit)
    return _connected(worker, visit)


def _connected(worker: MachineWorker, visit: Visit) -> tuple[str, str, str]:
    say = visit.say
    if worker.in_test_mode and (worker.refused_test_mode or not worker.obstacle):
        return _in_test_mode(worker, visit)
    if worker.obstacle:
        return "attention", say("needs a decision"), _reason_text(worker.obstacle, visit)
    if refuses_since(worker):
        return "attention", say("refuses every invoice"), ""
    return ("busy", say("at work"), "") if worker.waiting else ("ready", say("ready"), "")


def _unused(worker: MachineWorker, visit: Visit) -> tuple[str, str, str]:
    """A machine replaced by its spare, or a spare."""
    say = visit.say
    detail = "" if worker.connected else say("not connected")
    if worker.first is None:
        return "offline", say("its spare certifies in its place"), detail
    return "off", say("spare of {nim}", nim=worker.first.book.nim), detail


def _in_test_mode(worker: MachineWorker, visit: Visit) -> tuple[str, str, str]:
    detail = (
        reasons.TEST_MODE_REFUSED.in_language(visit.language)
        if worker.refused_test_mode
        else visit.say("what it certifies has no fiscal value")
    )
    return "attention" if worker.refused_test_mode else "ready", visit.say("in test mode"), detail


def _absent(since: int | None, visit: Visit) -> str:
    """With the time, and the day unless it is today."""
    if since is None:
        return visit.say("does not answer")
    return visit.say("does not answer (since {moment})", moment=visit.since(since))


def _reason_text(reason: Text, visit: Visit) -> str:
    """In the person's language, even if stored in English."""
    return without_paths(reason.in_language(visit.language), visit.language)
