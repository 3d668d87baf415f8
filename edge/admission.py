"""Which connections there may be, counted from TCP accept on: by address or IPv6 /64, before any handshake, before any byte is read.

Every connection begins as unknown. A valid key makes it one of the sandbox or a live one (a person who is logged in, too), and its
address a known one. When it gets tight, unknown connections are cut first, the oldest of the address that has most of them; then
those of the sandbox; live ones never. So whoever is new gets in as long as there is an unknown one to be cut.

Unknown ones get little time, too: their connections and requests come at a bounded rate, for each address and in all.
"""

from __future__ import annotations

import resource
from collections import OrderedDict
from collections.abc import Callable
from enum import IntEnum

import msgspec
import structlog

from edge.peer import peer

log = structlog.get_logger(__name__)

LOG_EVERY = 60.0
LONGEST_WAIT = 8.0
"""Seconds that a connection may wait for its handshake; one that would wait longer is refused."""
RESERVED_DESCRIPTORS = 128
"""For the ledger, the lines, what goes upstream, backups, and whoever is being refused."""
KNOWN_FOR = 3600.0
"""Seconds that an address is known after a valid key came from it."""
ADDRESSES = 4096


class ConnectionLimits(msgspec.Struct, frozen=True, kw_only=True):
    """`per_address` has to leave room for a shop's tills behind one address; `total` is less where the process may not open so many
    files. `unknown` and `sandboxed` are connections at once; rates are (a second, at once after a pause)."""

    idle_seconds: float = 75.0
    header_seconds: float = 10.0
    stall_seconds: float = 10.0
    body_seconds: float = 30.0
    write_seconds: float = 30.0
    linger_seconds: float = 5.0
    per_address: int = 250
    total: int = 800
    unknown_idle_seconds: float = 20.0
    unknown: int = 256
    sandboxed: int = 200
    header_bytes: int = 16 * 1024
    unknown_bytes: int = 16 * 1024
    known_arrivals: tuple[float, float] = (100.0, 200.0)
    arrivals: tuple[float, float] = (30.0, 250.0)
    arrivals_in_all: tuple[float, float] = (60.0, 15.0)
    requests: tuple[float, float] = (50.0, 50.0)
    requests_in_all: tuple[float, float] = (100.0, 10.0)


class Standing(IntEnum):
    UNKNOWN = 0
    SANDBOX = 1
    LIVE = 2


class Bucket:
    """So many a second, and so many at once after a pause."""

    __slots__ = ("_burst", "_free_at", "_step")

    def __init__(self, rate: tuple[float, float]) -> None:
        self._step = 1 / rate[0]
        self._burst = rate[1] * self._step
        self._free_at = float("-inf")

    def wait(self, now: float) -> float:
        """Seconds until the next is there."""
        return max(0.0, self._free_at - now)

    def reserve(self, now: float) -> float:
        """The next one, whenever it is there: the seconds until then."""
        wait = self.wait(now)
        self._free_at = max(self._free_at, now - self._burst) + self._step
        return wait


class Address:
    """What is known of an IPv4 address, or of an IPv6 /64."""

    __slots__ = ("arrivals", "known_until", "open", "requests", "unknown")

    def __init__(self, limits: ConnectionLimits) -> None:
        self.open = 0
        self.unknown: OrderedDict[Slot, None] = OrderedDict()
        self.known_until = float("-inf")
        self.arrivals = Bucket(limits.arrivals)
        self.requests = Bucket(limits.requests)


class Slot:
    """One connection, from its acceptance to its end. It has to `wait` so many seconds first; `cut` ends it at once."""

    __slots__ = ("_admission", "_left", "address", "cut", "standing", "wait")

    def __init__(self, admission: Admission, address: Address, wait: float) -> None:
        self.wait = wait
        self._admission = admission
        self._left = False
        self.address = address
        self.standing = Standing.UNKNOWN
        self.cut: Callable[[], object] = lambda: None

    @property
    def has_left(self) -> bool:
        return self._left

    def show(self, standing: Standing, now: float) -> None:
        """A valid key was shown on it."""
        if standing > self.standing and not self._left:
            self._admission.promote(self, standing)
        if standing is Standing.LIVE:
            self._admission.know(self.address, now)

    def pace(self, now: float) -> float:
        """Seconds that a stranger's request has to wait before it is worked on."""
        return self._admission.pace(self.address, now)

    def leave(self) -> None:
        if not self._left:
            self._left = True
            self._admission.leave(self)


