"""A sync that fails, once, at each sync of a certification and of a Z: the daemon ends at once with a code of its own, its next start works on a
copy of the ledger in another file, and nothing is lost or doubled. `make syncs` tries every one, here are the first."""

import os
from collections.abc import Callable
from itertools import count

from support.crash.lane import AtSync, Lane

from daemon.app.serve import EXIT_DISK

MOST = int(os.environ.get("MCFD_SYNCS", "2"))
"""Syncs of each that are tried."""


def fails_at_each_sync(lane: Lane, ask: Callable[[str], object], through: Callable[[str], object], most: int) -> int:
    """How many there are, or `most`."""
    for sync in count(1):
        key, inode = f"{ask.__name__} {sync}", lane.shop.ledger.stat().st_ino
        reached = lane.die_at(AtSync(sync), lambda key=key: ask(key))
        if reached:
            assert lane.exit_code == EXIT_DISK
            (ended,) = lane.shop.events("disk.failed")[-1:]
            assert ended["level"] == "critical"
            lane.start()
            assert lane.shop.ledger.stat().st_ino != inode
        through(key)
        if not reached or sync == most:
            return sync
    raise AssertionError


def test_a_failed_sync_of_a_certification(lane: Lane) -> None:
    """The till's connection breaks; its retry with the same key has the machine's own certification. After the third time in an hour the disk is
    reported as what it is, and selling goes on."""
    bodies = {}

    def certify(key: str) -> None:
        bodies[key] = lane.next_invoice()[0]
        lane.shop.certify(bodies[key], key=key)

    found = fails_at_each_sync(lane, certify, lambda key: lane.certified_once(bodies[key], key), max(3, MOST))
    assert found >= 3
    answer = lane.shop.http.get("/health/ready")
    assert answer.status_code == 200
    assert "disk" in answer.json()["disk"]
    assert lane.shop.events("disk.failing")
    code, output = lane.mcfd("doctor")
    assert code == 1
    assert "mcfd backup --all" in output
    copies = [file for file in lane.shop.ledger.parent.glob("*.failed-*") if not file.name.endswith("-wal")]
    assert len(copies) == 2


def test_a_failed_sync_of_a_z(lane: Lane) -> None:
    """Those of the file of numbers among them: the retry has the one Z that there is."""
    lane.certified_once(*lane.next_invoice())

    def close(key: str) -> None:
        lane.shop.close_period(key=key)

    assert fails_at_each_sync(lane, close, lane.closed_once, MOST) >= 2


def test_a_failed_sync_of_the_start(lane: Lane) -> None:
    """Also of the copy itself: the next start makes another, and the ledger is whole at every moment."""
    sale = lane.next_invoice()
    lane.certified_once(*sale)
    lane.die_at(AtSync(1), lambda: lane.shop.certify(*lane.next_invoice()[:1], key="lost"))
    for sync in count(1):
        if not lane.die_at(AtSync(sync)) or sync == MOST:
            break
    lane.ensure()
    lane.certified_once(*sale)
