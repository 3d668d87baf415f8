"""A paid sale is certified by the fiscal machine, through mcfd: exactly once, whatever fails on the way.

A payment gives the sale its number and ends its transaction; only then mcfd gets the sale, in a separate transaction
(Tryton's queue, with or without a worker). The request's key is made of point of sale and number: a repetition is
equal."""

from __future__ import annotations

import json
from decimal import Decimal

from avepay_mcf import Mcf, McfError, Refused
from trytond.config import config
from trytond.i18n import gettext
from trytond.model import ModelView, fields
from trytond.model.exceptions import AccessError
from trytond.pool import Pool, PoolMeta
from trytond.pyson import Bool, Eval
from trytond.report import Report

GROUPS = [(None, "")] + [(letter, letter) for letter in "ABCDEFGHIJKLMNOP"]
PATIENCE = config.getfloat("mcf", "patience", default=120.0)
"""Seconds to try a sale before it waits for another try."""


class Cron(metaclass=PoolMeta):
    __name__ = "ir.cron"

    @classmethod
    def __setup__(cls):
        super().__setup__()
        cls.method.selection.append(("sale.point.sale|mcf_retry", "Certify Waiting Sales"))


class Tax(metaclass=PoolMeta):
    __name__ = "account.tax"
    mcf_group = fields.Selection(GROUPS, "MCF Group", sort=False, help="The tax group of the fiscal machine.")


class POS(metaclass=PoolMeta):
    __name__ = "sale.point"
    mcf_url = fields.Char("MCF Address", help="Of mcfd or of mcfd-relay; empty: sales are not certified.")
    mcf_nim = fields.Char("MCF NIM", states={"required": Bool(Eval("mcf_url"))})
    mcf_key = fields.Char("MCF Key", states={"required": Bool(Eval("mcf_url"))}, strip=False)
    mcf_authority = fields.Char("MCF Authority", help="File with the certificate of the box's own authority.")

    def mcf_client(self):
        return Mcf(
            self.mcf_url, self.mcf_key, self.mcf_nim, till=f"tryton-{self.id}", patience=PATIENCE,
            verify=self.mcf_authority or True,
        )  # fmt: skip


class PaymentMethod(metaclass=PoolMeta):
    __name__ = "sale.point.payment.method"
    mcf_method = fields.Selection(
        [("E", "Cash"), ("V", "Transfer"), ("C", "Card"), ("M", "Mobile"), ("B", "Cheque"), ("A", "Other")],
        "MCF Method",
        required=True,
    )

    @classmethod
    def default_mcf_method(cls):
        return "E"


