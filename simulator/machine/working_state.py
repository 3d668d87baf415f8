"""The working state of the machine: its stage, the open invoice, and its fiscal memory.

idle ──C0h──▶ open ──31h──▶ items ──33h──▶ subtotalled ──35h──▶ paying ──35h──▶ paid ──38h──▶ idle
↺ 31h, 36h                                    a credit note may wait in ─▶ checking
38h C leads from every stage to idle; `commands.TABLE` has the stages of each command
"""

from datetime import datetime, timedelta
from enum import Enum
from typing import Any, NamedTuple

from simulator.machine import command_data
from simulator.machine.command_data import not_now
from simulator.machine.fiscal_memory import CertifiedInvoice, FiscalMemory, RememberedInvoice
from simulator.machine.invoice import AnswerFormat, InvoiceUnderway
from simulator.machine.options import SimulatorOptions


class Stage(Enum):
    IDLE = "idle"
    OPEN = "invoice open"
    ITEMS = "items"
    SUBTOTALLED = "subtotalled"
    PAYING = "paying"
    PAID = "paid"
    CHECKING = "checking"


class Mode(Enum):
    ACTIVE = "active"
    NOT_ACTIVATED = "not activated"
    BLOCKED = "blocked"
    DEACTIVATED = "deactivated"


class Checked(NamedTuple):
    """A credit note whose check ended before a repeated 38h; `total` in hundredths."""

    answer: str
    total: int


class WorkingState:
    def __init__(self, options: SimulatorOptions) -> None:
        self.options = options
        self.fiscal = FiscalMemory(options)
        self.mode = Mode.ACTIVE
        self.stage = Stage.IDLE
        self.invoice: InvoiceUnderway | None = None
        self.customer = command_data.CustomerData()
        self.checked: Checked | None = None
        self._check_ends: datetime | None = None

    @property
    def opened(self) -> InvoiceUnderway:
        if self.invoice is None:
            raise not_now("No invoice open")
        return self.invoice

    @property
    def nim(self) -> str:
        """In this firmware's form."""
        return self.options.nim.partition("-")[0] if self.options.short_nim else self.options.nim

    @property
    def format(self) -> AnswerFormat:
        return AnswerFormat(self.options)

    def tick(self, now: datetime) -> None:
        """Events without a command: the end of a check, the daily report, the contact with the tax server."""
        if self._check_ends and now >= self._check_ends and self.invoice:
            total = self.invoice.total * 100
            self.checked = Checked(self.certify(self.invoice, now), total)
        self.fiscal.tick(now, idle=self.stage is Stage.IDLE)

    def open(self, opening: command_data.Opening) -> None:
        self.invoice = InvoiceUnderway(opening, self.customer, self.options)
        self.customer = command_data.CustomerData()
        self.checked = None
        self.stage = Stage.OPEN

    def wait_for_check(self, now: datetime) -> bool:
        """True while the tax server checks (`tick` ends it); only for firmware that answers `P:` meanwhile."""
        options = self.options
        if options.credit_style != "pending" or not options.credit_check:
            return False
        if self._check_ends is None:
            self._check_ends = now + timedelta(seconds=options.credit_check)
            self.stage = Stage.CHECKING
        return True

    def certify(self, invoice: InvoiceUnderway, now: datetime) -> str:
        """Numbers and stores the invoice; returns the answer to 38h."""
        opening = invoice.opening
        last = self.fiscal.certify(opening.number, opening.type, invoice.total, now)
        if opening.is_credit:
            self.fiscal.contact(now)
        self.log(last, invoice)
        self.to_idle()
        return self._closed(last)

    def _closed(self, last: RememberedInvoice) -> str:
        """The answer to 38h, in which only the number may be omitted."""
        form, counters = self.format, (self.fiscal.counter_of(last.type), self.fiscal.tc)
        values = [*map(str, counters), form.type(last.type), form.time(last.time)]
        values += [self.nim, form.text(self.options.ifu), form.code(last.code)]
        if self.options.close_number or self.options.fields == "more":
            values.append(form.text(last.number))
        answer = ",".join(values) if self.options.fields == "fewer" else form.fields(values)
        return f"R:{answer}" if self.options.close_prefix else answer

    def to_idle(self) -> None:
        self.invoice = None
        self._check_ends = None
        self.stage = Stage.IDLE

    def lose_invoice(self) -> None:
        """Everything outside the fiscal memory is lost."""
        self.to_idle()
        self.customer = command_data.CustomerData()
        self.checked = None

    def log(self, last: RememberedInvoice, invoice: InvoiceUnderway | None) -> None:
        """`invoice` is None for another program's invoice."""
        fiscal = self.fiscal
        if not self.options.log_limit:
            return
        content: dict[str, Any] = {"foreign": True}
        if invoice:
            content = {"opening": invoice.opening, "customer": invoice.customer}
            content |= {name: tuple(getattr(invoice, name)) for name in ("lines", "comments", "payments")}
        figures = (last.number, last.type, last.total, last.code, last.time)
        fiscal.remember(CertifiedInvoice(fiscal.tc, fiscal.fvc, fiscal.frc, *figures, **content))
