"""`make soak MINUTES=30`: a shop with two machines in every kind of trouble, and at the end one story that holds.

In the first part the daemon is killed and restarted too; then it lives on, and its memory and descriptors are watched under the same load.
Everything random comes from the seed, which is printed.
"""

from __future__ import annotations

import argparse
import asyncio
import secrets
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path

from soak.gauges import Gauges
from soak.reckoning import reckon
from soak.tills import Book, Closer, Diary, Till
from soak.trouble import Trouble
from support.receivers.headquarters import HttpHeadquarters
from support.shop import NIM, Machine, Shop, wait_for

OTHER = "EL02000016-1"
TILLS = 3
"""For each machine, beside one in the sandbox."""
WITH_RESTARTS = 0.4
WARMING_UP = 0.1
"""Parts of the whole time."""
CREDIT_NOTES = {"credit_timeout": 10.0}
"""The answer to one may be lost too, and the line then waits that long; this machine needs no minute to check it."""
LAST_WORDS = 180.0
"""Seconds for what was begun to come to its end."""


def say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def main() -> int:
    parser = argparse.ArgumentParser(prog="soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--seed", type=int, default=secrets.randbelow(10**6))
    parser.add_argument("--folder", type=Path, help="where everything is kept; otherwise it is gone at the end")
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the shop is cleared away
    say(f"soak: {arguments.minutes:g} minutes, seed {arguments.seed}")
    with tempfile.TemporaryDirectory(prefix="mcfd-soak-") as scratch:
        folder = arguments.folder or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        wrong = soak(folder, arguments.minutes * 60, arguments.seed)
        for line in wrong:
            say(f"WRONG  {line}")
        if wrong and not arguments.folder:
            kept = Path(tempfile.mkdtemp(prefix="mcfd-soak-log-")) / "mcfd.log"
            kept.write_bytes((folder / "mcfd.log").read_bytes())
            say(f"soak: the daemon's log is kept: {kept}")
    say(f"soak: {'all is well' if not wrong else f'{len(wrong)} thing(s) wrong'}; seed {arguments.seed}")
    return 1 if wrong else 0


def soak(folder: Path, seconds: float, seed: int) -> list[str]:
    headquarters = HttpHeadquarters(folder)
    asyncio.run(headquarters.up())
    upstream = {
        "kind": "https",
        "url": headquarters.url,
        "secret_file": str(headquarters.keys.file),
        "retry_max": 2.0,
    }
    machines = tuple(Machine(folder, nim) for nim in (NIM, OTHER))
    try:
        with Shop(folder, machines=machines, config={"upstream": upstream}, per_machine=CREDIT_NOTES) as shop:
            return _soak(shop.start(), headquarters, seconds, seed)
    finally:
        headquarters.kill()


def _soak(shop: Shop, headquarters: HttpHeadquarters, seconds: float, seed: int) -> list[str]:
    books = [Book(machine.nim, mode) for machine in shop.machines for mode in ("live", "test")]
    diary, trouble = Diary(), Trouble(shop, headquarters, seed)
    tills = _tills(shop, books, diary, seed, seconds)
    for thread in (trouble, *tills):
        thread.start()
    time.sleep(seconds * WITH_RESTARTS)
    trouble.restarts.clear()
    time.sleep(seconds * WARMING_UP)
    gauges = Gauges(shop.pid)
    watching = threading.Thread(target=gauges.watch, daemon=True)
    watching.start()
    time.sleep(seconds * (1 - WITH_RESTARTS - WARMING_UP))
    gauges.over.set()
    for part in (watching, trouble):
        trouble.over.set()
        part.join(LAST_WORDS)
    wait_for(lambda: shop.http.get("/health/ready").status_code == 200, "machines that answer again", LAST_WORDS)
    wrong = [*_last_words(tills, diary), *trouble.wrong]
    for till in tills:
        if isinstance(till, Closer):
            till.close_period()
    wait_for(lambda: not _waiting(shop), "an empty outbox", LAST_WORDS)
    wrong += [*reckon(shop, books, headquarters), *diary.wrong, *gauges.problems()]
    _summarise(books, diary, trouble, gauges)
    return wrong


def _tills(shop: Shop, books: list[Book], diary: Diary, seed: int, seconds: float) -> list[Till]:
    """All keys are made before the first of them starts."""
    tills: list[Till] = []
    for book in books:
        count = TILLS if book.mode == "live" else 1
        name = f"{book.nim[6:10]}{book.mode[0]}"
        tills += [Till(shop, book, diary, f"{seed}-{name}{at}") for at in range(count)]
        every = (min(5, seconds / 12), min(25, seconds / 6))
        tills.append(Closer(shop, book, diary, f"{seed}-{name}z", every))
    return tills


def _last_words(tills: list[Till], diary: Diary) -> list[str]:
    diary.stop.set()
    deadline = time.monotonic() + LAST_WORDS
    for till in tills:
        till.join(max(0, deadline - time.monotonic()))
    return [f"{till.name} did not come to an end" for till in tills if till.is_alive()]


def _waiting(shop: Shop) -> int:
    backlog = shop.http.get("/health/ready").json()["upstream"]
    return sum(lane["waiting"] for lane in backlog if lane["mode"] == "live")


def _summarise(books: list[Book], diary: Diary, trouble: Trouble, gauges: Gauges) -> None:
    for book in books:
        say(f"  {book.nim} {book.mode}: {len(book.codes)} certified, {len(book.closures)} Z")
    say(f"  answers: {_listed(diary.answers)}; longest wait for an outcome {diary.slowest:.1f} s")
    say(f"  trouble: {_listed(trouble.done)}")
    say(f"  daemon, {gauges}")


def _listed(counter: Counter[str]) -> str:
    return ", ".join(f"{times} × {name}" for name, times in counter.most_common())


if __name__ == "__main__":
    sys.exit(main())
