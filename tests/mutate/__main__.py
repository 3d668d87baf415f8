"""`make mutate`: small mistakes at places drawn by chance, each tried against the tests that touch its line.

    make mutate SEED=7 COUNT=100      a sample; the same seed draws the same mistakes of the same tree
    make mutate NAMED=1               those that got away once (named.toml)
    make mutate SECONDS=1800          no new mistake is begun after that time

A survivor is printed with its line and what was changed. Exit code 1 when there was one.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import threading
import time
import tomllib
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from mutate.mistakes import Mistake, mistakes
from mutate.spoiled import TREE
from mutate.touched import ROOMS, Touched, files
from mutate.trial import Tried, Worker


def main() -> int:
    parser = argparse.ArgumentParser(prog="make mutate", description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=3600.0)
    parser.add_argument("--workers", type=int, default=max(1, (os.cpu_count() or 2) // 2))
    parser.add_argument("--named", action="store_true")
    options = parser.parse_args()
    began = time.monotonic()
    touched = Touched(options.workers)
    if options.named:
        work = list(named(touched))
    else:
        drawn = draw(options.seed, options.count, touched)
        work = [(mistake, touched.tests(mistake.file, mistake.line)) for mistake in drawn]
        say(f"mutate: {len(drawn)} mistakes of seed {options.seed}")
    done = try_all(work, touched, options.workers, began + options.seconds)
    table(done, len(work), None if options.named else options.seed, time.monotonic() - began)
    return 0 if all(each.is_found for each in done) else 1


def draw(seed: int, count: int, touched: Touched) -> list[Mistake]:
    """Of lines that a test touches: a line that none touches has no test to be judged, and coverage tells it cheaper."""
    found = [mistake for name in files() for mistake in mistakes(name, (TREE / name).read_bytes())]
    covered = [mistake for mistake in found if touched.tests(mistake.file, mistake.line)]
    say(f"mutate: {len(found)} places for a mistake, {len(covered)} of them on lines that a test touches")
    return random.Random(seed).sample(covered, min(count, len(covered)))


def named(touched: Touched) -> Iterator[tuple[Mistake, list[str]]]:
    """With the tests of the files or folders that are named with them."""
    for each in tomllib.loads((Path(__file__).parent / "named.toml").read_text())["mistake"]:
        source = (TREE / each["file"]).read_bytes()
        find = each["find"].encode()
        if source.count(find) != 1:
            raise SystemExit(f"mutate: named.toml: {each['what']}: not once in {each['file']}")
        start = source.index(find)
        line = source[:start].count(b"\n") + 1
        tests = [test for test in sorted(touched.seconds) if test.startswith(tuple(each["tests"]))]
        if not tests:
            raise SystemExit(f"mutate: named.toml: {each['what']}: no test in {each['tests']}")
        yield Mistake(each["file"], line, start, start + len(find), each["new"], each["what"]), tests


def try_all(
    work: Sequence[tuple[Mistake, Sequence[str]]], touched: Touched, workers: int, ends_at: float
) -> list[Tried]:
    """In the order of `work`, as far as the time reached."""
    done: dict[int, Tried] = {}
    left = iter(enumerate(work))
    turn = threading.Lock()

    def keep_trying() -> None:
        with Worker(touched.seconds) as worker:
            while time.monotonic() < ends_at:
                with turn:
                    at, (mistake, tests) = next(left, (None, (None, ())))
                if at is None or mistake is None:
                    return
                at_import = touched.is_run_at_import(mistake.file, mistake.line)
                tried = worker.tried(mistake, tests, is_run_at_import=at_import)
                with turn:
                    done[at] = tried
                    show(tried)

    with ThreadPoolExecutor(workers) as threads:
        for each in [threads.submit(keep_trying) for _ in range(workers)]:
            each.result()
    return [done[at] for at in sorted(done)]


def show(tried: Tried) -> None:
    mistake = tried.mistake
    say(f"{tried.outcome:9} {tried.seconds:6.1f} s  {mistake.file}:{mistake.line}: {mistake.what}  [{tried.by}]")


def table(done: Sequence[Tried], asked: int, seed: int | None, seconds: float) -> None:
    rooms: Counter[str] = Counter()
    found: Counter[str] = Counter()
    for tried in done:
        room = next((each for each in ROOMS if tried.mistake.file.startswith(each)), tried.mistake.file)
        rooms[room] += 1
        found[room] += tried.is_found
    say("\n| room | mistakes | found |\n|---|---|---|")
    for room in sorted(rooms):
        say(f"| `{room}` | {rooms[room]} | {found[room]} |")
    tried_in_all, all_found = sum(rooms.values()), sum(found.values())
    share = 100 * all_found / tried_in_all if tried_in_all else 0.0
    say(f"| all ({'named' if seed is None else f'seed {seed}'}) | {tried_in_all} | {all_found} ({share:.0f} %) |")
    if tried_in_all < asked:
        say(f"mutate: the time was over after {tried_in_all} of {asked}")
    say(f"mutate: {seconds:.0f} s")
    for tried in done:
        if not tried.is_found:
            mistake = tried.mistake
            source = (TREE / mistake.file).read_bytes()
            before = source.splitlines()[mistake.line - 1].decode().strip()
            after = mistake.applied(source).splitlines()[mistake.line - 1].decode().strip()
            say(f"\nsurvives: {mistake.file}:{mistake.line}: {mistake.what}\n  - {before}\n  + {after}")


def say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
