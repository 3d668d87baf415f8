"""Clients that know nothing of the relay, with nothing but their address changed."""

import asyncio

import pytest
from avepay.mcf import AvePay
from avepay_mcf import Mcf
from support.published import sale
from support.receivers.nats_server import NIM
from support.relay_site import RelaySite
from support.shop import invoice, wait_for

pytestmark = pytest.mark.long


async def test_the_published_client(site: RelaySite) -> None:
    """`avepay-mcf` as it is published: it sells, reads and closes through the relay, and each sale is certified once."""
    key = site.key()

    def day() -> tuple[list[str], int]:
        client = AvePay(key, base_url=site.relays[0].base, isf="SFE-1")
        mcf = client.mcf(NIM)
        wait_for(lambda: site.relays[0].log.count('"status":200') or _answers(mcf), "the box")
        receipts = [mcf.certify(**sale(1000 + number)) for number in range(5)]
        client.close()
        return [receipt.sig for receipt in receipts], sum(receipt.total_ttc for receipt in receipts)

    codes, total = await asyncio.to_thread(day)
    assert [entry["code"] for entry in site.shop.machines[0].certified()] == codes
    assert (await asyncio.to_thread(site.shop.x_with, 5))["total_ttc"] == total


async def test_our_client(site: RelaySite) -> None:
    """`clients/python`, which repeats what had no answer: once more through another relay, when the first one is gone."""
    key = site.key()
    await asyncio.to_thread(site.relays[1].start)

    def sell(relay: int) -> str:
        with Mcf(site.relays[relay].base, key, NIM, till="erp") as mcf:
            return mcf.certify(invoice("ERP-1")).code_secef

    first = await asyncio.to_thread(sell, 0)
    site.relays[0].kill()
    assert await asyncio.to_thread(sell, 1) == first
    assert len(site.shop.machines[0].certified()) == 1


def _answers(mcf: object) -> bool:
    try:
        mcf.info()  # type: ignore[attr-defined]  # of either client
    except Exception:  # noqa: BLE001  # the box is not connected yet
        return False
    return True
