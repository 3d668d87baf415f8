"""What a key or a person may do (decision 28: four roles, the same for both), people who may log in to the shop's page, and their sessions."""

import re
from collections.abc import Mapping
from typing import Final, Literal, TypeAlias, get_args

import msgspec

from common.language import Text

Role: TypeAlias = Literal["seller", "reader", "manager", "technician"]
ROLES: Final[tuple[Role, ...]] = get_args(Role)
USUAL: Final[Role] = "manager"
"""Of a key that was made without one: what every key could do before there were roles."""

Right: TypeAlias = Literal["look", "certify", "report", "close", "administer"]
"""
look        what every visitor may: itself, its machine, the open period's journal, a receipt's QR code
certify     invoices, credit notes, movements of cash
report      X, A, closures, the whole journal, its files, events
close       Z, and the cancelling of an open invoice
administer  attention, keys, people, the box, backups, logs
"""

_RIGHTS: Final[Mapping[Role, frozenset[Right]]] = {
    "seller": frozenset({"look", "certify"}),
    "reader": frozenset({"look", "report"}),
    "manager": frozenset({"look", "certify", "report", "close"}),
    "technician": frozenset({"look", "certify", "report", "close", "administer"}),
}
_NAME: Final = re.compile(r"[a-z0-9][a-z0-9._-]{0,31}")


def may(role: Role, right: Right) -> bool:
    return right in _RIGHTS[role]


def roles_with(right: Right) -> tuple[Role, ...]:
    """Those that have it, in the order of `ROLES`."""
    return tuple(role for role in ROLES if right in _RIGHTS[role])


class Session(msgspec.Struct, frozen=True):
    """Of a person who may log in. Times in ms."""

    person_id: int
    name: str
    role: Role
    opened_at: int
    used_at: int
    """to the minute"""


class Person(msgspec.Struct, frozen=True):
    """Times in ms."""

    id: int
    name: str
    role: Role
    created_at: int
    disabled_at: int
    """0 while they may log in"""
    seen_at: int
    """0 when they have no session"""


def fault_of_name(name: str) -> Text | None:
    """None when nothing is."""
    if _NAME.fullmatch(name):
        return None
    return Text("has to be 1 to 32 of the characters a-z 0-9 . _ - and begin with a letter or a digit")
