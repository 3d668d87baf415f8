"""The whole service on a real line: HTTP in, the simulator on a pseudo-terminal, real SQLite."""

from support.shop import NIM, Shop, invoice


def test_a_sale_is_certified_and_enters_the_x_report(shop: Shop) -> None:
    """The receipt carries the machine's code and counters, and within the delay the X report counts the sale."""
    answer = shop.certify(invoice("A-1", 15000, 600))
    assert answer.status_code == 200, answer.text
    receipt = answer.json()
    last = shop.machines[0].certified()[-1]
    assert (receipt["codeSecef"], receipt["tc"], receipt["fvc"]) == (last["code"], last["tc"], last["fvc"])
    assert receipt["nim"] == NIM
    assert shop.x_with(1)["total_ttc"] == 15600
    shop.verify()
