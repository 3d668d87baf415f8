"""What only shows when invoices are made: for a machine in test mode. What is half done is always cancelled."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator, Sequence
from dataclasses import dataclass

from daemon.language import Text
from daemon.probe import cancelled
from daemon.probe.finding import Finding, confirmed, contradicted, judged, not_tried
from daemon.probe.line import CERTIFYING, Answer, ProbeLine
from daemon.probe.looking import last_invoice
from daemon.probe.replies import (
    PAYMENT,
    SUBTOTAL,
    TYPES,
    State,
    number_form,
    read_state,
)
from daemon.probe.sale import AMOUNT, CREDITS, Sale, francs_of, read_subtotal

ORIGINALS = {"FA": "FV", "EA": "EV"}
_TOLD = Text("mcfd reads it as it is; send us the file")
_FIELDS_33H = 34
_FIELDS_38H = (7, 8)


async def certify(line: ProbeLine) -> AsyncGenerator[Finding, None]:
    sale = Sale(line, await read_state(line))
    await sale.cancel()  # whatever was left open
    yield await cancelled.walk_in(sale)
    item = await cancelled.item_at_all(sale)
    yield item
    if item.verdict != "confirmed":
        return
    yield await cancelled.customer(sale)
    yield await cancelled.cancelling(sale)
    yield await cancelled.names(sale)
    for finding in await cancelled.amounts(sale):
        yield finding
    yield await cancelled.groups(sale)
    yield await cancelled.specific_tax(sale)
    yield await cancelled.comments(sale)
    for finding in await cancelled.vat(sale):
        yield finding
    yield await cancelled.specific_tax_ht(sale)
    async for finding in _whole_sale(sale):
        yield finding
    done = await _types(sale)
    for finding in (*_told_of_types(done), *last_invoice(await read_state(line))):
        yield finding
    yield await _same_number(sale)
    yield not_tried(
        "credit_unreachable",
        Text("a credit note without the tax server is refused, and says why"),
        Text("take the machine off the network and probe again to see it"),
    )


async def _whole_sale(sale: Sale) -> AsyncGenerator[Finding, None]:
    """One sale to its end, each answer looked at: the only one that tries what 38h wants to be told."""
    number = sale.new_number()
    opened = await sale.begin(number)
    yield judged(
        len(opened.text.split(",")) == 2,  # noqa: PLR2004  FC and TC
        "open",
        Text("C0h answers FC and TC"),
        opened.text,
        Text("nothing depends on it"),
    )
    await sale.add()
    for finding in _subtotal(await sale.send(SUBTOTAL)):
        yield finding
    yield await _payments(sale)
    closed = await sale.close(AMOUNT)
    expected = Text("38h takes the total as 15000.00")
    if closed.refusal is not None:
        sale.whole_close = True
        refusal, closed = closed.refusal, await sale.close(AMOUNT)
        yield contradicted(
            "close_total",
            expected,
            f"{refusal}; 15000: {closed.text}",
            Text('close_total = "whole" in its [machine.habits]'),
            habits__close_total="whole",
        )
    else:
        yield confirmed("close_total", expected, closed.text)
    yield _certification(closed)
    yield await _asked_again(sale, closed)


def _subtotal(answer: Answer) -> Iterator[Finding]:
    fields = answer.text.split(",")
    yield judged(
        len(fields) == _FIELDS_33H and {number_form(field) for field in fields} == {"whole"},
        "subtotal",
        Text("33h answers 34 whole numbers: total, totals and VAT of the groups, specific tax"),
        Text(
            "{count} fields, {forms}",
            count=len(fields),
            forms=", ".join(sorted({number_form(field) for field in fields})),
        ),
        _TOLD,
    )
    found = read_subtotal(answer)
    yield judged(
        found is not None and sum(found.groups) == found.total,
        "group_totals",
        Text("the totals of the groups are with VAT"),
        Text("cannot be read")
        if found is None
        else Text("{groups} of {total}", groups=francs_of(sum(found.groups)), total=francs_of(found.total)),
        Text("mcfd sees by the total which of the two it is"),
    )


async def _payments(sale: Sale) -> Finding:
    part = await sale.send(PAYMENT, "E10000")
    rest = await sale.send(PAYMENT, "M6000")
    return judged(
        part.text.startswith("D") and rest.text.startswith("R"),
        "payments",
        Text("35h answers D and what is due, then R and the change"),
        Text("10000 of 15000: {part}; 6000 more: {rest}", part=part.text, rest=rest.text),
        Text("nothing depends on it: mcfd sends payments that add up"),
    )


def _certification(closed: Answer) -> Finding:
    text = closed.text.removeprefix("R:")
    fields = text.split(",")
    return judged(
        len(fields) in _FIELDS_38H and not closed.text.startswith("R:"),
        "certification",
        Text("38h answers FC, TC, type, time, NIM, IFU, code, and maybe the number"),
        Text("{count} fields, R: before them", count=len(fields))
        if closed.text.startswith("R:")
        else Text("{count} fields", count=len(fields)),
        _TOLD,
    )


async def _asked_again(sale: Sale, closed: Answer) -> Finding:
    """As after a lost answer: the same frame, the same SEQ."""
    before = await _tc_after(sale, closed)
    after = (await read_state(sale.line)).counters
    return judged(
        before is not None and before[1] == after,
        "close_again",
        Text("38h asked again with its own SEQ is answered the same, and certifies nothing"),
        Text("the same answer") if before and before[0] else Text("another answer"),
        Text("DO NOT USE: a lost answer to 38h could certify twice. Send us the file; until then tries = 1"),
        tries=1,
    )


async def _tc_after(sale: Sale, closed: Answer) -> tuple[bool, tuple[int, int, int]] | None:
    """Whether the same frame got the same answer, and the counters by a look between the two."""
    again = await sale.line.send(closed.request, CERTIFYING)
    same = again.reply == closed.reply
    fields = closed.text.removeprefix("R:").split(",")
    counted = (await read_state(sale.line)).counters
    told = int(fields[1]) if len(fields) > 1 and fields[1].strip().isdigit() else counted[0]
    return (same, counted) if same and counted[0] == told else None


@dataclass
class Certified:
    """Of one type: what its number was, what 38h said, C1h before and after; `refusal` when it did not come so far."""

    kind: str
    number: str = ""
    fields: tuple[str, ...] = ()
    before: State | None = None
    after: State | None = None
    refusal: str = ""

    @property
    def moved(self) -> str:
        if self.before is None or self.after is None:
            return self.refusal
        return _moved(self.before.counters, self.after.counters)

    @property
    def counter(self) -> int:
        """FVC of a sale, FRC of a credit note, as C1h tells it afterwards."""
        return self.after.counters[2 if self.kind in CREDITS else 1] if self.after else 0


async def _types(sale: Sale) -> list[Certified]:
    """Each type certified once."""
    done: dict[str, Certified] = {}
    for kind in TYPES:
        original = done.get(ORIGINALS.get(kind, ""))
        before = await read_state(sale.line)
        reference = f"{before.fields[0]}-{original.counter if original else before.counters[1]}"
        done[kind] = await _certified(sale, kind, before, reference)
    return list(done.values())


async def _certified(sale: Sale, kind: str, before: State, reference: str) -> Certified:
    number = sale.new_number()
    opened = await sale.begin(number, kind, reference)
    if opened.refusal is not None:
        await sale.cancel()
        return Certified(kind, refusal=opened.refusal)
    await sale.add("1000")
    await sale.send(SUBTOTAL)
    await sale.send(PAYMENT, "E1000")
    closed = await sale.close(1000, kind)
    if closed.refusal is not None or closed.text.startswith("P:"):
        await sale.cancel()
        return Certified(kind, refusal=closed.refusal or "not yet, for too long")
    fields = tuple(closed.text.removeprefix("R:").split(","))
    return Certified(kind, number, fields, before, await read_state(sale.line))


def _told_of_types(done: Sequence[Certified]) -> Iterator[Finding]:
    """Which counters move, what 38h says of the invoice, and what C1h tells afterwards."""
    yield _counters(done)
    ended = [each for each in done if each.after]
    yield judged(
        all(each.fields[0] == str(each.counter) for each in ended),
        "fc",
        Text("FC of 38h is FVC for sales, FRC for credit notes"),
        "; ".join(f"{each.kind}: {each.fields[0]} for {each.counter}" for each in ended) or Text("none certified"),
        Text("mcfd takes the counters from C1h where FC is another"),
    )
    yield judged(
        all(each.fields[2:3] == (each.kind,) for each in ended),
        "types",
        Text("38h tells the type as it was sent"),
        " ".join(f"{each.kind}: {each.fields[2] if len(each.fields) > 2 else 'nothing'}" for each in ended),  # noqa: PLR2004  FC, TC, TYPE
        _TOLD,
    )
    others = [each for each in ended if each.after and each.after.fields[9:10] != (each.number,)]
    lost = [each for each in others if each.after and each.after.number.strip().upper() != each.number.upper()]
    yield judged(
        not others,
        "last_number",
        Text("C1h tells the number of the invoice just certified, as it was sent"),
        "; ".join(f"{each.number!r}: {each.after.fields[9:10] if each.after else ''}" for each in others[:2])
        or Text("yes"),
        Text("DO NOT USE: after a power cut nothing tells what was certified. Send us the file") if lost else _TOLD,
    )


def _moved(before: Sequence[int], after: Sequence[int]) -> str:
    names = zip(("TC", "FVC", "FRC"), before, after, strict=True)
    return " ".join(f"{name}+{new - old}" for name, old, new in names if new != old) or "nothing"


def _counters(done: Sequence[Certified]) -> Finding:
    return judged(
        all(each.moved == ("TC+1 FRC+1" if each.kind in CREDITS else "TC+1 FVC+1") for each in done),
        "counters",
        Text("sales move TC and FVC, credit notes TC and FRC"),
        "; ".join(f"{each.kind}: {each.moved}" for each in done),
        Text(
            "mcfd follows TC and the number of the last invoice where FVC and FRC do not move; a type refused is refused"
        ),
    )


async def _same_number(sale: Sale) -> Finding:
    """The number of the last certified invoice, once more."""
    last = (await read_state(sale.line)).number
    opened = await sale.begin(last)
    refusal = opened.refusal
    if refusal is None:
        await sale.add("1000")
        await sale.send(SUBTOTAL)
        await sale.send(PAYMENT, "E1000")
        refusal = (await sale.close(1000)).refusal
    await sale.cancel()
    return judged(
        refusal is not None,
        "same_number",
        Text("the number of the last invoice is refused once more"),
        refusal or Text("certified"),
        Text("nothing depends on it: mcfd refuses a number that it has certified by itself"),
    )
