"""Tills outside the shop: they sell through the relays, sign nothing, believe what they are told, and ask again until they are told something."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta

import msgspec
from simulation.lane import HttpAnswer, NotReached
from simulation.oracle import Expectations
from support.shop import invoice

from daemon.core.report.receipt import Receipt

NOTHING_SENT = "nothing was sent"
"""Stands in each problem after which this request has left nothing behind."""
OVER = ("certified", "refused", "abandoned")
UNEXPECTED = (400, 401, 403, 404, 413, 422)
LONGEST_PAUSE = 20.0
AFTER_LIMIT = 30.0
"""Seconds after its limit in which a request that was begun in time has come to its end."""


@dataclass
class OutsideSale:
    """`limit`: seconds from each request to its Mcfd-Not-After, 0 for none. `later`: the till does not wait for the certification. `leaves`: when
    its first limit is over it asks only what became of it."""

    number: str
    prices: Sequence[int]
    limit: float
    later: bool
    leaves: bool
    pause: float
    relay: int
    alone: bool
    """No other till sells under this number."""
    key: str = field(init=False)
    sent: int = 0
    is_sure: bool = True
    """Each request so far has left nothing behind, as it was told."""

    def __post_init__(self) -> None:
        self.key = f"key-of-{self.number}"

    @property
    def total(self) -> int:
        return sum(self.prices)

    def body(self) -> bytes:
        return msgspec.json.encode(invoice(self.number, *self.prices, payments=[{"method": "E", "amount": self.total}]))


class TillsOutside:
    def __init__(self, expected: Expectations) -> None:
        self.world = expected.world
        self.box = expected.world.box
        self.expected = expected

    async def sell_outside(self, **how: object) -> None:
        sale = OutsideSale(**how)  # type: ignore[arg-type]  # as drawn
        leaves_at = self.box.loop.now + sale.limit if sale.leaves and sale.limit else float("inf")
        while not self.expected.is_abandoned(sale.number):
            if self.box.loop.now > leaves_at:
                await self._ask_what_became(sale, leaves_at)
                return
            answer = await self._post(sale)
            if answer is not None and answer.status == 200:
                self._certified(sale, answer.body)
                return
            if answer is not None and answer.status == 202:
                self.expected.unknown(sale.number)
                await self._ask_what_became(sale, self.box.loop.now + (sale.limit or float("inf")))
                return
            if answer is not None and answer.status == 409 and self._is_another(sale, answer):
                return
            await asyncio.sleep(min(sale.pause + 0.01 * 2**sale.sent, 8.0))

    async def _post(self, sale: OutsideSale) -> HttpAnswer | None:
        """None where it is not known what became of it."""
        headers = {"Idempotency-Key": sale.key, "Content-Type": "application/json"}
        if sale.limit:
            headers["Mcfd-Not-After"] = self._limit(sale)
        if sale.later:
            headers["Prefer"] = "respond-async"
        with self.expected.asking(sale.number):
            answer = await self._answer(sale, "POST", "certify", headers, sale.body())
            if answer is None:
                sale.is_sure = False
                self.expected.unknown(sale.number)
            elif answer.status not in (200, 202, 409):
                self._not_certified(sale, answer)
        return answer

    def _limit(self, sale: OutsideSale) -> str:
        if not sale.later and sale.alone:
            self.expected.limits[sale.number] = self.box.loop.now + sale.limit
        return (self.box.true_time() + timedelta(seconds=sale.limit)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")

    async def _answer(
        self, sale: OutsideSale, method: str, path: str, headers: dict[str, str], body: bytes = b""
    ) -> HttpAnswer | None:
        """None for a connection that broke, and for 504. By one relay and the other in turn."""
        lane, nim = self.box.lane, self.world.nim
        assert lane is not None
        headers["Authorization"] = f"Bearer {lane.keys[nim]}"
        relay = (sale.relay + sale.sent) % lane.RELAYS
        sale.sent += 1
        headers["X-Request-ID"] = f"{sale.number}-{sale.sent}"
        try:
            answer = await lane.request(relay, method, f"/v1/mcf/{nim}/{path}", headers, body)
        except NotReached as error:
            self.box.note(f"{sale.number} {error}")
            return None
        code = answer.problem.get("code", "")
        self.box.note(f"{sale.number} {method} {answer.status} {code}")
        assert answer.status not in UNEXPECTED or method == "GET", f"{sale.number}: {answer.status} {code}"
        return None if answer.status == 504 else answer

    def _not_certified(self, sale: OutsideSale, answer: HttpAnswer) -> None:
        """`nothing was sent` is about this request: it says something of the number where so did each answer before, and none of them comes again
        (seed 9992608)."""
        lane = self.box.lane
        is_doubled = lane is not None and lane.server.doubled_until > self.box.loop.now
        if is_doubled or NOTHING_SENT not in str(answer.problem.get("detail", "")):
            sale.is_sure = False
            self.expected.unknown(sale.number)
        elif sale.alone and sale.is_sure:
            self.expected.nothing(sale.number)

    def _is_another(self, sale: OutsideSale, answer: HttpAnswer) -> bool:
        """Whether the number is somebody else's for good."""
        code = answer.problem["code"]
        if code in ("DUPLICATE_INVOICE", "IDEMPOTENCY_KEY_REUSED"):
            assert not sale.alone or self.expected.is_abandoned(sale.number), f"{sale.number}: {code} for its own key"
            return True
        return False

    async def _ask_what_became(self, sale: OutsideSale, limit: float) -> None:
        """Until it is known. After `limit` a request that the box does not know will never be certified."""
        pause = 0.5
        while not self.expected.is_abandoned(sale.number):
            answer = await self._answer(sale, "GET", f"requests/{sale.key}", {})
            found = answer.problem if answer is not None else {}
            if answer is not None and answer.status == 200 and found["status"] in OVER:
                if found["status"] == "certified":
                    self._certified(sale, msgspec.json.encode(found["receipt"]))
                else:
                    self._never(sale)
                return
            if answer is not None and answer.status == 404:
                if not sale.alone and sale.number in self.expected.codes:
                    return
                if self.box.loop.now > limit + AFTER_LIMIT:
                    self._never(sale)
                    return
            pause = min(2 * pause, LONGEST_PAUSE)
            await asyncio.sleep(pause)

    def _never(self, sale: OutsideSale) -> None:
        self.box.note(f"{sale.number} is not certified")
        if sale.alone:
            self.expected.nothing(sale.number)
            self.expected.never.add(sale.number)

    def _certified(self, sale: OutsideSale, content: bytes) -> None:
        receipt = msgspec.json.decode(content, type=Receipt)
        assert receipt.total_ttc == sale.total, f"{sale.number}: asked for {sale.total}, told {receipt.total_ttc}"
        self.box.note(f"{sale.number} certified outside: {receipt.code_secef} {receipt.total_ttc}")
        self.expected.certified_outside(receipt)
