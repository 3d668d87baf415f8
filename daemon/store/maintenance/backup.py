"""Backup and restore of the ledger: verified copies; a restored ledger is compared with each machine."""

import contextlib
import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path

import msgspec

from common.files import drop_from_memory, real_path, sync_path
from common.language import Text
from common.language.system import reason
from daemon.core.audit import DAEMON, Actor
from daemon.core.clock import millis_text
from daemon.core.errors import LedgerUnusable, StorageFull
from daemon.store.maintenance.continuation import (
    invoices_text,
    lacking,
    sound_continuation,
    take_over_newer,
    usable_continuation,
)
from daemon.store.maintenance.housekeeping import BACKUP_AT, mark_restored
from daemon.store.maintenance.lost_writes import count_missing, ledger_name
from daemon.store.maintenance.numbers import LastZ, prepare_copy, remember, take_over_places
from daemon.store.maintenance.people_since import take_over_people
from daemon.store.maintenance.verify import VerifyResult, is_room, verify
from daemon.store.sqlite.disk_failure import DAMAGED, as_storage_error
from daemon.store.sqlite.file import UNREADABLE, open_file, open_to_read
from daemon.store.sqlite.lock import LedgerLock, read_mark
from daemon.store.sqlite.migrations import is_ledger, migrate, migrations
from daemon.store.tables import audit
from daemon.store.tables.meta import begin_epoch, write_damage, write_meta

PAGES = 4096
"""Copied between two looks for a signal: 16 MiB."""
NO_LEDGER = Text("it is no ledger of mcfd, or a damaged one; take another copy")
Progress = Callable[[int, int], None]
"""How many pages or records are done, of how many (0: not known)."""


class Restored(msgspec.Struct, frozen=True):
    """`aside`: path of the replaced ledger, None if there was none; `asks`: NIMs whose last Z has to be entered; `newer`:
    numbers of the invoices that the copy lacks and the ledger has, newest first; `is_unchanged`: it is sound and stays;
    `why_not`: why nothing was taken over."""

    findings: VerifyResult
    aside: Path | None
    asks: tuple[str, ...] = ()
    newer: tuple[str, ...] = ()
    is_unchanged: bool = False
    why_not: LedgerUnusable | None = None


def backup(source: Path, target: Path, *, at: int, progress: Progress = lambda _, __: None) -> VerifyResult:
    """Makes a consistent, verified copy; `target` appears complete or not at all. `at` (ms) is stored in it. `progress`
    counts copied pages, then verified records.

    LedgerUnusable if the ledger does not verify: a damaged copy must not replace a good one."""
    with in_the_making(target) as copy:
        with _copy_errors(source), closing(open_to_read(source)) as ledger:
            _copy(ledger, copy, lambda connection: write_meta(connection, BACKUP_AT, str(at)), progress)
        with copy.open("rb") as file:
            drop_from_memory(file.fileno())
        findings = _verified(copy, source, target, progress)
        _put_in_place(copy, target)
    return findings


def _verified(copy: Path, source: Path, target: Path, progress: Progress) -> VerifyResult:
    """LedgerUnusable, which says whether it is the ledger that is damaged, or the stick or disk of the copy."""
    try:
        return _sound(verify(copy, progress), source)
    except LedgerUnusable as error:
        if not verify(source).clean:
            raise
        why = Text("it gives back something else than was written; take another stick or disk")
        raise LedgerUnusable(Text("{path} cannot be written: {why}", path=target, why=why)) from error


