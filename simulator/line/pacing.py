"""Bytes take the time they take on a real line: ten bits each, in both directions, by absolute deadlines."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from simulator.line.session import Output, Sent

_BITS_PER_BYTE = 10  # start, eight data, stop
_PIECE = 0.05  # seconds; a reply is handed over in pieces of at most that much line time
_STEP = 0.000001
_MOST = 0.0002
_SURELY = 0.00004
_LOOKED_BACK = 32


class Lateness:
    """How late this host is, in seconds. A real line has no such lateness, so it is made up for, but never by more than there was: nothing
    is quicker than its line.

    `least` of the last times, and no more than any host takes: so much can be taken off what was noticed late. `usual` is what three of four stay under: so much earlier somebody
    gets up who then waits for the exact moment; at most a fifth of a millisecond, for meanwhile the core is nobody else's."""

    def __init__(self, usual: float) -> None:
        self.usual = usual
        self._lately: deque[float] = deque([0.0], maxlen=_LOOKED_BACK)

    @property
    def least(self) -> float:
        return min(_SURELY, *self._lately)

    def learn(self, late: float) -> None:
        self._lately.append(max(0.0, late))
        step = 3 * _STEP if late > self.usual else -_STEP
        self.usual = min(max(0.0, self.usual + step), _MOST)


class PacedLine:
    """Sans-I/O. `baud` 0 does not pace. Lateness of the host does not add up: each deadline is counted from the one
    before it, or from the time the sender was ready."""

    def __init__(self, baud: int) -> None:
        self._byte_time = _BITS_PER_BYTE / baud if baud else 0.0
        self._piece = max(1, int(_PIECE / self._byte_time)) if baud else 0
        self._arriving: deque[tuple[float, bytes]] = deque()
        self._leaving: deque[tuple[float, Output]] = deque()
        self._in_busy_until = self._out_busy_until = float("-inf")

    @property
    def is_paced(self) -> bool:
        return self._byte_time > 0

    def enter(self, data: bytes, now: float) -> None:
        """The client has written; the last byte arrives when the line has carried them all."""
        self._in_busy_until = max(self._in_busy_until, now) + len(data) * self._byte_time
        self._arriving.append((self._in_busy_until, data))

    def arrived(self, now: float) -> Iterator[tuple[float, bytes]]:
        """With the time at which each was complete."""
        while self._arriving and self._arriving[0][0] <= now:
            yield self._arriving.popleft()

    def leave(self, output: Output) -> None:
        """What is not bytes keeps its place among them."""
        if not isinstance(output, Sent):
            self._leaving.append((max(self._out_busy_until, output.at), output))
            return
        data = output.data
        start = max(self._out_busy_until, output.at)
        step = self._piece or len(data)
        for offset in range(0, len(data), step):
            piece = data[offset : offset + step]
            due = start + (offset + len(piece)) * self._byte_time
            self._leaving.append((due, Sent(due, piece)))
        self._out_busy_until = start + len(data) * self._byte_time

    def left(self, now: float) -> Iterator[Output]:
        """What the client may see by now."""
        while self._leaving and self._leaving[0][0] <= now:
            yield self._leaving.popleft()[1]

    def next_at(self) -> float | None:
        times = [queue[0][0] for queue in (self._arriving, self._leaving) if queue]
        return min(times, default=None)

    def clear(self) -> None:
        """The cable is out: what was on it is lost, what is not bytes stays."""
        self._arriving.clear()
        self._leaving = deque(entry for entry in self._leaving if not isinstance(entry[1], Sent))
