"""The banner of every screen: whether the tills can sell, in one sentence."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal

import msgspec

from common.language import Counted, Text, translate
from common.language.reasons import (
    OTHER_MACHINE,
    PORT_BUSY,
    PORT_HANGS_UP,
    PORT_PERMISSION,
    codes_of,
    from_stored,
)
from daemon.core.clock import DAY, HOUR, machine_millis
from daemon.core.errors import StorageError, StorageFull, ZNumberUnknown, without_paths
from daemon.core.machine.state import same_machine
from daemon.core.report.machine_info import WARN_DAYS, tax_server
from daemon.paper.reports import REASONS
from daemon.store.tables.book.books import book_state
from daemon.store.tables.book.deferred import backlog
from daemon.store.tables.book.outages import open_outage, out_since
from daemon.store.tables.keys import list_keys, of_another_taxpayer
from daemon.usecases.reports.report import latest, x_report

if TYPE_CHECKING:
    from collections.abc import Sequence

    from daemon.api.page.visit import Visit
    from daemon.core.keys import ApiKey
    from daemon.usecases.worker.machine_worker import MachineWorker

DRIFT_AMBER = 60
CERTIFICATE_DAYS = 14
COPY_DAYS = 3
"""Days without the nightly copy; nothing is said of a box that never had one."""
PRESENT = frozenset(each.code for each in (OTHER_MACHINE, PORT_BUSY, PORT_HANGS_UP, PORT_PERMISSION))
ATTENTION, SPARE, WAITING = "/ui/attention", "/ui/spare", "/ui/waiting"
CLOSE, KEYS, BOX = "/ui/z", "/ui/box/keys", "/ui/box"
Level = Literal["good", "amber", "bad"]
ICONS: dict[Level, str] = {"good": "circle-check", "amber": "alert-triangle", "bad": "circle-x"}


class SalesState(msgspec.Struct, frozen=True):
    level: Level
    words: str
    detail: str = ""
    """the reason, after a colon"""
    href: str = ""
    """link to the decision, if the role may make it, to the sales that wait, or to the box's findings"""

    @property
    def is_to_decide(self) -> bool:
        return self.href in (ATTENTION, SPARE)

    @property
    def icon(self) -> str:
        return ICONS[self.level]


async def sales_state(visit: Visit) -> SalesState:
    """State of all enabled machines: red if any of them cannot certify."""
    say, deps = visit.say, visit.deps
    live = [each for each in deps.workers.all() if each.book.mode == "live" and not deps.is_disabled(each.book.nim)]
    if not live:
        return SalesState("amber", say("No machine is switched on"), say("only tests can be made."))
    try:
        await live[0].ledger.check_free_space(live[0].book)
    except StorageError as error:
        cause = without_paths(str(translate(error, visit.language)), visit.language)
        return SalesState("bad", say("Sales have stopped"), _call(visit, cause), BOX if visit.may("administer") else "")
    replaced = [each for each in live if each.is_replaced]
    live = [each for each in live if each.is_in_use]
    stopped = [each for each in live if not _sells(each)]
    if not all(each.defers for each in stopped):
        return await _stopped(visit, stopped, len(live))
    later = await _later(visit, live, stopped)
    if found := _cut_off(visit, live, later) or later:
        return found
    warnings = [
        say("the spare {spare} certifies in the place of {nim}", spare=each.in_use.book.nim, nim=each.book.nim)
        for each in replaced
    ]
    warnings += [words for each in live for words in _warnings(visit, each)]
    warnings += last_z_unknown(visit, asking := without_last_z(visit))
    unclosed = [each for each in visit.retired if (await x_report(each)).certs_count]
    warnings += [
        say("{nim} is no longer in the configuration, and its last day is not closed", nim=each.book.nim)
        for each in unclosed
    ]
    warnings += await _box_warnings(visit)
    if warnings:
        href = f"{CLOSE}?m={unclosed[0].book.nim}" if unclosed and visit.may("close") else ""
        if visit.may("administer"):
            href = SPARE if replaced else ATTENTION if asking else href or BOX
        return SalesState("amber", say("The till can sell"), _call(visit, *warnings), href)
    return SalesState("good", say("The till can sell"))