def restore(
    source: Path,
    target: Path,
    *,
    at: int,
    by: Actor = DAEMON,
    origin: Path | None = None,
    last_z: LastZ = None,
    keep_newer: bool = False,
    progress: Progress = lambda _, __: None,
) -> Restored:
    """Replaces the ledger by a backup and keeps the old file aside. Unless all rows since are taken over, up to the last
    commit, every book is marked to be compared with its machine; it continues after the Z numbers given since. A live
    book whose numbers are unknown here asks for its last Z, unless `last_z` (from paper) gives it. People disabled since stay disabled, and all sessions end. The audit log
    of the copy has who restored it and from which file (`origin`, else `source`). `keep_newer`: a sound ledger that
    continues the copy stays, and of a damaged one the newer rows are taken over, as far as they can be read.
    LedgerUnusable if a daemon has the ledger, the backup is damaged, or `keep_newer` and invoices would be lost."""
    named, target = target, real_path(target)
    lock = LedgerLock.acquire(target, is_command=True)
    mark = read_mark(target)
    try:
        _must_be_ledger(source)
        newer = tuple(lacking(source, target)) if keep_newer else ()
        if keep_newer and last_z is None and (sound := sound_continuation(source, target, progress)):
            return Restored(sound, None, newer=newer, is_unchanged=True)
        detail = {"from": str(origin or source), "aside": _aside(target, at).name if target.exists() else ""}

        def note_restore(connection: sqlite3.Connection, *, has_all_rows: bool) -> None:
            audit.add(connection, "ledger.restored", str(target), at=at, by=by, detail=detail)
            take_over_people(connection, target, at=at, by=by)
            if not (
                has_all_rows and mark and mark.name == ledger_name(connection) and not count_missing(connection, mark)
            ):
                mark_restored(connection, at)
                begin_epoch(connection, at, mark)

        why_not: LedgerUnusable | None = None
        with in_the_making(target) as copy:
            fill = partial(_fill, copy, source, target, note_restore, progress)
            findings = fill(with_newer=False)
            try:
                if keep_newer and target.exists():
                    findings = fill(with_newer=True)
                    newer = tuple(lacking(source, copy))
            except LedgerUnusable as error:
                if newer:
                    raise _would_lose(newer, origin or source, error) from error
                findings, why_not = fill(with_newer=False), error
            with closing(open_file(copy, "rw")) as connection:
                asks = prepare_copy(connection, target, remember(named), last_z)
                take_over_places(connection, target)
                write_damage(connection, findings.damage)
            sync_path(copy)  # before anything of the present ledger is touched
            aside = _set_aside(target, at)
            complete_copy(target).unlink(missing_ok=True)
            _put_in_place(copy, target)
        return Restored(findings, aside, asks, newer, why_not=why_not)
    finally:
        lock.release()


def _must_be_ledger(source: Path) -> None:
    """LedgerUnusable for an empty file, which SQLite takes for a database, and for one of another program."""
    with _copy_errors(source, NO_LEDGER), closing(open_to_read(source)) as saved:
        if not is_ledger(saved):
            raise LedgerUnusable(Text("{source} cannot be copied: {why}", source=source, why=NO_LEDGER))


def _fill(
    copy: Path,
    source: Path,
    target: Path,
    note_restore: Callable[..., None],
    progress: Progress,
    *,
    with_newer: bool,
) -> VerifyResult:
    """Makes `copy` of `source`, `with_newer` rows of the ledger in place. LedgerUnusable if mcfd cannot work with it."""
    unread: list[str] = []

    def prepare(connection: sqlite3.Connection) -> None:
        migrate(connection, migrations())
        if with_newer:
            unread.extend(take_over_newer(connection, target))
        note_restore(connection, has_all_rows=with_newer and not unread)

    with _copy_errors(source, NO_LEDGER), closing(open_to_read(source)) as saved:
        _copy(saved, copy, prepare, progress)
    findings = verify(copy, progress)
    if not (with_newer and (usable := usable_continuation(copy, findings, source, target, progress))):
        usable = _sound(findings, target if with_newer else source)
    lacking_rows = (  # records that are missing are named by themselves
        Text("rows of the table {table} cannot be read in the ledger that was replaced", table=table)
        for table in unread
        if table != "certification"
    )
    return msgspec.structs.replace(usable, problems=(*lacking_rows, *usable.problems))


def _copy(
    ledger: sqlite3.Connection,
    copy: Path,
    finish: Callable[[sqlite3.Connection], None],
    progress: Progress = lambda _, __: None,
) -> None:
    with closing(open_file(copy, "rwc")) as connection:
        connection.execute("PRAGMA synchronous = OFF")  # one fsync at the end, before it counts
        ledger.execute("BEGIN")  # one view: the daemon goes on writing, and the copy need not begin again
        ledger.execute("SELECT count(*) FROM sqlite_schema").fetchone()
        try:
            ledger.backup(connection, pages=PAGES, progress=lambda _, left, pages: progress(pages - left, pages))
            ledger.execute("ROLLBACK")
            connection.execute("PRAGMA journal_mode = DELETE")  # one file, which can be read from any medium
            finish(connection)
        except sqlite3.Error as error:
            if not is_room(error):
                raise
            target = copy.with_suffix("")  # without .part: what is made, not what is copied
            full = Text("{path} cannot be written: {why}", path=target, why=as_storage_error(error))
            raise StorageFull(full) from error


