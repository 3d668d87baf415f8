"""Orders of a test to a running machine, and the socket for them: one JSON object per line, one JSON object back
(docs/simulator.md). For any number of clients, inside the simulator's one loop."""

from __future__ import annotations

import contextlib
import operator
import socket
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property, reduce
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import UNSET, UnsetType

from simulator.line.faults import FaultPlan
from simulator.line.session import Direction, LineSession, Point, When
from simulator.machine.machine import SimulatedMachine
from simulator.machine.options import MachineClock, SimulatorOptions
from simulator.machine.working_state import Mode

Answer = dict[str, Any]
_CHUNK = 65_536
_LINE_MOST = 65_536
_CLIENT_SECONDS = 5.0
"""In which a client has to take an answer or event; otherwise its connection is closed."""


@dataclass(frozen=True, kw_only=True)
class Operator:
    """`now` is the session's time; `keep` stores the fiscal memory durably, before the answer to an order that changed
    it; `stop` ends the simulator."""

    session: LineSession
    clock: MachineClock
    now: Callable[[], float]
    keep: Callable[[], None]
    stop: Callable[[], None]

    @property
    def machine(self) -> SimulatedMachine:
        return self.session.machine

    @cached_property
    def _decoder(self) -> msgspec.json.Decoder[_Order]:
        return msgspec.json.Decoder(Order)

    def obey(self, line: bytes) -> bytes:
        """Carries out one order; order and answer are a line of JSON. Never raises for the content of the line."""
        answer: Answer
        try:
            answer = {"ok": True} | (self._decoder.decode(line).carry_out(self) or {})
            self.keep()
        except (ValueError, msgspec.MsgspecError) as error:
            answer = {"ok": False, "error": str(error)}
        return msgspec.json.encode(answer) + b"\n"

    def set_memory(self, changes: dict[str, Any]) -> None:
        fiscal = self.machine.fiscal
        fiscal.restore(msgspec.structs.replace(fiscal.snapshot(), **changes))


class _Order(msgspec.Struct, tag_field="do", forbid_unknown_fields=True, kw_only=True):
    def carry_out(self, on: Operator) -> Answer | None:
        """Returns the content of the answer besides `ok`."""
        raise NotImplementedError  # each order overrides it; the base class is never decoded (`Order`)

    def _changes(self) -> dict[str, Any]:
        return {name: value for name, value in msgspec.structs.asdict(self).items() if value is not UNSET}


class Unplug(_Order, tag="unplug"):
    """`seconds` null: until plug."""

    seconds: float | None = None

    def carry_out(self, on: Operator) -> None:
        on.session.unplug(on.now(), _or_ever(self.seconds))


class Plug(_Order, tag="plug"):
    def carry_out(self, on: Operator) -> None:
        on.session.plug()


class Reboot(_Order, tag="reboot"):
    """A power cut for `seconds`; with `nim`, another machine comes up."""

    seconds: float = 0.3
    nim: str = ""

    def carry_out(self, on: Operator) -> None:
        on.session.cut_power(on.now(), self.seconds, self.nim)


class ForeignInvoice(_Order, tag="foreign-invoice"):
    total: int = 1000
    type: Literal["FV", "FT", "EV", "ET", "FA", "EA"] = "FV"
    number: str = ""

    def carry_out(self, on: Operator) -> Answer:
        return {"last": on.machine.certify_foreign(number=self.number, invoice_type=self.type, total=self.total)}


class LoseInvoice(_Order, tag="lose-invoice"):
    def carry_out(self, on: Operator) -> None:
        on.machine.lose_invoice()


class LeaveOpen(_Order, tag="leave-open"):
    """Another program begins an invoice and goes away."""

    def carry_out(self, on: Operator) -> None:
        on.machine.leave_open()


class SilenceOrder(_Order, tag="silence"):
    """`seconds` null: until speak."""

    seconds: float | None = None

    def carry_out(self, on: Operator) -> None:
        on.session.silence(on.now(), _or_ever(self.seconds))


class Speak(_Order, tag="speak"):
    def carry_out(self, on: Operator) -> None:
        on.session.silence(on.now(), 0.0)


class AddFault(_Order, tag="fault"):
    spec: str

    def carry_out(self, on: Operator) -> None:
        on.session.plan.add(self.spec)


class SetFaults(_Order, tag="faults"):
    """Replaces all faults; an empty spec ends them."""

    spec: str = ""
    seed: int = 0

    def carry_out(self, on: Operator) -> None:
        on.session.plan = FaultPlan(self.spec, self.seed)


class SetMode(_Order, tag="mode"):
    mode: Mode

    def carry_out(self, on: Operator) -> None:
        on.machine.mode = self.mode


class TaxServerOrder(_Order, tag="tax-server"):
    """Changes only the given values; `last_contact` in 14 digits."""

    reachable: bool | UnsetType = UNSET
    acknowledged: int | UnsetType = UNSET
    last_contact: str | UnsetType = UNSET
    state: Literal["CON", "TRA", "DIS"] | UnsetType = UNSET
    error: str | UnsetType = UNSET

    def carry_out(self, on: Operator) -> None:
        changes, fiscal = self._changes(), on.machine.fiscal
        fiscal.reachable = changes.pop("reachable", fiscal.reachable)
        fiscal.server_state = changes.pop("state", fiscal.server_state)
        on.set_memory({"server_error" if name == "error" else name: value for name, value in changes.items()})


