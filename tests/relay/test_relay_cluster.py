"""The three nats-servers of `three.conf`, which die one after the other, and all at once, while tills outside sell."""

import asyncio
from pathlib import Path

import httpx
import pytest
from support.receivers.headquarters import until
from support.receivers.nats_server import NIM, NatsCluster
from support.relay_site import bearer, check_once, running, until_answered
from support.shop import invoice

pytestmark = pytest.mark.long


async def test_servers_that_die_in_turn(tmp_path: Path, http: httpx.AsyncClient) -> None:
    """Through two relays, each till until it has its answer: all of them go on, each sale is certified once, and the closure goes through."""
    async with running(tmp_path, three=True) as site:
        keys = [site.key(), site.key()]
        await asyncio.to_thread(site.relays[1].start)
        urls = [f"{relay.base}/v1/mcf/{NIM}" for relay in site.relays]
        receipts: dict[str, dict] = {}
        is_over = False

        async def sell(till: int) -> None:
            number = 0
            while not is_over:
                number += 1
                name, url = f"{till}-{number}", f"{urls[number % 2]}/certify"
                sale = {"json": invoice(f"F-{name}"), "headers": bearer(keys[till], name)}
                answer = await until_answered(http, "POST", url, **sale)
                assert answer.status_code == 200, answer.text
                receipts[name] = answer.json()

        async def goes_on() -> None:
            count = len(receipts)
            await until(lambda: len(receipts) > count + 5)

        selling = [asyncio.create_task(sell(till)) for till in (0, 1)]
        await goes_on()
        assert isinstance(site.server, NatsCluster)
        for server in site.server.servers:
            server.kill()
            await goes_on()
            await server.up()
        site.server.kill()
        await site.server.up()
        await goes_on()
        is_over = True
        await asyncio.gather(*selling)
        check_once(site.shop, receipts)
        await asyncio.to_thread(site.shop.close_period)
        await until(lambda: site.shop.events("closure.delivered"))
