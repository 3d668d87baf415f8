"""Which of a box's waiting sales comes next after one has failed; and what is logged when none can be read."""

from collections import deque
from typing import Any

import pytest
from support.receivers.nats_server import NIM

from common.wire.call import LaterCall, RelayedReply, encode
from relay.later import LaterCalls
from relay.problems import BoxOffline, BoxSilent


class WaitingSale:
    """A message of the stream CALLS: `outcome` is how long it is put off, or that it was acknowledged."""

    def __init__(self, name: str) -> None:
        self.data = encode(LaterCall(2**53 - 1, name.encode()))
        self.outcome: float | str = ""

    def nak(self, delay: float) -> None:
        self.outcome = delay

    def ack(self) -> None:
        self.outcome = "acknowledged"


class OneBox:
    """`bad` is what its answer to the sale of that name is, or raises."""

    def __init__(self, bad: RelayedReply | Exception) -> None:
        self.bad = bad

    def millis(self) -> int:
        return 0

    limit = millis

    async def ask(self, nim: str, call: Any) -> RelayedReply:
        del nim
        if call.sealed != b"bad":
            return RelayedReply("boot", status=202)
        if isinstance(self.bad, Exception):
            raise self.bad
        return self.bad


@pytest.mark.parametrize(
    ("bad", "delays"),
    [
        (BoxSilent(), [60, 30]),
        (RelayedReply("boot", status=500), [60, 30]),
        (BoxOffline(), [30, 30]),
        (RelayedReply("boot", status=401), ["acknowledged", "acknowledged"]),
    ],
)
async def test_a_sale_that_fails_by_itself_holds_up_no_other(
    bad: RelayedReply | Exception, delays: list[object]
) -> None:
    """It comes again after those behind it, which were not tried; where the box is off all come at once."""
    sales = [WaitingSale(name) for name in ("good", "bad", "behind")]
    by_subject: dict[str, Any] = {f"mcf.{NIM}.later": deque(sales)}
    later = LaterCalls(None, OneBox(bad))  # type: ignore[arg-type]  # it stores nothing here
    await later._hand_over(f"mcf.{NIM}.later", by_subject)
    assert [sale.outcome for sale in sales] == ["acknowledged", *delays]
    assert by_subject == {}