class Admission:
    def __init__(self, limits: ConnectionLimits) -> None:
        self._limits = limits
        self._total = min(limits.total, _descriptors() - RESERVED_DESCRIPTORS)
        self._addresses: OrderedDict[str, Address] = OrderedDict()
        self._open = 0
        self._unknown = 0
        self._sandboxed: OrderedDict[Slot, None] = OrderedDict()
        self._arrivals = Bucket(limits.arrivals_in_all)
        self._requests = Bucket(limits.requests_in_all)
        self._told_at = float("-inf")

    def enter(self, host: str, now: float) -> Slot | None:
        """None when it has to be refused."""
        name = peer(host)
        address = self._address(name)
        wait = self._wait(address, now)
        if wait > LONGEST_WAIT or not self._make_room(address):
            self._tell(name, now)
            return None
        self._reserve(address, now)
        slot = Slot(self, address, wait)
        address.open += 1
        address.unknown[slot] = None
        self._open += 1
        self._unknown += 1
        return slot

    def promote(self, slot: Slot, standing: Standing) -> None:
        self._forget(slot)
        slot.standing = standing
        if standing is Standing.SANDBOX:
            self._sandboxed[slot] = None
            if len(self._sandboxed) > self._limits.sandboxed:
                self._cut(next(iter(self._sandboxed)))

    def know(self, address: Address, now: float) -> None:
        if address.known_until <= now:
            address.arrivals = Bucket(self._limits.known_arrivals)
        address.known_until = now + KNOWN_FOR

    def pace(self, address: Address, now: float) -> float:
        return max(address.requests.reserve(now), self._requests.reserve(now))

    def leave(self, slot: Slot) -> None:
        self._forget(slot)
        self._open -= 1
        slot.address.open -= 1

    def relieve(self, count: int) -> int:
        """Cuts so many unknown, or as many as there are; how many."""
        cut = 0
        while cut < count and self._cut_unknown(None):
            cut += 1
        return cut

    def _address(self, name: str) -> Address:
        address = self._addresses.pop(name, None) or Address(self._limits)
        self._addresses[name] = address
        if len(self._addresses) > ADDRESSES:
            quiet = next((known for known, entry in self._addresses.items() if not entry.open), None)
            if quiet is not None:
                del self._addresses[quiet]
        return address

    def _wait(self, address: Address, now: float) -> float:
        """Seconds until the next connection of that address may be worked on."""
        wait = address.arrivals.wait(now)
        return wait if address.known_until > now else max(wait, self._arrivals.wait(now))

    def _reserve(self, address: Address, now: float) -> None:
        address.arrivals.reserve(now)
        if address.known_until <= now:
            self._arrivals.reserve(now)

    def _make_room(self, address: Address) -> bool:
        if address.open >= self._limits.per_address and not self._cut_unknown(address):
            return False
        if self._unknown >= self._limits.unknown:
            self._cut_unknown(None)
        if self._open < self._total or self._cut_unknown(None):
            return True
        if self._sandboxed:
            self._cut(next(iter(self._sandboxed)))
            return True
        return False

    def _cut_unknown(self, address: Address | None) -> bool:
        """The oldest of that address, or of the one that has most of them; False when there is none."""
        if address is None:
            address = max(self._addresses.values(), key=lambda entry: len(entry.unknown), default=None)
        if address is None or not address.unknown:
            return False
        self._cut(next(iter(address.unknown)))
        return True

    def _cut(self, slot: Slot) -> None:
        slot.leave()
        slot.cut()

    def _forget(self, slot: Slot) -> None:
        if slot in slot.address.unknown:
            del slot.address.unknown[slot]
            self._unknown -= 1
        self._sandboxed.pop(slot, None)

    def _tell(self, name: str, now: float) -> None:
        if now - self._told_at > LOG_EVERY:
            self._told_at = now
            log.warning("connections.refused", address=name, open=self._open)


def _descriptors() -> int:
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return soft
