"""Manual invoices, for a shop without a working till, and credit notes from an invoice's screen: certified like
others, once per form. Also sales that wait for certification, and decisions on them."""

import re
import secrets
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any, Final

import msgspec

from common.numbers import parse_integer
from daemon.api.http.answers import Reply
from daemon.api.page.rendering import FIELDS, NAMED
from daemon.api.page.screens.attention import reason_of
from daemon.api.page.screens.invoices import can_credit, certifier, record_of
from daemon.api.page.visit import BLANKS, Visit, name_of, plain_ifu, redirect, render, screen, without_thousands
from daemon.core.errors import FieldError, InvalidRequest, McfdError, NotFound
from daemon.core.invoice.invoice import CLIENTS, GROUPS, NATURES, PAYMENT_METHODS, REBATE, Invoice, Item, Payment
from daemon.core.invoice.number import Series
from daemon.core.invoice.taxes import PRODUCT, tax_lines
from daemon.core.ledger.attempt import Record
from daemon.core.ledger.deferred import DeferredSale, NotWaiting
from daemon.core.money import divide_half_up
from daemon.core.report.articles import certified_amounts
from daemon.core.report.journal import Page
from daemon.core.report.ranges import EVER
from daemon.store.tables.book import deferred, originals
from daemon.usecases.certification.certify import certify
from daemon.usecases.certification.idempotency import Answered, find_request
from daemon.usecases.deferred.accept import certify_or_defer, release, withdraw
from daemon.usecases.reports.journal import credits_of
from daemon.usecases.worker.machine_worker import MachineWorker
from daemon.usecases.worker.machine_workers import former_workers

LINES: Final = 20
LOOKED_AT: Final = 100
"""Newest invoices that are searched for articles."""
MAX_ARTICLES: Final = 60
LONGEST_KEY: Final = 40
DECIMAL: Final = re.compile(r"[0-9]{1,12}(\.[0-9]{0,9})?|\.[0-9]{1,9}")
BY_HAND: Final = "MAIN-{type}-{year}-"
"""What stands before the digits of numbers where the shop has no series: the page's own, beside those of the tills."""
SHARES: Final = tuple(nature for nature in NATURES if nature != REBATE)
"""Natures of a credit note on one invoice."""


async def _sale(visit: Visit) -> Reply:
    articles = await _articles(visit)
    groups = [group for group in GROUPS if group in visit.worker.rates] or list(GROUPS)
    return await render(
        visit,
        "sale.html",
        key=_key(visit),
        form=visit.form,
        lines=range(1, LINES + 1),
        articles=articles,
        groups=groups,
        methods=PAYMENT_METHODS,
        clients=CLIENTS,
        has_stamp_duty=visit.worker.defaults.rules.stamp_duty.is_charged,
    )


sale = screen("/ui/sale", "certify")(_sale)


@screen("/ui/sale", "certify", change=True, form=_sale, faults=(McfdError,))
async def certify_sale(visit: Visit) -> Reply:
    async def body() -> dict[str, Any]:
        items = _items(visit, await _articles(visit))
        total = sum(round_up(item["unitPrice"] * item["quantity"]) for item in items)
        return {
            "invoiceType": "FV",
            "operatorName": visit.session.name,
            "items": items,
            "customer": _customer(visit),
            "payments": [{"method": visit.form.get("method", "E"), "amount": total}],
        }

    return await _certified(visit, "MAIN", body)


