"""The recorder in a running daemon: what moved is on the disk, what was odd has a file, and a till notices none of it."""

import shutil

import pytest
from support.processor import within
from support.shop import NIM, Shop, invoice, running_shop, wait_for

from bridge.recording.recording import NOTE, Recording, read
from daemon.recording.writer import listed, segments

pytestmark = pytest.mark.long


def folder_of(shop: Shop):
    return shop.folder / "recordings" / NIM.partition("-")[0]


def ring(shop: Shop) -> Recording:
    return read("".join(file.read_text() for file in segments(folder_of(shop))))


def has(shop: Shop, text: bytes) -> bool:
    return any(text in event.data for event in ring(shop).events)


def test_a_sale_is_recorded_and_survives_a_kill(own_shop: Shop) -> None:
    """Within a second it is on the disk, where a kill -9 cannot reach it; the next run goes on in the same files."""
    assert own_shop.certify(invoice("F-1")).status_code == 200
    with within(2, *own_shop.pids):
        wait_for(lambda: has(own_shop, b"F-1"), "the recording of the sale")
    own_shop.kill_daemon()
    own_shop.start_daemon()
    assert own_shop.certify(invoice("F-2")).status_code == 200
    own_shop.stop_daemon()
    found = ring(own_shop)
    assert has(own_shop, b"F-1")
    assert has(own_shop, b"F-2")  # what was held at the stop is written at the stop
    assert found.about["nim"] == NIM
    assert [event.text for event in found.events if event.kind == NOTE].count("link begins") == 2
    assert listed(folder_of(own_shop)) == []


@pytest.mark.parametrize("blocked", ["file", "no room"])
def test_a_recording_that_cannot_be_written_stops_nobody(tmp_path, blocked) -> None:
    """The folder cannot be made, or the disk is as full as it may be for the recorder: one line in the log, and sales go on."""
    config = {}
    if blocked == "file":
        (tmp_path / "recordings").write_text("")
    else:  # the ledger's reserve is still there, twice as much is not
        free = shutil.disk_usage(tmp_path).free // 2**20
        config = {"storage": {"reserve_mb": free * 2 // 3}}
    with running_shop(tmp_path, config=config) as shop:
        assert shop.certify(invoice("F-1")).status_code == 200
        assert wait_for(lambda: shop.events("recording.stopped"), "the recorder's end")
        assert shop.certify(invoice("F-2")).status_code == 200
        assert len(shop.events("recording.stopped")) == 1
        shop.stop_daemon()
        shop.verify()
