"""One connected machine for the use cases: types of the core in and out, errors of the bridge as errors of the core."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, TypeAlias, TypeVar

import msgspec

from bridge.commands import (
    USUAL,
    AddComment,
    AddItem,
    Command,
    MachineHabits,
    OpenInvoice,
    Pay,
    ReadServerLink,
    ReadState,
    ReadSubtotal,
    ReadTaxpayer,
    SetCustomer,
    stored,
)
from bridge.errors import BridgeError, Nonsense, Refused, UnknownCommand, Unsendable
from bridge.machine import LinkedMachine
from bridge.replies.answers import Closed, Opened, StateReply, SubtotalReply
from bridge.replies.numbers import francs
from common.language import Text, sentence
from common.language.reasons import CLOSE_OF_OTHER_INVOICE, OTHER_MACHINE
from daemon.core.errors import CertifiedElsewhere, LineLost, MachineError, MachineNonsense, MachineRefused
from daemon.core.invoice.invoice import CREDITS, GROUPS, SALES, Customer, Invoice, Item, Payment, TaxLine
from daemon.core.invoice.number import number_key
from daemon.core.machine.state import (
    TAXPAYER_LINES,
    Certified,
    FiscalCounters,
    LastInvoice,
    MachineState,
    ServerLink,
    Subtotal,
    same_machine,
    taxpayer_of,
)

S = TypeVar("S", bound=msgspec.Struct)

Commands: TypeAlias = tuple[Command[Any], ...]
Agree: TypeAlias = Callable[[Subtotal], Sequence[Payment]]
_FRANC = 100
"""In the hundredths of a reply."""
_LONGEST_IFU = "0" * 13
"""The longest IFU of the shop: its frame reserves this room, whatever the machine reports."""


@contextmanager
def translated(*, is_open: bool = False) -> Iterator[None]:
    """Translates every error of the bridge; `is_open` while the machine has the invoice open.
    `tests/unit/daemon/machines` has the complete table."""
    try:
        yield
    except Refused as error:
        raise MachineRefused(error.text, is_open=is_open) from error
    except Unsendable as error:
        raise MachineRefused(sentence(error), is_open=is_open) from error
    except (Nonsense, UnknownCommand) as error:
        raise MachineNonsense(sentence(error)) from error
    except BridgeError as error:
        raise LineLost(sentence(error)) from error


class ConnectedMachine:
    """A method with several commands (protocol 3) stops at the first one that is not accepted.

    Raises MachineRefused (an `E:` answer), LineLost (no answer after all tries; the connection has ended) or
    MachineNonsense (unreadable answer). An answer of a machine other than `nim`, if given, ends the connection."""

    def __init__(self, machine: LinkedMachine, nim: str = "") -> None:
        self._machine = machine
        self._nim = nim
        self._rates: dict[str, int] = {}
        self._ifu = ""
        self._tells_activation = False
        self._hung_up: Text | None = None
        self.opened: tuple[int, int] | None = None
        """TC and FC of the last C0h; None if unreadable."""

    async def lost(self) -> Text:
        """Waits for the end of the connection; returns the reason."""
        end = await self._machine.link.ended()
        return self._hung_up or sentence(end)

    def hang_up(self, reason: Text) -> None:
        """Ends the connection, also during a command; the next one begins with `recover`."""
        self._hung_up = reason
        self._machine.link.close()

    async def state(self) -> MachineState:
        with translated():
            return self.convert(await self._machine.ask(ReadState()))

    def convert(self, state: StateReply) -> MachineState:
        """Converts the machine's state; its rates are stored for the subtotals."""
        if self._is_foreign(state.nim):  # a machine may be exchanged without the port noticing
            reason = OTHER_MACHINE(found=state.nim, nim=self._nim)
            self.hang_up(reason)
            raise LineLost(reason)
        taken = machine_state(state)
        self._rates = taken.rates
        self._ifu = taken.ifu
        self._tells_activation = "-" in taken.nim
        return taken

    async def server_link(self) -> ServerLink:
        with translated():
            link = await self._machine.ask(ReadServerLink())
        return ServerLink(link.acknowledged, link.documents, link.last_contact, link.state, link.error)

    async def server_link_or_error(self) -> ServerLink:
        """A machine that is not activated may know no tax server: `state` is then empty, and `error` says why."""
        try:
            return await self.server_link()
        except (MachineRefused, MachineNonsense) as error:
            return ServerLink(0, 0, "", "", str(error.text if isinstance(error, MachineRefused) else error))

    async def taxpayer(self) -> tuple[str, ...]:
        """The lines of name and address of the shop (2Bh); those that it refuses are empty."""
        lines = [""] * TAXPAYER_LINES
        for line in range(TAXPAYER_LINES):
            with suppress(MachineRefused, MachineNonsense), translated():
                lines[line] = await self._machine.ask(ReadTaxpayer(line))
        return tuple(lines)

    async def enter(self, invoice: Invoice, ifu: str, agree: Agree) -> None:
        """C3h, C0h, 31h for each item, 36h for each comment, 33h, then 35h for each payment that `agree` returns for
        that subtotal (none: not paid yet), each after the previous one was accepted. Raises what `agree` raises."""
        with translated():
            await self._machine.ask(_customer(invoice.customer))
            opened = await self._machine.ask(_opening(invoice, ifu))
        self.opened = (opened.tc, opened.fc) if isinstance(opened, Opened) else None
        lines: Commands = (
            *map(_line, invoice.items),
            *(AddComment(each.label, each.text) for each in invoice.comments),
        )
        with translated(is_open=True):
            for line in lines:
                await self._machine.ask(line)
            subtotal = await self._machine.ask(ReadSubtotal())
            for payment in agree(self._subtotal(subtotal)):
                await self._machine.ask(Pay(payment.method, payment.amount))

    def _subtotal(self, subtotal: SubtotalReply) -> Subtotal:
        """Rates and VAT of the tax lines are the machine's own, rounded half up to whole francs (decision 32). The
        protocol does not say whether a group's total includes VAT; the grand total, which does, shows it."""
        taxes = tuple(
            TaxLine(group, self._rates.get(group, 0), ttc - francs(vat), francs(vat), ttc, vat if vat % _FRANC else 0)
            for group, ttc, vat in zip(GROUPS, _with_vat(subtotal), subtotal.vat, strict=True)
            if ttc or vat
        )
        specific = None if subtotal.specific is None else francs(subtotal.specific)
        return Subtotal(francs(subtotal.total), taxes, specific)

    async def pay(self, payments: Sequence[Payment]) -> None:
        """35h for each payment of an entered invoice."""
        with translated(is_open=True):
            for payment in payments:
                await self._machine.ask(Pay(payment.method, payment.amount))

    async def certify(self, invoice: Invoice, total_ttc: int, before: FiscalCounters) -> Certified:
        with translated():
            closed = await self._machine.close_invoice(total_ttc, credit=invoice.is_credit)
        if closed.nim and self._is_foreign(closed.nim):
            error = CertifiedElsewhere(closed.nim, closed.code, invoice.number)
            self.hang_up(sentence(error))
            raise error
        if _is_another(closed, invoice):
            raise MachineNonsense(CLOSE_OF_OTHER_INVOICE(type=closed.type, number=closed.number))
        counters = _counters(closed, invoice, before)
        if counters is None or counters.tc > before.tc + 1:  # another transaction since `before`
            counters = await self._counters_after(closed, invoice, counters)
        # C1h names the epoch; the NIM of 38h counts only if both have the suffix, or the two would alternate.
        nim = closed.nim if self._tells_activation and "-" in closed.nim else ""
        return Certified(closed.code, closed.time, taxpayer_of(closed.ifu) or self._ifu, counters, nim, closed.fc)

    async def _counters_after(
        self, closed: Closed, invoice: Invoice, counters: FiscalCounters | None
    ) -> FiscalCounters:
        """The counters of C1h, if it is about this invoice; if C1h fails, the `counters` of 38h, if any."""
        try:
            state = await self.state()
            if (
                state.counters.tc < closed.tc
                or state.last is None
                or not same_number(state.last.number, invoice.number)
            ):
                raise MachineNonsense(Text("C1h does not tell of the invoice that 38h certified"))
        except MachineError:
            if counters is None:
                raise
            return counters
        return state.counters

    async def cancel(self) -> bool:
        """38h C; True if an invoice was open."""
        with translated():
            return await self._machine.cancel()

    def _is_foreign(self, nim: str) -> bool:
        return bool(self._nim) and not same_machine(self._nim, nim)


