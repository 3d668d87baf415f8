"""A day recorded on one machine, played by `mcf-simulator --replay` to another daemon: the same answers, the same ledger."""

from __future__ import annotations

from contextlib import contextmanager
from typing import Any

import pytest
from support.shop import IFU, NIM, Machine, Shop, invoice, running_shop

pytestmark = pytest.mark.long

FAULTS = "drop-reply@31h#2,flip-request@33h#2,nak@35h#1,drop-reply@38h#3"
"""A recording of a line without faults would show nothing."""
LINE = {"certify_timeout": 1.0}
"""An answer that is lost is waited for, in both days; still longer than any other."""
REPORT = ("certs_count", "total_ttc", "total_ht", "total_tva", "by_group", "by_type", "fvc_start", "fvc_end")


class Player(Machine):
    """The simulator as the player of a recording."""

    def __init__(self, folder, recording) -> None:
        super().__init__(folder)
        self._arguments = ["--link", str(self.link), "--baud", "0", "--replay", str(recording)]

    def differences(self) -> str:
        """All that it said after that it was ready."""
        return "".join(self.log.read_text().splitlines(keepends=True)[1:])


def sales() -> list[dict[str, Any]]:
    """The acceptance flow: every type, several groups, a customer, comments, a specific tax."""
    company = {"clientType": "PM", "ifu": "00012345B", "name": "OUEDRAOGO & Fils", "address": "Secteur 4"}
    taxed = {"name": "Boisson", "taxGroup": "B", "unitPrice": 1050, "quantity": 2, "amountTtc": 2218}
    return [
        invoice("F-1"),
        invoice("F-2", 500, 1500, 250, customer=company),
        invoice("F-3", 7000, invoiceType="EV", comments=[{"label": "A", "text": "Livré"}]),
        invoice(
            "F-4",
            items=[{**taxed, "specificTax": 100, "specificTaxRate": 50}],
            payments=[{"method": "E", "amount": 2218}],
        ),
        invoice("F-5", 900, invoiceType="FT"),
    ]


def of_the_machine(answer: dict[str, Any]) -> dict[str, Any]:
    """Without what the box's own clock says."""
    return {name: value for name, value in answer.items() if name not in ("durationMs", "certifiedAt")}


def day(shop: Shop) -> list[Any]:
    """What a till is told, without what is another in each run."""
    messages: list[Any] = []
    for sale in sales():
        answer = shop.certify(sale)
        assert answer.status_code == 200, answer.text
        messages.append(of_the_machine(answer.json()))
    credit = invoice("A-1", 6000, invoiceType="FA", creditNoteRef=f"{NIM}-1")
    messages.append(of_the_machine(shop.certify(credit, path="credit-note").json()))
    assert messages[-1]["frc"] == 1
    x = shop.x_with(len(sales()) + 1)
    messages.append({name: x[name] for name in REPORT})
    z = shop.close_period().json()
    messages.append({name: z[name] for name in (*REPORT, "z_number", "mcf_counters")})
    messages.append(of_the_machine(shop.certify(invoice("F-6")).json()))
    return messages


@contextmanager
def recorded(tmp_path):
    """The recording of a day, as root takes it from the box, and what the tills were told."""
    first = tmp_path / "first"
    first.mkdir()
    with running_shop(first, machines=(Machine(first, NIM, IFU, "--faults", FAULTS),), per_machine=LINE) as shop:
        result = day(shop)
        shop.stop_daemon()
        file = tmp_path / "day.rec"
        done = shop.mcfd("machine", "recording", NIM, "--raw", "--save", str(file))
        assert done.returncode == 0, done.stderr
        yield file, result


def test_a_day_that_is_played_again_gives_the_same_ledger(tmp_path):
    """Codes, times, counters, totals, Z: what the machine said then is said again, faults of the line and all."""
    second = tmp_path / "second"
    second.mkdir()
    with recorded(tmp_path) as (file, result):
        player = Player(second, file)
        with running_shop(second, machines=(player,), per_machine=LINE) as shop:
            for now, then in zip(day(shop), result, strict=True):
                assert now == then
            assert player.differences() == ""
            shop.stop_daemon()
            shop.verify()
