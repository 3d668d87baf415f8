"""What a key or a person may do (decision 28): four roles, the same for both."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, TypeAlias, get_args

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


def may(role: Role, right: Right) -> bool:
    return right in _RIGHTS[role]


def roles_with(right: Right) -> tuple[Role, ...]:
    """Those that have it, in the order of `ROLES`."""
    return tuple(role for role in ROLES if right in _RIGHTS[role])
