"""Retention of nightly backups: the newest of each of the last days, and of each of the last months; and no unfinished
ones."""

import _strptime  # type: ignore[import-not-found]  # noqa: F401  loaded now, as root: a later user may not read it
import contextlib
import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

PREFIX = "mcfd-"
SUFFIX = ".sqlite3"
BOX_SUFFIX = ".box.age"
"""Suffixes: of the ledger alone, and of the whole box before 0.17 (`box_suffix`)."""
_STAMP = "%Y%m%dT%H%M%SZ"
_UNFINISHED = re.compile(r"\.?(mcfd-.+?)(\.part(-journal|-wal|-shm)?|\.[a-z0-9_]{8}(\.part)?)")
"""Names beside a backup's own while it is written (`in_the_making`, `replacing`)."""
_LONGEST = timedelta(days=1)
"""Of one that is still written."""


def box_suffix(fingerprint: str) -> str:
    """Of the whole box: with the beginning of its fingerprint, since several boxes may have their copies on one stick."""
    return f".{fingerprint[:9]}{BOX_SUFFIX}"


def backup_name(at: datetime, suffix: str = SUFFIX) -> str:
    """`mcfd-20251203T021500Z.sqlite3`: sorts by time, and has the time in its name."""
    return f"{PREFIX}{at.astimezone(UTC).strftime(_STAMP)}{suffix}"


def timestamp_of(name: str, suffix: str = SUFFIX) -> datetime | None:
    """The time in a backup's name; None for any other file."""
    try:
        at = datetime.strptime(name, f"{PREFIX}{_STAMP}{suffix}").replace(tzinfo=UTC)
    except ValueError:
        return None
    return at if backup_name(at, suffix) == name else None  # strptime is lax about missing digits


def to_delete(
    names: Iterable[str], *, keep_daily: int, keep_monthly: int, suffixes: Sequence[str] = (SUFFIX,)
) -> list[str]:
    """Names of the backups to delete, oldest first; never other files, nor the newest backup. Only days and months with
    a backup count, so a box that was off for a month loses none."""
    newest_first = sorted(
        ((at, name) for name in names for suffix in suffixes if (at := timestamp_of(name, suffix)) is not None),
        key=lambda pair: pair[0],
        reverse=True,
    )
    days: dict[str, str] = {}
    months: dict[str, str] = {}
    for at, name in newest_first:
        days.setdefault(f"{at:%Y%m%d}", name)
        months.setdefault(f"{at:%Y%m}", name)
    keep = {*list(days.values())[:keep_daily], *list(months.values())[:keep_monthly]}
    keep.update(name for _, name in newest_first[:1])
    return [name for _, name in reversed(newest_first) if name not in keep]


def rotate(newest: Path, *, keep_daily: int, keep_monthly: int, suffixes: Sequence[str] = (SUFFIX,)) -> list[Path]:
    """Deletes backups beside `newest`, the one just made, by `to_delete`; returns the deleted files, oldest first. Those
    of a later date, made while the clock was wrong, stay and do not count: it would be deleted in their stead."""
    directory = newest.parent
    names = (entry.name for entry in directory.iterdir() if entry.name <= newest.name and not entry.is_dir())
    gone = to_delete(names, keep_daily=keep_daily, keep_monthly=keep_monthly, suffixes=suffixes)
    for name in gone:
        (directory / name).unlink(missing_ok=True)
    return [directory / name for name in gone]


def remove_unfinished(folder: Path, now: datetime, suffixes: Sequence[str] = (SUFFIX,)) -> None:
    """Deletes what killed backups have left in `folder`, as far as it can: each has a name of its own, so no later one replaces it."""
    for entry in folder.iterdir():
        if found := _UNFINISHED.fullmatch(entry.name):
            times = [timestamp_of(found[1], suffix) for suffix in suffixes]
            if any(at and at < now - _LONGEST for at in times):
                with contextlib.suppress(OSError):
                    entry.unlink()
