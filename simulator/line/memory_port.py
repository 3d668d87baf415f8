"""A session as a port on the event loop: for tests, and for the sandbox machine in the daemon. Without pacing."""

import asyncio
from collections.abc import Callable

from simulator.line.replay import Replay
from simulator.line.session import LineSession, Paused, Sent


class PortLost(ConnectionError):
    """The simulated port vanished, or does not exist."""


class MemoryPort:
    """Answers are delivered by `call_soon`, delayed ones by `call_later`; none after `close`.

    One session survives its ports, as a machine survives its cable: a new MemoryPort on the same session is the same
    machine plugged in again. Raises PortLost if it is unplugged. `on_pause` receives the session's pause points. `rest`
    returns the seconds to leave to other work before each command."""

    def __init__(self, session: LineSession | Replay, rest: Callable[[], float] = lambda: 0.0) -> None:
        self._rest = rest
        self._loop = asyncio.get_running_loop()
        if not session.is_plugged(self._loop.time()):
            raise PortLost("the simulated machine is unplugged")
        self.session = session
        self.on_pause: Callable[[Paused], None] | None = None
        self._on_bytes: Callable[[bytes], None] | None = None
        self._on_lost: Callable[[Exception], None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._usable = True

    def attach(self, on_bytes: Callable[[bytes], None], on_lost: Callable[[Exception], None]) -> None:
        self._on_bytes = on_bytes
        self._on_lost = on_lost

    def write(self, data: bytes) -> None:
        if rest := self._rest():
            self._loop.call_later(rest, self._receive, data)
        else:
            self._receive(data)

    def _receive(self, data: bytes) -> None:
        if self._usable:
            self.session.receive(data, self._loop.time())
            self.pump()

    def pump(self) -> None:
        """Delivers due output; call it after a change of the session by hand (`resume`, `unplug`)."""
        now = self._loop.time()
        for output in self.session.poll(now):
            if not self._usable:
                return
            if isinstance(output, Sent):
                self._loop.call_soon(self._deliver, output.data)
            elif isinstance(output, Paused):
                if self.on_pause is not None:
                    self.on_pause(output)
            else:
                self._stop()
                self._loop.call_soon(self._deliver_loss)
        self._wake_later()

    def close(self) -> None:
        self._stop()
        self._on_bytes = self._on_lost = None

    def _wake_later(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        wake_at = self.session.wake_at()
        if wake_at is not None and self._usable:
            self._timer = self._loop.call_at(wake_at, self.pump)

    def _deliver(self, data: bytes) -> None:
        if self._on_bytes is not None and self._usable:
            self._on_bytes(data)

    def _deliver_loss(self) -> None:
        on_lost, self._on_lost = self._on_lost, None
        if on_lost is not None:
            on_lost(PortLost("the simulated machine was unplugged"))

    def _stop(self) -> None:
        self._usable = False
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
