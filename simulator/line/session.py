"""One machine on one line: bytes in, bytes out, with the time as an argument. No I/O.

The host calls `receive` with arrived bytes, `poll` for due output, and again at `wake_at`. All times are seconds of one
monotonic clock. Outputs have the time at which they leave the machine, so that a late host can still keep the pace."""

import heapq
from collections import deque
from collections.abc import Callable, Iterator
from typing import Literal, NamedTuple

from bridge.frame import NAK, SYN, Decoder, Garbage, MachineReply, Request, encode
from simulator.line.faults import FaultPlan, Struck
from simulator.machine.machine import SimulatedMachine

SYN_GAP = 0.1
_STORM_GAP = 0.02
_DOZES_AFTER = 2.0
_INBOX_MOST = 64  # frames; the buffer of a busy machine is limited
_NEVER = float("-inf")

When = Literal["before", "after"]
Direction = Literal["in", "out"]


class Sent(NamedTuple):
    at: float
    data: bytes


class Point(NamedTuple):
    """The `frame`-th frame in one direction, counted from 1. In: before or after its execution. Out: before its first
    byte or after its last."""

    frame: int
    when: When
    direction: Direction


class Paused(NamedTuple):
    at: float
    point: Point


class Unplugged(NamedTuple):
    at: float


Output = Sent | Paused | Unplugged


class Arrival(NamedTuple):
    request: Request
    number: int
    struck: Struck
    at: float


