"""Who gets in when it is tight: addresses, networks, those who have shown a key, and rates."""

from __future__ import annotations

from typing import Any

from structlog.testing import capture_logs

from edge.admission import ADDRESSES, Admission, Bucket, ConnectionLimits, Slot, Standing

ALWAYS = (1e9, 1e9)


def admission(**limits: Any) -> Admission:
    rates = {"known_arrivals": ALWAYS, "arrivals": ALWAYS, "arrivals_in_all": ALWAYS, **limits}
    return Admission(ConnectionLimits(**rates))


def enter(counted: Admission, host: str, now: float = 0.0) -> tuple[Slot | None, list[str]]:
    """The slot, and a list that gets a word when it is cut."""
    cut: list[str] = []
    slot = counted.enter(host, now)
    if slot is not None:
        slot.cut = lambda: cut.append(host)
    return slot, cut


def test_the_oldest_of_the_most_crowded_address_goes() -> None:
    """Not the one that came first of all: a till alone at its address keeps its connection, however full the house is."""
    counted = admission(unknown=4)
    till, till_cut = enter(counted, "10.0.0.1")
    crowd = [enter(counted, "10.0.0.2") for _ in range(3)]
    other, _ = enter(counted, "10.0.0.3")
    assert till is not None
    assert other is not None
    assert [cut for _, cut in crowd] == [["10.0.0.2"], [], []]
    assert till_cut == []


def test_one_box_on_ipv6_is_one_address() -> None:
    """It may move about in its /64; an IPv4 address written as IPv6 is the same one."""
    counted = admission(per_address=2)
    first, first_cut = enter(counted, "2001:db8:1:2::1")
    enter(counted, "2001:db8:1:2:ffff::2")
    enter(counted, "2001:db8:1:2:aaaa::3")
    assert first_cut == ["2001:db8:1:2::1"]
    enter(counted, "2001:db8:1:3::1")
    v4, v4_cut = enter(counted, "10.0.0.1")
    enter(counted, "::ffff:10.0.0.1")
    assert v4_cut == []
    enter(counted, "10.0.0.1")
    assert v4_cut == ["10.0.0.1"]
    assert first is not None
    assert v4 is not None


def test_sandbox_before_live() -> None:
    """Full: unknown ones go, then those of the sandbox; when only live ones are left, nobody is cut and the next is refused."""
    counted = admission(total=3, per_address=10)
    live, live_cut = enter(counted, "10.0.0.1")
    sandbox, sandbox_cut = enter(counted, "10.0.0.1")
    unknown, unknown_cut = enter(counted, "10.0.0.1")
    assert live is not None
    assert sandbox is not None
    assert unknown is not None
    live.show(Standing.LIVE, 0)
    sandbox.show(Standing.SANDBOX, 0)
    fourth, _ = enter(counted, "10.0.0.2")
    assert (unknown_cut, sandbox_cut) == (["10.0.0.1"], [])
    assert fourth is not None
    fourth.show(Standing.LIVE, 0)
    fifth, _ = enter(counted, "10.0.0.3")
    assert sandbox_cut == ["10.0.0.1"]
    assert fifth is not None
    fifth.show(Standing.LIVE, 0)
    with capture_logs() as logs:
        assert enter(counted, "10.0.0.4")[0] is None
        assert enter(counted, "10.0.0.4")[0] is None
    assert [line["event"] for line in logs] == ["connections.refused"]
    assert live_cut == []
    live.leave()
    live.leave()
    assert enter(counted, "10.0.0.4")[0] is not None


def test_many_of_the_sandbox_push_out_their_own() -> None:
    """A test key on a thousand connections holds as many as the sandbox may."""
    counted = admission(sandboxed=2)
    cuts = []
    for _ in range(4):
        slot, cut = enter(counted, "10.0.0.1")
        assert slot is not None
        slot.show(Standing.SANDBOX, 0)
        cuts.append(cut)
    assert [bool(cut) for cut in cuts] == [True, True, False, False]


def test_a_storm_of_connections() -> None:
    """From an address that never showed a live key: so many a second, the next ones wait, far too many are refused; and once it has
    shown one, it has its own rate, whatever others do."""
    counted = admission(arrivals=(1.0, 3.0), arrivals_in_all=(10.0, 5.0))
    waits = [slot.wait if slot else None for slot, _ in (enter(counted, "10.0.0.2") for _ in range(14))]
    assert waits == [0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, None, None]
    till, _ = enter(counted, "10.0.0.1")
    assert till is not None
    till.show(Standing.LIVE, 0)
    for number in range(200):
        enter(counted, f"10.0.1.{number}")
    assert enter(counted, "10.0.0.9")[0] is None
    again, _ = enter(counted, "10.0.0.1")
    assert again is not None
    assert again.wait == 0
    assert enter(counted, "10.0.0.9", now=1.0)[0] is not None


def test_addresses_that_are_gone_are_forgotten() -> None:
    """However many have come: memory is bounded, and what fits into it is remembered."""
    counted = admission()
    for number in range(10_000):
        slot, _ = enter(counted, f"10.{number >> 8}.{number & 255}.1")
        assert slot is not None
        slot.leave()
    assert len(counted._addresses) == ADDRESSES


def test_room_is_made_for_descriptors() -> None:
    """As many unknown connections are cut as asked for, or as there are."""
    counted = admission()
    cuts = [enter(counted, f"10.0.0.{number}")[1] for number in range(3)]
    assert counted.relieve(2) == 2
    assert counted.relieve(2) == 1
    assert all(cuts)


def test_a_bucket() -> None:
    """So many at once, then so many a second; what is reserved ahead comes in its turn."""
    bucket = Bucket((10.0, 3.0))
    assert [round(bucket.reserve(0.0), 3) for _ in range(6)] == [0, 0, 0, 0, 0.1, 0.2]
    assert bucket.wait(60.0) == 0
