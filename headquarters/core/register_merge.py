"""Merges a row of the register from two databases or copies; nothing revoked or disabled in either becomes valid
again.

Revocations and disabled persons accumulate. For other values the later change is used, whichever database is newer,
and `ours` if they are equally late. Merging is idempotent."""

from collections.abc import Callable, Mapping
from typing import Any

RegisterRow = dict[str, Any]


def merged_box(ours: RegisterRow, theirs: RegisterRow) -> RegisterRow:
    """The last change by a person, with the learnt values of that row."""
    return {**_later(ours, theirs), "added_at": min(ours["added_at"], theirs["added_at"])}


def merged_key(ours: RegisterRow, theirs: RegisterRow) -> RegisterRow:
    """A key is revoked unless its last revocation was undone by someone who knew of it (`restored` identifies it)."""
    restored = max(_at(ours, "restored"), _at(theirs, "restored"))
    revoked = max(restored, _at(ours, "revoked_at"), _at(theirs, "revoked_at"))
    is_revoked = revoked > restored
    in_force = [row for row in (ours, theirs) if _at(row, "revoked_at") > restored]
    thefts = [row["stolen_since"] for row in in_force if row.get("stolen_since") is not None]  # the earliest is used
    return {
        **ours,
        "added_at": min(ours["added_at"], theirs["added_at"]),
        "revoked_at": revoked if is_revoked else None,
        "restored": restored or None,
        "stolen_since": min(thefts, default=None),
    }


def merged_ledger(ours: RegisterRow, theirs: RegisterRow) -> RegisterRow:
    return max(theirs, ours, key=lambda row: _at(row, "accepted_at"))


def merged_person(ours: RegisterRow, theirs: RegisterRow) -> RegisterRow:
    """The last password; disabled in either is disabled."""
    return {**_later(ours, theirs), "disabled": bool(ours["disabled"] or theirs["disabled"])}


def merged_api_key(ours: RegisterRow, theirs: RegisterRow) -> RegisterRow:
    ends = [row["revoked_at"] for row in (ours, theirs) if row["revoked_at"] is not None]
    return {**ours, "revoked_at": min(ends, default=None)}


def merged_join_code(ours: RegisterRow, theirs: RegisterRow) -> RegisterRow:
    """Used in either is used, by the first box. Expired in either is expired."""
    used = [row for row in (ours, theirs) if row["used_by"] is not None]
    first = min(used, key=lambda row: _at(row, "used_at"), default=ours)
    return {**first, "ends_at": min(ours["ends_at"], theirs["ends_at"])}


MERGED: Mapping[str, Callable[[RegisterRow, RegisterRow], RegisterRow]] = {
    "box": merged_box,
    "box_key": merged_key,
    "ledger": merged_ledger,
    "person": merged_person,
    "api_key": merged_api_key,
    "join_code": merged_join_code,
}
"""By table."""


def _later(ours: RegisterRow, theirs: RegisterRow) -> RegisterRow:
    return {**ours, **theirs} if _at(theirs, "changed_at") > _at(ours, "changed_at") else {**theirs, **ours}


def _at(row: RegisterRow, name: str) -> int:
    """0 for columns that a copy of an older version lacks."""
    return int(row.get(name) or 0)