async def _box_warnings(visit: Visit) -> list[str]:
    """Of the ledger and its copies, the disk, headquarters, and the certificate."""
    say, deps, found = visit.say, visit.deps, []
    if damage := deps.damage():
        found.append(say("the ledger is damaged ({found})", found=from_stored(damage[0]).in_language(visit.language)))
    try:
        sandbox = msgspec.structs.replace(visit.worker.book, mode="test")  # it reserves four times the space
        await visit.worker.ledger.check_free_space(sandbox)
    except StorageFull:
        found.append(say("the disk is nearly full, and sales stop once it is"))
    if deps.disk():
        found.append(from_stored(deps.disk()).in_language(visit.language))
    found += await _undelivered(visit)
    copies = [each.at for each in visit.page.backups()]
    if copies and (days := (_now(visit) - max(copies)) // DAY) >= COPY_DAYS:
        found.append(say("the ledger was last copied {days} days ago, and is to be each night", days=days))
    if (end := visit.page.certificate_end()) and end - _now(visit) < CERTIFICATE_DAYS * DAY:
        text = Text("the box's certificate ends on {moment}, and tills refuse it then: have it renewed")
        found.append(say(text(moment=visit.moment(end))))
    return found


async def _undelivered(visit: Visit) -> list[str]:
    """Closures that headquarters refused, or has not received for a day."""
    now, found = visit.worker.now(), []
    backlogs = [each for each in await visit.backlogs() if each.mode == "live"]
    if parked := sum(each.parked for each in backlogs):
        found.append(Counted("headquarters refused {count} closure", "headquarters refused {count} closures", parked))
    waiting = [each.oldest_at for each in backlogs if each.waiting]
    if days := max((now - oldest) // DAY for oldest in (*waiting, now)):
        found.append(
            Counted(
                "headquarters has had no closure for a day", "headquarters has had no closure for {count} days", days
            )
        )
    return [visit.say(text) for text in found]


def _sells(worker: MachineWorker) -> bool:
    return worker.connected and not worker.obstacle and not refuses_since(worker)


def _needs_decision(worker: MachineWorker) -> bool:
    return worker.connected and bool(worker.attention or worker.not_compared)


def refuses_since(worker: MachineWorker) -> int:
    """When a connected machine began to refuse every invoice, as a blocked one does; 0 after a certification."""
    outage = worker.ledger.peek(open_outage, worker.book)
    return outage.since if outage and outage.reason == "blocked" else 0


def _cut_off(visit: Visit, live: list[MachineWorker], later: SalesState | None) -> SalesState | None:
    """Tills that no machine would refuse, and the box does, or that refuse the box; and what waits besides."""
    say, href = visit.say, later.href if later else ""
    has_ended = 0 < visit.page.certificate_end() <= _now(visit)
    causes = [say("the box's certificate has ended: have it renewed")] if has_ended else []
    for each in _without_keys(visit, live):
        text = Text("{nim} is another machine than before: each till needs a new key")
        if each.former:
            text = Text("{nim} has another taxpayer now: each till needs a new key")
        causes.append(say(text(nim=each.book.nim)))
        href = KEYS if visit.may("administer") else href
    if not causes:
        return None
    detail = say("; ").join([*causes, later.detail]) if later else _call(visit, *causes)
    return SalesState("bad", say("The tills are refused"), detail, href)


def _now(visit: Visit) -> int:
    """By the clock that is less ahead: a box that takes it to be 2040 has lacked no copy since, and no certificate."""
    return min(visit.deps.clock(), visit.worker.now())


def _without_keys(visit: Visit, live: list[MachineWorker]) -> list[MachineWorker]:
    """Machines whose keys are all of a former taxpayer (decision 33); each, where all keys are of former machines."""
    ledger, now = visit.worker.ledger, _now(visit)
    keys = [each for each in ledger.peek(list_keys) if not each.revoked_at and each.works_at(now)]
    keys = [each for each in keys if each.mode == "live"]
    former = ledger.peek(of_another_taxpayer)
    by_machine = [[key for key in keys if _is_for(key, worker)] for worker in live]
    found = [each for each, own in zip(live, by_machine, strict=True) if own and former.issuperset(k.id for k in own)]
    are_gone = keys and all(any(_is_for(key, each) for each in visit.retired) for key in keys)
    return live if are_gone else found


def _is_for(key: ApiKey, worker: MachineWorker) -> bool:
    return any(same_machine(key.nim, each.book.nim) for each in worker.pair)


async def _has_met_server(worker: MachineWorker) -> bool:
    """For a machine that refused everything: whether it has contacted the tax server since, which ends most blocks."""
    contact = machine_millis(worker.server_link.last_contact) if worker.server_link else None
    return contact is not None and all(contact > record.ended_at for record in await latest(worker, 1))


async def _stopped(visit: Visit, stopped: list[MachineWorker], live: int) -> SalesState:
    say, first = visit.say, stopped[0]
    since = first.ledger.peek(out_since, first.book) or first.offline_since
    words = say("Sales have stopped")
    if since:
        words = say("Sales have stopped since {moment}", moment=visit.since(since))
    if live > 1:
        words = say("{name}: {found}", name=", ".join(each.book.nim for each in stopped), found=words)
    if first.connected and first.obstacle:
        href = ATTENTION if _needs_decision(first) and visit.may("administer") else ""
        cause = say("a decision is needed") if first.attention else first.obstacle.in_language(visit.language)
        return SalesState("bad", words, _call(visit, cause), href)
    if first.connected and len(stopped) == 1 and await _has_met_server(first):
        hope = say("the machine has met the tax server since, and the next sale will tell whether it certifies again")
        return SalesState("amber", words, _call(visit, hope))
    if first.connected:  # nothing else it reports shows whether it accepts invoices again
        causes = [
            REASONS["blocked"].in_language(visit.language),
            say("each sale is tried all the same: one that is certified ends this"),
        ]
    else:
        is_one = live > 1 or len(first.pair) == 1
        silent = say("the machine does not answer") if is_one else say("{nim} does not answer", nim=first.book.nim)
        causes = [silent, say("look at its cable and its power")]
        if _is_present(first.offline_reason):
            causes = [without_paths(first.offline_reason.in_language(visit.language), visit.language)]
    can_replace = [say("its spare can take over") for each in stopped if each.spare]
    can_replace += [
        say("{nim} is there again and can be taken back", nim=each.first.book.nim)
        for each in stopped
        if each.first and each.first.connected
    ]
    if not can_replace or not visit.may("administer"):
        return SalesState("bad", words, _call(visit, *causes))
    return SalesState("bad", words, _call(visit, *causes, can_replace[0]), SPARE)


def _is_present(reason: Text) -> bool:
    """Whether there is something on the line, so that cable and power are not to blame."""
    return not PRESENT.isdisjoint(codes_of(reason))


async def _later(visit: Visit, live: list[MachineWorker], stopped: list[MachineWorker]) -> SalesState | None:
    """Sales are accepted and certified later: during a failure, and while a sale waits for more than a day, for a
    decision, or for a removed machine."""
    say, now, workers = visit.say, visit.worker.now(), visit.deps.workers
    found = [await each.ledger.read(backlog, each.book) for each in (*live, *workers.former())]
    of_gone = {each.book.nim: await each.ledger.read(backlog, each.book) for each in workers.retired()}
    waiting = [each for each in (*found, *of_gone.values()) if each.count]
    gone = [nim for nim, waits in of_gone.items() if waits.count]
    urgencies = {each.urgency(now) for each in waiting} - {""}
    if not (stopped or urgencies or gone or any(each.doubtful for each in waiting)):
        return None
    out_of_order = say("the machine is out of order, what is sold is certified later")
    if len(live) > 1:
        names = ", ".join(each.book.nim for each in stopped)
        out_of_order = say("out of order: {nims}; what is sold there is certified later", nims=names)
    causes = [out_of_order] if stopped else []
    is_undecided = any(_needs_decision(each) for each in stopped)
    causes += [say("a decision is needed")] if is_undecided else []
    causes += [say("{nim}, for which sales wait, is no longer in the configuration", nim=nim) for nim in gone]
    if waiting:
        text = Counted(
            "{count} sale waits for its certification, {left}",
            "{count} sales wait for their certification, {left}",
            sum(each.count for each in waiting),
            left=_left(min(each.due_at for each in waiting) - now),
        )
        causes.append(say(text))
    if doubtful := sum(each.doubtful for each in waiting):
        causes.append(say(Counted("{count} of them needs a decision", "{count} of them need a decision", doubtful)))
    level: Level = "bad" if "red" in urgencies else "amber"
    href = WAITING if len(waiting) > len(gone) else ""
    if is_undecided and visit.may("administer"):
        href = ATTENTION
    return SalesState(level, say("The till can sell"), _call(visit, *causes), href)


def _left(left: int) -> Text:
    """Remaining time of the 48 hours, from ms."""
    if left <= 0:
        return Text("the 48 hours of the law are over")
    if left < HOUR:
        return Text("less than an hour is left")
    return Counted("{count} hour is left", "{count} hours are left", left // HOUR)


def _call(visit: Visit, *causes: str) -> str:
    """The causes, and the contact (`[company] support`), its telephone number on one line."""
    support = re.sub(r"(?<=\d) (?=\d)", "\N{NO-BREAK SPACE}", visit.page.support)
    call = [visit.say("call {support}", support=support)] if support else []
    if not support and not visit.may("administer"):
        call = [visit.say("call who looks after the box")]
    return visit.say("; ").join([*causes, *call]) + "."


def without_last_z(visit: Visit) -> list[MachineWorker]:
    """Machines whose book cannot be closed after a restore before somebody enters its last Z (decision 30)."""
    live = [each for each in visit.workers if each.book.mode == "live"]
    return [each for each in live if each.ledger.peek(book_state, each.book).needs_last_z]


def last_z_unknown(visit: Visit, workers: Sequence[MachineWorker]) -> list[str]:
    """A sentence for each of them."""
    return [str(translate(ZNumberUnknown(each.book.nim), visit.language)) for each in workers]


def _warnings(visit: Visit, worker: MachineWorker) -> list[str]:
    found, say = [], visit.say
    if worker.refused_numbers:
        found.append(say("the machine refused the last sale; the next one tells whether it refuses all"))
    if worker.in_test_mode:
        found.append(say("the machine is in test mode: nothing has fiscal value"))
    link = None if worker.server_link is None else tax_server(worker.server_link, worker.now())
    days = link.days_since_contact if link else None
    if days is not None and days >= WARN_DAYS:
        found.append(
            say(
                "the machine has not met the tax server for {days} days, and may block itself after seven: "
                "look at its SIM or network cable",
                days=days,
            )
        )
    if machine := wrong_clock(worker, visit):
        box = visit.moment(visit.deps.clock())
        found.append(
            say(
                "the clocks differ, the box's says {box} and the machine's {machine}: have the wrong one set",
                box=box,
                machine=machine,
            )
        )
    return found


def wrong_clock(worker: MachineWorker, visit: Visit) -> str:
    """What the machine's clock says, if it and the box's are more than a minute apart."""
    drift = worker.time.drift
    if drift is None or abs(drift) < DRIFT_AMBER:
        return ""
    return visit.moment(visit.deps.clock() - round(drift * 1000))
