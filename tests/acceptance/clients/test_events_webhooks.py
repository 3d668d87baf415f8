"""Webhooks from a running daemon to a real receiver, checked by the published client's own verifier."""

import asyncio
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from avepay.mcf import AvePay
from support.processor import within
from support.receivers.hooks import Receiver
from support.shop import NIM, Shop, invoice, wait_for
from support.till import certified, fresh


@pytest.fixture
def receiver(tmp_path: Path) -> Iterator[Receiver]:
    with Receiver(tmp_path) as found:
        yield found


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    with Shop(tmp_path) as shop:
        yield shop


def sold(receiver: Receiver, count: int) -> list[str]:
    """Codes of the certifications that arrived, once there are so many."""
    wait_for(lambda: len(receiver.of("cert.issued")) >= count, f"{count} certifications at the receiver")
    return [data["codeSecef"] for data in receiver.of("cert.issued")]


def test_the_published_client_accepts_them(shop: Shop, receiver: Receiver) -> None:
    """Its verifier, given the raw body, the header and the secret as it stands in the file, gives back type and data; and it
    refuses a body that was touched. (The receiver has checked the Standard Webhooks signature before it took anything.)"""
    shop.more_config = receiver.section()
    shop.start()
    receipt = certified(shop.certify(invoice(fresh())))
    report = shop.close_period().json()
    wait_for(lambda: receiver.of("closure.created"), "the closure")
    with AvePay("ak_live_x", base_url="http://localhost", webhook_secret=receiver.secret) as client:
        found = {}
        for attempt in receiver.attempts():
            body, header = attempt["body"].encode(), attempt["headers"]["x-avepay-signature"]
            assert attempt["headers"]["content-type"] == "application/json"
            event = client.webhooks.verify(body, header)
            found[event.type] = event.data
            with pytest.raises(Exception, match="mismatch"):
                client.webhooks.verify(body + b" ", header)
    assert found["cert.issued"] == receipt
    assert found["closure.created"] == report
    assert found["mcf.connected"]["nim"] == NIM
    assert {(event["nim"], event["mode"]) for event in receiver.taken()} == {(NIM, "live")}
    assert receiver.secret not in shop.log_file.read_text()


def test_nothing_is_lost_and_order_holds(shop: Shop, receiver: Receiver) -> None:
    """A receiver that is down, one that says no for the moment, a daemon killed in the middle: every certification arrives
    in the order of the book, and what comes twice has the same id."""
    shop.more_config = receiver.section(events=["cert.issued"])
    shop.start()
    codes = [certified(shop.certify(invoice(fresh())))["codeSecef"] for _ in range(3)]
    sold(receiver, 3)
    receiver.kill()
    codes += [certified(shop.certify(invoice(fresh())))["codeSecef"] for _ in range(4)]
    shop.kill_daemon()
    asyncio.run(receiver.up())
    asyncio.run(receiver.script({"status": 503}, {"cut": True}, {"status": 429, "headers": {"retry-after": "1"}}))
    shop.start_daemon()
    codes += [certified(shop.certify(invoice(fresh())))["codeSecef"] for _ in range(3)]
    assert sold(receiver, 10) == codes
    assert {event["type"] for event in receiver.taken()} == {"cert.issued"}


def test_a_receiver_that_hangs_delays_no_till(shop: Shop, receiver: Receiver) -> None:
    """Certifications and the Z go on as if there were no receiver."""
    shop.more_config = receiver.section()
    shop.start()
    asyncio.run(receiver.script(*({"delay": 30} for _ in range(5))))
    with within(5, *shop.pids):
        for _ in range(10):
            certified(shop.certify(invoice(fresh())))
        assert shop.close_period().status_code == 201


@pytest.mark.parametrize("wanted", [False, True])
def test_the_sandbox_is_sent_only_when_asked_for(shop: Shop, receiver: Receiver, wanted: bool) -> None:
    """A trial is not taken for a sale unawares."""
    shop.more_config = receiver.section(events=["cert.issued"], include_sandbox=wanted)
    shop.start()
    test = certified(shop.certify(invoice(fresh()), mode="test"))["codeSecef"]
    live = certified(shop.certify(invoice(fresh())))["codeSecef"]
    expected = {test, live} if wanted else {live}
    assert set(sold(receiver, len(expected))) == expected
    shop.stop_daemon()
    assert {event["mode"] for event in receiver.taken()} == ({"test", "live"} if wanted else {"live"})


def waiting(shop: Shop) -> list[float]:
    """For each destination, how many events the ledger still has to deliver."""
    lines = shop.http.get("/metrics").text.splitlines()
    return [float(line.split()[-1]) for line in lines if line.startswith("mcfd_outbox_waiting{")]


def reload(shop: Shop, ended: str = "reload.done") -> None:
    before = len(shop.events(ended))
    os.kill(shop.pid, signal.SIGHUP)
    wait_for(lambda: len(shop.events(ended)) > before, ended)


def test_a_reload_brings_and_takes_webhooks(shop: Shop, receiver: Receiver, tmp_path: Path) -> None:
    """From then on; what waits for one that was taken out is forgotten, and a bad secret changes nothing."""
    shop.start()
    certified(shop.certify(invoice(fresh())))
    without = shop.config_file.read_text()
    shop.config_file.write_text(without + receiver.section(events=["cert.issued"]))
    reload(shop)
    code = certified(shop.certify(invoice(fresh())))["codeSecef"]
    assert sold(receiver, 1) == [code]
    empty = tmp_path / "empty"
    empty.write_text("\n")
    shop.config_file.write_text(without + receiver.section(secret_file=str(empty)))
    reload(shop, "reload.refused")
    code = certified(shop.certify(invoice(fresh())))["codeSecef"]
    assert sold(receiver, 2)[1:] == [code]
    wait_for(lambda: waiting(shop) == [0], "the ledger to know that it arrived")
    receiver.kill()
    certified(shop.certify(invoice(fresh())))
    shop.config_file.write_text(without)
    reload(shop)
    assert [line["events"] for line in shop.events("webhook.forgotten")] == [1]
    asyncio.run(receiver.up())
    certified(shop.certify(invoice(fresh())))
    shop.stop_daemon()
    assert len(receiver.of("cert.issued")) == 2


def test_a_webhook_whose_address_changes_keeps_what_waits(shop: Shop, receiver: Receiver) -> None:
    """`/x` becomes `/x/` while events wait: they go to the new address, in order, and nothing is said to be forgotten."""
    shop.start()
    without = shop.config_file.read_text()
    shop.config_file.write_text(without + receiver.section(events=["cert.issued"]))
    reload(shop)
    receiver.kill()
    codes = [certified(shop.certify(invoice(fresh())))["codeSecef"] for _ in range(2)]
    shop.config_file.write_text(without + receiver.section(events=["cert.issued"], url=receiver.url + "/"))
    reload(shop)
    codes.append(certified(shop.certify(invoice(fresh())))["codeSecef"])
    asyncio.run(receiver.up())
    assert sold(receiver, 3) == codes
    assert shop.events("webhook.forgotten") == []
