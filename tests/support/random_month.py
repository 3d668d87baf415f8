"""A shop in one loop, over HTTP, whose tills sell at random; what the journal's files and the papers say of its reports."""

import asyncio
import csv
import random
import re
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path
from typing import Any

import httpx
from support.memory_shop import MemoryShop
from support.shop import NIM, PLAIN

from common.http_server import HttpServer, ServerConfig
from daemon.api.access.context import ApiDeps
from daemon.api.service import create_api
from daemon.store.tables.book.books import book_state
from daemon.store.tables.keys import create_key
from daemon.usecases.worker.machine_workers import MachineWorkers
from simulator.machine.working_state import Mode

RATES = {"A": 0, "B": 18, "C": 10, "D": 0, "E": 0, "F": 18, "G": 10, "H": 0, "I": 0, "J": 0, "K": 0, "L": 10, "M": 10}
FIGURES = (
    *("certs_count", "total_ttc", "total_ht", "total_tva", "by_group", "by_type", "by_type_and_group"),
    *("by_payment", "credit_notes", "by_nature", "specific_tax", "psvb", "incomplete"),
)


@dataclass
class Month:
    """Tills at random."""

    shop: MemoryShop
    http: httpx.AsyncClient
    dice: random.Random
    number: int = 0
    sales: dict[int, int] = field(default_factory=dict)
    """What may still be credited of each FVC."""
    credited_by: dict[int, str] = field(default_factory=dict)

    async def close(self) -> None:
        answer = await self.http.post("reports/z", json={})
        assert answer.status_code == 201, answer.text

    async def sell(self) -> None:
        """One attempt of any kind; now and then the machine refuses it."""
        refused = self.dice.random() < 0.05
        self.shop.session.machine.mode = Mode.BLOCKED if refused else Mode.ACTIVE
        credit = not refused and bool(self.sales) and self.dice.random() < 0.2
        body, fvc = self.credit_note() if credit else (self.sale(), 0)
        answer = await self.http.post("credit-note" if credit else "certify", json=body)
        self.shop.session.machine.mode = Mode.ACTIVE
        assert answer.status_code == (422 if refused else 200), (answer.text, body)
        if refused:
            return
        total = answer.json()["totalTtc"]
        if credit:
            self.sales[fvc] -= total
        else:
            self.sales[answer.json()["fvc"]] = total
            self.credited_by[answer.json()["fvc"]] = "EA" if body["invoiceType"] in ("EV", "ET") else "FA"

    def sale(self) -> dict[str, Any]:
        kind = self.dice.choice(["FV"] * 8 + ["FT", "EV", "ET"])
        mode = self.dice.choice(["TTC", "TTC", "HT"])
        items = [self.item(mode) for _ in range(self.dice.randint(1, 6))]
        return self.invoice(items, invoiceType=kind, priceMode=mode)

    def credit_note(self) -> tuple[dict[str, Any], int]:
        fvc = self.dice.choice([fvc for fvc, left in self.sales.items() if left > 0] or [0])
        most = min(self.sales.get(fvc, 5000), 5000)
        amount = self.dice.randint(1, most)
        item = {"name": "Retour", "taxGroup": self.dice.choice([*RATES]), "amountTtc": amount}
        reference = {"creditNoteRef": f"{NIM}-{fvc}" if fvc else "RRR"}
        kind = self.credited_by.get(fvc) or self.dice.choice(["FA", "FA", "EA"])
        nature = self.dice.choice(["COR", "RAN", "RAM"]) if fvc else "RRR"
        self.sales.setdefault(fvc, 1 << 40)
        return self.invoice([item], invoiceType=kind, creditNoteNature=nature, **reference), fvc

    def item(self, mode: str) -> dict[str, Any]:
        dice, group = self.dice, self.dice.choice([*RATES])
        price = Decimal(dice.randint(100, 900_000)) / dice.choice([1, 10, 100]) + 1
        quantity = Decimal(dice.choice([1000, 2000, 3000, 12_000, 500, 1375])) / 1000
        amount = price * quantity * (1 if mode == "TTC" else 1 + Decimal(RATES[group]) / 100)
        item = {
            "name": f"Article {dice.randint(1, 30)}",
            "taxGroup": group,
            "itemType": dice.choice(["LOCBIE", "LOCBIE", "LOCSER", "IMPBIE", "IMPSER"]),
            "unitPrice": float(price.quantize(Decimal("0.01"))),
            "quantity": float(quantity),
            "amountTtc": int(amount.quantize(Decimal(1), ROUND_HALF_UP)),
        }
        if dice.random() < 0.2:
            item["discount"] = dice.randint(1, 90)
        return self.taxed(item) if mode == "TTC" and dice.random() < 0.3 else item

    def taxed(self, item: dict[str, Any]) -> dict[str, Any]:
        """A specific tax that holds the two rules, or one that does not and is folded."""
        rate, quantity = self.dice.randint(1, 20) * 50, self.dice.randint(1, 9)
        price, vat = self.dice.randint(50, 5000), RATES[item["taxGroup"]]
        amount = price * quantity + rate * quantity * (100 + vat) // 100 + self.dice.choice([0, 0, 0, 7])
        taxed = {"unitPrice": price, "quantity": quantity, "amountTtc": amount}
        return {**item, **taxed, "specificTax": rate * quantity, "specificTaxRate": rate}

    def invoice(self, items: list[dict[str, Any]], **fields: Any) -> dict[str, Any]:
        self.number += 1
        total = sum(item["amountTtc"] for item in items)
        parts = sorted({self.dice.randint(1, total) for _ in range(self.dice.randint(0, 2))} | {total})
        amounts = [to - start for start, to in zip([0, *parts], parts, strict=False)]
        payments = [{"method": self.dice.choice("EVCMBA"), "amount": amount} for amount in amounts]
        psvb: dict[str, Any] = {"psvbGroup": self.dice.choice("ABCD")} if self.dice.random() < 0.3 else {}
        if total > 1000 and payments[0]["method"] == "E" and payments[0]["amount"] > 1000:
            psvb["stampDuty"] = 50
        return {"invoiceNumber": f"M-{self.number}", "items": items, "payments": payments, **psvb, **fields}


