"""One invoice of the probe in the making."""

from __future__ import annotations

import time
from dataclasses import dataclass

from bridge.commands import Habits, ReadSubtotal, understand
from bridge.errors import Nonsense, Refused
from bridge.replies.subtotal import Subtotal
from daemon.probe.line import CERTIFYING, CREDIT, Answer, ProbeLine
from daemon.probe.replies import (
    CLOSE,
    CUSTOMER,
    ITEM,
    OPEN,
    State,
)

CREDITS = ("FA", "EA")
AMOUNT = 15_000
_PENDING = 0.5


@dataclass
class Sale:
    """One invoice in the making; `steps`: how many numbers it has used."""

    line: ProbeLine
    state: State
    walk_in: bytes = b""
    whole_close: bool = False
    steps: int = 0

    @property
    def ifu(self) -> str:
        return self.state.fields[1].strip()

    def new_number(self) -> str:
        """Never one that this machine has had."""
        self.steps += 1
        return f"Sonde-{time.time_ns() // 1_000_000_000}-{self.steps}"

    async def send(self, cmd: int, data: str | bytes = b"") -> Answer:
        return await self.line.exchange(cmd, data.encode() if isinstance(data, str) else data, patience=CERTIFYING)

    async def begin(self, number: str, kind: str = "FV", reference: str = "", mode: str = "TTC") -> Answer:
        """C3h and C0h; the answer of the second."""
        await self.send(CUSTOMER, self.walk_in)
        credit = f",COR,{reference}" if kind in CREDITS else ""
        return await self.send(OPEN, f"1,Sonde,{self.ifu},{kind}{credit},{mode},1,{number}")

    async def add(self, amount: str = str(AMOUNT), *, name: str = "Sonde", group: str = "B") -> Answer:
        rate = self.state.rate(group)
        percent = f"{rate // 100}.{rate % 100:02d}"
        return await self.send(ITEM, f"{name}\tLOCBIE,{group}{percent}%{amount}\t{amount}.00*1.000")

    async def cancel(self) -> Answer:
        return await self.send(CLOSE, b"C")

    async def close(self, total: int, kind: str = "FV") -> Answer:
        """38h, asked again as long as the machine says not yet."""
        patience = CREDIT if kind in CREDITS else CERTIFYING
        until = time.monotonic() + patience
        text = str(total) if self.whole_close else f"{total}.00"
        while True:
            answer = await self.line.exchange(CLOSE, text.encode(), patience=patience)
            if not answer.text.startswith("P:") or time.monotonic() > until:
                return answer
            await self.line.pause(_PENDING)


def read_subtotal(answer: Answer) -> Subtotal | None:
    try:
        return understand(ReadSubtotal(), answer.reply.data if answer.reply else b"", Habits())
    except (Nonsense, Refused):
        return None


def item_of(sale: Sale, amount: str, price: str) -> str:
    rate = sale.state.rate("B")
    return f"Sonde\tLOCBIE,B{rate // 100}.{rate % 100:02d}%{amount}\t{price}"


def francs_of(hundredths: int | None) -> str:
    return "nothing" if hundredths is None else f"{hundredths / 100:g}"