def _sound(findings: VerifyResult, source: Path) -> VerifyResult:
    if not findings.clean:
        first = {f"problem{place}": problem for place, problem in enumerate(findings.problems[:3])}
        problems = Text("; ".join(f"{{{name}}}" for name in first), **first)
        raise LedgerUnusable(Text("{source} is not sound: {problems}", source=source, problems=problems))
    return findings


def _would_lose(newer: Sequence[str], source: Path, why: LedgerUnusable) -> LedgerUnusable:
    return LedgerUnusable(
        Text(
            "{file} lacks {invoices} of the ledger in place, and nothing can be taken over ({why}). A till that sends "
            "such an invoice again after a restore has it certified twice. To put the copy alone in its place: without "
            "--keep-newer",
            invoices=invoices_text(newer),
            file=source,
            why=why,
        )
    )


def _set_aside(target: Path, at: int) -> Path | None:
    """Keeps the present ledger under another name. Its WAL goes into it first, or with it: beside another file it would
    spoil that one."""
    if not target.exists():
        return None
    aside = _aside(target, at)
    with contextlib.suppress(*UNREADABLE), closing(open_file(target, "rw")) as old:
        old.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    keep_as(target, aside)  # the target is there at every moment: a start in between must not find an empty place
    for suffix in ("-wal", "-shm"):
        left = target.with_name(target.name + suffix)
        if left.exists():
            keep_as(left, aside.with_name(aside.name + suffix))
    sync_path(target.parent)
    for suffix in ("-wal", "-shm"):  # what was in them is aside by now, with its file
        target.with_name(target.name + suffix).unlink(missing_ok=True)
    sync_path(target.parent)  # before there is another file that an old WAL could spoil
    return aside


def complete_copy(ledger: Path) -> Path:
    """What a start puts in the ledger's place (`renewal`)."""
    return ledger.with_name(f"{ledger.name}.renewed")


def _aside(target: Path, at: int) -> Path:
    stamp = millis_text(at).replace(":", "").replace(".", "")
    return target.with_name(f"{target.name}.replaced-{stamp}")


def keep_as(file: Path, under: Path) -> None:
    try:
        os.link(file, under)
    except OSError:
        shutil.copy2(file, under)
        sync_path(under)


@contextlib.contextmanager
def in_the_making(target: Path) -> Iterator[Path]:
    """A path beside `target` for a copy that does not count yet; gone afterwards unless it was put in place."""
    copy = target.with_name(target.name + ".part")
    names = (copy, *(copy.with_name(copy.name + suffix) for suffix in ("-journal", "-wal", "-shm")))
    try:
        for name in names:
            name.unlink(missing_ok=True)
        os.close(os.open(copy, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        yield copy
    except OSError as error:
        raise LedgerUnusable(Text("{target} cannot be written ({why})", target=target, why=reason(error))) from error
    finally:
        for name in names:
            with contextlib.suppress(OSError):
                name.unlink()


@contextlib.contextmanager
def _copy_errors(source: Path, damaged: Text = DAMAGED) -> Iterator[None]:
    """SQLite's errors as LedgerUnusable, for want of room as StorageFull; `damaged`: what is said where the file itself
    cannot be read."""
    try:
        yield
    except (sqlite3.Error, UnicodeDecodeError) as error:
        found = as_storage_error(error)
        why = damaged if isinstance(found, LedgerUnusable) else found
        kind = StorageFull if source.is_file() and is_room(error) else LedgerUnusable
        raise kind(Text("{source} cannot be copied: {why}", source=source, why=why)) from error


def _put_in_place(copy: Path, target: Path) -> None:
    sync_path(copy)
    copy.replace(target)
    sync_path(target.parent)
