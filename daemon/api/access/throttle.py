"""At most so many wrong keys a minute from one address (issue 7 item 5), in bounded memory."""

from __future__ import annotations

import math
import time
from collections import OrderedDict, deque
from collections.abc import Callable

from common.login_limits import network_of


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
