"""What tills and the back office do, and what they were told: a till that has no answer asks again."""

import asyncio
import contextlib
from collections.abc import Coroutine
from dataclasses import dataclass, field
from typing import Any

from simulation.box import Seat, Unreachable, state_of
from simulation.drawn.events import UNNUMBERED, by_total
from simulation.oracle import Expectations
from support.shop import invoice

from daemon.core import errors
from daemon.core.audit import Actor
from daemon.core.invoice.number import DIGITS, Series
from daemon.core.ledger.attempt import DuplicateInvoice, Record
from daemon.core.ledger.deferred import DeferredSale, NotWaiting
from daemon.core.ledger.take_over import NotInUse, NumberReserved, UnknownElsewhere
from daemon.store.tables.book.deferred import open_sales
from daemon.store.tables.book.uniqueness import count_numbers
from daemon.usecases.certification.certify import certify
from daemon.usecases.certification.idempotency import Answered, FoundRequest, find_request
from daemon.usecases.deferred.accept import certify_or_defer, take_back
from daemon.usecases.reports.close_period import close_period

REFUSALS = 3
"""After which a till gives up what the machine does not want."""
FILLING = 200_000
"""The total of the first sale that fills a series."""
VAT = 118
OF_THE_OTHER = (NotInUse, NumberReserved, UnknownElsewhere)
"""It is the other machine of a pair that is out of order, or in use now."""
_NO_LIMIT = contextlib.nullcontext()
OUT_OF_ORDER = (errors.MachineOffline, errors.MachineAttention, errors.LineLost, errors.StorageError)
FINAL_ERRORS = (errors.NothingDone, errors.MachineRefused, errors.MachineNonsense, errors.CreditExceedsOriginal)
"""What also tells that no attempt before it was certified: it could only begin after they had ended."""


class KeyHasEnded(errors.McfdError):
    """The machine has another taxpayer than the till."""


class Accepted(Exception):
    """The sale is to be certified later."""


