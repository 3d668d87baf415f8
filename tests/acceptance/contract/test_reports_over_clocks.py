"""Whatever the clocks of box and machine do, and when they are set right: X, Z, A, month, year, journal, paper, report of articles, cash, the search by day and headquarters
say the same, to the franc."""

import asyncio
import contextlib
import gzip
import json
import random
import tarfile
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, tzinfo
from pathlib import Path
from typing import Any

import msgspec
import pytest
from support.cli.command import Command
from support.hq.paper_box import PaperBox
from support.ledgers.ledger import opened
from support.ledgers.recomputed import report
from support.memory_shop import DEFAULTS
from support.random_month import Month, check_files, figures, read, served, settled
from support.shop import NIM, invoice

from common.wire.signing import sign
from daemon.core.clock import DAY, HOUR, millis, millis_text, zone
from daemon.core.delivery import Outgoing
from daemon.core.invoice.number import NumberScope, Series
from daemon.core.report.calendar_report import month_of
from daemon.store.maintenance.verify import verify
from daemon.store.tables.book.books import accept_time, book_state
from daemon.store.tables.book.closures import closures_between
from daemon.store.tables.book.entries import hours_ahead, repair_time
from daemon.store.tables.book.totals import day_end
from daemon.upstream.options import compose
from daemon.usecases.deferred.certify_waiting import SalesThatWait
from daemon.usecases.worker.book_clock import BoxClock
from headquarters.core.reception import Message, Received, receive
from headquarters.store.book.closures import StoreOutcome
from headquarters.store.store import HqStore
from simulator.line.faults import FaultPlan
from simulator.line.session import LineSession
from simulator.machine.machine import SimulatedMachine
from simulator.machine.options import MachineClock, SimulatorOptions

MINUTE = 60_000
BEGIN = millis(datetime(2026, 12, 20, 9, tzinfo=UTC))
ALL = {"from": "1980-01-01", "to": "2200-01-01"}
WRONG = [MINUTE, 10 * MINUTE, HOUR, 3 * HOUR, DAY, 5 * DAY, 20 * DAY, 29 * DAY]
ASLEEP = [0, millis(datetime(2000, 1, 1, tzinfo=UTC))]
"""What the clock of a box without a battery says when it starts."""


@dataclass
class Times:
    """Milliseconds since 1970: `real`, and by how much box and machine are wrong."""

    real: int = BEGIN
    box: int = 0
    machine: int = 0

    def machine_time(self) -> datetime:
        return datetime.fromtimestamp((self.real + self.machine) / 1000, UTC)


class StoppedClock(MachineClock):
    """The machine's clock, which goes on only where the history says so."""

    def __init__(self, times: Times) -> None:
        super().__init__()
        self.times = times

    def __call__(self) -> datetime:
        return self.times.machine_time() + self.offset