class LineSession:
    """`think`: seconds that every command takes. `keep` is called after every executed command, before its answer
    leaves: it makes the fiscal memory durable."""

    def __init__(
        self,
        machine: SimulatedMachine,
        *,
        plan: FaultPlan | None = None,
        think: float = 0.0,
        keep: Callable[[], None] | None = None,
    ) -> None:
        self.machine = machine
        self.plan = plan or FaultPlan()
        self.think = think
        self.frames_in = self.frames_out = self.naks = self.syns = 0
        self.bytes_in = self.bytes_out = 0
        self.stop_point: Point | None = None
        self._keep = keep
        self._points: set[Point] = set()
        self._inbox: deque[Arrival] = deque()
        self._ready: list[Output] = []
        self._later: list[tuple[float, int, bytes]] = []
        self._order = 0
        self._work: Iterator[float] | None = None
        self._work_at = _NEVER
        self._free_at = _NEVER
        self._deaf_until = _NEVER
        self._unplugged_until = _NEVER
        self._decoder = Decoder()
        self._as_heard = Decoder()
        self._last: MachineReply | None = None

    # --- the host's side ------------------------------------------------------------------------------------

    def receive(self, data: bytes, now: float) -> None:
        if now < self._deaf_until or now < self._unplugged_until:
            return
        self.bytes_in += len(data)
        if self.machine.options.echo:
            self._ready.append(Sent(now, data))
        decoder = self._decoder
        decoder.receive(data)
        while not isinstance(event := decoder.next_event(), type):
            if isinstance(event, Request):
                self.frames_in += 1
                if len(self._inbox) < _INBOX_MOST:
                    self._inbox.append(Arrival(event, self.frames_in, self.plan.strike(event.cmd), now))
            elif isinstance(event, Garbage) and event.reason != "noise":
                self._say_nak(now)

    def poll(self, now: float) -> list[Output]:
        """Output that has left the machine by `now`, in order."""
        self._advance(now)
        while self._later and self._later[0][0] <= now:
            at, _, data = heapq.heappop(self._later)
            self._ready.append(Sent(at, data))
        ready, self._ready = self._ready, []
        self.bytes_out += sum(len(output.data) for output in ready if isinstance(output, Sent))
        return ready

    def wake_at(self) -> float | None:
        """Time at which `poll` has something to do without new bytes."""
        later = self._later[0][0] if self._later else None
        if self._work is None or self.stop_point is not None:
            return later
        return self._work_at if later is None else min(later, self._work_at)

    def is_plugged(self, now: float) -> bool:
        return now >= self._unplugged_until

    @property
    def plugged_at(self) -> float:
        """Time at which the port is back; in the past if it is there."""
        return self._unplugged_until

    # --- by hand ---------------------------------------------------------------------------------------------

    def pause_at(self, point: Point) -> None:
        self._points.add(point)

    def resume(self) -> None:
        self.stop_point = None

    def unplug(self, now: float, seconds: float) -> None:
        """The port vanishes; the machine's state stays."""
        self._drop_line()
        self._unplugged_until = now + seconds
        self._ready.append(Unplugged(now))

    def plug(self) -> None:
        self._unplugged_until = _NEVER

    def cut_power(self, now: float, seconds: float, nim: str = "") -> None:
        """Off now, back after `seconds`: open invoice and last SEQ are lost."""
        self._drop_line()
        self._work = None
        self.stop_point = None
        self._last = None
        self.machine.reboot(nim)
        self._be_deaf(now, seconds)

    def silence(self, now: float, seconds: float) -> None:
        self._inbox.clear()
        self._be_deaf(now, seconds)

    # --- inside ----------------------------------------------------------------------------------------------

    def _be_deaf(self, now: float, seconds: float) -> None:
        """Zero seconds mean no deafness: a host that corrects its lateness reports bytes slightly before their time."""
        self._deaf_until = now + seconds if seconds else _NEVER

    def _drop_line(self) -> None:
        self._inbox.clear()
        self._later.clear()
        self._decoder, self._as_heard = Decoder(), Decoder()

    def _advance(self, now: float) -> None:
        while self.stop_point is None:
            if self._work is None:
                if not self._inbox:
                    return
                self._work, self._work_at = self._exchange(self._inbox.popleft()), _NEVER
            if now < self._work_at:
                return
            until = next(self._work, None)
            if until is None:
                self._work = None
            else:
                self._work_at = until

    def _exchange(self, arrival: Arrival) -> Iterator[float]:
        """One request from its arrival to its answer; yields the times to continue at."""
        request, number, struck, arrived = arrival
        if self._points:
            yield from self._pause(Point(number, "before", "in"), arrived)
        if struck and self._is_lost(request, struck, arrived):
            return
        at = max(arrived, self._free_at)
        repeated = self._last if self._last and self._last.seq == request.seq else None
        if not repeated:
            for until in self._working(request, struck, at):
                at = until
                yield until
        self._free_at = at
        previous = self._last
        reply = repeated or self._execute(request, struck)
        if self._points:
            yield from self._pause(Point(number, "after", "in"), at)
        if struck and self._is_struck(struck, at, cut="cut-executed", unplug="unplug"):
            return
        self.frames_out += 1
        if self._points:
            yield from self._pause(Point(self.frames_out, "before", "out"), at)
        self._answer(reply, previous, struck, at)
        if self._points:
            yield from self._pause(Point(self.frames_out, "after", "out"), at)
        if struck:
            self._is_struck(struck, at, cut="cut-after", unplug="unplug-after")

    def _pause(self, point: Point, at: float) -> Iterator[float]:
        if point in self._points:
            self._points.remove(point)
            self.stop_point = point
            self._ready.append(Paused(at, point))
            yield _NEVER

    def _is_lost(self, request: Request, struck: Struck, at: float) -> bool:
        """Whether a fault prevents the execution of this request."""
        if self._is_struck(struck, at, cut="cut-before", unplug="unplug-before"):
            return True
        if "silent" in struck:
            self.silence(at, float(struck["silent"]))
            return True
        if "nak" in struck:
            self._say_nak(at)
        if "drop-request" in struck or "nak" in struck:
            return True
        return not self._is_heard(request, struck, at)

    def _is_heard(self, request: Request, struck: Struck, at: float) -> bool:
        """Feeds the machine's own decoder, which may have seen a flipped bit in this request or an earlier one."""
        data = encode(request)
        self._as_heard.receive(self.plan.flip(data) if "flip-request" in struck else data)
        heard = False
        while not isinstance(event := self._as_heard.next_event(), type):
            heard = heard or event == request
            if isinstance(event, Garbage) and event.reason != "noise":
                self._say_nak(at)
        return heard

    def _is_struck(self, struck: Struck, at: float, *, cut: str, unplug: str) -> bool:
        if cut in struck:
            self.cut_power(at, float(struck[cut]))
        if unplug in struck:
            self.unplug(at, float(struck[unplug]))
        return cut in struck or unplug in struck

    def _working(self, request: Request, struck: Struck, at: float) -> Iterator[float]:
        """Yields the times of SYNs and of the end, for a command that takes time."""
        if "syn-storm" in struck:
            end = at + float(struck["syn-storm"])
            yield from self._syns(at, end, _STORM_GAP)
            yield end
            at = end
        delay = self.machine.delay(request.cmd, request.data)
        seconds = self.think + delay.seconds
        silent = delay.silent
        if self.machine.options.wake and at - self._free_at > _DOZES_AFTER:
            seconds, silent = seconds + self.machine.options.wake, True
        if "slow" in struck:
            seconds, silent = seconds + float(struck["slow"]), True
        seconds += float(struck.get("work", 0))
        if seconds > 0:
            if not silent:
                yield from self._syns(at, at + seconds, SYN_GAP)
            yield at + seconds

    def _syns(self, start: float, end: float, gap: float) -> Iterator[float]:
        count = 1
        while (at := start + count * gap) < end:
            yield at
            self.syns += 1
            self._ready.append(Sent(at, bytes((SYN,))))
            count += 1

    def _execute(self, request: Request, struck: Struck) -> MachineReply:
        if "lose-invoice" in struck:
            self.machine.lose_invoice()
        if "foreign" in struck:
            self.machine.certify_foreign(total=int(struck["foreign"]))
        if "refuse" in struck:
            data, status = self.machine.refuse(struck["refuse"])
        else:
            data, status = self.machine.execute(request.cmd, request.data)
        if self._keep:
            self._keep()
        if "nonsense" in struck:
            data = self.plan.rubbish()
        self._last = MachineReply(request.seq, request.cmd, data, status)
        return self._last

    def _answer(self, reply: MachineReply, previous: MachineReply | None, struck: Struck, at: float) -> None:
        if not struck:
            self._send(encode(reply), at)
            return
        for delay, data in self.plan.distort(reply, previous, struck):
            if delay:
                self._send_later(data, at + delay)
            else:
                self._ready.append(Sent(at, data))

    def _send(self, frame: bytes, at: float) -> None:
        apart = self.machine.options.halves
        half = len(frame) // 2 if apart else len(frame)
        self._ready.append(Sent(at, frame[:half]))
        if apart:
            self._send_later(frame[half:], at + apart)

    def _send_later(self, data: bytes, at: float) -> None:
        self._order += 1
        heapq.heappush(self._later, (at, self._order, data))

    def _say_nak(self, at: float) -> None:
        self.naks += 1
        self._ready.append(Sent(at, bytes((NAK,))))