class POSSale(metaclass=PoolMeta):
    __name__ = "sale.point.sale"
    mcf_state = fields.Selection(
        [(None, ""), ("waiting", "Waiting"), ("certified", "Certified"), ("refused", "Refused")],
        "Certification",
        readonly=True,
    )
    mcf_code = fields.Char("Certification Code", readonly=True)
    mcf_qr = fields.Char("QR Code", readonly=True)
    mcf_receipt = fields.Text("Certified Receipt", readonly=True)
    mcf_error = fields.Text("Certification Error", readonly=True, states={"invisible": ~Bool(Eval("mcf_error"))})

    @classmethod
    def __setup__(cls):
        super().__setup__()
        is_open = ~Eval("mcf_state").in_(["waiting", "refused"])
        cls._buttons.update(mcf_certify={"invisible": is_open, "depends": ["mcf_state"]})

    @classmethod
    def copy(cls, sales, default=None):
        default = {} if default is None else default.copy()
        for name in ("mcf_state", "mcf_code", "mcf_qr", "mcf_receipt", "mcf_error"):
            default.setdefault(name)
        return super().copy(sales, default=default)

    @classmethod
    def do(cls, sales):
        super().do(sales)
        concerned = [sale for sale in sales if sale.point.mcf_url and sale.mcf_state is None]
        if concerned:
            cls.write(concerned, {"mcf_state": "waiting"})
            for sale in concerned:
                cls.__queue__.mcf_send([sale])

    @classmethod
    @ModelView.button
    def open(cls, sales):
        """A sale that is or may be certified cannot be changed any more: it is corrected by a return."""
        for sale in sales:
            if sale.mcf_state in ("waiting", "certified"):
                raise AccessError(gettext("mcf.msg_sale_certified", sale=sale.rec_name))
        cls.write([sale for sale in sales if sale.mcf_state == "refused"], {"mcf_state": None, "mcf_error": None})
        super().open(sales)

    @classmethod
    @ModelView.button
    def mcf_certify(cls, sales):
        """Sends the same request with the same key again: a sale certified already gets the same answer."""
        for sale in sales:
            cls.__queue__.mcf_send([sale])

    @classmethod
    def mcf_retry(cls):
        """The scheduled action: sends every sale without an answer again."""
        cls.mcf_certify(cls.search([("mcf_state", "=", "waiting")]))

    @classmethod
    def mcf_send(cls, sales):
        """In a separate transaction after the payment's. If it fails, nothing of a sale is lost: it waits."""
        for sale in sales:
            if sale.mcf_state in ("waiting", "refused"):
                cls.write([sale], sale.mcf_outcome())

    def mcf_outcome(self):
        """The new values of the sale's fields."""
        try:
            with self.point.mcf_client() as mcf:
                receipt = mcf.certify(self.mcf_invoice())
                return {
                    "mcf_state": "certified",
                    "mcf_code": receipt.code_secef,
                    "mcf_qr": receipt.qr_content,
                    "mcf_receipt": json.dumps({"totalTtc": receipt.total_ttc, "counters": receipt.counters}),
                    "mcf_error": None,
                }
        except (Refused, ValueError) as error:
            return {"mcf_state": "refused", "mcf_error": str(error)}
        except McfError as error:  # not the sale's fault (no answer, wrong key, box); it may be certified
            return {"mcf_state": "waiting", "mcf_error": str(error)}

    def mcf_invoice(self):
        """The sale in mcfd's format (docs/integrate.md). Raises ValueError if it is not a sale."""
        if any((line.quantity or 0) <= 0 for line in self.lines):
            raise ValueError(gettext("mcf.msg_sale_return", sale=self.rec_name))
        paid: dict[str, Decimal] = {}
        for payment in self.payments:
            method = payment.method.mcf_method
            paid[method] = paid.get(method, Decimal()) + payment.amount  # change given back is a negative payment
        if paid and (change := min(paid.values())) < 0:  # on another method, as a cheque
            largest = max(paid, key=lambda method: paid[method])
            paid = {name: amount + change * (name == largest) for name, amount in paid.items() if amount != change}
        return {
            "invoiceNumber": self.number,
            "invoiceType": "FV",
            "items": [_item(line) for line in self.lines],
            "payments": [{"method": name, "amount": _number(amount)} for name, amount in paid.items() if amount],
        }


class Ticket(Report):
    """The certified receipt in the box's layout, with code and QR code."""

    __name__ = "sale.point.sale.mcf_ticket"

    @classmethod
    def execute(cls, ids, data):
        Sale = Pool().get("sale.point.sale")
        sales = [sale for sale in Sale.browse(ids) if sale.mcf_code]
        if len(sales) != 1:
            raise AccessError(gettext("mcf.msg_ticket_uncertified"))
        (sale,) = sales
        with sale.point.mcf_client() as mcf:
            return "html", mcf.ticket(sale.mcf_code, html=True), False, sale.rec_name


def _item(line):
    groups = [tax.mcf_group for tax in line.taxes]
    if len(groups) != 1 or not groups[0]:  # a second tax would be certified as if it were price with VAT
        raise ValueError(gettext("mcf.msg_line_group", product=line.product.rec_name))
    price = line.unit_gross_price  # with more decimals than the machine takes, mcfd derives it from the amount
    return {
        "name": line.product.rec_name,
        "taxGroup": groups[0],
        **({"unitPrice": _number(price)} if price == round(price, 2) else {}),
        "quantity": _number(Decimal(str(line.quantity))),
        "amountTtc": _number(line.gross_amount),
    }


def _number(amount: Decimal) -> int | float:
    """For JSON; mcfd reads the decimals as written."""
    return int(amount) if amount == amount.to_integral_value() else float(amount)