@dataclass
class Walk(Month):
    """A history of a shop and its clocks. `cash` is what was moved, in whole XOF."""

    times: Times = field(default_factory=Times)
    place: str = "UTC"
    cash: Counter[str] = field(default_factory=Counter)
    repairs: int = 0
    taken: int = 0
    is_ended: bool = False
    is_synchronised: bool = False

    @property
    def at(self) -> int:
        return self.times.real + self.times.box

    async def step(self) -> None:
        await self.confirm()
        steps = {
            self.sell: 10,
            self.sell_in_series: 3,
            self.move_cash: 3,
            self.close: 4,
            self.close_articles: 1,
            self.close_calendar: 2,
            self.defer: 2,
            self.certify_waiting: 2,
            self.pass_time: 6,
            self.go_to_midnight: 3,
            self.set_box: 4,
            self.set_machine: 2,
            self.set_within_sale: 1,
            self.close_over_midnight: 1,
            self.restart: 1,
        }
        await self.dice.choices([*steps], [*steps.values()])[0]()

    async def confirm(self) -> None:
        """A person answers the question about the clock: NTP, or the machine's time by hand and their word."""
        if not self.shop.worker.time.question():
            return
        self.times.box = 0
        if self.dice.random() < 0.5:
            self.is_synchronised = True
        else:
            await self.shop.store.decisions.write(accept_time, self.at + DAY)
        await self.shop.until(lambda: not self.shop.worker.time.question(), "a clock that is believed")

    # -- the shop -----------------------------------------------------------------------------------------------------

    async def sell_in_series(self) -> None:
        """The number is the box's."""
        body = self.sale()
        del body["invoiceNumber"]
        answer = await self.http.post("certify", json=body)
        assert answer.status_code == 200, answer.text

    async def move_cash(self) -> None:
        kind, amount = self.dice.choice(["deposit", "withdrawal"]), self.dice.randrange(1, 100) * 50
        answer = await self.http.post("cash", json={"kind": kind, "amount": amount, "reason": "fonds"})
        assert answer.status_code == 201, answer.text
        self.cash[kind] += amount

    async def close_articles(self) -> None:
        answer = await self.http.post("reports/articles", json={})
        assert answer.status_code in (201, 409), answer.text

    async def close_calendar(self) -> None:
        answer = await self.http.post(f"reports/{self.dice.choice(['month', 'year'])}", json={})
        assert answer.status_code in (201, 409), answer.text

    async def defer(self) -> None:
        self.taken += 1
        headers = {"prefer": "respond-async", "idempotency-key": f"later {self.taken}"}
        answer = await self.http.post("certify", json=self.sale(), headers=headers)
        assert answer.status_code == 202, answer.text

    async def certify_waiting(self) -> None:
        await SalesThatWait(self.shop.worker, pause=0.0).step()

    # -- the clocks ---------------------------------------------------------------------------------------------------

    async def pass_time(self) -> None:
        self.times.real += self.dice.choice([1, 1000, 20 * MINUTE, 3 * HOUR, DAY, self.dice.randint(1, 4 * DAY)])

    async def go_to_midnight(self) -> None:
        """To the box's, to the millisecond, or the last one before it; now and then to the end of the year."""
        end = day_end(self.at, zone(self.place))
        if self.dice.random() < 0.2 and self.times.real < millis(datetime(2026, 12, 31, tzinfo=UTC)):
            end = millis(datetime(2027, 1, 1, tzinfo=zone(self.place)).astimezone(UTC))
        self.times.real += max(0, end - self.at - self.dice.choice([0, 0, 1]))

    async def set_box(self) -> None:
        self.times.box = self.dice.choice([0, 0, *WRONG, *(-each for each in WRONG)])
        self.is_synchronised = self.dice.random() < 0.2

    async def set_machine(self) -> None:
        self.times.machine = self.dice.choice([0, 0, HOUR, -HOUR, 5 * HOUR, -DAY, 10 * DAY])

    async def set_within_sale(self) -> None:
        """While the machine certifies: between the intent and the outcome."""
        self.number += 1
        sale = asyncio.ensure_future(self.http.post("certify", json=invoice(f"J-{self.number}")))
        await self.shop.stop_at(self.dice.randint(1, 6))
        await self.set_box()
        self.shop.resume()
        answer = await sale
        assert answer.status_code == 200, answer.text

    async def close_over_midnight(self) -> None:
        await self.go_to_midnight()
        self.times.real -= MINUTE
        z = asyncio.ensure_future(self.http.post("reports/z", json={}))
        await self.shop.stop_at(1)
        self.times.real += 2 * MINUTE
        self.shop.resume()
        answer = await z
        assert answer.status_code == 201, answer.text

    async def restart(self) -> None:
        self.is_ended = True

    async def sleep(self, path: Path) -> None:
        """The daemon has ended. A book that is ahead is now and then set right; a box without a battery begins anew."""
        async with opened(path, timezone=zone(self.place)) as store:
            book = self.shop.worker.book
            ahead = store.ledger.peek(book_state, book).last_at - self.times.real
            if ahead > HOUR and self.dice.random() < 0.7:
                by = hours_ahead(self.times.real + ahead, self.times.real)
                await store.decisions.write(repair_time, book, now=self.times.real, ahead=by, reason="wrong")
                self.repairs += 1
                self.times.box = 0
            elif self.dice.random() < 0.4:
                self.times.box = self.dice.choice(ASLEEP) - self.times.real


@contextlib.asynccontextmanager
async def awake(path: Path, walk: Walk, session: LineSession) -> AsyncIterator[Walk]:
    place = zone(walk.place)
    defaults = msgspec.structs.replace(DEFAULTS, series=Series(zone=place), numbers=NumberScope(place))
    clock = BoxClock(lambda: walk.at, lambda: walk.is_synchronised)
    async with served(path, on=session, box=clock, timezone=walk.place, defaults=defaults) as (shop, client):
        walk.shop, walk.http, walk.is_ended = shop, client, False
        await shop.until(lambda: shop.worker.connected or shop.worker.time.question(), "the machine")
        await walk.confirm()
        await shop.connected()
        yield walk


