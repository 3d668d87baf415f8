"""What one check found."""

from __future__ import annotations

from typing import Literal

import msgspec

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
