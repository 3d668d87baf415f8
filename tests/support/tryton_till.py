"""A till of Tryton, run by the Python of a virtual environment that has it: sells so many sales, and says what became of them as JSON.

python tryton_till.py '{"url": …, "nim": …, "key": …, "count": 30}'"""

import json
import sys
from decimal import Decimal
from typing import Any

from proteus import Model, Report, Wizard
from trytond.exceptions import UserError
from trytond.modules.account.tests.tools import create_chart, create_fiscalyear, create_tax, get_accounts
from trytond.modules.account_invoice.tests.tools import set_fiscalyear_invoice_sequences
from trytond.modules.company.tests.tools import create_company
from trytond.modules.currency.tests.tools import get_currency
from trytond.tests import tools

TRIES = 200


def set_up(config: Any) -> None:
    """A company that sells one article at 118 F, with three decimals in its price list, and 18 % of VAT, and is paid in cash."""
    currency = get_currency("XOF", config=config)
    currency.digits, currency.rounding = 0, Decimal(1)
    currency.save()
    create_company(currency=currency, config=config)
    create_chart(config=config)
    set_fiscalyear_invoice_sequences(create_fiscalyear(config=config), config=config).click("create_period")
    accounts = get_accounts(config=config)
    tax = create_tax(Decimal(".18"), config=config)
    tax.mcf_group = "B"
    tax.save()
    category = Model.get("product.category")(name="Vivres", accounting=True)
    category.account_revenue = accounts["revenue"]
    category.customer_taxes.append(tax)
    category.save()
    (unit,) = Model.get("product.uom").find([("name", "=", "Unit")])
    template = Model.get("product.template")(name="Riz", default_uom=unit, type="goods", salable=True)
    template.account_category = category
    template.gross_price = Decimal("117.996")
    template.save()
    for name, letter in (("Cash", "E"), ("Cheque", "B")):
        Model.get("sale.point.payment.method")(
            name=name, account=accounts["cash"], cash=letter == "E", mcf_method=letter
        ).save()


def point_of_sale(url: str, nim: str, key: str) -> Any:
    locations = Model.get("stock.location")
    pos = Model.get("sale.point")(name="Caisse 1", mcf_url=url, mcf_nim=nim, mcf_key=key)
    (pos.journal,) = Model.get("account.journal").find([("type", "=", "revenue")], limit=1)
    pos.sequence = Model.get("ir.sequence.strict")(name="POS", company=pos.company)
    (pos.sequence.sequence_type,) = Model.get("ir.sequence.type").find([("name", "=", "POS")], limit=1)
    pos.sequence.save()
    (pos.storage_location,) = locations.find([("code", "=", "STO")])
    (pos.customer_location,) = locations.find([("code", "=", "CUS")])
    pos.save()
    return pos


def sell(pos: Any, product: Any, cash: Any, quantity: int, cheque: Any = None) -> Any:
    """`cheque`: of 500 F, with change in cash."""
    sale = Model.get("sale.point.sale")(point=pos)
    line = sale.lines.new()
    line.product = product
    line.quantity = quantity
    sale.save()
    pay = Wizard("sale.point.sale.pay", [sale])
    if cheque:
        pay.form.method, pay.form.amount = cheque, Decimal(500)
        pay.execute("pay")
    pay.form.method = cash
    pay.execute("pay")
    sale.reload()
    return sale


def main() -> None:
    data = json.loads(sys.argv[1])
    config = tools.activate_modules("mcf", set_up)
    tools.set_user(config=config)
    pos = point_of_sale(data["url"], data["nim"], data["key"])
    (product,) = Model.get("product.product").find([("template.name", "=", "Riz")])
    (cash,) = Model.get("sale.point.payment.method").find([("cash", "=", True)])
    sales = [sell(pos, product, cash, 1 + number % 3) for number in range(data["count"])]
    for sale in sales:
        for _ in range(TRIES):
            if sale.mcf_state != "waiting":
                break
            sale.click("mcf_certify")
            sale.reload()
    found: dict[str, Any] = {
        "sales": [[s.number, s.mcf_state, s.mcf_code, int(s.total), s.mcf_error, s.mcf_qr] for s in sales]
    }
    if data.get("wrong"):
        product.template.name = "Riz " * 200
        product.template.save()
        wrong = sell(pos, product, cash, 1)
        found["wrong"] = [wrong.mcf_state, wrong.mcf_error, corrected(wrong, product)]
        try:
            sales[0].click("open")
        except UserError as error:
            found["opened"] = str(error)
        sales[0].reload()
        found["state"] = sales[0].state
        found["ticket"] = ticket(sales[0])
        found["locked out"] = locked_out(pos, product, cash)
        (cheque,) = Model.get("sale.point.payment.method").find([("cash", "=", False)])
        changed = sell(pos, product, cash, 1, cheque)
        found["change"] = [changed.mcf_state, changed.mcf_error]
        levy = create_tax(Decimal(".02"), config=config)
        levy.save()
        category = product.template.account_category
        category.customer_taxes.append(levy)
        category.save()
        taxed_twice = sell(pos, product, cash, 1)
        found["taxed twice"] = [taxed_twice.mcf_state, taxed_twice.mcf_error]
    sys.stdout.write(json.dumps(found) + "\n")


def corrected(sale: Any, product: Any) -> list[Any]:
    """What becomes of a refused sale that is opened, corrected and paid again."""
    product.template.name = "Riz"
    product.template.save()
    sale.click("open")
    sale.click("process")
    sale.reload()
    return [sale.mcf_state, sale.mcf_error]


def locked_out(pos: Any, product: Any, cash: Any) -> list[str]:
    """A sale whose key is not taken: what becomes of it, whether it can be opened, and what becomes of it once the key is right again."""
    key, pos.mcf_key = pos.mcf_key, "ak_live_wrong"
    pos.save()
    sale = sell(pos, product, cash, 1)
    states = [sale.mcf_state, sale.mcf_error]
    try:
        sale.click("open")
    except UserError as error:
        states.append(str(error))
    pos.mcf_key = key
    pos.save()
    (retry,) = Model.get("ir.cron").find([("method", "=", "sale.point.sale|mcf_retry")])
    retry.click("run_once")
    sale.reload()
    return [*states, sale.mcf_state]


def ticket(sale: Any) -> list[str]:
    kind, content, *_ = Report("sale.point.sale.mcf_ticket").execute([sale], {})
    return [kind, content if isinstance(content, str) else content.decode()]


if __name__ == "__main__":
    main()