@pytest.mark.long
@pytest.mark.quick_timers
@pytest.mark.parametrize("seed", range(6))
async def test_all_say_the_same_whatever_the_clocks_do(tmp_path: Path, seed: int) -> None:
    """A random history over the end of a year: sales of every kind, in a series, deferred, cash, Zs at and over midnight, clocks of box and machine that are hours, days or years
    apart and jump within a sale, restarts in 1970, repairs."""
    mcfd, dice = Command(tmp_path), random.Random(seed)
    path = mcfd.ledger
    place = dice.choice(["UTC", "UTC", "Africa/Lagos", "America/New_York", "Pacific/Kiritimati"])
    walk = Walk(None, None, dice, place=place)  # type: ignore[arg-type]  # set by `awake`
    session = LineSession(SimulatedMachine(SimulatorOptions(nim=NIM), StoppedClock(walk.times)), plan=FaultPlan("", 0))
    left = 160
    while left:
        async with awake(path, walk, session):
            while left and not walk.is_ended:
                await walk.step()
                left -= 1
            if not left:
                await walk.confirm()
                await settled(walk)
                await check(walk)
                sent = list(await walk.shop.store.outbox.waiting(NIM, "live", 1000))
        if left:
            await walk.sleep(path)
    assert verify(path).problems == ()
    check_headquarters(tmp_path, sent, zone(place))
    check_archives(mcfd, tmp_path / "archives", sent)


async def check(walk: Walk) -> None:
    lines = (await read(walk, "certifications", format="jsonl", **ALL)).text.splitlines()
    journal = [entry for entry in map(json.loads, lines) if "endedAt" in entry]
    assert [entry["endedAt"] for entry in journal] == sorted(entry["endedAt"] for entry in journal)
    zs = await check_zs(walk, journal)
    await check_days(walk, journal, zs)
    await check_ranges(walk, journal)
    await check_calendar(walk, zs)
    await check_articles(walk, journal)
    check_series(journal)
    await check_files(walk, [(f"reports/z/{z['z_number']}", str(z["z_number"])) for z in zs if not moved(z)])


def moved(report_: dict[str, Any]) -> bool:
    """Whether its drawer holds more than sales have brought."""
    return bool(report_["cash"]["deposits"] or report_["cash"]["withdrawals"])