def _with_vat(subtotal: SubtotalReply) -> list[int]:
    """Each group's total with VAT, in whole francs. Where the machine sends cents, the groups with most of them are
    rounded up, the others down, so that they come to its total; a total that is further off is not corrected."""
    groups, vat = subtotal.groups, subtotal.vat
    if abs(subtotal.total - sum(groups)) > abs(subtotal.total - sum(groups) - sum(vat)):
        groups = tuple(ht + tax for ht, tax in zip(groups, vat, strict=True))
    whole = [amount // _FRANC for amount in groups]
    missing = francs(subtotal.total) - sum(whole)
    by_cents = sorted((-(amount % _FRANC), -amount, at) for at, amount in enumerate(groups) if amount % _FRANC)
    if not 0 <= missing <= len(by_cents):
        return [francs(amount) for amount in groups]
    for _, _, at in by_cents[:missing]:
        whole[at] += 1
    return whole


def same_number(machine_number: str, ours: str) -> bool:
    """A machine may store a number in capitals, or append more fields."""
    return number_key(ours) in (number_key(machine_number), number_key(machine_number.partition(",")[0]))


def _is_another(closed: Closed, invoice: Invoice) -> bool:
    """By its number, or by a type of the protocol that differs; an unknown type proves nothing."""
    if closed.number and not same_number(closed.number, invoice.number):
        return True
    return closed.type in (*SALES, *CREDITS) and closed.type != invoice.type


def _counters(closed: Closed, invoice: Invoice, before: FiscalCounters) -> FiscalCounters | None:
    """All three counters after 38h; None if they do not follow from it. An unchanged TC is returned as it is: an
    earlier 38h may be answered late under the same SEQ, and C1h would not show that. FC counts the certified type: FVC
    or FRC if a machine counts all sales and all credit notes together; exports may count in neither (protocol 3, C)."""
    if closed.tc <= before.tc:
        return msgspec.structs.replace(before, tc=closed.tc)
    if invoice.type == "FA" and closed.fc == before.frc + 1:
        return FiscalCounters(closed.tc, before.fvc, closed.fc)
    if invoice.type in ("FV", "FT") and closed.fc == before.fvc + 1:
        return FiscalCounters(closed.tc, closed.fc, before.frc)
    return None


def machine_state(state: StateReply) -> MachineState:
    last = state.last
    return MachineState(
        nim=state.nim,
        ifu=taxpayer_of(state.ifu),
        time=state.time,
        counters=FiscalCounters(state.tc, state.fvc, state.frc),
        rates=dict(zip(GROUPS, state.rates, strict=False)),  # some firmware omits the reserved groups
        last=None if last is None else LastInvoice(last.number, last.code, last.time, last.type, last.total),
    )


def _customer(customer: Customer) -> SetCustomer:
    named = msgspec.structs.asdict(customer)
    return SetCustomer(type=named.pop("client_type"), **named)


def _opening(invoice: Invoice, ifu: str) -> OpenInvoice:
    return OpenInvoice(
        ifu=ifu,
        type=invoice.type,
        number=invoice.number,
        price_mode=invoice.price_mode,
        isf=invoice.isf,
        operator_id=invoice.operator_id,
        operator_name=invoice.operator_name,
        nature=invoice.nature,
        reference=invoice.reference,
    )


def as_stored(invoice: Invoice, habits: MachineHabits = USUAL) -> Invoice:
    """The invoice with its free texts as the machine receives them; `invoice` itself if none is cut."""
    try:
        (operator,) = stored(_opening(invoice, _LONGEST_IFU), habits)
        customer = _restored(
            invoice.customer, ("name", "address", "phone", "email", "rccm"), stored(_customer(invoice.customer), habits)
        )
        items = tuple(_restored(item, _texts(item), stored(_line(item), habits)) for item in invoice.items)
        comments = tuple(
            _restored(each, ("text",), stored(AddComment(each.label, each.text), habits)) for each in invoice.comments
        )
    except Unsendable:  # the machine's driver refuses it
        return invoice
    if (operator, customer, items, comments) == (
        invoice.operator_name,
        invoice.customer,
        invoice.items,
        invoice.comments,
    ):
        return invoice
    return msgspec.structs.replace(invoice, operator_name=operator, customer=customer, items=items, comments=comments)


def _texts(item: Item) -> tuple[str, ...]:
    """Fields of the item's command that may be cut, in their order."""
    named = ("specific_name",) if item.specific_tax and item.specific_name else ()
    return ("name", *(("code",) if item.code else ()), *named)


def _restored(part: S, names: Sequence[str], texts: Sequence[str]) -> S:
    changed = {name: text for name, text in zip(names, texts, strict=True) if getattr(part, name) != text}
    return msgspec.structs.replace(part, **changed) if changed else part


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
        cents=item.line_cents,
    )