@dataclass
class Sale:
    """One till with one invoice in its hands."""

    number: str
    kind: str
    prices: tuple[int, ...]
    mode: str
    keyed: bool
    after: str
    hangs_up: float
    pause: float
    pick: float
    """Which sale a credit note is on."""
    is_twin: bool = False
    else_later: bool = False
    """Where its machine is out of order, it is certified later."""
    key: str = field(init=False)
    reference: str = ""

    def __post_init__(self) -> None:
        self.key = f"key of {self.number}" if self.keyed else ""

    @property
    def is_credit(self) -> bool:
        return self.kind == "FA"

    @property
    def due(self) -> list[int]:
        return [price if self.mode == "TTC" else (price * VAT + 50) // 100 for price in self.prices]

    @property
    def total(self) -> int:
        return sum(self.due)

    @property
    def content(self) -> tuple[object, ...]:
        """All in which two of its requests can differ."""
        return self.number, self.prices, self.reference

    @property
    def is_numbered(self) -> bool:
        """Else the box gives it its number."""
        return not self.number.startswith(UNNUMBERED)

    def body(self) -> dict[str, Any]:
        changes: dict[str, Any] = {"invoiceType": self.kind, "priceMode": self.mode}
        if not self.is_numbered:
            changes["invoiceNumber"] = ""
        if self.is_credit:
            changes["creditNoteRef"] = self.reference
        return invoice(self.number, *self.prices, **changes, payments=[{"method": "E", "amount": self.total}])


class Tills:
    """`over`: all troubles have ended, and a till without an answer asks until there is one."""

    def __init__(self, expected: Expectations) -> None:
        self.world = expected.world
        self.expected = expected
        self.over = False

    async def sell(self, **how: Any) -> None:
        sale = self._sale(how)
        if sale.is_credit and not self._refer(sale):
            return
        tries = refusals = 0
        while True:
            tries += 1
            answer = await self._post(sale, sale.hangs_up if tries == 1 else 0.0)
            if answer is None or sale.number in self.expected.lost:
                return
            if isinstance(answer, Accepted):
                await self._follow(sale, float("inf"))
                return
            refusals += isinstance(answer, (errors.MachineRefused, errors.CreditExceedsOriginal, errors.InvalidRequest))
            if isinstance(answer, errors.KeyReused) or refusals == REFUSALS or self._is_locked_out(answer):
                return
            if self.expected.knows_nothing_of(sale.number):
                if sale.after == "leave":
                    return
                self._change(sale, tries)
            await asyncio.sleep(min(sale.pause + 0.01 * 2**tries, 3.0))

    async def defer(self, takes_back: float, **how: Any) -> None:
        """A till that does not wait: once its sale is accepted, it looks what became of it, or takes it back after so many seconds."""
        sale = self._sale(how)
        if await self._is_accepted(sale):
            await self._follow(sale, takes_back or float("inf"))

    async def _follow(self, sale: Sale, takes_back: float) -> None:
        self.expected.unknown(sale.number)
        back_at = self.world.box.loop.now + takes_back
        while sale.number not in self.expected.lost:
            is_back = self.world.box.loop.now >= back_at
            try:
                worker, by = (seat := self._seat(sale)).worker.in_use, Actor("till")
                work = take_back(worker, sale.key, by=by) if is_back else find_request(worker, sale.key)
                if self._is_over(sale, await self.world.ask(work, seat)):
                    break
            except NotWaiting:
                back_at = float("inf")
            except (errors.McfdError, Unreachable) as error:
                self.world.note(f"{sale.number} {type(error).__name__}: {error}")
                if self._is_locked_out(error):
                    return
            await asyncio.sleep(0.5)
        if sale.number in self.expected.codes:
            await self._post(sale, 0.0, later=True)  # its key replays it

    async def _is_accepted(self, sale: Sale) -> bool:
        """False where there is no more to ask."""
        tries = 0
        while True:
            tries += 1
            answer = await self._post(sale, 0.0, later=True)
            if answer is None or sale.number in self.expected.lost or self._is_locked_out(answer):
                return False
            if isinstance(answer, Accepted):
                return True
            await asyncio.sleep(min(sale.pause + 0.01 * 2**tries, 3.0))

    def _seat(self, sale: Sale | None = None) -> Seat:
        """KeyHasEnded for a sale of another taxpayer's till."""
        seat = self.world.box.serving().front(self.world.nim)
        ifu = seat.worker.ifu
        if sale and ifu and self.expected.taxpayers.setdefault(sale.number, ifu) != ifu:
            raise KeyHasEnded(ifu)
        return seat

    def _is_locked_out(self, answer: Exception) -> bool:
        """For good."""
        return self.over and isinstance(answer, KeyHasEnded)

    def _sale(self, how: dict[str, Any]) -> Sale:
        sale = Sale(**how)
        if sale.is_twin:
            self.expected.twin_keys.add(sale.key)
        if not sale.is_numbered:
            self.expected.unnumbered.add(sale.number)
        return sale

    def _is_over(self, sale: Sale, found: FoundRequest | None) -> bool:
        if found is None:
            self._seat(sale)  # KeyHasEnded where the machine was activated for another taxpayer meanwhile
        assert found is not None or self.expected.is_abandoned(sale.number), (
            f"{sale.number}: accepted, and not known any more"
        )
        if found is None:
            return True
        if found.status == "certified":
            assert found.record is not None
            self.world.note(f"{sale.number} certified later: {found.record.code}")
            self.expected.certified(found.record)
            self.expected.keys[sale.number] = sale.key
        elif found.status in ("abandoned", "refused"):
            self.world.note(f"{sale.number} {found.status}")
            self.expected.over_keys.add(sale.key)
            self.expected.nothing(sale.number)
        return found.status in ("certified", "abandoned", "refused")

    def _refer(self, sale: Sale) -> bool:
        original = self.expected.a_sale(sale.pick)
        if original is None:
            return False
        sale.reference, total = original
        sale.prices = (min(sale.prices[0], total),)
        sale.mode = "TTC"
        return True

    def _change(self, sale: Sale, tries: int) -> None:
        """Nothing was certified: the till may also send something else now."""
        if sale.after in ("other key", "other body"):
            sale.key = f"key {tries} of {sale.number}" if sale.keyed else ""
        if sale.after == "other body" and not sale.is_credit:
            sale.prices = (*sale.prices, tries)

    async def _post(self, sale: Sale, hangs_up: float, *, later: bool = False) -> Exception | None:
        """None once it is certified; else why there is no answer, or none yet."""
        with self.expected.asking(sale.number):
            try:
                seat = self._seat(sale)
                work: Coroutine[Any, Any, Answered[Any]]
                body, call = sale.body(), seat.call(sale.content, sale.key)
                if later or (sale.else_later and not sale.is_credit):
                    work = certify_or_defer(seat.worker.in_use, body, call, is_async=later)
                else:
                    work = certify(seat.worker.in_use, body, call, credit=sale.is_credit)
                async with asyncio.timeout(hangs_up) if hangs_up else _NO_LIMIT:
                    answered = await self.world.ask(work, seat)
            except (errors.McfdError, Unreachable, TimeoutError) as error:
                if isinstance(error, OUT_OF_ORDER) and not isinstance(error, OF_THE_OTHER):
                    self._refused(seat, error)
                return self._not_certified(sale, error)
        if isinstance(answered.value, DeferredSale):
            self.world.note(f"{sale.number} is accepted")
            sale.key = answered.value.key
            return Accepted()
        self._certified(sale, answered)
        return None

    def _refused(self, seat: Seat, error: Exception) -> None:
        """A machine that was never in service, and one whose spare certifies, have no outage for it; nor has one that was taken back, for a sale that
        its spare refuses (seed 9730000)."""
        worker = seat.worker
        if (
            seat.keeps_register
            and seat.nim == self.world.nim
            and (worker.spare is None or worker.spare.book.nim not in str(error))
            and seat.life.accepts
            and worker.in_use is worker
            and (worker.ifu or worker.attempts.met_machine)
        ):
            self.world.refusals.append((worker.now(), self.world.box.loop.now))

    def _certified(self, sale: Sale, answered: Answered[Record]) -> None:
        record = answered.value
        assert abs(record.total_ttc - sale.total) <= len(sale.prices), (
            f"{sale.number}: asked for {sale.total}, told {record.total_ttc}"
        )
        if not answered.replayed:
            self.expected.keys[sale.number] = sale.key
        self.world.note(
            f"{sale.number} certified: {record.code} {record.total_ttc}{' again' if answered.replayed else ''}"
        )
        self.expected.certified(record)

    def _not_certified(self, sale: Sale, error: Exception) -> Exception | None:
        self.world.note(f"{sale.number} {type(error).__name__}: {error}")
        if isinstance(error, DuplicateInvoice):
            assert sale.is_numbered, f"{sale.number}: the box gave it the number {error.record.number}, which is taken"
            is_its_own = sale.key and self.expected.keys.get(sale.number) == sale.key and not sale.is_twin
            assert not is_its_own or self.expected.is_abandoned(sale.number), (
                f"{sale.number}: the same key got another answer"
            )
            self.expected.certified(error.record)
            return None
        if isinstance(error, errors.MachineNonsense):
            assert self.expected.may_be_nonsense, f"{sale.number}: {error}"
        if isinstance(error, FINAL_ERRORS):
            self.expected.nothing(sale.number)
        elif not tells_nothing_was_done(error):
            self.expected.unknown(sale.number)
        return error

    # -- the back office --------------------------------------------------------------------------------------------------

    async def no_sale_waits(self) -> None:
        """Also those whose till is gone: what is to be certified later belongs into the last period."""
        while True:
            with contextlib.suppress(errors.MachineError, errors.StorageError, Unreachable):
                seat = self.world.serving()
                sales = await self.world.ask(seat.worker.ledger.read(open_sales, seat.worker.book, 0, 1), seat)
                if not sales and seat.worker.ifu in ("", self.world.session.machine.options.ifu):
                    return
            await asyncio.sleep(0.5)

    async def fill_series(self) -> None:
        """What was refused, abandoned or taken back has left its number to the next sale: after as many sales as numbers are missing, none is."""
        for _ in range(await self._missing_numbers()):
            total = FILLING + len(self.expected.unnumbered)
            sale = {"prices": (total,), "kind": "FV", "mode": "TTC", "keyed": True, "after": "again", "pause": 0.1}
            await self.sell(number=by_total(total), hangs_up=0.0, pick=0.0, **sale)
        is_sure = not (self.world.was_restored or self.expected.wrong)
        assert not is_sure or not await self._missing_numbers(), "a number of the series is missing"

    async def _missing_numbers(self) -> int:
        while True:
            with contextlib.suppress(errors.MachineError, errors.StorageError, Unreachable):
                seat = self._seat()
                worker = seat.worker.in_use
                series = self.world.box.defaults.series or Series()
                prefix = series.prefix("FV", "", worker.now())
                counting = worker.ledger.read(count_numbers, worker.book, prefix, DIGITS)
                count, highest = await self.world.ask(counting, seat)
                return highest - count
            await asyncio.sleep(0.5)

    async def close(self, *, key: str, twin: bool, pause: float, own: bool = False) -> None:
        """`own`: of this very machine, also where its spare stands for it."""
        closing = [self._close(key, pause, own=own) for _ in range(1 + twin)]
        await asyncio.gather(*closing)

    async def _close(self, key: str, pause: float, *, own: bool) -> None:
        tries = 0
        while True:
            tries += 1
            with contextlib.suppress(
                errors.MachineError, errors.StorageError, Unreachable, errors.KeyReused, errors.ZNumberUnknown
            ):
                seat = self.world.serving() if own else self._seat()
                await self._say_last_z(seat)
                worker = seat.worker if own else seat.worker.in_use
                closure = (await self.world.ask(close_period(worker, seat.call({}, key)), seat)).value
                self.world.note(
                    f"{key}: Z {closure.z_number}, {closure.certs_count} certifications, {closure.total_ttc}"
                )
                self.expected.closed(key, closure, worker.ifu)
                return
            await asyncio.sleep(min(pause + 0.01 * 2**tries, 3.0))

    async def _say_last_z(self, seat: Seat) -> None:
        """The last Z on paper, where the ledger asks for it; where it begins to ask only then, at the next try."""
        state = await self.world.ask(state_of(seat), seat)
        if state.needs_last_z:
            await self.world.ask(seat.store.decisions.set_last_z(seat.worker.book, self.expected.last_z), seat)


def tells_nothing_was_done(error: Exception) -> bool:
    """An answer after which a till may take it that this request left nothing behind (docs/integrate.md)."""
    if isinstance(error, errors.OutcomeNotStored):
        return False
    return isinstance(
        error,
        (
            errors.MachineBusy,
            errors.MachineOffline,
            errors.StorageFull,
            KeyHasEnded,
            *FINAL_ERRORS,
            errors.KeyReused,
            errors.ZNumberUnknown,
        ),
    )