class SetClock(_Order, tag="clock"):
    """`now` in 14 digits, or `offset` in seconds from the true time."""

    now: str = ""
    offset: float = 0.0

    def carry_out(self, on: Operator) -> None:
        if self.now:
            on.clock.set(datetime.strptime(self.now, "%Y%m%d%H%M%S").replace(tzinfo=UTC))
        else:
            on.clock.offset = timedelta(seconds=self.offset)


class Think(_Order, tag="think"):
    ms: float

    def carry_out(self, on: Operator) -> None:
        on.session.think = self.ms / 1000


def _set_options(self: _Order, on: Operator) -> None:
    changes = self._changes()
    if "rates" in changes:
        changes["rates"] = {**on.machine.options.rates, **changes["rates"]}
    on.machine.change(**changes)


SetOptions = msgspec.defstruct(
    "SetOptions",
    [
        (each.name, each.type | UnsetType, UNSET)
        for each in msgspec.structs.fields(SimulatorOptions)
        if each.name not in ("nim", "taxpayer", "server_interval", "log_limit")
    ],
    bases=(_Order,),
    tag="options",
    namespace={"carry_out": _set_options},
)
"""See `options.SimulatorOptions`; `rates`: hundredths of a percent of the changed groups."""


class SetCounters(_Order, tag="counters"):
    tc: int | UnsetType = UNSET
    fvc: int | UnsetType = UNSET
    frc: int | UnsetType = UNSET

    def carry_out(self, on: Operator) -> None:
        on.set_memory(self._changes())


class TakeSnapshot(_Order, tag="snapshot"):
    """`log`: include certified invoices with a TC above `since`."""

    log: bool = True
    since: int = 0

    def carry_out(self, on: Operator) -> Answer:
        session, machine = on.session, on.machine
        answer: Answer = {
            "state": machine.snapshot(),
            "nim": machine.options.nim,
            "mode": machine.mode.value,
            "stage": machine.stage.value,
            "held": session.stop_point,
            "frames": {"in": session.frames_in, "out": session.frames_out},
            "bytes": {"in": session.bytes_in, "out": session.bytes_out},
            "naks": session.naks,
            "syns": session.syns,
            "struck": dict(session.plan.struck),
        }
        if self.log:
            answer["log"] = [entry for entry in machine.fiscal.log if entry.tc > self.since]
        return answer


class PauseAt(_Order, tag="pause-at"):
    """The `frame`-th frame of all, or the `next`-th from now on."""

    when: When
    direction: Direction
    frame: int = 0
    next: int = 0

    def carry_out(self, on: Operator) -> Answer:
        passed = on.session.frames_in if self.direction == "in" else on.session.frames_out
        frame = passed + self.next if self.next else self.frame
        if frame <= 0:
            raise ValueError("frame or next is needed, counted from 1")
        on.session.pause_at(Point(frame, self.when, self.direction))
        return {"frame": frame}


class Resume(_Order, tag="resume"):
    def carry_out(self, on: Operator) -> None:
        on.session.resume()


class Stop(_Order, tag="stop"):
    def carry_out(self, on: Operator) -> None:
        on.stop()


def _or_ever(seconds: float | None) -> float:
    return float("inf") if seconds is None else seconds


Order: Any = reduce(operator.or_, _Order.__subclasses__())
"""Any order."""


class Control:
    """`obey` answers one line. Events go to every client. The host selects on `sockets`, and passes the ready ones to
    `serve`."""

    def __init__(self, path: Path, obey: Callable[[bytes], bytes]) -> None:
        self._path = path
        self._obey = obey
        self._clients: dict[socket.socket, bytes] = {}
        """With the beginning of the next line."""
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.setblocking(False)
        path.unlink(missing_ok=True)
        self._listener.bind(str(path))
        path.chmod(0o600)
        self._listener.listen()

    def sockets(self) -> list[socket.socket]:
        return [self._listener, *self._clients]

    def serve(self, ready: Iterable[Any]) -> None:
        """Handles sockets that `select` found ready; others are ignored."""
        for each in ready:
            if each is self._listener:
                with contextlib.suppress(BlockingIOError):
                    client, _ = self._listener.accept()
                    client.settimeout(_CLIENT_SECONDS)
                    self._clients[client] = b""
            elif each in self._clients:
                self._take(each)

    def tell(self, event: bytes) -> None:
        for client in list(self._clients):
            self._send(client, event)

    def close(self) -> None:
        for client in list(self._clients):
            self._drop(client)
        self._listener.close()
        self._path.unlink(missing_ok=True)

    def _take(self, client: socket.socket) -> None:
        try:
            data = client.recv(_CHUNK)
        except OSError:
            data = b""
        *lines, rest = (self._clients[client] + data).split(b"\n")
        self._clients[client] = rest
        for line in lines:
            self._send(client, self._obey(line))
        if not data or len(rest) > _LINE_MOST:
            self._drop(client)

    def _send(self, client: socket.socket, data: bytes) -> None:
        try:
            client.sendall(data)
        except OSError:
            self._drop(client)

    def _drop(self, client: socket.socket) -> None:
        self._clients.pop(client, None)
        client.close()
