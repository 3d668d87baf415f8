"""Findings and advice of `mcfd doctor`, in French and English."""

from collections.abc import Mapping
from typing import Literal, NamedTuple

import msgspec

from common.language import Text, ambient, tr, translate

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
    "last_z": Text("last Z"),
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
    "left_open": Text("Z still to be made"),
    "test_mode": Text("test mode"),
    "upgrade": Text("upgrade"),
}
"""Names of the checks for people; the keys are those for scripts."""


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
"""`warn`: it works, but not for ever or not as it should. `fail`: a shop cannot certify, or data is being lost."""


class CheckResult(msgspec.Struct, frozen=True, kw_only=True):
    """`check` is the name for scripts, `nim` the machine concerned; `todo` is empty only for `ok`."""

    check: str
    state: State
    found: str
    todo: str = ""
    nim: str = ""


class Check(NamedTuple):
    """A check by its name for scripts, and the machine concerned. Findings and advice are our own texts with their
    `values`; a `Text` or an error is complete."""

    name: str
    nim: str = ""

    def ok(self, found: object, /, **values: object) -> CheckResult:
        return self._result("ok", found, "", values)

    def warn(self, found: object, todo: object, /, **values: object) -> CheckResult:
        return self._result("warn", found, todo, values)

    def fail(self, found: object, todo: object, /, **values: object) -> CheckResult:
        return self._result("fail", found, todo, values)

    def _result(self, state: State, found: object, todo: object, values: dict[str, object]) -> CheckResult:
        found, todo = (_in_words(each, {"nim": self.nim, **values}) for each in (found, todo))
        return CheckResult(check=self.name, state=state, found=found, todo=todo, nim=self.nim)


def _in_words(message: object, values: dict[str, object]) -> str:
    if isinstance(message, str) and not isinstance(message, Text):
        return tr(message, **values)
    return str(translate(message, ambient()))
