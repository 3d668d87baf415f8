"""The last Z number of a box that lost its disk, from the box's own daemon to a real headquarters and back (decision 30)."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.hq.running import RunningHq
from support.shop import NIM, Shop, invoice, run_program, wait_for

from daemon.store.maintenance.verify import verify

pytestmark = pytest.mark.long

SOON = "import sys, daemon.usecases.delivery.presence as p; p.FIRST_WITHIN = 0.2; from daemon.cli import main; sys.exit(main())"
"""mcfd as it is, but that it does not wait up to a minute before it says for the first time that it is there."""


@pytest.fixture
def hq(tmp_path: Path) -> Iterator[RunningHq]:
    running = RunningHq(tmp_path / "hq", f"sqlite:///{tmp_path}/hq.sqlite3")
    yield running
    running.stop()


def test_a_box_on_an_empty_disk_asks_for_its_last_z_until_headquarters_says_it(tmp_path: Path, hq: RunningHq) -> None:
    """Z 1 is at headquarters and after the backup that is all there is: while headquarters is silent a Z gets 409 with its code, on which sales go on;
    once the box has said that it is there, the next Z is 2, the ledger shows the gap, and headquarters has both."""
    (tmp_path / "box").mkdir()
    key_file = tmp_path / "upstream.key"
    upstream = {"kind": "https", "url": "", "key_file": str(key_file), "box": "caisse-1", "retry_max": 1.0}
    shop = Shop(tmp_path / "box", config={"upstream": upstream})
    public_key = run_program("mcfd", ["upstream", "keygen", str(key_file)], shop.environ).stdout.split()[-1]
    hq.cli("boxes", "add", NIM, "--public-key", public_key)
    reader = hq.key("reader")

    def received() -> list[int]:
        return sorted(closure["z_number"] for closure in hq.get("/v1/closures", reader).json()["closures"])

    hq.start()
    upstream["url"] = f"{hq.base}/closures"
    with shop:
        shop.start()
        assert shop.certify(invoice("F-1")).status_code == 200
        shop.mcfd("backup", str(tmp_path / "saved"), check=True)
        assert shop.close_period().json()["z_number"] == 1
        wait_for(lambda: received() == [1], "Z 1 at headquarters", patience=60)
        shop.stop_daemon()
        hq.stop()
        for file in shop.ledger.parent.glob(f"{shop.ledger.name}*"):
            file.unlink()
        shop.mcfd("restore", str(tmp_path / "saved"), check=True)
        shop.start_daemon()
        refused = shop.close_period()
        assert (refused.status_code, refused.json()["code"]) == (409, "Z_NUMBER_UNKNOWN")
        assert shop.certify(invoice("F-2")).status_code == 200
        shop.stop_daemon()
        hq.start()
        upstream["url"] = f"{hq.base}/closures"
        shop.command = [sys.executable, "-c", SOON]
        shop.start_daemon()
        closed = wait_for(
            lambda: (answer := shop.close_period()).status_code == 201 and answer.json(), "a Z", patience=60
        )
        assert (closed["z_number"], closed["certs_count"]) == (2, 2)
        wait_for(lambda: received() == [1, 2], "Z 2 at headquarters", patience=60)
    assert verify(shop.ledger).problems == ()
