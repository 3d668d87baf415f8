"""A killed process loses nothing that it was told is durable, and leaves nothing half done."""

from __future__ import annotations

import os
import random
import select
import signal
from pathlib import Path

import pytest
from support.ledgers.ledger import opened
from support.nursery import warm

from daemon.core.ledger.attempt import Record
from daemon.core.ledger.book import Book
from daemon.store.maintenance.verify import verify
from daemon.store.store import Store
from daemon.store.tables.book import attempts, uniqueness
from daemon.store.tables.book.books import all_books, book_state
from daemon.store.tables.book.closures import find_closure

KILLS = 5
PATIENCE = 60


def run_until_killed(path: Path, first: int, lines: int) -> list[list[str]]:
    """What the worker said before SIGKILL, which comes as soon as it has said so many lines."""
    line, errors = path.with_name("line"), path.with_name("errors")
    if not line.exists():
        os.mkfifo(line)
    with os.fdopen(os.open(line, os.O_RDONLY | os.O_NONBLOCK), "rb", buffering=0) as result:
        nursery = warm()
        assert nursery
        worker = nursery.start("ledger-worker", [str(path), str(first)], os.environ, stdout=line, stderr=errors)
        looks = select.poll()
        looks.register(result, select.POLLIN)
        content = b""
        while content.count(b"\n") < lines:
            assert looks.poll(PATIENCE * 1000), "it says nothing"
            piece = result.read(1 << 16)
            assert piece, errors.read_text()
            content += piece
        worker.send_signal(signal.SIGKILL)
        assert worker.wait(PATIENCE) == -signal.SIGKILL
        content += result.readall() or b""
    return [line.decode().split() for line in content.splitlines(keepends=True) if line.endswith(b"\n")]


@pytest.mark.parametrize("seed", [11, pytest.param(12, marks=pytest.mark.long)])
async def test_what_was_acknowledged_survives_sigkill(tmp_path: Path, seed: int) -> None:
    """Six books at work, killed again and again in the middle of shared commits: every line that was said is in the ledger,
    every number is certified once, nothing else than the last intents is open, and the chain is whole."""
    dice = random.Random(seed)
    path = tmp_path / "ledger.sqlite3"
    messages: list[list[str]] = []
    for kill in range(KILLS):
        messages += run_until_killed(path, 1 + kill * 1000, dice.randrange(1, 150))
        async with opened(path) as store:
            await check(store, messages)
    findings = verify(path)
    assert findings.clean, (seed, findings.problems)
    assert findings.records >= sum(line[0] in ("certified", "refused") for line in messages)


async def check(store: Store, expected: list[list[str]]) -> None:
    books = {book.nim: book for book in await store.journal.read(all_books)}
    for kind, nim, what, *more in expected:
        book = books[nim]
        if kind == "certified":
            record = store.ledger.peek(attempts.find_number, book, what)
            assert record is not None
            assert [record.code] == more
        elif kind == "closed":
            assert [(await store.ledger.read(find_closure, book, int(what))).report_id] == more
        else:
            assert await is_stored(store, book, what)
    for book in books.values():
        await settle(store, book)


async def is_stored(store: Store, book: Book, number: str) -> bool:
    """Its key stands for it, or it is free again because the attempt ended otherwise."""
    use = store.ledger.peek(uniqueness.find_key, book, number.rjust(24).encode())
    return use is None or (use.record is not None and use.record.number == number)


async def settle(store: Store, book: Book) -> list[Record]:
    """At most the one intent of each book that was under way is open; it ends here as recovery would end it."""
    unfinished = store.ledger.peek(attempts.unfinished, book)
    assert len(unfinished) <= 1
    for record in unfinished:
        at = (store.ledger.peek(book_state, book)).last_at
        await store.ledger.write(attempts.end, book, record.id, "abandoned", "the machine did not certify it", at=at)
    return unfinished
