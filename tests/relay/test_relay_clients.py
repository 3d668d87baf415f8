"""Clients through the relay, with nothing but their address changed: our own, by a key that is sent or that signs, and the published one."""

import asyncio
from pathlib import Path

import pytest
from avepay.mcf import AvePay
from avepay_mcf import Mcf, NotAllowed
from support.published import sale
from support.receivers.nats_server import NIM
from support.relay_site import RelaySite, running
from support.shop import invoice, wait_for


@pytest.mark.parametrize(("signed", "jwt"), [(False, False), (True, False), (True, True)])
async def test_a_day_of_the_client(tmp_path: Path, signed: bool, jwt: bool) -> None:
    """It previews, certifies, reads and closes as on the shop's network, also with the JWTs that `mcfd-hq nats` makes."""
    async with running(tmp_path, jwt=jwt) as site:
        key = site.key(signed=signed)

        def day() -> None:
            with Mcf(site.relays[0].base, key, NIM, till="erp") as till:
                assert till.preview(invoice("F-1")).total_ttc == 15_000
                receipt = till.certify(invoice("F-1"))
                assert till.certify(invoice("F-1")) == receipt
                found = till.find_request("erp-certify-F-1")
                assert found.receipt == receipt
                assert till.get("certifications", invoiceNumber="F-1")["count"] == 1
                assert "15" in till.ticket(receipt.code_secef)
                assert till.move_cash("deposit", 5000, "fond de caisse", key="1")["amount"] == 5000
                assert till.close_period(key="1")["certs_count"] == 1
            with (
                Mcf(site.relays[0].base, key[:10] + "AAAAAA" + key[16:], NIM, till="erp") as stranger,
                pytest.raises((NotAllowed, ValueError)),
            ):
                stranger.get("info")

        await asyncio.to_thread(day)
        assert site.shop.machines[0].counters == (1, 1, 0)


@pytest.mark.long
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


def _answers(mcf: object) -> bool:
    try:
        mcf.info()  # type: ignore[attr-defined]  # of either client
    except Exception:  # noqa: BLE001  # the box is not connected yet
        return False
    return True
