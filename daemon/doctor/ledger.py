"""Checks of the ledger: intact, writable, with keys, and nothing waits for an operator or headquarters."""

import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, get_args

from common.files import is_on_read_only_disk
from common.language import Counted, Text, tr
from common.language.reasons import WRITES_LOST, WRITES_LOST_WITH_LOG, codes_of, from_stored
from daemon.core.clock import DAY, HOUR
from daemon.core.delivery import Backlog
from daemon.core.errors import StorageError
from daemon.core.ledger.book import Book
from daemon.core.ledger.deferred import DeferredBacklog
from daemon.core.ledger.entries import OutageReason, Recipient
from daemon.core.ledger.outage import Outage
from daemon.core.machine.state import short_nim
from daemon.core.report.fiscal_reports import x_report
from daemon.core.report.journal import Page
from daemon.doctor.line import daemon_user, may_use
from daemon.doctor.wording import Check, CheckResult
from daemon.owner import as_owner
from daemon.paper.reports import MINUTE, REASONS, RECIPIENTS
from daemon.settings import Settings
from daemon.store.maintenance.health import SMALL_BYTES
from daemon.store.maintenance.lost_writes import read_lost
from daemon.store.maintenance.verify import examine_shape, verify
from daemon.store.retention import AWAY_AT
from daemon.store.store import Store
from daemon.store.tables.book import deferred, outages, take_overs
from daemon.store.tables.book.books import all_books, book_state, find_book
from daemon.store.tables.keys import list_keys, of_another_taxpayer
from daemon.store.tables.meta import read_damage, read_number

LOST: Final = {WRITES_LOST.code, WRITES_LOST_WITH_LOG.code}
AWAY_DAYS = 7
"""Days without a copy elsewhere before the reminder."""


async def check_ledger(settings: Settings, now: int) -> list[CheckResult]:
    """Any user may see the owner of the files. Their content is read as that owner, after the check of the owner."""
    path = settings.storage.path
    if not path.exists():
        todo = Text("as it should be before the first start; otherwise mcfd restore COPY")
        return [Check("ledger").warn("no ledger yet at {path}", todo, path=path)]
    owned = check_owner(path, daemon_user(settings))
    if owned.state == "fail":
        return [owned]
    with as_owner(path.parent):
        return [*await _opened(settings, owned, now)]


async def _opened(settings: Settings, owned: CheckResult, now: int) -> list[CheckResult]:
    path = settings.storage.path
    try:
        examine_shape(path)
        store = await Store.open(
            path,
            timezone=settings.reports.zone,
            labels=settings.payment_labels(),
            destinations=settings.destinations(),
            opening="read",
        )
    except StorageError as error:
        todo = Text(
            "mcfd verify says what is wrong; to put a copy back: sudo systemctl stop mcfd, sudo mcfd restore --keep-newer COPY"
        )
        return [Check("ledger").fail(error, todo)]
    async with store:
        damage = _check_content(path, store, [machine.nim for machine in settings.machine if machine.enabled])
        return [damage or owned, *await _look_in(store, settings, now)]


def _check_content(path: Path, store: Store, machines: Collection[str]) -> CheckResult | None:
    """Known damage; a small ledger is recomputed here, a large one every night by `mcfd verify`."""
    if path.stat().st_size <= SMALL_BYTES:
        problems = verify(path, machines=machines).problems
    else:
        problems = tuple(
            filter(None, (*store.retention.peek(read_damage).all, store.retention.peek(read_lost, machines)))
        )
    if not problems:
        return None
    found = from_stored(problems[0])
    if len(problems) == 1 and LOST.intersection(codes_of(found)):
        return Check("ledger").fail(found, "sudo mcfd machine settle, once the machine has answered; the ledger stays")
    if more := len(problems) - 1:
        found = Counted("{found} (and {count} more)", "{found} (and {count} more)", more, found=found)
    return Check("ledger").fail(
        found, "mcfd verify tells all; the last sound backup is put back with: mcfd restore --keep-newer COPY"
    )


def check_owner(path: Path, user: str) -> CheckResult:
    """A file written by root can stop the daemon at its next start. (`check_disk` reports a disk that is read-only.)"""
    files = (path, *path.parent.glob(f"{path.name}-*"))
    foreign = [file for file in files if file.exists() and not may_use(path.parent, file)]
    if foreign and not is_on_read_only_disk(path.parent):
        names = ", ".join(str(file) for file in foreign)
        return Check("ledger").fail(
            "{user} may not write {files}", "sudo chown {user}: on those files", files=names, user=user
        )
    return Check("ledger").ok(
        "{path}, {megabytes} MB, in order (to recompute all of it: mcfd verify)",
        path=path,
        megabytes=path.stat().st_size // 1_000_000,
    )


