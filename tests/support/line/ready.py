"""What may be read or written without a wait. `select.select` takes no descriptor beyond 1 023, and a worker of the tests may have more open."""

import selectors
from typing import Any


def ready(*ends: Any, timeout: float, to: int = selectors.EVENT_READ) -> list[Any]:
    """Those of the files, sockets or descriptors on which that can be done within so many seconds."""
    with selectors.DefaultSelector() as selector:
        for end in ends:
            selector.register(end, to)
        return [key.fileobj for key, _ in selector.select(timeout)]
