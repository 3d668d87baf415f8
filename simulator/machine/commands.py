"""Every command of protocol 3: the stages in which it is allowed, and its effect on the state."""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import NamedTuple

from bridge.frame import MAX_REPLY_DATA
from simulator.machine import command_data
from simulator.machine.command_data import GENERAL_ERROR, UNKNOWN_COMMAND, MachineRefusal, bad_syntax, not_now
from simulator.machine.fiscal_memory import RememberedInvoice
from simulator.machine.options import digits14
from simulator.machine.working_state import Mode, Stage, WorkingState

STATE, SERVER, TAXPAYER, CUSTOMER = 0xC1, 0xC2, 0x2B, 0xC3
OPEN, ITEM, SUBTOTAL, PAYMENT, COMMENT, CLOSE = 0xC0, 0x31, 0x33, 0x35, 0x36, 0x38
CANCEL_DATA = b"C"

_DONE = "OK"
_TAXPAYER_LINES = {b"I0": 0, b"I1": 1, b"I2": 2, b"I3": 3, b"I4": 4, b"I5": 5}
# the longest last invoice in C1h, apart from its number
_WIDEST_CODE = "X" * 24
_WIDEST_TOTAL = 10**11
_WITH_INVOICE = frozenset(Stage) - {Stage.IDLE}


def run(state: WorkingState, command: int, data: bytes, now: datetime) -> str:
    """Returns the answer. Raises MachineRefusal."""
    row = _CANCEL_ROW if command == CLOSE and data == CANCEL_DATA else TABLE.get(command)
    if row is None:
        raise MachineRefusal("Unknown command", byte0=GENERAL_ERROR | UNKNOWN_COMMAND)
    if row.active_only and state.mode is not Mode.ACTIVE:
        raise not_now(f"Machine {state.mode.value}")
    if state.stage not in row.stages:
        raise not_now(row.complaint or f"Not allowed: {state.stage.value}")
    answer = row.run(state, data, now)
    if len(answer) > MAX_REPLY_DATA // 2 and len(answer.encode()) > MAX_REPLY_DATA:
        raise MachineRefusal("Answer too long")
    return answer


def _state(state: WorkingState, _data: bytes, now: datetime) -> str:
    return _state_with(state, state.fiscal.last, now)


def _state_with(state: WorkingState, last: RememberedInvoice | None, now: datetime) -> str:
    fiscal, options, form = state.fiscal, state.options, state.format
    block = [""] * 5
    if last:
        block = [form.time(last.time), form.type(last.type), form.last_code(last.code)]
        block += [form.text(last.number), form.francs(last.total)]
    head = [state.nim, form.text(options.ifu), form.time(digits14(now)), *map(str, (fiscal.tc, fiscal.fvc, fiscal.frc))]
    return form.fields([*head, *block, *(form.rate(options.rates[group]) for group in command_data.GROUPS)])


def _server(state: WorkingState, _data: bytes, _now: datetime) -> str:
    fiscal, form = state.fiscal, state.format
    link = [str(fiscal.acknowledged), str(fiscal.tc), form.time(fiscal.last_contact), fiscal.server_state]
    if fiscal.server_error or state.options.fields != "known":
        link.append(form.text(fiscal.server_error))
    return form.fields(link)


def _taxpayer(state: WorkingState, data: bytes, _now: datetime) -> str:
    line = _TAXPAYER_LINES.get(data)
    if line is None:
        raise bad_syntax("Taxpayer line")
    text = state.format.text(state.options.taxpayer[line])
    return text if state.options.plain_taxpayer else f"I{line},{text}"


def _set_customer(state: WorkingState, data: bytes, _now: datetime) -> str:
    if not data and state.options.full_customer:
        raise bad_syntax("Customer fields")
    state.customer = command_data.parse_customer(data)
    return _DONE


