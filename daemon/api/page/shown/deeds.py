"""What stands in the audit log, in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from daemon.core.audit import Action
from daemon.language import Text

DEEDS: Final[Mapping[Action, Text]] = {
    "key.created": Text("key made"),
    "key.revoked": Text("key revoked"),
    "user.created": Text("person added"),
    "user.password_changed": Text("password changed"),
    "user.disabled": Text("person disabled"),
    "user.logged_in": Text("logged in"),
    "user.logged_out": Text("logged out"),
    "closure.created": Text("day closed (Z)"),
    "cash.moved": Text("cash put in or taken out"),
    "pending.cancelled": Text("open invoice cancelled"),
    "attempt.settled": Text("doubt decided"),
    "z_number.said": Text("last Z said"),
    "backup.taken": Text("copy made"),
    "ledger.restored": Text("ledger put back from a copy"),
    "configuration.changed": Text("configuration changed"),
    "outbox.replayed": Text("refused closures sent again"),
    "authority.created": Text("certificate authority made"),
}
