"""A disk that is full, read-only, or takes nothing more: noticed before the machine is asked, and well again without a restart."""

import resource
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from support.box.mounts import fill, small_disk
from support.crash.lane import Lane
from support.nursery import Nursery
from support.processor import within
from support.shop import invoice, wait_for

GiveOut = Callable[[Lane], Callable[[], object]]
"""Makes the disk give out, and gives what makes it well again."""

DISK_MB = 24
RESERVE_MB = 8


@pytest.fixture
def lane(tmp_path: Path, nursery: Nursery) -> Iterator[Lane]:
    with small_disk(tmp_path / "disk", DISK_MB) as disk:
        storage = {"path": str(disk / "mcfd.sqlite3"), "reserve_mb": RESERVE_MB}
        with Lane(tmp_path / "lane", nursery, storage=storage, hurry={"beats": False}) as lane:
            yield lane


def refused(answer: httpx.Response) -> None:
    assert (answer.status_code, answer.json()["code"]) == (507, "STORAGE_FULL"), answer.text


@contextmanager
def machine_is_idle(lane: Lane) -> Iterator[None]:
    """No invoice is begun on it meanwhile: every C3h would be marked."""
    lane.machine.order("faults", spec="split:0@C3")
    yield
    assert not lane.machine.order("snapshot")["struck"]
    lane.machine.order("faults", spec="")


def noticed(lane: Lane) -> None:
    """The file system is asked once a second; what comes in between lives on the reserve."""
    numbers = iter(range(1000))
    wait_for(lambda: lane.shop.certify(invoice(f"before-{next(numbers)}")).status_code == 507, "507")


def well_again(lane: Lane, number: str) -> None:
    """Within 5 s, without a restart."""
    with within(5, *lane.shop.pids):
        wait_for(lambda: lane.shop.certify(invoice(number), key=number).status_code == 200, "service")
    lane.check()


def test_a_full_disk_is_noticed_before_the_machine_is_asked(lane: Lane) -> None:
    """Less than the reserve is free: certify and Z are refused, reports are not; with room again, all is well."""
    assert lane.shop.certify(invoice("F-1")).status_code == 200
    filler = fill(lane.shop.ledger.parent, leave=RESERVE_MB * 1024 * 1024 // 2)
    noticed(lane)
    with machine_is_idle(lane):
        refused(lane.shop.certify(invoice("F-2"), key="F-2"))
        refused(lane.shop.close_period())
        assert lane.shop.get("reports/x").status_code == 200
    filler.unlink()
    well_again(lane, "F-2")


def full_to_the_last_byte(lane: Lane) -> Callable[[], object]:
    return fill(lane.shop.ledger.parent).unlink


def no_file_may_grow(lane: Lane) -> Callable[[], object]:
    """The kernel refuses every byte at the end of a file (EFBIG)."""
    limit = resource.prlimit(lane.shop.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(lane.shop.pid, resource.RLIMIT_FSIZE, (0, limit[1]))
    return lambda: resource.prlimit(lane.shop.pid, resource.RLIMIT_FSIZE, limit)


@pytest.mark.parametrize("give_out", [full_to_the_last_byte, no_file_may_grow])
def test_a_disk_that_gives_out_after_38h_keeps_the_till_waiting_and_loses_nothing(
    lane: Lane, give_out: GiveOut
) -> None:
    """The machine certifies while the outcome cannot be stored: nothing else is certified, the till waits, and gets its certification
    once there is room."""
    assert lane.shop.certify(invoice("F-1")).status_code == 200
    with ThreadPoolExecutor(2) as tills:
        at = lane.machine.order("pause-at", next=6, when="before", direction="in")
        first = tills.submit(lane.shop.certify, invoice("F-2"), key="F-2")
        wait_for(lane.machine.is_stopped, f"38h, frame {at}")
        go_on = give_out(lane)
        second = tills.submit(lane.shop.certify, invoice("F-3"), key="F-3")
        lane.machine.order("resume")
        wait_for(lambda: len(lane.machine.certified()) == 2, "certified")
        time.sleep(0.5)
        assert not first.done()
        assert [entry["number"] for entry in lane.machine.certified()] == ["F-1", "F-2"]
        go_on()
        answer = first.result()
        assert answer.status_code == 200, answer.text
        assert second.result().status_code in (200, 507)
    well_again(lane, "F-3")
