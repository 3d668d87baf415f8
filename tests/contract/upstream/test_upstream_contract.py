"""What every kind of headquarters has to do, shown on real ones: a process with HTTP, a nats-server with JetStream."""

import asyncio
import contextlib
import gc
import json
import random
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import get_args

import pytest
from jsonschema import Draft202012Validator
from nats_sending import compose_here
from support.ledgers.outbox import make_outgoing
from support.processor import within
from support.receivers.headquarters import KINDS, Headquarters, closures, started, until, z_numbers

from common.turns import ended
from common.wire.upstream_kinds import KINDS as ADAPTERS
from common.wire.upstream_kinds import UpstreamKindName
from daemon.core.delivery import Delivered, RetryLater, UpstreamReceiver
from daemon.upstream.options import open_receiver
from daemon.usecases.delivery.replicate import Backoff, Replicator

SCHEMA = json.loads((Path(__file__).parents[3] / "docs" / "closure-event.schema.json").read_text())
SEED = 20_251_206
NIM, OTHER = "EL02000015-1", "EL02000016-1"


@pytest.fixture(params=[pytest.param(kind, marks=[pytest.mark.long] * (kind == "https-v1a")) for kind in KINDS])
async def headquarters(request, tmp_path) -> AsyncIterator[Headquarters]:
    async with started(KINDS[request.param](tmp_path)) as server:
        yield server


@pytest.fixture
async def receiver(headquarters) -> AsyncIterator[UpstreamReceiver]:
    """And nothing of what goes wrong on the way may end in the loop's exception handler."""
    unhandled: list[dict] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: unhandled.append(context))
    opened = open_receiver(headquarters.kind, headquarters.options)
    yield opened
    await opened.aclose()
    await asyncio.sleep(0)
    gc.collect()
    assert unhandled == []


@contextlib.asynccontextmanager
async def replicating(ledger, receiver):
    backoff = Backoff(first=0.02, most=0.1, dice=random.Random(SEED).random)
    replicator = Replicator(
        ledger.outbox,
        ledger.outbox.waiting,
        receiver,
        compose_here,
        clock=lambda: time.time_ns() // 1_000_000,
        backoff=backoff,
    )
    task = asyncio.create_task(replicator.run())
    try:
        yield replicator
    finally:
        await ended(task)


async def assert_complete(headquarters, counts: dict[str, int]) -> None:
    """All of them, each once, in order per machine, as the schema says."""
    events = closures(await headquarters.events())
    for nim, count in counts.items():
        assert z_numbers(events, nim) == list(range(1, count + 1))
    assert len(events) == sum(counts.values())
    for event in events[:50]:
        Draft202012Validator(SCHEMA, format_checker=Draft202012Validator.FORMAT_CHECKER).validate(event)


def test_every_adapter_is_in_this_suite():
    """A new kind in the table is not done before it stands here."""
    assert {name.split("-")[0] for name in KINDS} == set(ADAPTERS) == set(get_args(UpstreamKindName))


async def test_first_try(headquarters, receiver):
    """A closure is there at the first try, byte for byte as composed."""
    entry = make_outgoing()
    assert (
        await receiver.deliver(compose_here(entry), report_id=entry.report_id, subject="closure", nim=NIM)
        == Delivered()
    )
    assert await headquarters.events() == [json.loads(compose_here(entry))]


async def test_delivered_again(headquarters, receiver):
    """The same closure a second time is delivered too, and headquarters has it once."""
    entry = make_outgoing()
    for _ in range(3):
        outcome = await receiver.deliver(compose_here(entry), report_id=entry.report_id, subject="closure", nim=NIM)
        assert outcome == Delivered()
    await assert_complete(headquarters, {NIM: 1})


async def test_nobody_there(headquarters, receiver):
    """Without headquarters a try ends soon, and as "again"."""
    headquarters.kill()
    entry = make_outgoing()
    with within(5):
        outcome = await receiver.deliver(compose_here(entry), report_id=entry.report_id, subject="closure", nim=NIM)
    assert isinstance(outcome, RetryLater)
    assert outcome.error


async def test_down_for_a_while(headquarters, receiver, ledger):
    """What was closed while headquarters was down arrives when it is back, in order."""
    headquarters.kill()
    await ledger.add(NIM, 5)
    await ledger.add(OTHER, 3)
    async with replicating(ledger, receiver):
        await until(lambda: all(ledger.rows(nim)[0]["tries"] >= 2 for nim in (NIM, OTHER)))
        assert set(ledger.states()) == {"waiting"}
        await headquarters.up()
        await until(ledger.is_sent)
    await assert_complete(headquarters, {NIM: 5, OTHER: 3})


async def test_killed_midway(headquarters, receiver, ledger_with):
    """Headquarters is killed in the middle of a long row and comes back: nothing is lost, nothing changes places."""
    ledger = await ledger_with({NIM: 80, OTHER: 80})
    async with replicating(ledger, receiver):
        await until(lambda: ledger.sent() > 20, every=0.001)
        headquarters.kill()
        left = ledger.states().count("waiting")
        assert left > 0
        await until(lambda: ledger.states().count("waiting") and any(row["tries"] for row in ledger.rows()))
        await headquarters.up()
        await until(ledger.is_sent)
    await assert_complete(headquarters, {NIM: 80, OTHER: 80})


@pytest.mark.long
@pytest.mark.parametrize("headquarters", ["https-v1a", "nats"], indirect=True)
async def test_a_thousand_waiting(headquarters, receiver, ledger_with):
    """Of two machines: all arrive, in order per machine, each once, by both ways."""
    ledger = await ledger_with({NIM: 500, OTHER: 500})
    async with replicating(ledger, receiver):
        await until(ledger.is_sent, deadline=90, every=0.2)
    await assert_complete(headquarters, {NIM: 500, OTHER: 500})


async def test_the_sender_restarts_midway(headquarters, receiver, ledger_with):
    """Replication stops at any point and begins anew from the outbox: at most a repetition, which headquarters knows."""
    dice = random.Random(SEED)
    ledger = await ledger_with({NIM: 200})
    patience = 0.02  # growing, so that a busy box gets as far as a connection at all, and soon
    while "waiting" in ledger.states():
        async with replicating(ledger, receiver):
            await asyncio.sleep(dice.uniform(0.001, patience))
        patience *= 1.1
    await assert_complete(headquarters, {NIM: 200})


async def test_a_closure_just_stored(headquarters, receiver, ledger):
    """A Z is there at once, not at the next round: `wake` is all it takes, for the first Z of a machine too."""
    async with replicating(ledger, receiver) as replicator:
        await asyncio.sleep(0.05)
        for count in (1, 2):
            await ledger.add(NIM)
            with within(2, headquarters.pid):
                replicator.wake(NIM, "live")
                await until(lambda count=count: ledger.states() == ["sent"] * count, every=0.001)
    await assert_complete(headquarters, {NIM: 2})


async def test_replayed(headquarters, receiver, ledger):
    """Closures sent again from a number on change nothing at headquarters, whatever it already holds."""
    await ledger.add(NIM, 5)
    async with replicating(ledger, receiver) as replicator:
        await until(ledger.is_sent)
        assert await ledger.outbox.replay(nim=NIM, from_z=2, at=1) == 4
        replicator.wake(NIM, "live")
        await until(ledger.is_sent)
    await assert_complete(headquarters, {NIM: 5})
