"""Checks passwords in a thread, one at a time, and limits the tries by account, address and device, without locking
anyone out.

Guesses at one account from unknown places share one small budget, whatever the number of addresses. A device that has
logged in to the account has a cookie, and an address that has is remembered: both are exempt from that budget, so that
guesses of others never lock the person out. A device has its own budget, and an address one for all accounts, so that
neither allows endless guessing and no address uses up another's. Budgets refill with time."""

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

MAX_NAMES: Final = 4096
"""Limit of addresses, of devices and of names in memory; the one unused for longest is dropped first."""
DEVICE_SECONDS: Final = 180 * 86_400
_NONCE_BYTES: Final = 16
_ADDRESSES_OF_NAME: Final = 8
"""For one account."""
_SCOPE: Final = "%"


def network_of(host: str) -> str:
    """The unit that counts as one address: an IPv4 address, or an IPv6 /64, in which one computer chooses its own."""
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
    """`most` tries at once, and one more every `seconds`."""

    most: int
    seconds: float


class LoginRules(NamedTuple):
    """`account`: tries of one name from unknown places; `address`: of any name; `device`: of a known device."""

    account: Budget
    address: Budget
    address_long: Budget = Budget(60, 60)
    device: Budget = Budget(10, 60)


class LoginPlace(NamedTuple):
    """Origin of a login: `network` from `network_of`, `device` from `trusted_device`; either may be empty."""

    network: str
    device: str = ""


class LoginLimits:
    """In bounded memory. A try counts from its beginning and is taken back if the password was right."""

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
        """Whether there was a login to that account from there before."""
        return bool(place.device) or place.network in self._trusted.get(name, ())

    def begin(self, name: str, place: LoginPlace, *, exists: bool) -> int:
        """Whole seconds until the next try from there; 0: now, and the try counts. Names without an account (`exists`)
        are counted separately, so that they displace no account's budget."""
        budgets = self._budgets(name, place, exists=exists)
        wait = max((tries.wait(key, budget) for tries, key, budget in budgets), default=0.0)
        if wait > 0:
            return math.ceil(wait)
        for tries, key, budget in budgets:
            tries.add(key, budget, 1)
        return 0

    def uncount(self, name: str, place: LoginPlace, *, exists: bool) -> None:
        """Uncounts a try that did not happen."""
        for tries, key, budget in self._budgets(name, place, exists=exists):
            tries.add(key, budget, -1)

    def right(self, name: str, place: LoginPlace) -> None:
        """The password was right: the try does not count, and the address is remembered."""
        self.uncount(name, place, exists=True)
        if place.network:
            networks = self._trusted.setdefault(name, OrderedDict())
            networks[place.network] = None
            networks.move_to_end(place.network)
            _forget(networks, _ADDRESSES_OF_NAME)
            self._trusted.move_to_end(name)
            _forget(self._trusted, MAX_NAMES)

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
    """Tries by key; they decrease with time."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._limited: OrderedDict[Hashable, tuple[float, float]] = OrderedDict()

    def wait(self, key: Hashable, budget: Budget) -> float:
        return max(0.0, (self._level(key, budget) + 1 - budget.most) * budget.seconds)

    def add(self, key: Hashable, budget: Budget, count: int) -> None:
        self._limited[key] = max(0.0, self._level(key, budget) + count), self._clock()
        self._limited.move_to_end(key)
        _forget(self._limited, MAX_NAMES)

    def _level(self, key: Hashable, budget: Budget) -> float:
        level, at = self._limited.get(key, (0.0, 0.0))
        return max(0.0, level - (self._clock() - at) / budget.seconds)


def _forget(entries: OrderedDict[Any, Any], most: int) -> None:
    while len(entries) > most:
        entries.popitem(last=False)


def new_device(name: str, stored: str, now: float) -> str:
    """The cookie for a device that has just logged in to that account. It is signed with the stored password hash:
    nothing else is stored, every instance and every start of the program accepts it, and it ends with the password."""
    nonce, ends = secrets.token_urlsafe(_NONCE_BYTES), int(now) + DEVICE_SECONDS
    return f"{nonce}.{ends}.{_signed(name, stored, nonce, ends)}"


def trusted_device(cookie: str, name: str, stored: str | None, now: float) -> str:
    """The id of a device that has logged in to that account; empty for any other cookie."""
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
    """`seconds` until the next try."""

    def __init__(self, seconds: int) -> None:
        self.seconds = seconds
        super().__init__(f"too many wrong passwords; again in {seconds} s")


class Attempted(NamedTuple):
    """Name and password as typed, the address (empty if unknown) and the device's cookie."""

    name: str
    password: str
    address: str
    device: str = ""


class LoginGuard:
    """One for each program. Guesses take neither its memory nor the time of others, and lock no one out."""

    def __init__(self, rules: LoginRules, clock: Callable[[], float] = time.monotonic) -> None:
        self._limits = LoginLimits(rules, clock)
        self._turns = Turns()

    async def check(self, tried: Attempted, stored: str | None, now: float) -> bool:
        """`stored` is the person's hash; None (unknown name) takes the same time. `now` in seconds since 1970.
        Raises TooManyTries, or Busy."""
        exists = stored is not None
        device = trusted_device(tried.device, tried.name, stored, now)
        place = LoginPlace(network_of(tried.address), device)
        if wait := self._limits.begin(tried.name, place, exists=exists):
            raise TooManyTries(wait)
        try:
            async with self._turns.turn(place.network, is_trusted=self._limits.is_trusted(tried.name, place)):
                fitting = await asyncio.to_thread(fits, tried.password, stored or DUMMY_HASH)
        except BaseException:
            self._limits.uncount(tried.name, place, exists=exists)
            raise
        if not exists or not fitting:
            return False
        self._limits.right(tried.name, place)
        return True

    async def hash(self, password: str) -> str:
        """Hashes a new password of a person who is logged in. Raises Busy if too many passwords wait."""
        async with self._turns.turn(is_trusted=True):
            return await asyncio.to_thread(hash_password, password)