async def check_zs(walk: Walk, journal: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Each Z is what the journal has under its number, the X what is left; each begins where the one before it ends, and all cash is in one of them."""
    closures = await walk.shop.store.ledger.read(closures_between, walk.shop.worker.book, start=0, end=1 << 53)
    zs = [json.loads(each.body) for each in closures]
    x = (await read(walk, "reports/x")).json()
    for number, found in [*((z["z_number"], z) for z in zs), (None, x)]:
        rows = [entry for entry in journal if entry["zNumber"] == number]
        assert figures(found) == report(rows), number
        paid = {line["method"]: line["amount"] for line in found["by_payment"]}
        cash = found["cash"]
        assert cash["expected"] == paid.get("E", 0) + found["stamp_duty"] + cash["deposits"] - cash["withdrawals"]
    for kind in ("deposit", "withdrawal"):
        assert sum(found["cash"][f"{kind}s"] for found in (*zs, x)) == walk.cash[kind]
    history = (await read(walk, "reports", **ALL)).json()["reports"]
    assert [each["z_number"] for each in history] == [z["z_number"] for z in zs] == [*range(1, len(zs) + 1)]
    times = [time for each in history for time in (each["period_start"], each["period_end"])]
    assert times == sorted(times)
    return [z | {"now": each["period_end"]} for z, each in zip(zs, history, strict=True)]


async def check_days(walk: Walk, journal: list[dict[str, Any]], zs: list[dict[str, Any]]) -> None:
    """A, the X of a range, journal and cash of each day, and their sums."""
    place = zone(walk.place)

    def day_of(text: str) -> str:
        return datetime.fromisoformat(text).astimezone(place).date().isoformat()

    moves = (await read(walk, "cash", **ALL)).json()["movements"]
    days = {day_of(entry["endedAt"]) for entry in journal} | {day_of(z["now"]) for z in zs}
    for day in sorted(days | {day_of(move["at"]) for move in moves}):
        range_ = {"from": day, "to": day}
        rows = [entry for entry in journal if day_of(entry["endedAt"]) == day]
        lines = (await read(walk, "certifications", format="jsonl", **range_)).text.splitlines()
        assert [json.loads(line) for line in lines if "endedAt" in line] == rows
        a, x = [(await read(walk, f"reports/{kind}", **range_)).json() for kind in "ax"]
        assert figures(a) == figures(x) == report(rows), day
        assert [each["z_number"] for each in a["closures"]] == [z["z_number"] for z in zs if day_of(z["now"]) == day]
        own = [move for move in moves if day_of(move["at"]) == day]
        for kind in ("deposit", "withdrawal"):
            assert a["cash"][f"{kind}s"] == sum(move["amount"] for move in own if move["kind"] == kind)
        sales = [entry["fvc"] for entry in rows if entry["fvc"] and entry["invoiceType"] not in ("FA", "EA")]
        if sales:
            assert (x["fvc_start"], x["fvc_end"]) == (min(sales), max(sales))
    assert sum(move["amount"] for move in moves) == sum(walk.cash.values())


async def check_ranges(walk: Walk, journal: list[dict[str, Any]]) -> None:
    """A and the X of any range, to the millisecond of a sale or of the one before it."""
    ends = [entry["endedAt"] for entry in journal]
    moments = [*ends, *(millis_text(millis(datetime.fromisoformat(end)) - 1) for end in ends)]
    for _ in range(25):
        start, end = sorted(walk.dice.sample(moments, 2))
        rows = [entry for entry in journal if start <= entry["endedAt"] < end]
        a, x = [(await read(walk, f"reports/{kind}", **{"from": start, "to": end})).json() for kind in "ax"]
        assert figures(a) == figures(x) == report(rows), (start, end)


async def check_calendar(walk: Walk, zs: list[dict[str, Any]]) -> None:
    """Each Z is in one month and one year: its own, or that of the clock that was set right after the closure."""
    place = zone(walk.place)
    for kind in ("month", "year"):
        closed = (await read(walk, f"reports/{kind}", limit=1000)).json()["reports"]
        after, total = 0, 0
        for found in closed:
            upto = found["last_z"] or after
            own = [z for z in zs if after < z["z_number"] <= upto]
            assert (found["z_count"], found["first_z"]) == (len(own), own[0]["z_number"] if own else None)
            for figure in ("total_ttc", "total_ht", "total_tva", "certs_count", "incomplete", "stamp_duty"):
                assert found[figure] == sum(z[figure] for z in own), figure
            for figure in ("deposits", "withdrawals"):
                assert found["cash"][figure] == sum(z["cash"][figure] for z in own)
            total += found["total_ttc"]
            assert found["grand_total"]["total_ttc"] == total
            for z in own:
                times = (millis(datetime.fromisoformat(z[time])) for time in ("now", "created_at"))
                assert found["period"] in {month_of(at, place)[: len(found["period"])] for at in times}
            after = upto
        if kind == "month" and closed and zs and not walk.repairs:
            assert len({each["period"] for each in closed}) == len(closed)


async def check_articles(walk: Walk, journal: list[dict[str, Any]]) -> None:
    """The closed ones and what came since are all that was sold."""
    whole = (await read(walk, "reports/articles", **ALL)).json()
    expected = report(journal)
    assert (whole["total_ttc"], whole["certs_count"]) == (expected["total_ttc"], expected["certs_count"])
    await walk.close_articles()
    number, total = 1, 0
    while (answer := await walk.http.get(f"reports/articles/{number}")).status_code == 200:
        total, number = total + answer.json()["total_ttc"], number + 1
    assert total == expected["total_ttc"]


def check_series(journal: list[dict[str, Any]]) -> None:
    """Of each type and year, without a gap."""
    series: dict[str, list[int]] = {}
    for entry in journal:
        head, _, place = entry["invoiceNumber"].rpartition("-")
        if head.count("-") == 1 and entry["state"] == "certified":
            series.setdefault(head, []).append(int(place))
    for name, places in series.items():
        assert sorted(places) == [*range(1, len(places) + 1)], name


def check_headquarters(folder: Path, sent: Sequence[Outgoing], place: tzinfo) -> None:
    """It takes all, finds nothing wrong, and has the same sum."""
    box, store = PaperBox(), HqStore(f"sqlite:///{folder}/hq.sqlite3")
    store.open()
    store.register.add(box.nim, box.key.public, now=BEGIN)
    received = []
    for entry in sent:
        body = compose(entry)
        message = Message(via="nats", headers=sign([box.key], entry.report_id, BEGIN // 1000, body), body=body)
        received.append(receive(message, store.register.ring(), now=BEGIN / 1000, zone=place))
    assert set(store.closures.store(received, now=BEGIN)) <= {StoreOutcome.STORED}
    assert [each.facts for each in store.findings.listed(is_open=True)] == []
    zs = [each.data.total_ttc for each in received if isinstance(each, Received)]
    assert sum(day.ttc for day in store.figures.totals("1970-01-01", "2300-01-01").values()) == sum(zs)
    store.close()


def check_archives(mcfd: Command, into: Path, sent: Sequence[Outgoing]) -> None:
    """Each closure of a year has one, which verifies, and each Z of a closed year is in one of them."""
    closed = [json.loads(entry.body) for entry in sent if entry.kind == "year"]
    for year in {each["period"] for each in closed}:
        mcfd.ok("archive", year, "--into", str(into))
    found: list[int] = []
    for each in closed:
        (archive,) = into.glob(f"mcfd-archive-{each['period']}-*-{each['number']}.tar")
        with tarfile.open(archive) as file:
            content = file.extractfile("chain.jsonl.gz")
            assert content
            lines = map(json.loads, gzip.decompress(content.read()).splitlines())
        upto = each["last_z"] or 0
        found += [line["z_number"] for line in lines if line["kind"] == "closure" and line["z_number"] <= upto]
    assert found == [*range(1, len(found) + 1)]
