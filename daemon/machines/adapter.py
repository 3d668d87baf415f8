"""One connected machine as the use cases see it: core types in and out, bridge errors as errors of the core."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType

from bridge.commands import AddComment, AddItem, OpenInvoice, Pay, ReadSubtotal, SetCustomer
from bridge.errors import BridgeError, LinkEnded, Nonsense, Refused, Unsendable
from bridge.machine import Machine
from bridge.replies import State
from daemon.core.certification import Certified, Counters, LastInvoice, MachineState, ServerLink, Subtotal
from daemon.core.errors import LineLost, MachineNonsense, MachineRefused, McfdError
from daemon.core.invoice import GROUPS, Comment, Customer, Invoice, Item, Payment, TaxLine
from daemon.core.settlement import same_machine


class _Translated:
    """Every error of the bridge as one of ours; `tests/unit/daemon/machines` holds the table complete."""

    __slots__ = ()

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        if isinstance(error, BridgeError):
            raise _in_our_words(error) from error


_TRANSLATED = _Translated()


def translated() -> _Translated:
    """A `with` of all its own: a generator would cost as much as the command it watches over."""
    return _TRANSLATED


def _in_our_words(error: BridgeError) -> McfdError:
    match error:
        case LinkEnded():
            return LineLost(error.detail)
        case Refused():
            return MachineRefused(error.text)
        case Unsendable():
            return MachineRefused(str(error))
        case Nonsense():
            return MachineNonsense(error.detail)
        case _:
            return LineLost(str(error))


class ConnectedMachine:
    """Fits `usecases.ports.FiscalMachine`. `nim`, where given, is the one machine this may be: the connection ends with
    the first answer of another one."""

    def __init__(self, machine: Machine, nim: str = "") -> None:
        self._machine = machine
        self._nim = nim
        self._rates: dict[str, int] = {}
        self._hung_up = ""

    async def lost(self) -> str:
        """Waits for the end of the connection; why it ended."""
        detail = (await self._machine.link.ended()).detail
        return self._hung_up or detail

    def hang_up(self, reason: str) -> None:
        self._hung_up = reason
        self._machine.link.close()

    async def state(self) -> MachineState:
        with translated():
            return self.take(await self._machine.state())

    def take(self, state: State) -> MachineState:
        """The machine's state in our words; its rates are remembered for the subtotals."""
        self._check_nim(state.nim)
        taken = machine_state(state)
        self._rates = taken.rates
        return taken

    async def server_link(self) -> ServerLink:
        with translated():
            link = await self._machine.server_link()
        return ServerLink(link.acknowledged, link.held, link.last_contact, link.state, link.error)

    async def taxpayer(self, line: int) -> str:
        with translated():
            return await self._machine.taxpayer(line)

    async def open_invoice(self, invoice: Invoice, ifu: str) -> None:
        with translated():
            await self._machine.tell((_customer(invoice.customer),), _opening(invoice, ifu))

    async def add_lines(self, invoice: Invoice) -> Subtotal:
        """The rates of the tax lines are the machine's own.

        The page does not say whether a group's total carries its VAT; the total of all, which does, tells."""
        lines: list[AddItem | AddComment] = [*map(_line, invoice.items), *map(_comment, invoice.comments)]
        with translated():
            subtotal = await self._machine.tell(lines, ReadSubtotal())
        groups = subtotal.groups
        if sum(groups) != subtotal.total == sum(groups) + sum(subtotal.vat):
            groups = tuple(ht + vat for ht, vat in zip(groups, subtotal.vat, strict=True))
        taxes = tuple(
            TaxLine(group, self._rates.get(group, 0), ttc - vat, vat, ttc)
            for group, ttc, vat in zip(GROUPS, groups, subtotal.vat, strict=True)
            if ttc or vat
        )
        return Subtotal(subtotal.total, taxes, subtotal.specific)

    async def pay(self, payments: Sequence[Payment]) -> None:
        *before, last = (Pay(payment.method, payment.amount) for payment in payments)
        with translated():
            await self._machine.tell(before, last)

    async def certify(self, invoice: Invoice, total_ttc: int, known: Counters) -> Certified:
        with translated():
            closed = await self._machine.close_invoice(total_ttc, credit=invoice.is_credit)
        self._check_nim(closed.nim)
        if closed.type != invoice.type or closed.number not in ("", invoice.number):
            raise MachineNonsense(f"38h was answered for another invoice: {closed.type} {closed.number!r}")
        fvc, frc = (known.fvc, closed.fc) if invoice.is_credit else (closed.fc, known.frc)
        return Certified(closed.code, closed.time, closed.ifu, Counters(closed.tc, fvc, frc))

    async def cancel(self) -> bool:
        with translated():
            return await self._machine.cancel()

    def _check_nim(self, nim: str) -> None:
        """At the connection, and at every later look: a machine may be exchanged without the port noticing."""
        if self._nim and not same_machine(self._nim, nim):
            reason = f"the machine on this line is {nim}, not {self._nim}: check cable and configuration"
            self.hang_up(reason)
            raise LineLost(reason)


def machine_state(state: State) -> MachineState:
    last = state.last
    return MachineState(
        nim=state.nim,
        ifu=state.ifu,
        time=state.time,
        counters=Counters(state.tc, state.fvc, state.frc),
        rates=dict(zip(GROUPS, state.rates, strict=True)),
        last=None if last is None else LastInvoice(last.number, last.code, last.time, last.type, last.total),
    )


def _customer(customer: Customer) -> SetCustomer:
    return SetCustomer(
        type=customer.client_type,
        ifu=customer.ifu,
        name=customer.name,
        address=customer.address,
        phone=customer.phone,
        email=customer.email,
        rccm=customer.rccm,
    )


def _opening(invoice: Invoice, ifu: str) -> OpenInvoice:
    return OpenInvoice(
        type=invoice.type,
        number=invoice.number,
        ifu=ifu,
        price_mode=invoice.price_mode,
        isf=invoice.isf,
        operator_id=invoice.operator_id,
        operator_name=invoice.operator_name,
        nature=invoice.nature,
        reference=invoice.reference,
    )


def _comment(comment: Comment) -> AddComment:
    return AddComment(comment.label, comment.text)


def _line(item: Item) -> AddItem:
    return AddItem(
        name=item.name,
        group=item.group,
        rate=item.rate,
        amount=item.line_amount,
        price=item.price,
        quantity=item.quantity,
        item_type=item.item_type,
        code=item.code,
        specific_rate=item.specific_rate,
        specific_tax=item.specific_tax,
        specific_name=item.specific_name,
    )
