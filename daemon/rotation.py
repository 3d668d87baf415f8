"""Which nightly backups stay: the newest of each of the last days, and the newest of each of the last months."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

PREFIX = "mcfd-"
SUFFIX = ".sqlite3"
_STAMP = "%Y%m%dT%H%M%SZ"


def backup_name(at: datetime) -> str:
    """`mcfd-20251203T021500Z.sqlite3`: sorts by time, and says its time without asking the file system."""
    return f"{PREFIX}{at.astimezone(UTC).strftime(_STAMP)}{SUFFIX}"


def made_at(name: str) -> datetime | None:
    """The time in the name of a backup; None for any other file."""
    try:
        at = datetime.strptime(name, f"{PREFIX}{_STAMP}{SUFFIX}").replace(tzinfo=UTC)
    except ValueError:
        return None
    return at if backup_name(at) == name else None  # strptime is lax about missing digits


def to_delete(names: Iterable[str], *, keep_daily: int, keep_monthly: int) -> list[str]:
    """Names of the backups that may go, oldest first. Days and months are those that have a backup, so a box that was
    off for a month loses nothing by it; names that are not a backup's are never in the answer, and neither is the newest."""
    newest_first = sorted(
        ((at, name) for name in names if (at := made_at(name)) is not None), key=lambda pair: pair[0], reverse=True
    )
    days: dict[str, str] = {}
    months: dict[str, str] = {}
    for at, name in newest_first:
        days.setdefault(f"{at:%Y%m%d}", name)
        months.setdefault(f"{at:%Y%m}", name)
    kept = {*list(days.values())[:keep_daily], *list(months.values())[:keep_monthly]}
    kept.update(name for _, name in newest_first[:1])
    return [name for _, name in reversed(newest_first) if name not in kept]


def rotate(directory: Path, *, keep_daily: int, keep_monthly: int) -> list[Path]:
    """Deletes what `to_delete` names in `directory`; the files that went, oldest first."""
    gone = to_delete((entry.name for entry in directory.iterdir()), keep_daily=keep_daily, keep_monthly=keep_monthly)
    for name in gone:
        (directory / name).unlink(missing_ok=True)
    return [directory / name for name in gone]