@asynccontextmanager
async def served(path: Path, **options: Any) -> AsyncIterator[tuple[MemoryShop, httpx.AsyncClient]]:
    """A shop and a client of its API; `options` are those of MemoryShop."""
    async with AsyncExitStack() as stack:
        shop = await stack.enter_async_context(MemoryShop(path, **options))
        deps = ApiDeps(
            workers=MachineWorkers([shop.worker]),
            keyring=shop.store.key_ring,
            timezone=shop.timezone,
            clock=shop.box.millis,
            version="1",
        )
        server = HttpServer(create_api(deps), ServerConfig(port=0))
        await server.start()
        stack.push_async_callback(server.stop)
        key = await shop.store.ledger.write(create_key, NIM, "live", "auditor", at=1)
        client = httpx.AsyncClient(
            base_url=f"http://127.0.0.1:{server.port}/v1/mcf/{NIM}/",
            headers={"authorization": f"Bearer {key}"},
            timeout=60,
            verify=PLAIN,
        )
        yield shop, await stack.enter_async_context(client)


def figures(found: dict[str, Any]) -> dict[str, Any]:
    return {name: found[name] for name in FIGURES}


async def read(month: Month, path: str, **query: Any) -> Any:
    answer = await month.http.get(path, params=query)
    assert answer.status_code == 200, answer.text
    return answer


async def settled(month: Month) -> None:
    """The tick has brought everything in."""
    worker = month.shop.worker
    last_seq = (worker.ledger.peek(book_state, worker.book)).last_seq
    async with asyncio.timeout(60):
        while (await worker.ledger.aggregated(worker.book)).seq < last_seq:  # noqa: ASYNC110  the tick sends no event
            await asyncio.sleep(0.01)


SUMS = {
    "total_ttc": "totalTtc",
    "total_ht": "totalHt",
    "total_tva": "totalTva",
    "specific_tax": "specificTax",
    "stamp_duty": "stampDuty",
}
"""What stands in a report beside the columns of the journal's file that add up to it, credit notes taken off."""
ON_PAPER = {"total_ht": "Total HT", "total_tva": "Total TVA", "total_ttc": "TOTAL TTC (F CFA)"}


async def check_files(month: Month, reports: list[tuple[str, str]]) -> None:
    """The journal as CSV, both ways, and the paper say what the report says; `reports` are paths, each with the number that its rows have."""
    query = {"format": "csv", "from": "2020-01-01"}
    plain = list(csv.DictReader((await read(month, "certifications", **query)).text.splitlines()))
    text = (await read(month, "certifications", **query, dialect="excel-fr")).text
    french = [dict(zip(plain[0], row, strict=True)) for row in csv.reader(text.splitlines()[1:], delimiter=";")]
    for path, number in reports:
        found = (await read(month, path)).json()
        for rows, word in ((plain, "certified"), (french, "certifiée")):
            own = [row for row in rows if row["zNumber"] == number and row["state"] == word]
            sums = {name: net(own, column) for name, column in SUMS.items()}
            assert sums == {name: found[name] for name in SUMS}, path
            assert found["certs_count"] == len(own)
            assert sum(line["amount"] for line in found["psvb"]) == net(own, "psvbAmount")
            rebates = [row for row in own if row["creditNoteNature"] == "RRR"]
            assert found["reductions"] == net(own, "discount") - net(rebates, "totalTtc")
            paid = {method: net(own, f"paid{method}") for method in "EVCMBA"}
            assert {line["method"]: line["amount"] for line in found["by_payment"]} == {
                m: s for m, s in paid.items() if s
            }
            assert found["cash"]["expected"] == paid["E"] + found["stamp_duty"]
        paper = re.sub("[\u00a0\u202f]", " ", (await read(month, f"{path}/ticket", format="text", lang="fr")).text)
        printed = [line for line in paper.splitlines() if re.search(r"\S {2,}\S", line)]
        for name, words in ON_PAPER.items():
            (line,) = (line for line in printed if line.startswith(words))
            assert int(line.removeprefix(words).replace(" ", "")) == found[name], (path, line)


def net(rows: list[dict[str, str]], column: str) -> int:
    return sum((-1 if row["invoiceType"] in ("FA", "EA") else 1) * int(row[column] or 0) for row in rows)
