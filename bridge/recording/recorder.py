"""What moves on one line, noted in memory: a till waits for none of it; somebody else takes it and keeps it."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from datetime import UTC, datetime

from bridge.recording.recording import LINK_BEGINS, LINK_ENDS, NOTE, RECEIVED, SENT, Kind, LineEvent

MINUTE = 60_000_000_000
LONGEST_INCIDENT = 10 * MINUTE
"""Nanoseconds: a line that is bad for hours makes one incident after the other, not one without end."""
MOST_EVENTS = 20_000
"""Held while nobody takes them (a disk that stalls); the oldest go first."""
CLOCK_STEP = 50_000
"""Microseconds by which the box's clock may drift before the events' times follow it."""


class Recorder:
    """`on_event(urgent)` is told of the first event that nobody has taken, and, urgently, of the beginning of an incident. `clock`
    counts nanoseconds and never goes back."""

    def __init__(self, on_event: Callable[[bool], None], clock: Callable[[], int] = time.monotonic_ns) -> None:
        self.incident = ""
        """The one that was told last, whether or not it is over."""
        self._on_event = on_event
        self._events: deque[tuple[int, Kind, bytes]] = deque(maxlen=MOST_EVENTS)
        self._lost = 0
        self._incident_began = self._incident_until = 0
        self._clock = clock
        self._epoch = _epoch(clock)

    def sent(self, data: bytes) -> None:
        self._add(SENT, data)

    def received(self, data: bytes) -> None:
        self._add(RECEIVED, data)

    def note(self, text: str) -> None:
        """Why the driver did what it did; never anything that the machine or a till said."""
        self._add(NOTE, text.encode())

    def odd(self, why: str) -> str:
        """The same, of something that is worth a file of its own: its name. What follows within a minute belongs to it."""
        now = self._clock()
        if now >= self._incident_until or now - self._incident_began > LONGEST_INCIDENT:
            self.incident = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
            self._incident_began = now
        self._incident_until = now + MINUTE
        self.note(why)
        self._on_event(True)
        return self.incident

    @property
    def under_way(self) -> str:
        """The incident whose minute is not over."""
        return self.incident if self._clock() < self._incident_until else ""

    def take(self) -> list[LineEvent]:
        """What nobody has taken yet; from then on it is the caller's."""
        taken = list(self._events)
        self._events.clear()
        lost, self._lost = self._lost, 0
        epoch = _epoch(self._clock)
        if abs(epoch - self._epoch) > CLOCK_STEP:
            self._epoch = epoch
        events = [LineEvent(self._epoch + at // 1000, kind, data) for at, kind, data in taken]
        if lost and events:
            events.insert(0, LineEvent(events[0].at, NOTE, f"{lost} events before this were not kept".encode()))
        return events

    def _add(self, kind: Kind, data: bytes) -> None:
        events = self._events
        if not events:
            self._on_event(False)
        elif len(events) == MOST_EVENTS:
            self._lost += 1
        events.append((self._clock(), kind, data))


class LinkRecord:
    """One connection's part of a recording, or of none. On a line that has not answered yet nothing is odd: while a machine is
    switched off, the incidents that are kept would soon all be of that."""

    def __init__(self, recorder: Recorder | None) -> None:
        self.has_answered = False
        self._recorder = recorder
        if recorder is not None:
            recorder.note(LINK_BEGINS)

    @property
    def incident(self) -> str:
        """The one under way, empty without one."""
        return "" if self._recorder is None else self._recorder.under_way

    def sent(self, data: bytes) -> None:
        if self._recorder is not None:
            self._recorder.sent(data)

    def received(self, data: bytes) -> None:
        if self._recorder is not None:
            self._recorder.received(data)

    def odd(self, why: str) -> str:
        """The incident that it belongs to, empty when there is none."""
        if self._recorder is None:
            return ""
        if self.has_answered:
            return self._recorder.odd(why)
        self._recorder.note(why)
        return ""

    def ended(self, why: str) -> None:
        if self._recorder is not None:
            self._recorder.note(f"{LINK_ENDS}: {why}")


def _epoch(clock: Callable[[], int]) -> int:
    """When that clock was 0, in microseconds since 1970."""
    return (time.time_ns() - clock()) // 1000