async def _look_in(store: Store, settings: Settings, now: int) -> list[CheckResult]:
    others = {book.id: book for book in await store.journal.read(all_books) if book.mode == "live"}
    former = await store.ledger.read(of_another_taxpayer)
    keys = {
        short_nim(key.nim)
        for key in await store.ledger.read(list_keys)
        if key.mode == "live" and not key.revoked_at and key.works_at(now) and key.id not in former
    }
    found = []
    for machine in settings.machine:
        if not machine.spare_for:  # a spare certifies with its machine's keys
            found.append(check_keys(machine.nim, has_key=short_nim(machine.nim) in keys))
        if book := store.ledger.peek(find_book, machine.nim, "live"):
            found += await _look_in_book(store, others.pop(book.id), now)
            found += await _check_left_open(store, book, now, is_spare=bool(machine.spare_for))
    for book in others.values():
        found += _check_attention(store, book)
        if (waiting := await store.ledger.read(deferred.backlog, book)).count:
            is_former = settings.find_machine(book.nim) is not None
            found.append(check_deferred(book.nim, waiting, now, is_gone=True, is_former=is_former))
    in_use_since = min((key.created_at for key in await store.ledger.read(list_keys)), default=now)
    found.append(check_away(store.retention.peek(read_number, AWAY_AT), in_use_since, now))
    return [*found, *check_upstream(settings, await store.outbox.backlog(), now)]


def check_away(away_at: int, in_use_since: int, now: int) -> CheckResult:
    """A failing disk takes copies on itself with it. Times in ms, `away_at` 0 for never; one to come, of a clock that was
    ahead, says nothing."""
    todo = Text("sudo mcfd backup --all onto a stick, or plug in a stick called MCFD (docs/install.md)")
    days = max(0, now - away_at) // DAY
    if 0 < away_at < now + DAY:
        found: Text = Counted(
            "the whole box was last copied to another disk {count} day ago",
            "the whole box was last copied to another disk {count} days ago",
            days,
        )
        if not days:
            found = Text("the whole box was copied to another disk today")
        return Check("backup").ok(found) if days <= AWAY_DAYS else Check("backup").warn(found, todo)
    if abs(now - in_use_since) <= AWAY_DAYS * DAY:
        return Check("backup").ok("the whole box was not yet copied to another disk; it is new")
    return Check("backup").warn("the whole box was never copied to another disk", todo)


def check_deferred(
    nim: str, waiting: DeferredBacklog, now: int, *, is_gone: bool = False, is_former: bool = False
) -> CheckResult:
    """`is_gone`: its machine is no longer in the configuration or, with `is_former`, has another taxpayer."""
    found = Counted(
        "{count} sale waits for its certification, for {hours} hours of the 48 that the law leaves",
        "{count} sales wait for their certification, the oldest for {hours} hours of the 48 that the law leaves",
        waiting.count,
        hours=(now - waiting.oldest_at) // HOUR,
    )
    todo = Text("they are certified by themselves once the machine can; page, Sales that wait for certification")
    if is_former:
        return Check("deferred", nim).fail(
            found,
            "the machine has another taxpayer now: look at its paper and decide for each: page, Sales that wait for certification, To decide",
        )
    if is_gone:
        return Check("deferred", nim).fail(
            found,
            "put {nim} back into the configuration, with the new machine as its spare (spare_for), and then: sudo mcfd machine take-over {nim} --reason …",
        )
    if waiting.doubtful:
        todo = Text("look at the machine's paper and decide for each: page, Sales that wait for certification")
        return Check("deferred", nim).fail(found, todo)
    if waiting.urgency(now) == "red":
        return Check("deferred", nim).fail(found, todo)
    return Check("deferred", nim).warn(found, todo) if waiting.urgency(now) else Check("deferred", nim).ok(found)


REMEDIES: Final[Mapping[OutageReason, Text]] = {
    "attention": Text("see the other checks of this machine"),
    "disk": Text("see the check of the disk, above"),
}
"""Where the machine is in good order."""


def check_outage(outage: Outage, now: int) -> CheckResult:
    found = Text(
        "outage No. {number}: the machine cannot certify, for {minutes} min ({reason})",
        number=outage.number,
        minutes=max(0, now - outage.since) // MINUTE,
        reason=REASONS[outage.reason],
    )
    left = [who for who in get_args(Recipient) if not any(notice.who == who for notice in outage.notices)]
    todo = REMEDIES.get(outage.reason, Text("repair the machine or take another one into use"))
    if left:
        names = ", ".join(tr(RECIPIENTS[who]) for who in left)
        todo = Text("{todo}; to be notified at once: {names} (page, Outages)", todo=todo, names=names)
    return Check("outage", outage.nim).fail(found, todo)


