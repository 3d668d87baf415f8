"""How often a password may be tried: one account guessed from everywhere is slowed, and nobody is locked out. On a clock of its own."""

import itertools

import pytest

from common.login_guard import (
    DEVICE_SECONDS,
    MAX_NAMES,
    Budget,
    LoginLimits,
    LoginPlace,
    LoginRules,
    network_of,
    new_device,
    trusted_device,
)

RULES = LoginRules(account=Budget(10, 600), address=Budget(5, 12))
DAY = 86_400
HOME, DESK = LoginPlace("192.168.1.7"), LoginPlace("10.9.9.9", "a device")
NOW = 1_800_000_000.0


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def limits(clock):
    return LoginLimits(RULES, clock)


def addresses():
    return (LoginPlace(f"10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}") for number in itertools.count())


def logs_in(limits, name, place):
    """Whether the right password is looked at."""
    if limits.begin(name, place, exists=True):
        return False
    limits.right(name, place)
    return True


def test_one_account_from_everywhere(limits, clock):
    """A try each second of a day from another address: some 150 are looked at, and the person and others always come in."""
    assert logs_in(limits, "awa", HOME)
    looked_at = 0
    for second, place in zip(range(DAY), addresses(), strict=False):
        clock.now = float(second)
        looked_at += limits.begin("awa", place, exists=True) == 0
        if second % 600 == 599:
            assert logs_in(limits, "awa", HOME)
            assert logs_in(limits, "awa", DESK)
            assert logs_in(limits, "issa", place)
    assert 140 <= looked_at <= 160


def test_one_address_takes_nothing_from_another(limits, clock):
    """It tries on at every name and has to wait; the others do not, also for the same names."""
    tried = sum(limits.begin(f"name{number}", HOME, exists=False) == 0 for number in range(100))
    assert tried == 5
    assert limits.begin("awa", HOME, exists=True) > 0
    assert logs_in(limits, "awa", LoginPlace("192.168.1.8"))
    clock.now += 12
    assert limits.begin("awa", HOME, exists=True) == 0
    looked_at = 0
    for second in range(DAY):
        clock.now += 1
        looked_at += limits.begin(f"name{second}", HOME, exists=False) == 0
    assert looked_at <= 60 + DAY // 60


def test_a_known_place_is_no_way_to_go_on_guessing(limits, clock):
    """Neither from the person's own address nor with the cookie of her device is more tried than a few."""
    assert logs_in(limits, "awa", HOME)
    assert sum(limits.begin("awa", HOME, exists=True) == 0 for _ in range(100)) == 5
    assert sum(limits.begin("awa", DESK, exists=True) == 0 for _ in range(100)) == 10


def test_made_up_names_free_no_budget(limits):
    """Tries at more names than are stored do not begin anew at an account; what is kept is bounded."""
    places = addresses()
    for place in itertools.islice(places, 10):
        assert limits.begin("awa", place, exists=True) == 0
    for number, place in zip(range(2 * MAX_NAMES), places, strict=False):
        limits.begin(f"name{number}", place, exists=False)
    assert limits.begin("awa", next(places), exists=True) > 0
    tables = (limits._decoy_names, limits._addresses, limits._addresses_long)
    assert [len(tries._limited) for tries in tables] == [MAX_NAMES] * 3


def test_right_passwords_cost_nothing(limits):
    """Somebody who logs in a hundred times in a minute, anywhere."""
    assert all(logs_in(limits, "awa", place) for place in itertools.islice(addresses(), 100))
    assert all(logs_in(limits, "awa", HOME) for _ in range(100))


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2:ffff::1", True),
        ("2001:db8:1:2::1", "2001:db8:1:3::1", False),
        ("fe80::1%eth0", "fe80::2%eth0", True),
        ("fe80::1%eth0", "fe80::1%eth1", False),
        ("fe80::1", "fe80::ffff:1", True),
        ("::ffff:10.0.0.1", "10.0.0.1", True),
        ("10.0.0.1", "10.0.0.2", False),
    ],
)
def test_who_is_one_address(one, other, same):
    """A computer on IPv6, also one on the same link, chooses any address of its /64."""
    assert (network_of(one) == network_of(other)) is same


def test_the_cookie_of_a_device():
    """It is of one account, of one password and for half a year; who changes a letter of it has none."""
    cookie = new_device("awa", "her hash", NOW)
    device = trusted_device(cookie, "awa", "her hash", NOW + DEVICE_SECONDS - 1)
    assert device
    assert trusted_device(cookie, "awa", "her hash", NOW + DEVICE_SECONDS) == ""
    assert trusted_device(cookie, "awa", "her hash", NOW - 1) == ""  # of a clock that was ahead
    assert trusted_device(cookie, "issa", "her hash", NOW) == ""
    assert trusted_device(cookie, "awa", "her next hash", NOW) == ""
    assert trusted_device(cookie, "awa", None, NOW) == ""
    for spoilt in ("", "..", "a.b.c", "a.1", "\xff.9.\xff", cookie[:-1], "x" + cookie, cookie.replace(".", ".9", 1)):
        assert trusted_device(spoilt, "awa", "her hash", NOW) == ""
