"""At the end: what the tills were told, what the machines hold, what the ledger says and what headquarters got has to be one story."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from typing import Any

from soak.tills import Book
from support.receivers.headquarters import HttpHeadquarters, z_numbers
from support.shop import Machine, Shop

HARMLESS = frozenset[str]()
"""Events of the log at level error that this trouble explains."""


def reckon(shop: Shop, books: list[Book], headquarters: HttpHeadquarters) -> Iterator[str]:
    """What does not agree; nothing when all is well."""
    with closing(sqlite3.connect(shop.ledger)) as ledger:
        for book in books:
            yield from _book(ledger, book)
    machines = {machine.nim: machine for machine in shop.machines}
    for book in books:
        if book.mode == "live":
            yield from _machine(machines[book.nim], book)
    yield from _upstream(headquarters, books)
    done = shop.mcfd("verify")
    if done.returncode:
        yield f"mcfd verify: {done.stdout} {done.stderr}"
    yield from _log(shop)


def _book(ledger: sqlite3.Connection, book: Book) -> Iterator[str]:
    name = f"{book.nim} {book.mode}"
    (head,) = ledger.execute(
        "SELECT id, attention, unexplained FROM book WHERE nim = ? AND mode = ?", (book.nim, book.mode)
    ).fetchall()
    if head[1] or head[2]:
        yield f"{name}: attention {head[1]!r}, {head[2]} unexplained"
    rows = ledger.execute(
        "SELECT state, number, code, type, total_ttc FROM certification WHERE book_id = ?", (head[0],)
    ).fetchall()
    states = Counter(row[0] for row in rows)
    if states["begun"] or states["disputed"]:
        yield f"{name}: {states['begun']} begun, {states['disputed']} disputed"
    certified = [row for row in rows if row[0] == "certified"]
    if len({row[1] for row in certified}) != len(certified):
        yield f"{name}: a number was certified twice"
    yield from _differences(f"{name}: ledger and tills", {row[1]: row[2] for row in certified}, book.codes)
    yield from _differences(f"{name}: totals", {row[1]: row[4] for row in certified}, book.totals)
    yield from _closures(name, book, certified)


def _closures(name: str, book: Book, certified: list[tuple[Any, ...]]) -> Iterator[str]:
    """Every certification is in exactly one Z: their sums by type are the sums of all."""
    if sorted(book.closures) != list(range(1, len(book.closures) + 1)):
        yield f"{name}: Z numbers {sorted(book.closures)}"
    expected: Counter[tuple[str, str]] = Counter()
    for _, _, _, kind, total in certified:
        expected[kind, "count"] += 1
        expected[kind, "total_ttc"] += total
    found: Counter[tuple[str, str]] = Counter()
    for report in book.closures.values():
        for entry in report["by_type"]:
            for field in ("count", "total_ttc"):
                found[entry["invoice_type"], field] += abs(entry[field])
    if +found != +expected:
        yield f"{name}: the Z reports hold {dict(found)}, the ledger {dict(expected)}"


def _machine(machine: Machine, book: Book) -> Iterator[str]:
    log = machine.certified()
    if len({entry["number"] for entry in log}) != len(log):
        doubled = [number for number, times in Counter(entry["number"] for entry in log).items() if times > 1]
        yield f"{book.nim}: certified twice on the machine: {doubled[:10]}"
    yield from _differences(f"{book.nim}: machine and tills", {e["number"]: e["code"] for e in log}, book.codes)


def _upstream(headquarters: HttpHeadquarters, books: list[Book]) -> Iterator[str]:
    events = [json.loads(attempt["body"]) for attempt in headquarters.attempts() if attempt["kept"]]
    for book in books:
        got = z_numbers(events, book.nim)
        if book.mode == "live" and got != sorted(book.closures):
            yield f"{book.nim}: headquarters has Z {got}, the tills {sorted(book.closures)}"


def _log(shop: Shop) -> Iterator[str]:
    found: Counter[str] = Counter()
    examples: dict[str, str] = {}
    with shop.log_file.open() as lines:
        for line in lines:
            entry = json.loads(line) if line.startswith("{") else {"level": "error", "event": line.strip()}
            if entry["level"] in ("error", "critical") and entry["event"] not in HARMLESS:
                found[entry["event"]] += 1
                examples.setdefault(entry["event"], line.strip())
    for event, times in found.items():
        yield f"log: {times} × {event}, first: {examples[event][:1500]}"


def _differences(what: str, one: dict[str, Any], other: dict[str, Any]) -> Iterator[str]:
    wrong = [number for number in one.keys() | other.keys() if one.get(number) != other.get(number)]
    if wrong:
        some = {number: (one.get(number), other.get(number)) for number in sorted(wrong)[:5]}
        yield f"{what} differ in {len(wrong)} invoice(s): {some}"