def check_keys(nim: str, *, has_key: bool) -> CheckResult:
    if has_key:
        return Check("keys", nim).ok("at least one key in force")
    return Check("keys", nim).warn("no key: no till can use the machine", "sudo mcfd keys create --nim {nim}")


async def _look_in_book(store: Store, book: Book, now: int) -> list[CheckResult]:
    found = []
    if (waiting := await store.ledger.read(deferred.backlog, book)).count:
        found.append(check_deferred(book.nim, waiting, now))
    if (outage := await store.ledger.read(outages.open_outage, book)) is not None:
        found.append(check_outage(outage, now))
    return [*found, *_check_attention(store, book), await _last_outcome(store, book, now)]


async def _check_left_open(store: Store, book: Book, now: int, *, is_spare: bool) -> list[CheckResult]:
    """A till closes the book that is in use alone: what the other machine of a pair has certified since its last Z is
    in no closure, month or file of headquarters."""
    stands = store.ledger.peek(take_overs.lasting, book)
    is_in_use = not is_spare if stands is None else stands.spare.id == book.id
    count = 0 if is_in_use else x_report(book, await store.ledger.aggregated(book), now).certs_count
    if not count:
        return []
    found = Counted(
        "{count} invoice since its last Z, and the other machine certifies now",
        "{count} invoices since its last Z, and the other machine certifies now",
        count,
    )
    return [Check("left_open", book.nim).warn(found, "page, Z: it closes both machines; a till closes one alone")]


def _check_attention(store: Store, book: Book) -> list[CheckResult]:
    state, found = store.ledger.peek(book_state, book), []
    if attention := from_stored(state.attention):
        found.append(Check("attention", book.nim).fail(attention, "sudo mcfd machine settle {nim}"))
    if state.needs_last_z:
        found.append(
            Check("last_z", book.nim).warn(
                "not known after a restore: until it is, no Z is made",
                "sudo mcfd machine last-z {nim} NUMBER, the number on the last Z on paper",
            )
        )
    return found


async def _last_outcome(store: Store, book: Book, now: int) -> CheckResult:
    """A machine that is not activated, blocked or deactivated answers all queries and refuses only certifications."""
    refused = await store.journal.page(book, Page(now - DAY, sys.maxsize, state="refused", limit=1))
    certified = await store.journal.page(book, Page(now - DAY, sys.maxsize, state="certified", limit=1))
    if refused and (not certified or refused[0].seq > certified[0].seq):
        last = refused[0]
        return Check("last_invoice", book.nim).warn(
            "the machine refused the last invoice, {number}: {reason}",
            "machine not activated, blocked or deactivated: call the tax authority; an amount or a text: correct "
            "it at the till",
            number=last.number,
            reason=last.reason,
        )
    return Check("last_invoice", book.nim).ok("the machine did not refuse the last invoice")


def check_upstream(settings: Settings, backlogs: Sequence[Backlog], now: int) -> Iterator[CheckResult]:
    upstream = settings.upstream
    if upstream is None:
        yield Check("upstream").ok("no section [upstream]: closures stay here")
        return
    sent = [backlog for backlog in backlogs if backlog.mode == "live" or upstream.include_sandbox]
    if not sent:
        yield Check("upstream").ok("nothing to send yet")
    for backlog in sent:
        yield _judge(backlog, now)


def _judge(backlog: Backlog, now: int) -> CheckResult:
    age = now - backlog.oldest_at if backlog.oldest_at else 0
    summary = Text(
        "{waiting}, {parked}, the oldest for {hours} h",
        waiting=Counted("{count} closure waiting", "{count} closures waiting", backlog.waiting),
        parked=Counted("{count} closure parked", "{count} closures parked", backlog.parked),
        hours=age // HOUR,
    )
    if backlog.last_error and (backlog.waiting or backlog.parked):
        summary = Text(f"{tr(summary)} ({tr(from_stored(backlog.last_error))})")
    if backlog.parked:
        return Check("upstream", backlog.nim).fail(
            summary, "headquarters refused them: settle it with them, then sudo mcfd upstream replay"
        )
    if backlog.waiting and age >= HOUR:
        judge = Check("upstream", backlog.nim).fail if age >= DAY else Check("upstream", backlog.nim).warn
        return judge(
            summary, Text("check the internet and headquarters' address; nothing is lost: mcfd upstream status")
        )
    return Check("upstream", backlog.nim).ok(summary)