def _open(state: WorkingState, data: bytes, now: datetime) -> str:
    opening = command_data.parse_opening(data)
    fiscal = state.fiscal
    if opening.ifu != state.options.ifu:
        raise MachineRefusal("Wrong IFU")
    if fiscal.last and opening.number == fiscal.last.number:
        raise MachineRefusal("Invoice number already certified")
    widest = RememberedInvoice(opening.number, _WIDEST_CODE, digits14(now), opening.type, _WIDEST_TOTAL)
    if len(_state_with(state, widest, now).encode()) > MAX_REPLY_DATA:
        raise MachineRefusal("Invoice number too long")
    state.open(opening)
    return state.format.fields(map(str, (fiscal.counter_of(opening.type), fiscal.tc)))


def _add_line(state: WorkingState, data: bytes, _now: datetime) -> str:
    line = command_data.parse_line(data)
    if 0 < state.options.name_most < len(line.name.encode(state.options.code_page, "replace")):
        raise MachineRefusal("Name too long")
    answer = state.opened.add_line(line)
    state.stage = Stage.ITEMS
    return answer


def _add_comment(state: WorkingState, data: bytes, _now: datetime) -> str:
    state.opened.add_comment(command_data.parse_comment(data))
    return _DONE


def _subtotal(state: WorkingState, _data: bytes, _now: datetime) -> str:
    answer = state.opened.subtotal()
    if len(answer) > MAX_REPLY_DATA:
        raise MachineRefusal("Subtotal too long")
    state.stage = Stage.SUBTOTALLED
    return answer


def _pay(state: WorkingState, data: bytes, _now: datetime) -> str:
    invoice = state.opened
    answer = invoice.pay(command_data.parse_payment(data))
    state.stage = Stage.PAYING if invoice.due > 0 else Stage.PAID
    return answer


def _close(state: WorkingState, data: bytes, now: datetime) -> str:
    text = command_data.decode(data)
    if "." in text and state.options.whole_close:
        raise bad_syntax("Number format")
    total = command_data.parse_number(text, 2)
    checked = state.checked
    if state.stage is Stage.IDLE and checked and checked.total == total:
        return checked.answer
    invoice = state.opened
    invoice.check_close(total)
    if invoice.opening.is_credit:
        _check_credit(state, invoice.opening)
        if state.wait_for_check(now):
            return "P:Check by the tax server"
    return state.certify(invoice, now)


def _check_credit(state: WorkingState, opening: command_data.Opening) -> None:
    """The tax server's check: it must be reachable, and know the original if that is one of ours."""
    if not state.fiscal.reachable:
        raise MachineRefusal("No contact with the tax server")
    referred = command_data.parse_reference(opening.reference)
    own = state.options.nim.partition("-")[0]
    if referred and referred[0] == own and not 0 < referred[1] <= state.fiscal.fvc:
        raise MachineRefusal("Original invoice unknown")


def _cancel(state: WorkingState, _data: bytes, _now: datetime) -> str:
    state.to_idle()
    return _DONE


class CommandRow(NamedTuple):
    """One command: its stages, whether only an active machine accepts it, and its refusal in other stages."""

    run: Callable[[WorkingState, bytes, datetime], str]
    stages: frozenset[Stage] = frozenset(Stage)
    active_only: bool = True
    complaint: str = ""


TABLE: Mapping[int, CommandRow] = {
    STATE: CommandRow(_state, active_only=False),
    SERVER: CommandRow(_server, active_only=False),
    TAXPAYER: CommandRow(_taxpayer, active_only=False),
    CUSTOMER: CommandRow(_set_customer, frozenset({Stage.IDLE}), complaint="Invoice already open"),
    OPEN: CommandRow(_open, frozenset({Stage.IDLE}), complaint="Invoice already open"),
    ITEM: CommandRow(_add_line, frozenset({Stage.OPEN, Stage.ITEMS})),
    COMMENT: CommandRow(_add_comment, frozenset({Stage.ITEMS})),
    SUBTOTAL: CommandRow(_subtotal, frozenset({Stage.ITEMS, Stage.SUBTOTALLED})),
    PAYMENT: CommandRow(_pay, frozenset({Stage.SUBTOTALLED, Stage.PAYING})),
    CLOSE: CommandRow(_close, frozenset({Stage.IDLE, Stage.PAYING, Stage.PAID, Stage.CHECKING})),
}
_CANCEL_ROW = CommandRow(_cancel, _WITH_INVOICE, active_only=False, complaint="No invoice open")
