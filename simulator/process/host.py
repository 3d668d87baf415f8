"""One loop that blocks: a session on a pseudo-terminal, paced, with the control socket beside it."""

from __future__ import annotations

import contextlib
import os
import select
import socket
import time
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path

import msgspec

from simulator.control.control_socket import Control
from simulator.line.pacing import Lateness, PacedLine
from simulator.line.replay import Replay
from simulator.line.session import LineSession, Output, Paused, Sent
from simulator.line.terminal import Terminal

_SLACK = Path("/proc/self/timerslack_ns")
_WAKING = 0.00004  # seconds; what to begin with


@dataclass
class Host:
    """Runs until there is a byte on the descriptor `wakeup`.

    The system wakes us late, and a line does not. So we get up earlier and hand a reply over when its last byte would have arrived, to the
    microsecond, and a request counts from when it must have been written: earlier by what a waking has taken at least. What took longer, and what
    the pseudo-terminal takes to carry bytes, stays visible: no answer is there before its line could have brought it."""

    session: LineSession | Replay
    terminal: Terminal
    line: PacedLine
    _: KW_ONLY
    wakeup: int
    control: Control | None = None
    _stopping: bool = field(default=False, init=False)
    waking: Lateness = field(default_factory=lambda: Lateness(_WAKING), init=False)
    ready: Lateness = field(default_factory=lambda: Lateness(_WAKING), init=False)

    def run(self) -> None:
        with contextlib.suppress(OSError):
            _SLACK.write_text("1")  # else every sleep is 50 µs too long, which at 115 200 bit/s is half a byte
        while not self._stopping:
            self._work()
            if not self._stopping:
                self._wait()

    def _work(self) -> None:
        now = time.monotonic() + self.ready.usual
        if not self.terminal.is_plugged and self.session.is_plugged(now):
            self.terminal.plug()
            self._tell({"event": "plugged"})
        for at, data in self.line.arrived(now):
            self.session.receive(data, at)
        for output in self.session.poll(now):
            self.line.leave(output)
        for output in self.line.left(now):
            self._perform(output)

    def _perform(self, output: Output) -> None:
        if isinstance(output, Sent):
            if self.line.is_paced:
                self.ready.learn(time.monotonic() - output.at + self.ready.usual)
                while time.monotonic() < output.at:
                    pass
            if self.terminal.is_plugged:
                self.terminal.write(output.data)
        elif isinstance(output, Paused):
            frame, when, direction = output.point
            self._tell({"event": "paused", "frame": frame, "when": when, "direction": direction})
        else:
            self.line.clear()
            self.terminal.unplug()
            self._tell({"event": "unplugged"})

    def _wait(self) -> None:
        """Until there are bytes, orders, a signal, or something is due."""
        ours: list[int | socket.socket] = [self.wakeup]
        if self.terminal.is_plugged:
            ours.append(self.terminal.fileno())
        clients = self.control.readers() if self.control else []
        slow = self.control.writers() if self.control else []
        began, timeout = time.monotonic(), self._timeout()
        ready, writable, _ = select.select([*ours, *clients], slow, [], timeout)
        now = time.monotonic()
        if not ready and timeout:
            self.waking.learn(now - began - timeout)
        if self.terminal.fileno() in ready:
            self.line.enter(self.terminal.read(), now - self.waking.least)
        if self.wakeup in ready:
            os.read(self.wakeup, 1)
            self._stopping = True
        if self.control:
            self.control.serve(ready, writable)

    def _timeout(self) -> float | None:
        times = [self.line.next_at(), self.session.wake_at()]
        if not self.terminal.is_plugged and self.session.plugged_at != float("inf"):
            times.append(self.session.plugged_at)
        due = min((at for at in times if at is not None), default=None)
        return None if due is None else max(0.0, due - self.ready.usual - time.monotonic())

    def _tell(self, event: dict[str, object]) -> None:
        if self.control:
            self.control.tell(msgspec.json.encode(event) + b"\n")
