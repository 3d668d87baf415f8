"""Every command of protocol 3: where it is allowed, and what it does to the register."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import NamedTuple

from bridge.frame import MAX_REPLY_DATA
from simulator import wire
from simulator.fiscal import LastInvoice
from simulator.options import digits14
from simulator.refusal import Refusal, bad_syntax, not_now, unknown_command
from simulator.register import Mode, Register, Stage

STATE, SERVER, TAXPAYER, CUSTOMER = 0xC1, 0xC2, 0x2B, 0xC3
OPEN, ITEM, SUBTOTAL, PAYMENT, COMMENT, CLOSE = 0xC0, 0x31, 0x33, 0x35, 0x36, 0x38
CANCEL_DATA = b"C"

_DONE = "OK"
_TAXPAYER_LINES = {b"I0": 0, b"I1": 1, b"I2": 2, b"I3": 3, b"I4": 4, b"I5": 5}
# the widest that a last invoice can make C1h, beside its number
_WIDEST_CODE = "X" * 24
_WIDEST_TOTAL = 10**11


def run(register: Register, command: int, data: bytes, now: datetime) -> str:
    """The answer, or Refusal."""
    row = _CANCEL_ROW if command == CLOSE and data == CANCEL_DATA else TABLE.get(command)
    if row is None:
        raise unknown_command()
    if row.active_only and register.mode is not Mode.ACTIVE:
        raise not_now(f"Machine {register.mode.value}")
    if register.stage not in row.stages:
        raise not_now(row.complaint or f"Not allowed: {register.stage.value}")
    answer = row.run(register, data, now)
    if len(answer) > MAX_REPLY_DATA // 2 and len(answer.encode()) > MAX_REPLY_DATA:
        raise Refusal("Answer too long")
    return answer


def _state(register: Register, _data: bytes, now: datetime) -> str:
    return _state_with(register, register.fiscal.last, now)


def _state_with(register: Register, last: LastInvoice | None, now: datetime) -> str:
    fiscal, options = register.fiscal, register.options
    block = ",,,,"
    if last:
        code = register.shown(last.code)
        block = f"{last.time},{last.type},{code},{wire.escape(last.number)},{last.total}"
    counters = f"{fiscal.tc},{fiscal.fvc},{fiscal.frc}"
    rates = ",".join(wire.format_rate(options.rates[group]) for group in wire.GROUPS)
    return f"{register.nim},{options.ifu},{digits14(now)},{counters},{block},{rates}"


def _server(register: Register, _data: bytes, _now: datetime) -> str:
    fiscal = register.fiscal
    link = f"{fiscal.acknowledged},{fiscal.tc},{fiscal.last_contact},{fiscal.server_state}"
    return f"{link},{wire.escape(fiscal.server_error)}" if fiscal.server_error else link


def _taxpayer(register: Register, data: bytes, _now: datetime) -> str:
    line = _TAXPAYER_LINES.get(data)
    if line is None:
        raise bad_syntax("Taxpayer line")
    text = wire.escape(register.options.taxpayer[line])
    return text if register.options.plain_taxpayer else f"I{line},{text}"


def _set_customer(register: Register, data: bytes, _now: datetime) -> str:
    register.customer = wire.parse_customer(data)
    return _DONE


def _open(register: Register, data: bytes, now: datetime) -> str:
    opening = wire.parse_opening(data)
    fiscal = register.fiscal
    if opening.ifu != register.options.ifu:
        raise Refusal("Wrong IFU")
    if fiscal.last and opening.number == fiscal.last.number:
        raise Refusal("Invoice number already certified")
    widest = LastInvoice(opening.number, _WIDEST_CODE, digits14(now), opening.type, _WIDEST_TOTAL)
    if len(_state_with(register, widest, now).encode()) > MAX_REPLY_DATA:
        raise Refusal("Invoice number too long")
    register.open(opening)
    return f"{fiscal.counter_of(opening.type)},{fiscal.tc}"


def _add_line(register: Register, data: bytes, _now: datetime) -> str:
    answer = register.opened.add_line(wire.parse_line(data))
    register.stage = Stage.ITEMS
    return answer


def _add_comment(register: Register, data: bytes, _now: datetime) -> str:
    register.opened.add_comment(wire.parse_comment(data))
    return _DONE


def _subtotal(register: Register, _data: bytes, _now: datetime) -> str:
    answer = register.opened.subtotal()
    if len(answer) > MAX_REPLY_DATA:
        raise Refusal("Subtotal too long")
    register.stage = Stage.SUBTOTALLED
    return answer


def _pay(register: Register, data: bytes, _now: datetime) -> str:
    invoice = register.opened
    answer = invoice.pay(wire.parse_payment(data))
    register.stage = Stage.PAYING if invoice.due > 0 else Stage.PAID
    return answer


def _close(register: Register, data: bytes, now: datetime) -> str:
    total = wire.parse_number(wire.decode(data), 2)
    checked = register.checked
    if register.stage is Stage.IDLE and checked and checked.total == total:
        return checked.answer
    invoice = register.opened
    invoice.check_close(total)
    if invoice.opening.is_credit:
        _check_credit(register, invoice.opening)
        if register.wait_for_check(now):
            return "P:Check by the tax server"
    return register.certify(invoice, now)


def _check_credit(register: Register, opening: wire.Opening) -> None:
    """The tax server's part: it has to be there, and to know the original if that was one of ours."""
    if not register.fiscal.reachable:
        raise Refusal("No contact with the tax server")
    referred = wire.parse_reference(opening.reference)
    own = register.options.nim.partition("-")[0]
    if referred and referred[0] == own and not 0 < referred[1] <= register.fiscal.fvc:
        raise Refusal("Original invoice unknown")


def _cancel(register: Register, _data: bytes, _now: datetime) -> str:
    register.to_idle()
    return _DONE


class Row(NamedTuple):
    """One command: the states it is allowed in, whether only an active machine takes it, what it says elsewhere."""

    run: Callable[[Register, bytes, datetime], str]
    stages: frozenset[Stage] = frozenset(Stage)
    active_only: bool = True
    complaint: str = ""


_WITH_INVOICE = frozenset(Stage) - {Stage.IDLE}

TABLE: Mapping[int, Row] = {
    STATE: Row(_state, active_only=False),
    SERVER: Row(_server, active_only=False),
    TAXPAYER: Row(_taxpayer, active_only=False),
    CUSTOMER: Row(_set_customer, frozenset({Stage.IDLE}), complaint="Invoice already open"),
    OPEN: Row(_open, frozenset({Stage.IDLE}), complaint="Invoice already open"),
    ITEM: Row(_add_line, frozenset({Stage.OPEN, Stage.ITEMS})),
    COMMENT: Row(_add_comment, frozenset({Stage.ITEMS})),
    SUBTOTAL: Row(_subtotal, frozenset({Stage.ITEMS, Stage.SUBTOTALLED})),
    PAYMENT: Row(_pay, frozenset({Stage.SUBTOTALLED, Stage.PAYING})),
    CLOSE: Row(_close, frozenset({Stage.IDLE, Stage.PAYING, Stage.PAID, Stage.CHECKING})),
}
_CANCEL_ROW = Row(_cancel, _WITH_INVOICE, active_only=False, complaint="No invoice open")
