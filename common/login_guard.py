"""Checks passwords: in a thread, one after the other, within limits.

How often a password may be tried: by account and by address, without locking anyone out.

Guesses at one account that come from anywhere share a small budget, however many addresses they come from. A device that has logged in to that
account before is known by a cookie, an address by having logged in here; neither is subject to that budget, so that foreign guesses never
keep the person out of where they usually are. A device has a budget of its own, and an address one for all accounts, so that neither can
be used to go on guessing, and no address takes anything from another. Nothing is ever locked: budgets fill up again by themselves."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import ipaddress
import math
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, Final, NamedTuple

from common.passwords import DUMMY_HASH, fits, hash_password
from common.turns import Turns

MOST_NAMES: Final = 4096
"""Addresses, devices and names in memory, of each; what was quiet longest is forgotten first."""
DEVICE_SECONDS: Final = 180 * 86_400
_NONCE_BYTES: Final = 16
_ADDRESSES_OF_NAME: Final = 8
"""Of one account."""
_SCOPE: Final = "%"


def network_of(host: str) -> str:
    """Who is counted as one address: an IPv4 address, or the /64 in which a single computer on IPv6 may choose its own; empty for none."""
    name, _, scope = host.partition(_SCOPE)
    try:
        address = ipaddress.ip_address(name)
    except ValueError:
        return host
    if isinstance(address, ipaddress.IPv4Address):
        return str(address)
    if address.ipv4_mapped:
        return str(address.ipv4_mapped)
    network = str(ipaddress.IPv6Address(int(address) >> 64 << 64))
    return f"{network}{_SCOPE}{scope}" if scope else network


class Budget(NamedTuple):
    """So many tries at once, and one more each `seconds`."""

    most: int
    seconds: float


class LoginRules(NamedTuple):
    """`account`: tries of one name from places that it is not known from. `address`: of any name. `device`: of a known one."""

    account: Budget
    address: Budget
    address_long: Budget = Budget(60, 60)
    device: Budget = Budget(10, 60)


class LoginPlace(NamedTuple):
    """Where a login comes from. `network` as `network_of` says it; empty where it is not known. `device` as `known_device` says it; empty where there is none."""

    network: str
    device: str = ""


class LoginLimits:
    """In bounded memory. A try is counted when it begins, and taken back when the password was right."""

    def __init__(self, rules: LoginRules, clock: Callable[[], float] = time.monotonic) -> None:
        self._rules = rules
        self._clock = clock
        self._accounts = _Tries(clock)
        self._decoy_names = _Tries(clock)
        self._addresses = _Tries(clock)
        self._addresses_long = _Tries(clock)
        self._devices = _Tries(clock)
        self._trusted: OrderedDict[str, OrderedDict[str, None]] = OrderedDict()

    def is_trusted(self, name: str, place: LoginPlace) -> bool:
        """Whether that account was logged in to from there before."""
        return bool(place.device) or place.network in self._trusted.get(name, ())

    def begin(self, name: str, place: LoginPlace, *, exists: bool) -> int:
        """Whole seconds until it may be tried from there; 0 when it may now, which then counts. `exists`: made-up names are counted apart, so that
        they push out no budget of an account."""
        budgets = self._budgets(name, place, exists=exists)
        wait = max((tries.wait(key, budget) for tries, key, budget in budgets), default=0.0)
        if wait > 0:
            return math.ceil(wait)
        for tries, key, budget in budgets:
            tries.add(key, budget, 1)
        return 0

    def take_back(self, name: str, place: LoginPlace, *, exists: bool) -> None:
        """It was not tried after all."""
        for tries, key, budget in self._budgets(name, place, exists=exists):
            tries.add(key, budget, -1)

    def right(self, name: str, place: LoginPlace) -> None:
        """The password was right: the try does not count, and the address is known from now on."""
        self.take_back(name, place, exists=True)
        if place.network:
            networks = self._trusted.setdefault(name, OrderedDict())
            networks[place.network] = None
            networks.move_to_end(place.network)
            _forget(networks, _ADDRESSES_OF_NAME)
            self._trusted.move_to_end(name)
            _forget(self._trusted, MOST_NAMES)

    def _budgets(self, name: str, place: LoginPlace, *, exists: bool) -> list[tuple[_Tries, Hashable, Budget]]:
        if place.device:
            return [(self._devices, place.device, self._rules.device)]
        found: list[tuple[_Tries, Hashable, Budget]] = []
        if place.network:
            found.append((self._addresses, place.network, self._rules.address))
            found.append((self._addresses_long, place.network, self._rules.address_long))
        if not self.is_trusted(name, place):
            found.append((self._accounts if exists else self._decoy_names, name, self._rules.account))
        return found


class _Tries:
    """Of each key: how many, less those that time has taken away."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._limited: OrderedDict[Hashable, tuple[float, float]] = OrderedDict()

    def wait(self, key: Hashable, budget: Budget) -> float:
        return max(0.0, (self._level(key, budget) + 1 - budget.most) * budget.seconds)

    def add(self, key: Hashable, budget: Budget, count: int) -> None:
        self._limited[key] = max(0.0, self._level(key, budget) + count), self._clock()
        self._limited.move_to_end(key)
        _forget(self._limited, MOST_NAMES)

    def _level(self, key: Hashable, budget: Budget) -> float:
        level, at = self._limited.get(key, (0.0, 0.0))
        return max(0.0, level - (self._clock() - at) / budget.seconds)


