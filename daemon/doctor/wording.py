"""What `mcfd doctor` finds and advises, French and English."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

from common.language import Text

NAMES: Mapping[str, Text] = {
    "configuration": Text("configuration"),
    "secrets": Text("secrets"),
    "daemon": Text("daemon"),
    "box_clock": Text("the box's clock"),
    "disk": Text("disk"),
    "disk_sync": Text("disk, syncs"),
    "disk_room": Text("disk, room"),
    "disk_wear": Text("disk, wear"),
    "disk_honesty": Text("disk, honesty"),
    "port": Text("port"),
    "permissions": Text("permissions"),
    "line": Text("line"),
    "machine": Text("machine"),
    "nim": Text("NIM"),
    "clock": Text("the machine's clock"),
    "tax_server": Text("tax server"),
    "ledger": Text("ledger"),
    "keys": Text("keys"),
    "attention": Text("to be settled"),
    "deferred": Text("sales that wait"),
    "outage": Text("outage"),
    "last_invoice": Text("last invoice"),
    "upstream": Text("upstream"),
    "certificate": Text("certificate"),
    "proxy": Text("network proxy"),
    "backup": Text("backup"),
    "isf": Text("ISF"),
    "homologation": Text("homologation"),
    "company": Text("company on paper"),
    "logo": Text("logo"),
    "printer": Text("printer"),
    "spare": Text("spare machine"),
    "test_mode": Text("test mode"),
    "upgrade": Text("upgrade"),
}
"""What each check is called for people; the key is its name for scripts."""


ANSWERS: Mapping[str, tuple[Text, Text]] = {
    "silent": (
        Text("no answer on {port}"),
        Text("machine switched on? cable in at both ends? otherwise unplug and plug in again, then mcfd doctor"),
    ),
    "stranger": (
        Text("something else than a fiscal machine answers on {port}"),
        Text("another device, or the wrong speed: check cable, port and baudrate in [[machine]]"),
    ),
}


State = Literal["ok", "warn", "fail"]
"""`warn`: it works, and will not for ever, or not as it should. `fail`: a shop cannot certify, or something is being lost."""


class CheckResult(msgspec.Struct, frozen=True, kw_only=True):
    """`check` is the name for scripts, `nim` the machine it is about; `todo` is empty only when all is well."""

    check: str
    state: State
    found: str
    todo: str = ""
    nim: str = ""


def ok(check: str, found: object, *, nim: str = "") -> CheckResult:
    return CheckResult(check=check, state="ok", found=str(found), nim=nim)


def warn(check: str, found: object, todo: object, *, nim: str = "") -> CheckResult:
    return CheckResult(check=check, state="warn", found=str(found), todo=str(todo), nim=nim)


def fail(check: str, found: object, todo: object, *, nim: str = "") -> CheckResult:
    return CheckResult(check=check, state="fail", found=str(found), todo=str(todo), nim=nim)
