"""At most so many wrong keys a minute from one address (issue 7 item 5), in bounded memory."""

from __future__ import annotations

import contextlib
import math
import time
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Iterator

from common.login_guard import network_of
from daemon.api.refusals import TooManyRequests


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


RETRY_AFTER = 10


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
