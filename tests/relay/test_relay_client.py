"""Our own client through the relay, by a key that is sent and by one that signs."""

import asyncio
from pathlib import Path

import pytest
from avepay_mcf import Mcf, NotAllowed
from support.receivers.nats_server import NIM
from support.relay_site import running
from support.shop import invoice


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
