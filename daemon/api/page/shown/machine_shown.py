"""A machine in a word and a colour, as a person wants to know it."""

from __future__ import annotations

import msgspec

from common.language import Text
from common.language.reasons import TEST_MODE_REFUSED
from daemon.api.page.shown.attention_words import in_plain_words
from daemon.api.page.shown.sales_state import AMBER_DAYS, DRIFT_AMBER, RED_DAYS
from daemon.api.page.visit import Visit, name_of
from daemon.core.errors import without_paths
from daemon.core.report.machine_info import tax_server
from daemon.usecases.worker.machine_worker import MachineWorker


class MachineView(msgspec.Struct, frozen=True):
    name: str
    nim: str
    state: str
    """ready, busy, attention, off or offline"""
    word: str
    detail: str
    waiting: int
    days: int | None
    """since the tax server was met; None before it ever was"""
    days_colour: str
    unsent: int | None
    drift: int | None


def machine_view(worker: MachineWorker, visit: Visit, now: int) -> MachineView:
    state, word, detail = _state(worker, visit)
    link = None if worker.server_link is None else tax_server(worker.server_link, now)
    days = link.days_since_contact if link else None
    drift = None if worker.drift_seconds is None else round(worker.drift_seconds)
    return MachineView(
        name=name_of(worker),
        nim=worker.book.nim,
        state=state,
        word=word,
        detail=detail,
        waiting=worker.waiting,
        days=days,
        days_colour="" if days is None or days < AMBER_DAYS else "amber" if days < RED_DAYS else "bad",
        unsent=link.waiting if link else None,
        drift=drift if drift is not None and abs(drift) >= DRIFT_AMBER else None,
    )


def _state(worker: MachineWorker, visit: Visit) -> tuple[str, str, str]:
    say = visit.say
    if worker.book.mode == "live" and visit.deps.is_disabled(worker.book.nim):
        return "off", say("switched off"), ""
    if worker.attention:
        return "attention", say("needs a decision"), in_plain_words(worker.attention, visit.language)
    if not worker.is_in_use:
        return _unused(worker, visit)
    if not worker.connected:
        return "offline", _absent(worker.offline_since, visit), _reason_text(worker.offline_reason, visit)
    if worker.in_test_mode:
        return _in_test_mode(worker, visit)
    return ("busy", say("at work"), "") if worker.waiting else ("ready", say("ready"), "")


def _unused(worker: MachineWorker, visit: Visit) -> tuple[str, str, str]:
    """One whose spare certifies in its place, or a spare."""
    say = visit.say
    detail = "" if worker.connected else say("not connected")
    if worker.first is None:
        return "offline", say("its spare certifies in its place"), detail
    return "off", say("spare of {nim}", nim=worker.first.book.nim), detail


def _in_test_mode(worker: MachineWorker, visit: Visit) -> tuple[str, str, str]:
    detail = (
        TEST_MODE_REFUSED.told(visit.language)
        if worker.refused_test_mode
        else visit.say("what it certifies has no fiscal value")
    )
    return "attention" if worker.refused_test_mode else "ready", visit.say("in test mode"), detail


def _absent(since: int | None, visit: Visit) -> str:
    """With the hour, and with the day unless it is today's."""
    if since is None:
        return visit.say("does not answer")
    shown = visit.clock(since) if visit.day_of(since) == visit.today() else visit.moment(since)
    return visit.say("does not answer (since {moment})", moment=shown)


def _reason_text(reason: Text, visit: Visit) -> str:
    """In the person's language, also where it was stored in English."""
    return without_paths(reason.told(visit.language), visit.language)
