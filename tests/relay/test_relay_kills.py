"""Each step of a sale through the relay, and at it a process that is killed: each sale is certified once, and no relay sends a request twice."""

import asyncio
import json
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Literal, NamedTuple

import httpx
import pytest
from support.crash.lane import AtCommit, AtFrame, When
from support.receivers.headquarters import until
from support.receivers.nats_server import NIM, OTHER
from support.relay_site import RelaySite, bearer, check_once
from support.shop import Shop, invoice

Victim = Literal["relay", "box", "nats"]
PATIENCE = 90.0
TRY_SECONDS = 20.0


class AtMessage(NamedTuple):
    """Before a relay sends the call, or a box its answer; or after that."""

    of: Literal["call", "reply"]
    when: When


STEPS = (
    AtMessage("call", "before"),
    AtMessage("call", "after"),
    AtCommit(1, "before"),
    AtCommit(1, "after"),
    AtFrame(6, "before", "in"),
    AtFrame(6, "after", "in"),
    AtCommit(2, "before"),
    AtCommit(2, "after"),
    AtMessage("reply", "before"),
    AtMessage("reply", "after"),
)
"""The call, the box's intent, 38h, the outcome, the answer."""


class ArmedSite(RelaySite):
    """Two boxes and two relays, of which each sale's first try goes through the first one, to the first box."""

    def __init__(self, directory: Path) -> None:
        self._orders = {of: directory / of for of in ("call", "reply", "commit")}
        orders = {"order": self._orders["reply"], "commits": self._orders["commit"], "log": directory / "replies"}
        armed = {name: str(path) for name, path in orders.items()}
        super().__init__(directory, two=True, first=("support.crash.at_publish", "arm_box", armed))
        assert self.other is not None
        self.boxes: dict[str, Shop] = {NIM: self.shop, OTHER: self.other}
        for number, relay in enumerate(self.relays):
            order = self._orders["call"] if number == 0 else directory / "no-order"
            relay.first = (
                "support.crash.at_publish",
                "arm_relay",
                {"order": str(order), "log": str(directory / f"calls-{number}")},
            )
        self.lane_keys: dict[str, str] = {}

    async def up(self) -> None:
        await super().up()
        self.relays[1].start()
        self.lane_keys = {nim: self.key("seller", shop=shop) for nim, shop in self.boxes.items()}

    def pid(self, victim: Victim) -> int:
        return {"relay": self.relays[0].pid, "box": self.shop.pid, "nats": self.server.pid}[victim]

    async def kill_at(self, step: AtMessage | AtCommit | AtFrame, victim: Victim) -> None:
        """Once the step is there."""
        if isinstance(step, AtFrame):
            machine = self.shop.machines[0]
            machine.order("pause-at", next=step.frame, when=step.when, direction=step.direction)
            await until(machine.is_stopped)
            self.end(victim)
            machine.order("resume")
            return
        name = step.of if isinstance(step, AtMessage) else "commit"
        order = {"when": step.when, "pid": self.pid(victim)}
        if isinstance(step, AtCommit):
            order["commit"] = step.commit
        self._orders[name].write_text(json.dumps(order))
        await until(lambda: not self._orders[name].exists())
        self.end(victim)

    def end(self, victim: Victim) -> None:
        {"relay": self.relays[0].kill, "box": self.shop.kill_daemon, "nats": self.server.kill}[victim]()

    async def again(self, victim: Victim) -> None:
        if victim == "nats":
            await self.server.up()
        else:
            await asyncio.to_thread(
                self.relays[0].start if victim == "relay" else partial(self.shop.start_daemon, ready=False)
            )

    def sent(self) -> list[str]:
        """By either relay, each try by its id."""
        logs = (self.directory / f"calls-{number}" for number in range(len(self.relays)))
        return [line for log in logs if log.exists() for line in log.read_text().split()]


@pytest.fixture
async def armed(tmp_path: Path) -> AsyncIterator[ArmedSite]:
    site = ArmedSite(tmp_path)
    try:
        await site.up()
        yield site
    finally:
        site.down()


async def sold(site: ArmedSite, http: httpx.AsyncClient, nim: str, name: str) -> dict:
    """The receipt; the same request with the same key until there is one, through one relay and the other in turn."""
    tries = 0
    async with asyncio.timeout(PATIENCE):
        while True:
            relay, once = site.relays[tries % 2], f"{name}-{tries}"
            tries += 1
            try:
                answer = await http.post(
                    f"{relay.base}/v1/mcf/{nim}/certify",
                    json=invoice(name),
                    headers=bearer(site.lane_keys[nim], name, **{"X-Request-ID": once}),
                    timeout=TRY_SECONDS,
                )
            except httpx.TransportError:
                await asyncio.sleep(0.1)
                continue
            assert answer.status_code in (200, 503, 504), answer.text
            if answer.status_code == 200:
                return answer.json()
            await asyncio.sleep(0.1)


@pytest.mark.timeout(400)
@pytest.mark.long
@pytest.mark.parametrize("victim", ["relay", "box", "nats"])
async def test_killed_at_each_step(armed: ArmedSite, http: httpx.AsyncClient, victim: Victim) -> None:
    """Each key has its receipt, of its own box, which stands there once; the retry was the client's alone."""
    receipts: dict[str, dict[str, dict]] = {NIM: {}, OTHER: {}}

    async def sell(nim: str, name: str) -> None:
        receipts[nim][name] = await sold(armed, http, nim, name)

    await asyncio.gather(*(sell(nim, f"{nim}-first") for nim in receipts))
    for step in STEPS:
        name = "-".join(map(str, step))
        try:
            async with asyncio.timeout(PATIENCE), asyncio.TaskGroup() as group:
                killing = group.create_task(armed.kill_at(step, victim))
                await asyncio.sleep(0)
                for nim in receipts:
                    group.create_task(sell(nim, f"{nim}-{name}"))
                await killing
                await armed.again(victim)
        except BaseException as error:
            error.add_note(f"{victim} at {step}")
            raise
    for nim, box in armed.boxes.items():
        assert len(receipts[nim]) == len(STEPS) + 1
        check_once(box, receipts[nim])
    sent = armed.sent()
    assert len(sent) == len(set(sent))
    assert len(sent) >= 2 * (len(STEPS) + 1)
