"""The cables of two machines are exchanged behind their adapters, between any two commands: neither certifies the other's invoice where that
can be known before, and where it cannot, no machine certifies it again."""

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from support.memory_shop import MemoryShop, quick
from support.shop import NIM

from daemon.core.errors import McfdError
from daemon.store.maintenance.verify import verify
from daemon.store.tables.book.books import book_state
from daemon.usecases.worker.machine_worker import Limits
from simulator.line.memory_port import MemoryPort

pytestmark = pytest.mark.quick_timers
OTHER = "EL02000099-1"
COMMANDS = 6
"""Of a sale of one item."""


class Cables:
    """Of two shops in one ledger; exchanged just before the `at`-th piece that any of them writes from now on."""

    def __init__(self, one: MemoryShop, two: MemoryShop, monkeypatch: pytest.MonkeyPatch) -> None:
        self.shops = (one, two)
        self.left = 0
        receive = MemoryPort._receive

        def counted(port: MemoryPort, data: bytes) -> None:
            self.left -= 1
            if self.left == 0:
                self.exchange()
            receive(port, data)

        monkeypatch.setattr(MemoryPort, "_receive", counted)

    def exchange(self) -> None:
        one, two = self.shops
        one.session, two.session = two.session, one.session
        for shop in self.shops:
            shop.port.session = shop.session


@contextlib.asynccontextmanager
async def two_shops(path: Path, sold: tuple[int, int]) -> AsyncIterator[tuple[MemoryShop, MemoryShop]]:
    """So many sales each before; no heartbeat that would notice by itself."""
    how = {"heartbeat": 30.0, "timers": quick(), "limits": Limits(doubt_patience=1.0, patience=5.0)}
    async with MemoryShop(path, **how) as one:
        two = MemoryShop(path, nim=OTHER, **how)
        await two.begin(one.store)
        try:
            for shop, count in zip((one, two), sold, strict=True):
                await shop.connected()
                for number in range(count):
                    await shop.certify(f"{shop.nim}-{number}")
            yield one, two
        finally:
            two.line.cancel()
            with contextlib.suppress(BaseException):
                await two.line
            await two.worker.close(0)


def certified(*shops: MemoryShop) -> list[str]:
    return [entry.number for shop in shops for entry in shop.session.machine.fiscal.log]


@pytest.mark.parametrize("at", range(1, COMMANDS + 2))
@pytest.mark.parametrize("sold", [(2, 5), (5, 2), (3, 3)], ids=["more there", "fewer there", "as many"])
async def test_cables_exchanged_between_two_commands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: int, sold: tuple[int, int]
) -> None:
    """At any command of a sale; then they are put right, and the till tries again with its key."""
    async with two_shops(tmp_path / "ledger", sold) as (one, two):
        cables = Cables(one, two, monkeypatch)
        cables.left = at
        machines = {NIM: one.session, OTHER: two.session}
        with contextlib.suppress(McfdError):
            await one.certify("F-1", key="k")
        if machines[NIM] is not one.session:
            cables.exchange()
        for _ in range(3):
            with contextlib.suppress(McfdError):
                await one.until(lambda: one.worker.connected or one.worker.attention, "service")
                await one.certify("F-1", key="k")
        sales = certified(one, two).count("F-1")
        state = one.store.ledger.peek(book_state, one.worker.book)
        assert sales <= 1
        elsewhere = [entry.number for entry in machines[OTHER].machine.fiscal.log].count("F-1")
        assert not elsewhere or sold[0] == sold[1], "counters told that it is another machine"
        if elsewhere:
            assert OTHER in state.attention
            assert (one.store.ledger.peek(book_state, two.worker.book)).attention == state.attention
        else:
            assert sales == 1
            assert not state.attention
    assert verify(tmp_path / "ledger").clean


async def test_a_reply_that_the_other_machine_repeats(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both lines are at the same SEQ when the cables are exchanged before 38h: the other machine repeats its last reply, with the code of its
    own invoice. Nothing was certified, no decision is needed, and the till's next try certifies."""
    first = iter((0, COMMANDS))
    monkeypatch.setattr("bridge.link.secrets.randbelow", lambda _: next(first, 0))
    async with two_shops(tmp_path / "ledger", (3, 3)) as (one, two):
        cables = Cables(one, two, monkeypatch)
        cables.left = COMMANDS
        with pytest.raises(McfdError):
            await one.certify("F-1", key="k")
        cables.exchange()
        await one.until(lambda: one.worker.connected or one.worker.attention, "service")
        await one.certify("F-1", key="k")
        assert certified(one, two).count("F-1") == 1
        assert not one.store.ledger.peek(book_state, two.worker.book).attention
