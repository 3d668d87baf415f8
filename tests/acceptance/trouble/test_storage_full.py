"""A disk that takes nothing more after 38h: nothing is lost, and all is well again without a restart."""

import html
import itertools
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from support.box.mounts import fill, small_disk
from support.browser import PASSWORD, Visitor, create_users, session_of, staffed_shop
from support.crash.lane import Lane
from support.processor import within
from support.shop import invoice, running_shop, wait_for

DISK_MB = 24


@pytest.fixture
def lane(tmp_path: Path) -> Iterator[Lane]:
    with small_disk(tmp_path / "disk", DISK_MB) as disk:
        storage = {"path": str(disk / "mcfd.sqlite3"), "reserve_mb": 8}
        with Lane(tmp_path / "lane", storage=storage, hurry={"beats": False}) as lane:
            yield lane


def well_again(lane: Lane, number: str) -> None:
    """Within 5 s, without a restart."""
    with within(5, *lane.shop.pids):
        wait_for(lambda: lane.shop.certify(invoice(number), key=number).status_code == 200, "service")
    lane.check()


def test_a_disk_that_gives_out_after_38h_keeps_the_till_waiting_and_loses_nothing(lane: Lane) -> None:
    """The machine certifies while the outcome cannot be stored: nothing else is certified, the till waits, and gets its certification
    once there is room."""
    assert lane.shop.certify(invoice("F-1")).status_code == 200
    with ThreadPoolExecutor(2) as tills:
        at = lane.machine.order("pause-at", next=6, when="before", direction="in")
        first = tills.submit(lane.shop.certify, invoice("F-2"), key="F-2")
        wait_for(lane.machine.is_stopped, f"38h, frame {at}")
        filler = fill(lane.shop.ledger.parent)
        second = tills.submit(lane.shop.certify, invoice("F-3"), key="F-3")
        lane.machine.order("resume")
        wait_for(lambda: len(lane.machine.certified()) == 2, "certified")
        time.sleep(0.5)
        assert not first.done()
        assert [entry["number"] for entry in lane.machine.certified()] == ["F-1", "F-2"]
        filler.unlink()
        answer = first.result()
        assert answer.status_code == 200, answer.text
        assert second.result().status_code in (200, 507)
    well_again(lane, "F-3")


def test_a_ledger_that_was_moved_away_is_named_and_not_a_full_disk(tmp_path: Path) -> None:
    """With its files or alone, also when another file stands in its place: 507 says that the ledger's file is gone, nothing reaches the machine, and the
    page says it; the screen of the box and the metrics still open. Put back, it goes on without a restart."""
    with staffed_shop(tmp_path, "technician") as shop:
        shop.http.cookies.update(session_of(shop, "technician"))
        tries = itertools.count()
        for number, is_replaced in (("M-1", False), ("M-2", True)):
            assert shop.certify(invoice(f"{number}-before")).status_code == 200
            aside = shop.ledger.with_name("aside")
            shop.ledger.rename(aside)
            if is_replaced:
                shop.ledger.write_bytes(aside.read_bytes())

            def refused(number: str = number) -> bool:
                answer = shop.certify(invoice(f"{number}-{next(tries)}"))
                if answer.status_code == 200:
                    return False  # not noticed yet, and stored in the moved file
                assert (answer.status_code, answer.json()["code"]) == (507, "STORAGE_FULL"), answer.text
                return "the ledger's file was moved" in answer.json()["detail"]

            wait_for(refused, "the reason")
            page = html.unescape(shop.http.get("/ui/state", headers={"Accept": "text/html"}).text)
            assert "le fichier du registre n'est plus à sa place" in page
            assert [shop.http.get(path).status_code for path in ("/ui/box", "/metrics")] == [200, 200]
            before = shop.machines[0].counters
            assert refused()
            assert shop.machines[0].counters == before
            aside.rename(shop.ledger)
            wait_for(lambda number=number: shop.certify(invoice(number), key=number).status_code == 200, "service")
        assert shop.stop_daemon() == 0
        shop.verify()


def test_a_disk_without_a_byte_is_a_screen_for_who_logs_in_and_who_copies(tmp_path: Path) -> None:
    """A login, which is noted in the ledger, answered with JSON, and a copy that failed said in English which command it was: both say that the disk
    is full, and a logout too."""
    with (
        small_disk(tmp_path / "disk", DISK_MB) as disk,
        running_shop(tmp_path, config={"storage": {"path": str(disk / "mcfd.sqlite3"), "reserve_mb": 8}}) as shop,
    ):
        create_users(shop, ["technician"])
        with Visitor(shop, "technician") as inside, Visitor(shop) as outside:
            fill(disk)
            login = outside.submit("/ui/login", name="technician", password=PASSWORD)
            assert login.status_code == 507
            assert "disque est plein" in login.text
            assert 'name="name" value="technician"' in login.text
            inside.submit("/ui/box/backup")
            cause = "un fichier du boîtier ne peut pas être écrit\N{NO-BREAK SPACE}: le disque est plein"
            wait_for(lambda: cause in inside.look("/ui/box/backups"), "the cause")
            assert "disque est plein" in inside.submit("/ui/logout").text
