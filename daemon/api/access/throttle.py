"""At most so many wrong keys a minute from one address (issue 7 item 5), in bounded memory. What the sandbox may take of the daemon while tills
certify: a share of its processor time, and a few requests at once. A test key is a developer's, and what it asks may be as large as anything:
a live sale must not notice. While no live key has been used for a minute the sandbox has the box to itself, but for the number of requests."""

from __future__ import annotations

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
"""Of the processor's time, over some seconds."""
CREDIT: Final = 1.0
"""Seconds of waiting that a pause saves up."""
APART: Final = 0.1
"""Seconds from one's beginning to the next one's, longer than most sales: to read an invoice of a thousand lines holds the loop up for
20 ms, and those that waited for the same moment were all read in one sale."""
LIVE_FOR: Final = 60.0
RATE_SECONDS: Final = 60.0

LetPass = Callable[[], Awaitable[None]]


class WrongKeys:
    """The last `limit` failures of each address; the address that has been quiet longest is forgotten first."""

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
        """Whole seconds until this address may try again; 0 when it may now."""
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
    """How often keys that have a rate were used within the last minute."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._uses: dict[int, deque[float]] = {}

    def note(self, key: ApiKey) -> None:
        """TooManyRequests when it was used as often as it may."""
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
        """TooManyRequests when they are all taken."""
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
    """There is no till."""


class SandboxShare:
    """What a request took is measured by the processor time of all threads meanwhile: those that read a page's rows hold up the loop as
    well. Too much rather than too little, since whatever else ran then is counted too."""

    def __init__(self, clock: Callable[[], float] = time.monotonic, let_pass: LetPass = no_wait) -> None:
        """`let_pass` returns when no till is waiting just now, or has gone first for long enough."""
        self._clock = clock
        self._let_pass = let_pass
        self._live_at = float("-inf")
        self._next = float("-inf")
        self._began = float("-inf")
        self._places = asyncio.Semaphore(AT_ONCE)

    def note_live(self) -> None:
        self._live_at = self._clock()

    async def enter(self) -> Callable[[], None]:
        """When it may begin; to be called when it is over."""
        await self._places.acquire()
        try:
            await self._let_pass()
            while (wait := max(self._next, self._began + APART) - self._clock()) > 0 and self._is_live:
                await asyncio.sleep(wait)
                await self._let_pass()
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
