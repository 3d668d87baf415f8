"""`python -m bench.fleet`: a chain's week in minutes. Boxes of all regions send, a week's outage comes back at once, instances, the
stream's leader and PostgreSQL are killed at random; then every closure is counted and every finding compared with what was
really left out."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import random
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from subprocess import Popen
from typing import Any

import msgspec
from support.hq.paper_box import PaperBox

from bench.fleet.boxes import left_out, nim_of
from bench.fleet.page import first_view
from bench.fleet.site import FleetSite, connected, cpu_of_all, cpu_seconds, until
from exchange.cancellation import ended
from headquarters.core.checks import missing
from headquarters.core.held import machine_of
from headquarters.store.store import Store

DEADLINE = 1800.0
PRESENCES_A_SECOND = 10_000 / 300
WATCH_SECONDS = 1.0
GROUPS = 3
"""Of boxes: one for each phase."""


@dataclass(frozen=True)
class Plan:
    boxes: int
    days: int
    servers: int = 3
    instances: int = 2
    regions: int = 2
    permille: int = 3
    kills: int = 6
    seed: int = 1
    presences: int = 1000
    idle: float = 10.0
    rows: int = 0
    cores: int = 0
    again_after: float = 0.0
    lasting: bool = True
    """Whether PostgreSQL waits for its disk."""


@dataclass
class Result:
    closures: int = 0
    drained: int = 0
    live: int = 0
    publish_seconds: float = 0.0
    drain_seconds: float = 0.0
    live_seconds: float = 0.0
    cpu: dict[str, float] = field(default_factory=dict)
    drain_cpu: dict[str, float] = field(default_factory=dict)
    peak_mib: int = 0
    presence_core_percent: float = 0.0
    idle_core_percent: float = 0.0
    page_ms: float = 0.0
    kills: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    published: int = 0
    """of the first phase, while nobody drained"""
    taken: dict[str, list[tuple[float, int]]] = field(default_factory=dict)
    """By phase: closures that were in the table so many seconds after its beginning."""
    load: float = 0.0
    """The load average at the end: what ran beside it made each closure dearer."""


@dataclass(frozen=True)
class Run:
    plan: Plan
    result: Result


async def run(plan: Plan, directory: Path) -> Result:
    """Everything that is not as it has to be is in `wrong`."""
    result = Result()
    site = FleetSite(
        directory,
        plan.servers,
        plan.instances,
        cores=plan.cores,
        again_after=plan.again_after,
        lasting=plan.lasting,
    )
    try:
        await site.up()
        site.add_boxes(GROUPS * plan.boxes)
        await _outage(site, plan, result)
        await _storm(site, plan, result)
        await _live(site, plan, result)
        await asyncio.to_thread(_reckon, site, plan, result)
        result.presence_core_percent = await _presence(site, plan, result)
        if plan.rows:
            result.page_ms = await asyncio.to_thread(first_view, site, plan.rows)
    finally:
        site.close()
    result.peak_mib = max(site.peaks) // 1024
    result.load = os.getloadavg()[0]
    return result


async def _outage(site: FleetSite, plan: Plan, result: Result) -> None:
    """Headquarters is away while all send; then it comes, and drains."""
    sent = await _sent(await _ready(site, plan, group=0))
    result.published, result.publish_seconds = sent.count, sent.seconds
    for instance in site.instances:
        instance.start()
    # One of them was up before the others, and has begun.
    began, before, already = time.monotonic(), cpu_of_all(site), site.count()
    async with _watched(site, "drained", result, already):
        await until("drained", lambda: site.count() == sent.count, DEADLINE)
    result.drain_seconds = time.monotonic() - began
    result.drain_cpu = {what: used - before[what] for what, used in cpu_of_all(site).items()}
    result.closures, result.drained = sent.count, sent.count - already


async def _storm(site: FleetSite, plan: Plan, result: Result) -> None:
    """Other boxes send, and everything is killed in turn, headquarters, PostgreSQL and the leader of the stream."""
    regions = await _ready(site, plan, group=1)
    killing = asyncio.create_task(_kill(site, plan, result))
    async with _watched(site, "killed", result, result.closures):
        result.closures += (await _sent(regions)).count
        await killing
        await until("taken", lambda: site.count() == result.closures, DEADLINE)


async def _live(site: FleetSite, plan: Plan, result: Result) -> None:
    """Others again, and nobody is killed: this is the speed of all of it together."""
    regions = await _ready(site, plan, group=2)
    before = cpu_of_all(site)
    began = time.monotonic()
    async with _watched(site, "live", result, result.closures):
        sent = await _sent(regions)
        result.live = sent.count
        result.closures += sent.count
        await until("taken", lambda: site.count() == result.closures, DEADLINE)
    result.live_seconds = time.monotonic() - began
    result.cpu = {what: used - before[what] for what, used in cpu_of_all(site).items()}
    result.cpu["boxes, which send what is ready"] = sent.cpu


@contextlib.asynccontextmanager
async def _watched(site: FleetSite, phase: str, result: Result, already: int) -> AsyncIterator[None]:
    """Once a second how many closures are in the table beside those that were there already; not while PostgreSQL is away."""
    began = time.monotonic()
    points = result.taken[phase] = [(0.0, 0)]

    async def watch() -> None:
        while True:
            await asyncio.sleep(WATCH_SECONDS)
            if (count := await asyncio.to_thread(site.count) - already) >= points[-1][1]:
                points.append((round(time.monotonic() - began, 2), count))

    watching = asyncio.create_task(watch())
    try:
        yield
    finally:
        await ended(watching)
    points.append((round(time.monotonic() - began, 2), await asyncio.to_thread(site.count) - already))


async def _ready(site: FleetSite, plan: Plan, group: int) -> list[Popen[str]]:
    """Regions whose closures are made, and which have sent none."""
    first = group * plan.boxes
    ends = [first + plan.boxes * n // plan.regions for n in range(plan.regions + 1)]
    task = {"days": plan.days, "seed": plan.seed, "permille": plan.permille}
    regions = [site.region(first=a, end=b, **task) for a, b in pairwise(ends)]
    for region in regions:
        assert region.stdout is not None
        assert await asyncio.to_thread(region.stdout.readline) == "ready\n"
    return regions


@dataclass
class Sent:
    count: int
    cpu: float
    seconds: float


async def _sent(regions: list[Popen[str]]) -> Sent:
    began = time.monotonic()
    for region in regions:
        assert region.stdin is not None
        region.stdin.write("send\n")
        region.stdin.flush()
    said = [json.loads((await asyncio.to_thread(region.communicate))[0]) for region in regions]
    return Sent(sum(one["sent"] for one in said), sum(one["cpu"] for one in said), time.monotonic() - began)


async def _kill(site: FleetSite, plan: Plan, result: Result) -> None:
    chance = random.Random(plan.seed)
    for number in range(plan.kills):
        await asyncio.sleep(chance.uniform(0.2, 1.5))
        what = ("instance", "postgresql", "leader")[number % 3]
        result.kills.append(what)
        if what == "instance":
            await asyncio.to_thread(site.kill_instance, chance.randrange(plan.instances))
        elif what == "postgresql":
            await asyncio.to_thread(site.kill_postgresql)
        else:
            await site.kill_leader()


def _reckon(site: FleetSite, plan: Plan, result: Result) -> None:
    """Every closure once, none lost, and the findings exactly what was left out."""
    store = Store(site.url)
    found = store.findings.listed(is_open=True, limit=10_000_000)
    gaps = {(one.machine, one.facts["first"], one.facts["last"]) for one in found if one.kind == "gap"}
    others = [one for one in found if one.kind not in ("gap", "late")]
    expected = set()
    for number in range(GROUPS * plan.boxes):
        gone = left_out(plan.seed, number, plan.days, plan.permille)
        numbers = [z for z in range(1, plan.days + 1) if z not in gone]
        expected |= {(machine_of(nim_of(number)), a, b) for a, b in missing(numbers, plan.days)}
    if gaps != expected:
        result.wrong.append(f"gaps: {len(gaps - expected)} too many, {len(expected - gaps)} not found")
    if others:
        result.wrong.append(f"{len(others)} findings that nothing was done for, as {others[0].kind} {others[0].facts}")
    if store.figures.count() != result.closures:
        result.wrong.append(f"{store.figures.count()} closures instead of {result.closures}")
    store.close()


async def _presence(site: FleetSite, plan: Plan, result: Result) -> float:
    """What the presence of 10 000 boxes, each every five minutes, takes of one core: `presences` of them at that pace, each on both of its
    ways, with all that two instances do beside it."""
    client = await connected(site, site.nats.other_shop)
    pids = [instance.pid for instance in site.instances]
    result.idle_core_percent = await _used(pids, asyncio.sleep(plan.idle))
    percent = await _used(pids, _speak(client, plan))
    await client.close()
    return percent


async def _used(pids: list[int], work: Awaitable[None]) -> float:
    """Percent of a core that these processes take while it is done."""
    before, began = sum(cpu_seconds(pid) for pid in pids), time.monotonic()
    await work
    return 100 * (sum(cpu_seconds(pid) for pid in pids) - before) / (time.monotonic() - began)


async def _speak(client: Any, plan: Plan) -> None:
    began, asked = time.monotonic(), []
    for number in range(plan.presences):
        asked.append(asyncio.create_task(_ask(client, PaperBox(nim_of(number % plan.boxes)), plan.days)))
        await asyncio.sleep(max(0.0, began + number / PRESENCES_A_SECOND - time.monotonic()))
    await asyncio.gather(*asked)


async def _ask(client: Any, box: PaperBox, z: int) -> None:
    headers, body = box.sent_presence(box.presence(z=z))
    await client.publish(f"mcf.{box.nim}.presence", body, headers=headers)
    await client.request(f"mcf.{box.nim}.ask", body, headers=headers, timeout=20)


def _together(plan: Plan) -> str:
    if plan.cores:
        return f"cluster, headquarters and PostgreSQL together, on {plan.cores} cores"
    return "boxes, cluster, headquarters and PostgreSQL together"


def _work(cpu: dict[str, float], closures: int) -> list[tuple[str, str]]:
    return [
        (f"of that, {what}", f"{1e6 * used / max(1, closures):.0f} µs of a core a closure")
        for what, used in cpu.items()
    ]


def shown(plan: Plan, result: Result) -> str:
    rows = [
        (f"boxes × days, {GROUPS} times", f"{plan.boxes} × {plan.days}"),
        ("closures", f"{result.closures}"),
        ("published by the boxes", f"{result.published / result.publish_seconds:.0f} a second"),
        (
            "drained after the outage",
            f"{result.drained} in {result.drain_seconds:.1f} s, {result.drained / result.drain_seconds:.0f} a second",
        ),
        *_work(result.drain_cpu, result.drained),
        ("killed while others sent", ", ".join(result.kills) or "nobody"),
        (_together(plan), f"{result.live / result.live_seconds:.0f} a second"),
        *_work(result.cpu, result.live),
        ("largest instance", f"{result.peak_mib} MB"),
        ("presence of 10 000 boxes", f"{result.presence_core_percent:.1f} % of a core"),
        ("instances with nothing to do", f"{result.idle_core_percent:.1f} % of a core"),
        ("wrong", "; ".join(result.wrong) or "nothing"),
    ]
    if plan.rows:
        rows.append((f"first view of the page on {plan.rows} closures", f"{result.page_ms:.0f} ms"))
    return "\n".join(["| | |", "|---|---|", *(f"| {name} | {value} |" for name, value in rows)])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    for name, default in (("boxes", 10_000), ("days", 30), ("servers", 3), ("instances", 2), ("kills", 6), ("seed", 1)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument(
        "--cores", type=int, default=0, help="all but the boxes on so many cores, the boxes on the others"
    )
    parser.add_argument("--rows", type=int, default=0, help="closures that the page's first view is measured on")
    parser.add_argument("--out", type=Path, help="a file for bench.fleet.report")
    said = vars(parser.parse_args())
    out = said.pop("out")
    plan = Plan(**said)
    with tempfile.TemporaryDirectory(prefix="fleet-") as directory:
        result = asyncio.run(run(plan, Path(directory)))
    print(shown(plan, result))
    if out is not None:
        out.write_bytes(msgspec.json.encode(Run(plan, result)))
    return 1 if result.wrong else 0