def round_up(amount: Decimal) -> int:
    """Whole francs, half up, as lines are certified."""
    return int((amount + Decimal("0.5")) // 1)


async def _credit(visit: Visit) -> Reply:
    record = await _creditable(visit)
    return await render(
        visit,
        "credit.html",
        key=_key(visit),
        form=visit.form,
        record=record,
        left=_left(record.invoice, await credits_of(visit.worker, record)),
        shares=[share for _, share in certified_amounts(record.invoice)],
        taken=visit.worker.ledger.peek(originals.taken, record.id)[0],
        natures=[(nature, NATURES[nature]) for nature in SHARES],
    )


credit = screen("/ui/journal/{seq:int}/credit", "certify")(_credit)


def _left(invoice: Invoice, credit_notes: Sequence[Record]) -> list[int]:
    """Thousandths of each line that no credit note has. Of several lines with one article and group, a credit note is on
    those whose amount for a unit is nearest to its own."""
    lines = list(certified_amounts(invoice))
    left = [item.printed_quantity for item, _ in lines]
    for item, amount in (line for note in credit_notes for line in certified_amounts(note.invoice)):
        rest, unit = item.printed_quantity, Fraction(amount, item.printed_quantity)
        same = [at for at, (line, _) in enumerate(lines) if (line.name, line.group) == (item.name, item.group)]
        for at in sorted(same, key=lambda at: abs(Fraction(lines[at][1], lines[at][0].printed_quantity) - unit)):
            part = min(left[at], rest)
            left[at], rest = left[at] - part, rest - part
    return left


@screen("/ui/journal/{seq:int}/credit", "certify", change=True, form=_credit, faults=(McfdError,))
async def certify_credit(visit: Visit) -> Reply:
    async def body() -> dict[str, Any]:
        record = await _creditable(visit)
        await _check_unchanged(visit, record)
        return credit_body(visit, record, await credits_of(visit.worker, record), certifier(visit).rates)

    return await _certified(visit, "AV", body, is_credit=True)


async def _check_unchanged(visit: Visit, record: Record) -> None:
    """InvalidRequest if a credit note other than this form's is under way, or came since the form was shown."""
    _, taken = visit.worker.ledger.peek(originals.taken, record.id)
    if visit.form.get("taken", str(taken)) == str(taken):
        return
    own = await find_request(certifier(visit), f"page AV {_key(visit)}")
    if own is None or own.status in ("refused", "abandoned"):
        raise InvalidRequest.at(
            "invoice",
            visit.say("another credit note on it was made meanwhile, or is under way: look at its lines again"),
        )


async def _creditable(visit: Visit) -> Record:
    record = await record_of(visit)
    if not can_credit(visit, record):
        raise InvalidRequest.at("invoice", visit.say("no credit note can be made on it"))
    return record


def credit_body(visit: Visit, record: Record, before: Sequence[Record], rates: Mapping[str, int]) -> dict[str, Any]:
    """Body for the selected lines and quantities; if all is selected, with the original's prices and payments, unless
    prices without VAT come to another total at the machine's present `rates`. `before`: the sale's credit notes."""
    invoice, form, say = record.invoice, visit.form, visit.say
    nature = form.get("nature", "")
    if nature not in SHARES:
        raise InvalidRequest.at("nature", say("has to be chosen"))
    left, parts = _left(invoice, before), []
    for at, (item, share) in enumerate(certified_amounts(invoice)):
        if f"line{at}" in form:
            part = _quantity(form.get(f"quantity{at}", ""), item, say("above 0, and at most what was sold"))
            left[at] -= part
            parts.append((item, part, share))
    if not parts:
        raise InvalidRequest.at("lines", say("choose one line at least"))
    is_comparable = invoice.price_mode == "TTC" or all(rates.get(each.group) == each.rate for each in invoice.items)
    is_all = is_comparable and not before and not any(left)
    items = [_credited(item, part, invoice, 0 if is_all else share) for item, part, share in parts]
    if not is_all:
        _without_rounding(items, record.total_ttc, before, is_rest=not any(left))
    assert record.counters is not None  # noqa: S101  it is certified
    body: dict[str, Any] = {
        "invoiceType": "FA" if record.type in ("FV", "FT") else "EA",
        "operatorName": visit.session.name,
        "priceMode": invoice.price_mode if is_all else "TTC",
        "items": items,
        "customer": _customer_of(invoice),
        "payments": _paid_back(invoice) if is_all else [_paid(invoice, sum(item["amountTtc"] for item in items))],
        "creditNoteRef": f"{record.nim}-{record.counters.fvc}",
        "originalInvoiceNumber": record.number,
        "creditNoteNature": nature,
    }
    if invoice.psvb and not any(item.psvb_group for item in invoice.items):
        body["psvbGroup"] = invoice.psvb.group
    return body


def _without_rounding(items: Sequence[dict[str, Any]], sold: int, before: Sequence[Record], *, is_rest: bool) -> None:
    """Takes off the largest line what the rounding of credited parts has added up to beyond the sale, at most a franc
    for each part; if nothing is left of the sale afterwards (`is_rest`), adds what it has left out."""
    excess = sum(item["amountTtc"] for item in items) + sum(note.total_ttc for note in before) - sold
    if (excess > 0 or is_rest) and abs(excess) <= len(items) + sum(len(note.invoice.items) for note in before):
        max(items, key=lambda item: item["amountTtc"])["amountTtc"] -= excess


def _paid(invoice: Invoice, amount: int) -> dict[str, Any]:
    return {"method": invoice.payments[0].method if invoice.payments else "E", "amount": amount}


def _paid_back(invoice: Invoice) -> list[dict[str, Any]]:
    """The original payments, adjusted by the difference between the machine's total and the prices' total (decision
    24)."""
    difference = sum(line.ttc for line in tax_lines(invoice.items, invoice.price_mode)) - invoice.total_ttc
    largest, *others = sorted(invoice.payments, key=lambda payment: -payment.amount) or [
        Payment("E", invoice.total_ttc)
    ]
    paid = [Payment(largest.method, largest.amount + difference), *others]
    return [{"method": payment.method, "amount": payment.amount} for payment in paid]


def _credited(item: Item, part: int, invoice: Invoice, share: int) -> dict[str, Any]:
    """`part` (thousandths) of a line; `share`: what of the certified total is the line's, 0 if all is credited."""
    whole, is_all = item.printed_quantity, not share
    body: dict[str, Any] = {
        "name": item.name,
        "taxGroup": item.group,
        "itemType": item.item_type,
        "quantity": Decimal(part) / 1000,
        "code": item.code or None,
        "unit": item.unit or None,
        "category": item.category or None,
        "psvbGroup": item.psvb_group or None,
    }
    if item.specific_tax:
        body |= {
            "specificTax": item.specific_tax * part // whole,
            "specificTaxRate": Decimal(item.specific_rate) / 100,
            "specificTaxDesc": item.specific_name or None,
        }
    if is_all:
        body |= {"discount": item.discount or None, "originalPrice": Decimal(item.original_price) / 100 or None}
    is_ht, is_by_price = invoice.price_mode == "HT", _is_by_price(item)
    # Below half a franc, and certified as one.
    is_below_half = item.line_amount == 1 and 2 * item.printed_price * item.printed_quantity < PRODUCT
    if not is_ht or (is_all and (item.specific_tax or is_by_price or is_below_half)):
        body["unitPrice"] = Decimal(item.printed_price) / 100
    if not (is_ht and is_all and is_by_price and not item.specific_tax):
        body["amountTtc"] = divide_half_up((share or item.amount_ttc) * part, whole)
    return {name: value for name, value in body.items() if value is not None}


def _is_by_price(item: Item) -> bool:
    """In HT mode: whether price and quantity alone determine the line's amount."""
    step = 1 if item.line_cents else 100
    product = item.printed_price * item.printed_quantity
    return divide_half_up(product, PRODUCT * step // 100) * step == item.line_hundredths


def _quantity(text: str, item: Item, wrong: str) -> int:
    """In thousandths; by default the whole quantity."""
    if not text:
        return item.printed_quantity
    quantity = _decimal(text)
    if quantity is None or not 0 < quantity * 1000 <= item.printed_quantity or quantity * 1000 != int(quantity * 1000):
        raise InvalidRequest.at(item.name, NAMED(name=FIELDS["quantity"], found=wrong))
    return int(quantity * 1000)


def _customer_of(invoice: Invoice) -> dict[str, str]:
    who = invoice.customer
    fields = {"clientType": who.client_type, "name": who.name, "ifu": who.ifu, "address": who.address}
    fields |= {"phone": who.phone, "email": who.email, "rccm": who.rccm}
    return {name: value for name, value in fields.items() if value}


def _customer(visit: Visit) -> dict[str, str]:
    """The type has to be chosen (SFE 2.14)."""
    form = visit.form
    if form.get("client") not in CLIENTS:
        raise InvalidRequest.at("customer", visit.say("the kind has to be chosen"))
    fields = {
        "clientType": form["client"],
        "name": form.get("customer", ""),
        "ifu": plain_ifu(form.get("ifu", "")),
    }
    return {name: value for name, value in fields.items() if value}


async def _articles(visit: Visit) -> dict[str, tuple[str, int]]:
    """Articles sold before, most frequent first: name to tax group and price with VAT in hundredths."""
    records = await visit.worker.journal.page(visit.worker.book, Page(*EVER, limit=LOOKED_AT))
    sold = [(record.invoice, item) for record in reversed(records) for item in record.invoice.items]
    latest = {item.name: (item.group, _price_with_vat(invoice, item)) for invoice, item in sold}
    often = Counter(item.name for _, item in sold).most_common(MAX_ARTICLES)
    return {name: latest[name] for name, _ in often}


def _price_with_vat(invoice: Invoice, item: Item) -> int:
    if invoice.price_mode == "TTC":
        return item.printed_price
    return divide_half_up(item.amount_ttc * 100 * 1000, item.printed_quantity)


def _items(visit: Visit, articles: Mapping[str, tuple[str, int]]) -> list[dict[str, Any]]:
    """Items of the lines with a name. Group and price default to the article's last ones."""
    form, say = visit.form, visit.say
    found, faults = [], []
    for line in range(1, LINES + 1):
        name, typed = form.get(f"name{line}", ""), without_thousands(form.get(f"price{line}", ""))
        if not (name or typed):
            continue
        group, hundredths = articles.get(name, ("", 0))
        price = _decimal(typed) if typed else Decimal(hundredths) / 100
        quantity = _decimal(form.get(f"quantity{line}", "") or "1")
        group, place = form.get(f"group{line}") or group, say("line {line}", line=line)
        if not name:
            faults.append(FieldError(place, say("an article is needed")))
        elif not group:
            message = say("{name}: has to be chosen for an article that was not sold before", name=say("Group"))
            faults.append(FieldError(place, message))
        for field, value in ((say("Price"), price), (say("Quantity"), quantity)):
            if value is None or value <= 0:
                faults.append(FieldError(place, say("{name}: a number above 0, as 1500 or 2.5", name=field)))
        found.append({"name": name, "taxGroup": group, "unitPrice": price, "quantity": quantity})
    if not found:
        faults.append(FieldError(say("line {line}", line=1), say("an article is needed")))
    if faults:
        raise InvalidRequest(faults)
    return found


def _decimal(text: str) -> Decimal | None:
    plain = text.translate(BLANKS).replace(",", ".")
    return Decimal(plain) if DECIMAL.fullmatch(plain) else None


def _key(visit: Visit) -> str:
    return visit.form.get("key", "")[:LONGEST_KEY] or secrets.token_urlsafe(12)


async def _certified(visit: Visit, prefix: str, body: Callable[[], Any], *, is_credit: bool = False) -> Reply:
    """Certifies and redirects to the invoice's screen, or to the sales that wait if it is certified later. A repeated
    form is one invoice even if it was changed in between."""
    key, worker = _key(visit), certifier(visit)
    call = visit.call(f"page {prefix} {key}", f"page {prefix} {visit.worker.book.id} {key}")
    if not is_credit:  # of a credit note's lines the price is derived
        call = msgspec.structs.replace(call, strict=True)
    content, series = await body(), Series(BY_HAND, zone=visit.page.zone)
    done: Answered[Any]
    if is_credit:
        done = await certify(worker, content, call, credit=True, series=series)
    else:
        done = await certify_or_defer(worker, content, call, is_async=False, series=series)
    if not isinstance(done.value, Record):
        return redirect(visit.link("/ui/waiting", new="1"))
    return _invoice(visit, worker, done.value, **({"again": "1"} if done.replayed else {"new": "1"}))


def _invoice(visit: Visit, worker: MachineWorker, record: Record, **query: str) -> Reply:
    """The invoice's screen, in the book of the certifying machine."""
    owner = worker.worker_of(record.id) or worker
    is_one = len(visit.workers) == 1
    return redirect(visit.link(f"/ui/journal/{record.seq}", **({} if is_one else {"m": name_of(owner)}), **query))


PER_PAGE = 100
DECISIONS: Final = {"release": release, "withdraw": withdraw}


async def _waiting(visit: Visit) -> Reply:
    since, doubtful = parse_integer(visit.query.get("after", "")) or 0, 0
    found: list[DeferredSale] = []
    for worker in (visit.worker, *former_workers(visit.worker)):
        found += await worker.ledger.read(deferred.open_sales, worker.book, since, PER_PAGE)
        doubtful += (await worker.ledger.read(deferred.backlog, worker.book)).doubtful
    sales = sorted(found, key=lambda sale: sale.id)[:PER_PAGE]
    return await render(
        visit,
        "waiting.html",
        sales=sales,
        doubtful=doubtful,
        now=visit.worker.now(),
        done=visit.say("Noted: it is certified later. Its number leads to the slip for the customer.")
        if visit.query.get("new")
        else "",
        more=visit.link("/ui/waiting", after=str(sales[-1].id)) if len(sales) == PER_PAGE else "",
    )


waiting = screen("/ui/waiting", "look")(_waiting)


@screen("/ui/waiting/{sale:int}", "close", change=True, form=_waiting, faults=(InvalidRequest, NotWaiting))
async def decide_sale(visit: Visit) -> Reply:
    """Takes the sale back or, for one in doubt after a restore, returns it to waiting."""
    for worker in (visit.worker, *former_workers(visit.worker)):
        sale = worker.ledger.peek(deferred.by_id, worker.book, visit.request.path_params["sale"])
        if sale is not None:
            break
    else:
        raise NotFound("there is no such sale")
    reason, decide = reason_of(visit), DECISIONS.get(visit.form.get("decision", ""))
    if decide is None:
        raise InvalidRequest.at("decision", visit.say("has to be chosen"))
    await decide(worker, sale, reason, by=visit.actor)
    return redirect(visit.link("/ui/waiting"))
