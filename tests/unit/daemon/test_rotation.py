from datetime import UTC, datetime, timedelta
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from daemon.rotation import (
    BOX_SUFFIX,
    SUFFIX,
    backup_name,
    box_suffix,
    remove_unfinished,
    rotate,
    timestamp_of,
    to_delete,
)

_FIRST = datetime(2025, 1, 1, 2, 15, tzinfo=UTC)
_TIMES = st.lists(st.integers(0, 1_000_000).map(lambda minutes: _FIRST + timedelta(minutes=minutes)), max_size=60)


def test_a_year_of_nights_becomes_fourteen_days_and_twelve_months() -> None:
    """After 400 nights there are the last 14 and the last of each of the last 12 months, the present one among both. Of several backups of a day the newest stays."""
    nights = [backup_name(_FIRST + timedelta(days=day)) for day in range(400)]
    rest = sorted(set(nights) - set(to_delete(nights, keep_daily=14, keep_monthly=12)))
    assert rest[-14:] == nights[-14:]
    ends = ("03-31", "04-30", "05-31", "06-30", "07-31", "08-31", "09-30", "10-31", "11-30", "12-31")
    assert [f"{timestamp_of(name):%Y-%m-%d}" for name in rest[:-14]] == [f"2025-{end}" for end in ends]
    morning, evening = (backup_name(_FIRST + timedelta(hours=hour)) for hour in (0, 9))
    assert to_delete([evening, morning], keep_daily=14, keep_monthly=12) == [morning]


def test_what_is_not_a_backup_is_left_alone(tmp_path: Path) -> None:
    """The copy made before an upgrade, a half-written file and an operator's own file are never deleted."""
    others = ["before-upgrade.sqlite3", "mcfd-20250101T021500Z.sqlite3.new", "mcfd-2025011T021500Z.sqlite3", "note.txt"]
    old, new = backup_name(_FIRST), backup_name(_FIRST + timedelta(days=1))
    for name in [*others, old, new]:
        (tmp_path / name).write_bytes(b"")
    assert rotate(tmp_path / new, keep_daily=1, keep_monthly=0) == [tmp_path / old]
    assert sorted(entry.name for entry in tmp_path.iterdir()) == sorted([*others, new])


def test_backups_of_a_clock_that_was_ahead_do_not_cost_those_of_today(tmp_path: Path) -> None:
    """They have the newest dates for years. The backup just made stays, with those of the days before it; a directory of such a name is no backup."""
    ahead = [backup_name(_FIRST + timedelta(days=4000 + day)) for day in range(4)]
    past, *days, today = (backup_name(_FIRST + timedelta(days=day)) for day in range(4))
    for name in [*ahead, past, *days, today]:
        (tmp_path / name).write_bytes(b"")
    folder = tmp_path / backup_name(_FIRST - timedelta(days=9))
    folder.mkdir()
    assert rotate(tmp_path / today, keep_daily=3, keep_monthly=0) == [tmp_path / past]
    assert {entry.name for entry in tmp_path.iterdir()} == {*ahead, *days, today, folder.name}


def test_boxes_that_share_a_stick_leave_each_other_alone(tmp_path: Path) -> None:
    """Copies of two boxes on one day, and those that have no fingerprint in their names yet: each box rotates its own, and those."""
    mine, other = box_suffix("e69a-6ea5-403a"), box_suffix("1132-bc86-f95b")
    of_other = [backup_name(_FIRST + timedelta(hours=hour), other) for hour in (1, 2)]
    former = backup_name(_FIRST - timedelta(days=1), BOX_SUFFIX)
    old, new = (backup_name(_FIRST + timedelta(hours=hour), mine) for hour in (0, 3))
    for name in (*of_other, former, old, new):
        (tmp_path / name).write_bytes(b"")
    gone = rotate(tmp_path / new, keep_daily=1, keep_monthly=0, suffixes=[mine, BOX_SUFFIX])
    assert gone == [tmp_path / former, tmp_path / old]
    assert {entry.name for entry in tmp_path.iterdir()} == {*of_other, new}


def test_what_a_killed_backup_has_left_goes_and_what_is_written_now_stays(tmp_path: Path) -> None:
    """Beside the copies, under their names: of earlier nights and of this box. What SQLite has beside a whole copy is no such rest."""
    mine, other = box_suffix("e69a-6ea5-403a"), box_suffix("1132-bc86-f95b")
    old, now = _FIRST, _FIRST + timedelta(days=2)
    copy, box = backup_name(old), backup_name(old, mine)
    unfinished = (f".{copy}.3au2_ip1", f".{box}.3au2_ip1.part")
    left = [f"{copy}.part", f"{copy}.part-journal", *unfinished, f"{box}.part"]
    stay = [copy, box, f"{copy}-wal", f"{backup_name(old, other)}.part", f"{backup_name(now)}.part", "note.part"]
    for name in (*left, *stay):
        (tmp_path / name).write_bytes(b"")
    folder = tmp_path / f"{backup_name(old - timedelta(days=1))}.part"
    folder.mkdir()
    remove_unfinished(tmp_path, now, [mine, SUFFIX])
    assert {entry.name for entry in tmp_path.iterdir()} == {*stay, folder.name}


@given(_TIMES, st.integers(0, 20), st.integers(0, 20))
def test_the_newest_backup_is_never_deleted(times: list[datetime], daily: int, monthly: int) -> None:
    """Whatever is asked for, and in whatever order the files come, the last backup stays, and a second pass deletes nothing."""
    names = [backup_name(at) for at in times]
    gone = to_delete(names, keep_daily=daily, keep_monthly=monthly)
    rest = [name for name in names if name not in gone]
    assert (max(names) in rest) if names else (gone == [])
    assert to_delete(rest, keep_daily=daily, keep_monthly=monthly) == []
