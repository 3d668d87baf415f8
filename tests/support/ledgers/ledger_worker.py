"""A process that works on a ledger until it is killed, and says on stdout what it was told is durable.

    ledger-worker LEDGER FIRST_NUMBER

One line for each: `begun <nim> <number>`, `certified <nim> <number> <code>`, `refused <nim> <number>`, `closed <nim> <z> <report_id>`.
"""

from __future__ import annotations

import asyncio
import itertools
import sys
from pathlib import Path

from support.ledgers.ledger import Till, invoice, opened

from daemon.store.tables.book import attempts

BOOKS = 6


def say(*words: object) -> None:
    print(*words, flush=True)  # noqa: T201  # that is what it is for


async def work(till: Till, first: int) -> None:
    nim = till.book.nim
    for number in itertools.count(first):
        sale = invoice(f"{nim}-{number}", amounts=(("B", 100 + number), ("A", 7)))
        attempt_id = await till.begin(sale, key=f"{nim}-{number}".rjust(24).encode(), body=b"body")
        say("begun", nim, sale.number)
        if number % 10 == 9:
            await till.store.ledger.write(attempts.end, till.book, attempt_id, "refused", "E:no", at=till.at)
            say("refused", nim, sale.number)
            continue
        record = await till.finish(attempt_id, sale)
        say("certified", nim, sale.number, record.code)
        if number % 7 == 6:
            await till.store.ledger.aggregate(till.book)
        if number % 13 == 12:
            closure = await till.close()
            say("closed", nim, closure.z_number, closure.report_id)


async def serve(path: Path, first: int) -> None:
    async with opened(path) as store:
        tills = [await Till.of(store, f"EL02{at:06d}-1") for at in range(BOOKS)]
        await asyncio.gather(*(work(till, first) for till in tills))


def main() -> None:
    asyncio.run(serve(Path(sys.argv[1]), int(sys.argv[2])))
