"""Limits for wrong keys by address, and for the sandbox.

While tills certify, requests with a test key get a share of the processor's time and a few places at once: a
developer's requests, however large, must not slow a live sale. If no live key was used for a minute, only the number of
places counts."""

import asyncio
import contextlib
import math
import time
from collections import Counter, OrderedDict, deque
from collections.abc import Awaitable, Callable, Iterator
from typing import Final

from common.language import Text
from common.login_guard import network_of
from daemon.api.refusals import TooManyRequests
from daemon.core.keys import ApiKey

RETRY_AFTER = 10

AT_ONCE: Final = 4
SHARE: Final = 0.15
"""Share of the processor's time, over some seconds."""
CREDIT: Final = 1.0
"""Seconds of processor time that a pause may save up."""
APART: Final = 0.1
"""Seconds between two starts, longer than most sales: reading an invoice of a thousand lines blocks the loop for 20 ms,
so several at once would all delay one sale."""
LIVE_FOR: Final = 60.0
RATE_SECONDS: Final = 60.0

YieldToTills = Callable[[], Awaitable[None]]


class WrongKeys:
    """The last `limit` failures of each address, in bounded memory; the longest unused address goes first."""

    def __init__(
        self,
        limit: int = 10,
        window: float = 60.0,
        capacity: int = 4096,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.limit = limit
        self.window = window
        self.capacity = capacity
        self._clock = clock
        self._failures: OrderedDict[str, deque[float]] = OrderedDict()

    def wait(self, address: str) -> int:
        """Whole seconds until this address may try again; 0 for now."""
        failures = self._failures.get(network_of(address))
        if failures is None or len(failures) < self.limit:
            return 0
        return max(0, math.ceil(failures[0] + self.window - self._clock()))

    def note(self, address: str) -> None:
        name = network_of(address)
        failures = self._failures.pop(name, None) or deque(maxlen=self.limit)
        failures.append(self._clock())
        self._failures[name] = failures
        if len(self._failures) > self.capacity:
            self._failures.popitem(last=False)


class KeyRates:
    """Counts uses within the last minute of keys with a rate."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._uses: dict[int, deque[float]] = {}

    def note(self, key: ApiKey) -> None:
        """Counts a use; TooManyRequests beyond the key's rate."""
        if not key.rate:
            return
        uses, now = self._uses.setdefault(key.id, deque(maxlen=key.rate)), self._clock()
        if len(uses) == key.rate and (wait := uses[0] + RATE_SECONDS - now) > 0:
            raise TooManyRequests(Text("this key may make {rate} requests a minute", rate=key.rate), math.ceil(wait))
        uses.append(now)


class ConcurrencyLimit:
    def __init__(self, per_key: int) -> None:
        self._per_key = per_key
        self._taken: Counter[int | str] = Counter()

    @contextlib.contextmanager
    def take(self, key_id: int | str) -> Iterator[None]:
        """Takes a place for the request; TooManyRequests if none is free."""
        if self._taken[key_id] >= self._per_key:
            detail = f"this key has {self._per_key} answers of this kind open, and may not have more"
            raise TooManyRequests(detail, RETRY_AFTER)
        self._taken[key_id] += 1
        try:
            yield
        finally:
            self._taken[key_id] -= 1
            if not self._taken[key_id]:
                del self._taken[key_id]


async def no_wait() -> None:
    """Returns at once, without a live till."""


class SandboxShare:
    """The sandbox's share of processor time. A request is charged the processor time of all threads while it runs,
    since readers slow the loop too; that overestimates it if other work runs."""

    def __init__(self, clock: Callable[[], float] = time.monotonic, yield_to_tills: YieldToTills = no_wait) -> None:
        """`yield_to_tills` returns when no till waits, or tills have gone first for long enough."""
        self._clock = clock
        self._yield_to_tills = yield_to_tills
        self._live_at = float("-inf")
        self._next = float("-inf")
        self._began = float("-inf")
        self._places = asyncio.Semaphore(AT_ONCE)

    def note_live(self) -> None:
        self._live_at = self._clock()

    async def enter(self) -> Callable[[], None]:
        """Returns when the request may begin; the result has to be called at its end."""
        await self._places.acquire()
        try:
            await self._yield_to_tills()
            while (wait := max(self._next, self._began + APART) - self._clock()) > 0 and self._is_live:
                await asyncio.sleep(wait)
                await self._yield_to_tills()
        except BaseException:
            self._places.release()
            raise
        self._began = self._clock()
        began = time.process_time()

        def leave() -> None:
            self._places.release()
            self._charge(time.process_time() - began)

        return leave

    @property
    def _is_live(self) -> bool:
        return self._clock() - self._live_at < LIVE_FOR

    def _charge(self, seconds: float) -> None:
        if self._is_live:
            self._next = max(self._next, self._clock() - CREDIT) + seconds / SHARE
