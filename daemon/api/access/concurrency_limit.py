"""How many long answers of one kind a key may have open at once."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterator

from daemon.api.refusals import TooManyRequests

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
