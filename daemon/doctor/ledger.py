"""The ledger: sound, writable for the daemon, keys in it, nothing that waits for an operator or for headquarters."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from daemon.core.clock import DAY, HOUR
from daemon.core.closure import Book
from daemon.core.delivery import Backlog
from daemon.core.errors import StorageError
from daemon.core.journal import Page
from daemon.doctor import wording
from daemon.doctor.finding import Finding, fail, ok, warn
from daemon.doctor.line import User, daemon_user
from daemon.settings import Settings
from daemon.store import Store
from daemon.store.verify import glance_over


async def check_ledger(settings: Settings, now: int) -> list[Finding]:
    path = settings.storage.path
    if not path.exists():
        return [warn("ledger", wording.NO_LEDGER(path=path), wording.NO_LEDGER_ADVICE)]
    try:
        glance_over(path)
        store = await Store.open(
            path,
            timezone=settings.reports.zone,
            labels=settings.payment_labels(),
            lanes=settings.lanes(),
            exclusive=False,
        )
    except StorageError as error:
        return [fail("ledger", error, wording.LEDGER_ADVICE)]
    async with store:
        return [check_owner(path, daemon_user(settings)), *await _look_in(store, settings, now)]


def check_owner(path: Path, user: User) -> Finding:
    """Something that root wrote by hand can stop the daemon at its next start."""
    files = [path, *path.parent.glob(f"{path.name}-*")]
    foreign = [file for file in files if file.exists() and not user.may_use(file.stat())]
    if foreign:
        names = ", ".join(str(file) for file in foreign)
        return fail("ledger", wording.NOT_ITS_OWN(files=names, user=user.name), wording.GIVE_BACK(user=user.name))
    return ok("ledger", wording.LEDGER_SOUND(path=path, megabytes=path.stat().st_size // 1_000_000))


async def _look_in(store: Store, settings: Settings, now: int) -> list[Finding]:
    books = {book.nim: book for book in await store.books() if book.mode == "live"}
    keys = {key.nim for key in await store.list_keys() if key.mode == "live" and not key.revoked_at}
    found = []
    for machine in settings.machine:
        found.append(check_keys(machine.nim, has_key=machine.nim in keys))
        if machine.nim in books:
            found += await _look_in_book(store, books[machine.nim], now)
    return [*found, *check_upstream(settings, await store.outbox.backlog(), now)]


def check_keys(nim: str, *, has_key: bool) -> Finding:
    if has_key:
        return ok("keys", wording.HAS_KEY, nim=nim)
    return warn("keys", wording.NO_KEY, wording.MAKE_KEY(nim=nim), nim=nim)


async def _look_in_book(store: Store, book: Book, now: int) -> list[Finding]:
    found = []
    state = await store.state(book)
    if state.attention:
        found.append(fail("attention", state.attention, wording.SETTLE(nim=book.nim), nim=book.nim))
    found.append(await _last_outcome(store, book, now))
    return found


async def _last_outcome(store: Store, book: Book, now: int) -> Finding:
    """A machine that is not activated, blocked or deactivated answers every question, and says so only when asked to certify."""
    refused = await store.journal(book, Page(now - DAY, sys.maxsize, state="refused", limit=1))
    certified = await store.journal(book, Page(now - DAY, sys.maxsize, state="certified", limit=1))
    if refused and (not certified or refused[0].seq > certified[0].seq):
        last = refused[0]
        found = wording.LAST_REFUSED(number=last.number, reason=last.reason)
        return warn("last_invoice", found, wording.REFUSED_ADVICE, nim=book.nim)
    return ok("last_invoice", wording.NOT_REFUSED, nim=book.nim)


def check_upstream(settings: Settings, backlogs: Sequence[Backlog], now: int) -> Iterator[Finding]:
    upstream = settings.upstream
    if upstream is None:
        yield ok("upstream", wording.NO_UPSTREAM)
        return
    sent = [backlog for backlog in backlogs if backlog.mode == "live" or upstream.include_sandbox]
    if not sent:
        yield ok("upstream", wording.NOTHING_TO_SEND)
    for backlog in sent:
        yield _judge(backlog, now)


def _judge(backlog: Backlog, now: int) -> Finding:
    age = now - backlog.oldest_at if backlog.oldest_at else 0
    told = wording.BACKLOG(waiting=backlog.waiting, parked=backlog.parked, hours=age // HOUR)
    if backlog.last_error and (backlog.waiting or backlog.parked):
        told = f"{told} ({backlog.last_error})"
    if backlog.parked:
        return fail("upstream", told, wording.PARKED_ADVICE, nim=backlog.nim)
    if backlog.waiting and age >= HOUR:
        judge = fail if age >= DAY else warn
        return judge("upstream", told, wording.BACKLOG_ADVICE, nim=backlog.nim)
    return ok("upstream", told, nim=backlog.nim)
