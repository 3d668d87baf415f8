"""Z numbers of a box that lost its disk, and of a machine's next taxpayer, from a real daemon to a real headquarters (decisions 30, 33)."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.hq.running import RunningHq
from support.shop import NIM, Machine, Shop, invoice, run_program, wait_for

from daemon.operations import CreateKey
from daemon.store.maintenance.verify import verify

pytestmark = pytest.mark.long

SOON = "import sys, daemon.usecases.delivery.presence as p; p.FIRST_WITHIN = 0.2; from daemon.cli import main; sys.exit(main())"
"""mcfd as it is, but that it does not wait up to a minute before it says for the first time that it is there."""


@pytest.fixture
def hq(tmp_path: Path) -> Iterator[RunningHq]:
    running = RunningHq(tmp_path / "hq", f"sqlite:///{tmp_path}/hq.sqlite3")
    yield running
    running.stop()


def new_box(folder: Path, hq: RunningHq) -> tuple[Shop, dict[str, Any]]:
    """A registered shop, and its [upstream], whose address is to be set."""
    (folder / "box").mkdir()
    key_file = folder / "upstream.key"
    upstream = {"kind": "https", "url": "", "key_file": str(key_file), "box": "caisse-1", "retry_max": 1.0}
    shop = Shop(folder / "box", config={"upstream": upstream})
    public_key = run_program("mcfd", ["upstream", "keygen", str(key_file)], shop.environ).stdout.split()[-1]
    hq.cli("boxes", "add", NIM, "--public-key", public_key)
    return shop, upstream


def test_a_box_on_an_empty_disk_asks_for_its_last_z_until_headquarters_says_it(tmp_path: Path, hq: RunningHq) -> None:
    """Until then a Z is 409 and sales go on; the next Z is 2, after what the backup did not know."""
    shop, upstream = new_box(tmp_path, hq)
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


def test_the_closures_of_a_machine_s_next_taxpayer_arrive_once_its_ledger_is_accepted(
    tmp_path: Path, hq: RunningHq
) -> None:
    """Its Z 1 is refused until then, and sent again; those of the first taxpayer stay."""
    shop, upstream = new_box(tmp_path, hq)
    reader = hq.key("reader")

    def received() -> list[tuple[int, int]]:
        closures = hq.get("/v1/closures", reader).json()["closures"]
        return sorted((closure["z_number"], closure["total_ttc"]) for closure in closures)

    hq.start()
    upstream["url"] = f"{hq.base}/closures"
    shop.command = [sys.executable, "-c", SOON]
    with shop:
        shop.start()
        for at in (1, 2):
            assert shop.certify(invoice(f"F-{at}")).status_code == 200
            assert shop.closed()["z_number"] == at
        wait_for(lambda: received() == [(1, 15000), (2, 15000)], "the first taxpayer's", patience=60)
        shop.stop_daemon()
        shop.machines[0].kill()
        (tmp_path / "other").mkdir()
        shop.machines = (Machine(tmp_path / "other", f"{NIM[:-1]}2", "00099999X"),)
        shop.start()
        shop.use_key(shop.change(CreateKey(NIM, "live", "the next taxpayer's till")))
        assert shop.certify(invoice("G-1", 700)).status_code == 200
        assert shop.closed()["z_number"] == 1
        wait_for(lambda: "le numéro Z 1" in hq.cli("findings"), "the refusal")
        shop.stop_daemon()
        shop.start_daemon()  # a presence: the first one may have come before the machine had said whose it is
        wait_for(lambda: "un nouveau registre" in hq.cli("findings"), "the other ledger")
        hq.cli("boxes", "accept", NIM)
        shop.stop_daemon()
        shop.start_daemon()
        wait_for(lambda: received() == [(1, 700), (1, 15000), (2, 15000)], "the next taxpayer's", patience=60)
        assert shop.certify(invoice("G-2", 900)).status_code == 200
        assert shop.closed()["z_number"] == 2
        wait_for(lambda: len(received()) == 4, "its second", patience=60)
        wait_for(lambda: hq.cli("findings") == "", "nothing left to find")
    assert verify(shop.ledger).problems == ()
