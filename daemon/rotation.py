"""Which nightly backups stay: the newest of each of the last days, and the newest of each of the last months."""

from __future__ import annotations

import _strptime  # type: ignore[import-not-found]  # noqa: F401  loaded at the first use otherwise, by a user who may not read the program's files
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

PREFIX = "mcfd-"
SUFFIX = ".sqlite3"
BOX_SUFFIX = ".box.age"
"""Of the ledger alone, and of the whole box."""
_STAMP = "%Y%m%dT%H%M%SZ"


def backup_name(at: datetime, suffix: str = SUFFIX) -> str:
    """`mcfd-20251203T021500Z.sqlite3`: sorts by time, and says its time without asking the file system."""
    return f"{PREFIX}{at.astimezone(UTC).strftime(_STAMP)}{suffix}"


def timestamp_of(name: str, suffix: str = SUFFIX) -> datetime | None:
    """The time in the name of a backup; None for any other file."""
    try:
        at = datetime.strptime(name, f"{PREFIX}{_STAMP}{suffix}").replace(tzinfo=UTC)
    except ValueError:
        return None
    return at if backup_name(at, suffix) == name else None  # strptime is lax about missing digits


def to_delete(names: Iterable[str], *, keep_daily: int, keep_monthly: int, suffix: str = SUFFIX) -> list[str]:
    """Names of the backups that may go, oldest first. Days and months are those that have a backup, so a box that was
    off for a month loses nothing by it; names that are not a backup's are never in the answer, and neither is the newest."""
    newest_first = sorted(
        ((at, name) for name in names if (at := timestamp_of(name, suffix)) is not None),
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


def rotate(directory: Path, *, keep_daily: int, keep_monthly: int, suffix: str = SUFFIX) -> list[Path]:
    """Deletes what `to_delete` names in `directory`; the files that went, oldest first."""
    names = (entry.name for entry in directory.iterdir())
    gone = to_delete(names, keep_daily=keep_daily, keep_monthly=keep_monthly, suffix=suffix)
    for name in gone:
        (directory / name).unlink(missing_ok=True)
    return [directory / name for name in gone]
