"""X, Z and A of a random month equal what an independent script makes of the journal, to the franc.

The month is sold through the whole service (HTTP, use cases, driver, simulated machine, SQLite) with clocks that jump."""

import json
import random
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from support.ledgers.recomputed import report
from support.random_month import RATES, Month, check_files, figures, read, served, settled

from daemon.core.clock import DAY, millis_text
from daemon.store.tables.book.closures import find_closure

DAYS = 31


@asynccontextmanager
async def opened(path: Path, seed: int) -> AsyncIterator[Month]:
    async with served(path) as (shop, client):
        shop.synchronised = True
        yield Month(shop, client, random.Random(seed), -(DAYS + 5) * DAY)


@pytest.mark.long
@pytest.mark.quick_timers
@pytest.mark.parametrize("seed", [20261, 20262])
async def test_reports_are_what_the_journal_says(tmp_path: Path, seed: int) -> None:
    """Every Z, the X, and A and the periodic X of random ranges: every figure, to the franc."""
    async with opened(tmp_path / "ledger.sqlite3", seed) as month:
        month.move(0)
        await month.shop.connected()
        for _ in range(DAYS):
            await month.day()
        for _ in range(3):
            await month.sell()
        await settled(month)
        lines = (await read(month, "certifications", format="jsonl", **{"from": "2020-01-01"})).text.splitlines()
        journal = [json.loads(line) for line in lines]
        assert len(journal) == month.number
        assert_everything_occurs(journal, seed)
        history = (await read(month, "reports", **{"from": "2020-01-01"})).json()["reports"]
        assert len(history) > 5, seed
        for closed in history:
            z = json.loads(
                (await month.shop.store.ledger.read(find_closure, month.shop.worker.book, closed["z_number"])).body
            )
            rows = [record for record in journal if record["zNumber"] == closed["z_number"]]
            assert figures(z) == report(rows), (seed, closed["z_number"])
            assert_fvc(z, rows, seed)
        still_open = [record for record in journal if record["zNumber"] is None]
        assert still_open
        x = (await read(month, "reports/x")).json()
        assert figures(x) == report(still_open), seed
        assert_fvc(x, still_open, seed)
        await check_ranges(month, journal, seed)
        await check_files(month, [(f"reports/z/{each['z_number']}", str(each["z_number"])) for each in history])
        await check_files(month, [("reports/x", "")])


def assert_everything_occurs(journal: list[dict[str, Any]], seed: int) -> None:
    """The month shows nothing about what is not in it."""
    whole = report(journal)
    assert [entry["invoice_type"] for entry in whole["by_type"]] == ["EA", "ET", "EV", "FA", "FT", "FV"], seed
    assert [entry["group"] for entry in whole["by_group"]] == [*RATES], seed
    assert [entry["method"] for entry in whole["by_payment"]] == sorted("EVCMBA"), seed
    assert [entry["group"] for entry in whole["psvb"]] == [*"ABCD"], seed
    assert whole["specific_tax"] > 0 < whole["incomplete"], seed
    warnings = {warning["code"] for record in journal if record["receipt"] for warning in record["receipt"]["warnings"]}
    assert len(warnings) > 1, seed
    assert {record["request"]["priceMode"] for record in journal} == {"TTC", "HT"}, seed


def assert_fvc(found: dict[str, Any], records: list[dict[str, Any]], seed: int) -> None:
    sales = [
        record["fvc"]
        for record in records
        if record["invoiceType"][0] + record["invoiceType"][1] not in ("FA", "EA") and record["fvc"]
    ]
    if sales:
        assert (found["fvc_start"], found["fvc_end"]) == (min(sales), max(sales)), seed


async def check_ranges(month: Month, journal: list[dict[str, Any]], seed: int) -> None:
    ends = [record["endedAt"] for record in journal]
    moments = [*ends, *(millis_text(month.shop.box.millis() - month.dice.randint(0, DAYS * DAY)) for _ in range(20))]
    for _ in range(25):
        start, end = sorted(month.dice.sample(moments, 2))
        rows = [record for record in journal if start <= record["endedAt"] < end]
        for path in ("reports/a", "reports/x"):
            found = (await read(month, path, **{"from": start, "to": end})).json()
            assert figures(found) == report(rows), (seed, path, start, end)


def test_the_script_is_an_auditor_s_own() -> None:
    """It imports nothing of ours, so a mistake of ours is not made twice."""
    text = (Path(__file__).parents[2] / "support" / "ledgers" / "recomputed.py").read_text()
    imported = re.findall(r"^(?:import|from) (\w+)", text, re.MULTILINE)
    assert set(imported) == {"json", "sys", "collections", "decimal"}
    assert len(text.splitlines()) < 100