def _forget(entries: OrderedDict[Any, Any], most: int) -> None:
    while len(entries) > most:
        entries.popitem(last=False)


def new_device(name: str, stored: str, now: float) -> str:
    """What the cookie of a device holds that has just logged in to that account. It is signed with the stored hash of the password: nothing else has
    to be stored, any instance and any start of the program knows it, and it ends with the password."""
    nonce, ends = secrets.token_urlsafe(_NONCE_BYTES), int(now) + DEVICE_SECONDS
    return f"{nonce}.{ends}.{_signed(name, stored, nonce, ends)}"


def trusted_device(cookie: str, name: str, stored: str | None, now: float) -> str:
    """Which device it is, of those that have logged in to that account; empty when it is none of them."""
    nonce, _, rest = cookie.partition(".")
    ends, _, signature = rest.partition(".")
    if stored is None or not (ends.isascii() and ends.isdecimal()) or len(ends) > len(str(DEVICE_SECONDS)) + 4:
        return ""
    is_signed = hmac.compare_digest(signature.encode(), _signed(name, stored, nonce, int(ends)).encode())
    return nonce if is_signed and 0 < int(ends) - now <= DEVICE_SECONDS else ""


def _signed(name: str, stored: str, nonce: str, ends: int) -> str:
    content = "\0".join(("device", name, nonce, str(ends)))
    return hmac.new(hashlib.sha256(stored.encode()).digest(), content.encode(), hashlib.sha256).hexdigest()


class TooManyTries(Exception):
    """`seconds` until it may be tried again."""

    def __init__(self, seconds: int) -> None:
        self.seconds = seconds
        super().__init__(f"too many wrong passwords; again in {seconds} s")


class Attempted(NamedTuple):
    """A name and a password as typed, the address they come from (empty where it is not known) and what the cookie of the device holds."""

    name: str
    password: str
    address: str
    device: str = ""


class LoginGuard:
    """One for each program. Guessing costs it neither memory nor the time of others, and locks no one out."""

    def __init__(self, rules: LoginRules, clock: Callable[[], float] = time.monotonic) -> None:
        self._limits = LoginLimits(rules, clock)
        self._turns = Turns()

    async def check(self, tried: Attempted, stored: str | None, now: float) -> bool:
        """`stored`: the hash of that person; None for an unknown name, which takes as long. `now`: seconds since 1970. TooManyTries, or Busy."""
        exists = stored is not None
        device = trusted_device(tried.device, tried.name, stored, now)
        place = LoginPlace(network_of(tried.address), device)
        if wait := self._limits.begin(tried.name, place, exists=exists):
            raise TooManyTries(wait)
        try:
            async with self._turns.turn(place.network, is_trusted=self._limits.is_trusted(tried.name, place)):
                fitting = await asyncio.to_thread(fits, tried.password, stored or DUMMY_HASH)
        except BaseException:
            self._limits.take_back(tried.name, place, exists=exists)
            raise
        if not exists or not fitting:
            return False
        self._limits.right(tried.name, place)
        return True

    async def hash(self, password: str) -> str:
        """The hash of a new password, of a person who is logged in. Busy when too many passwords wait."""
        async with self._turns.turn(is_trusted=True):
            return await asyncio.to_thread(hash_password, password)
