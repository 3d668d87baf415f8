"""What C1h would have said later: a recorded state with the certifications in it that were played since."""

from __future__ import annotations

import re
from collections.abc import Sequence

from bridge.frame import Reply, Request

STATE, OPEN, CLOSE = 0xC1, 0xC0, 0x38
_SALES = ("FV", "FT", "EV", "ET")
_WITHOUT_LAST = 22
_CLOSED_FIELDS = 7
_WHOLE = re.compile(r"\s*([0-9]+)")


def brought_up_to_date(cmd: int, data: bytes, since: Sequence[tuple[Request, Reply | None]]) -> bytes:
    """Only C1h tells what was certified."""
    if cmd != STATE:
        return data
    fields = data.decode("latin-1").split(",")
    if len(fields) <= _WITHOUT_LAST:
        fields[6:6] = [""] * 5
    number = ""
    for request, reply in since:
        if request.cmd == OPEN:
            number = request.data.decode("latin-1").split(",")[-1]
        elif request.cmd == CLOSE and reply is not None and _is_certified(reply):
            _enter(fields, request, reply, number)
    return ",".join(fields).encode("latin-1")


def _is_certified(reply: Reply) -> bool:
    return not reply.data.startswith((b"E:", b"P:")) and reply.data.count(b",") >= _CLOSED_FIELDS - 1


def _enter(fields: list[str], request: Request, reply: Reply, number: str) -> None:
    """`fields` of C1h as 38h has changed them: TC, FVC or FRC, and the last invoice."""
    fc, tc, kind, time, _, _, code, *_ = reply.data.decode("latin-1").removeprefix("R:").split(",")
    fields[3] = tc
    fields[4 if kind in _SALES else 5] = fc
    total = _WHOLE.match(request.data.decode("latin-1"))
    fields[6:11] = [time, kind, code, number, total[1] if total else ""]
