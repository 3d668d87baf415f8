"""The operator of the machine: carries out the orders of `control_orders.py` on a session."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import singledispatchmethod
from typing import Any

import msgspec
from msgspec import UNSET

from simulator.control import control_orders
from simulator.line.faults import FaultPlan
from simulator.line.session import LineSession, Point
from simulator.machine.options import MachineClock
from simulator.machine.working_state import Mode

_FOREVER = float("inf")

Answer = dict[str, Any]


class Operator:
    """`now` is the session's time; `keep` makes the fiscal memory durable, before the answer to an order that changed it;
    `stop` ends the simulator."""

    def __init__(
        self,
        session: LineSession,
        clock: MachineClock,
        *,
        now: Callable[[], float],
        keep: Callable[[], None],
        stop: Callable[[], None],
    ) -> None:
        self._session = session
        self._machine = session.machine
        self._clock = clock
        self._now = now
        self._keep = keep
        self._stop = stop
        self._decoder = msgspec.json.Decoder(control_orders.Order)

    def obey(self, line: bytes) -> bytes:
        """One order, one answer, both as a line of JSON; never an exception for what is in the line."""
        answer: Answer
        try:
            answer = {"ok": True} | self.carry_out(self._decoder.decode(line))
            self._keep()
        except (ValueError, msgspec.MsgspecError) as error:
            answer = {"ok": False, "error": str(error)}
        return msgspec.json.encode(answer) + b"\n"

    @singledispatchmethod
    def carry_out(self, order: control_orders.Order) -> Answer:
        raise ValueError(f"not an order: {order!r}")

    @carry_out.register
    def _(self, order: control_orders.Unplug) -> Answer:
        self._session.unplug(self._now(), _FOREVER if order.seconds is None else order.seconds)
        return {}

    @carry_out.register
    def _(self, _order: control_orders.Plug) -> Answer:
        self._session.plug()
        return {}

    @carry_out.register
    def _(self, order: control_orders.Reboot) -> Answer:
        self._session.cut_power(self._now(), order.seconds, order.nim)
        return {}

    @carry_out.register
    def _(self, order: control_orders.ForeignInvoice) -> Answer:
        last = self._machine.certify_foreign(number=order.number, invoice_type=order.type, total=order.total)
        return {"last": last}

    @carry_out.register
    def _(self, _order: control_orders.LoseInvoice) -> Answer:
        self._machine.lose_invoice()
        return {}

    @carry_out.register
    def _(self, _order: control_orders.LeaveOpen) -> Answer:
        self._machine.leave_open()
        return {}

    @carry_out.register
    def _(self, order: control_orders.SilenceOrder) -> Answer:
        self._session.silence(self._now(), _FOREVER if order.seconds is None else order.seconds)
        return {}

    @carry_out.register
    def _(self, _order: control_orders.Speak) -> Answer:
        self._session.silence(self._now(), 0.0)
        return {}

    @carry_out.register
    def _(self, order: control_orders.AddFault) -> Answer:
        self._session.plan.add(order.spec)
        return {}

    @carry_out.register
    def _(self, order: control_orders.SetFaults) -> Answer:
        self._session.plan = FaultPlan(order.spec, order.seed)
        return {}

    @carry_out.register
    def _(self, order: control_orders.SetMode) -> Answer:
        self._machine.mode = Mode(order.mode)
        return {}

    @carry_out.register
    def _(self, order: control_orders.TaxServerOrder) -> Answer:
        changes = _changes(order)
        fiscal = self._machine.fiscal
        fiscal.reachable = changes.pop("reachable", fiscal.reachable)
        fiscal.server_state = changes.pop("state", fiscal.server_state)
        if "error" in changes:
            changes["server_error"] = changes.pop("error")
        return self._set_memory(changes)

    @carry_out.register
    def _(self, order: control_orders.SetCounters) -> Answer:
        return self._set_memory(_changes(order))

    @carry_out.register
    def _(self, order: control_orders.SetClock) -> Answer:
        if order.now:
            self._clock.set(datetime.strptime(order.now, "%Y%m%d%H%M%S").replace(tzinfo=UTC))
        else:
            self._clock.offset = timedelta(seconds=order.offset)
        return {}

    @carry_out.register
    def _(self, order: control_orders.Think) -> Answer:
        self._session.think = order.ms / 1000
        return {}

    @carry_out.register
    def _(self, order: control_orders.SetOptions) -> Answer:
        changes = _changes(order)
        if "rates" in changes:
            changes["rates"] = {**self._machine.options.rates, **changes["rates"]}
        self._machine.change(**changes)
        return {}

    @carry_out.register
    def _(self, order: control_orders.TakeSnapshot) -> Answer:
        session, machine = self._session, self._machine
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
        if order.log:
            answer["log"] = [entry for entry in machine.fiscal.log if entry.tc > order.since]
        return answer

    @carry_out.register
    def _(self, order: control_orders.PauseAt) -> Answer:
        passed = self._session.frames_in if order.direction == "in" else self._session.frames_out
        frame = passed + order.next if order.next else order.frame
        if frame <= 0:
            raise ValueError("frame or next is needed, counted from 1")
        self._session.pause_at(Point(frame, order.when, order.direction))
        return {"frame": frame}

    @carry_out.register
    def _(self, _order: control_orders.Resume) -> Answer:
        self._session.resume()
        return {}

    @carry_out.register
    def _(self, _order: control_orders.Stop) -> Answer:
        self._stop()
        return {}

    def _set_memory(self, changes: dict[str, Any]) -> Answer:
        fiscal = self._machine.fiscal
        fiscal.restore(msgspec.structs.replace(fiscal.snapshot(), **changes))
        return {}


def _changes(order: msgspec.Struct) -> dict[str, Any]:
    return {name: value for name, value in msgspec.structs.asdict(order).items() if value is not UNSET}
