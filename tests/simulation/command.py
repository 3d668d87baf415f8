"""`make simulate`: histories from their seeds, as many as one likes, on all cores; one of them again, to look at; the mistakes."""

import argparse
import gc
import multiprocessing
import os
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import partial

from simulation.cut_down import cut_down
from simulation.drawn.events import in_words
from simulation.drawn.script import drawn
from simulation.history import Outcome, play, played
from simulation.mistakes import MISTAKES, found_by
from simulation.patched import applied

GC_THRESHOLD = 200_000
"""About what a long day makes; no history depends on when the garbage collector comes."""
CHUNK, CHUNKS = 8, 8
"""How many histories a process takes at a time, and how often: it never looks for garbage, its end takes all of it (2 MB a history)."""


def main() -> None:
    parser = argparse.ArgumentParser(prog="make simulate")
    parser.add_argument("--seeds", type=int, default=2000, help="how many")
    parser.add_argument("--first", type=int, default=0, help="the first of them")
    parser.add_argument("--minutes", type=float, default=0.0, help="so long instead")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--seed", type=int, help="this one again, and show it")
    parser.add_argument("--keep", default="", help="with only these of its events")
    parser.add_argument("--mistakes", action="store_true", help="each deliberate mistake, and the seed that finds it")
    options = parser.parse_args()
    gc.freeze()
    gc.set_threshold(GC_THRESHOLD)
    if options.seed is not None:
        sys.exit(show(options.seed, options.keep))
    fork = multiprocessing.get_context("fork")
    if options.mistakes:
        with fork.Pool(options.jobs) as pool:
            sys.exit(tell_mistakes(pool.imap(partial(find, seeds=options.seeds), range(len(MISTAKES)))))
    with fork.Pool(options.jobs, initializer=gc.disable, maxtasksperchild=CHUNKS) as pool:
        ends_at = time.monotonic() + 60 * options.minutes if options.minutes else float("inf")
        count = sys.maxsize if options.minutes else options.seeds
        seeds = range(options.first, options.first + count)
        outcomes = pool.imap_unordered(timed, endless(seeds, ends_at), chunksize=CHUNK)
        sys.exit(tell(until(ends_at, outcomes), options.jobs))


def endless(seeds: Iterable[int], ends_at: float) -> Iterator[int]:
    for seed in seeds:
        if time.monotonic() > ends_at:
            return
        yield seed


def timed(seed: int) -> tuple[Outcome, float]:
    """With the processor time that it took, in seconds: what else runs on the machine does not count."""
    began = time.process_time()
    outcome = played(seed)
    return outcome, time.process_time() - began


def until(ends_at: float, outcomes: Iterable[tuple[Outcome, float]]) -> Iterator[tuple[Outcome, float]]:
    for outcome in outcomes:
        yield outcome
        if time.monotonic() > ends_at:
            return


def tell(outcomes: Iterable[tuple[Outcome, float]], jobs: int) -> int:
    began = time.monotonic()
    histories = certified = 0
    busy = 0.0
    happened: Counter[str] = Counter()
    for outcome, seconds in outcomes:
        histories += 1
        busy += seconds
        certified += outcome.certified
        happened.update(outcome.happened)
        if outcome.failure:
            return tell_failure(outcome)
    took = time.monotonic() - began
    say(f"{histories} histories, {certified} certifications, {took:.0f} s on {jobs} core(s)")
    hourly = 3600 * certified
    say(f"{hourly / busy:,.0f} certifications an hour of processor time, {hourly / took:,.0f} an hour by the clock")
    say(", ".join(f"{count} × {what}" for what, count in happened.most_common()))
    again = [played(seed) == played(seed) for seed in range(10)]
    say(f"the same seed twice: {'equal' if all(again) else 'NOT EQUAL'}")
    say("nothing lost, nothing doubled")
    return 0 if all(again) else 1


def tell_failure(outcome: Outcome) -> int:
    script = drawn(outcome.seed)
    say(f"seed {outcome.seed}: {outcome.failure}")
    say("cutting it down …")
    say(in_words(script, cut_down(script)))
    return 1


def show(seed: int, keep: str) -> int:
    script = drawn(seed)
    if keep:
        script = script.keeping({int(at) for at in keep.split(",")})
    say(in_words(script, range(len(script.events))))
    outcome = play(script, show=True)
    say(outcome.failure or "everything held")
    return 1 if outcome.failure else 0


def find(at: int, *, seeds: int) -> tuple[str, int | None, str]:
    mistake = MISTAKES[at]
    with applied(mistake):
        found = found_by((mistake.seed, *range(seeds)))
    return mistake.name, *(found or (None, ""))


def tell_mistakes(found: Iterable[tuple[str, int | None, str]]) -> int:
    missed = 0
    for name, seed, failure in found:
        missed += seed is None
        say(f"{name:70} {'NOT FOUND' if seed is None else f'seed {seed:4}'}  {failure[:120]}")
    say(f"{len(MISTAKES)} mistakes, {missed} not found")
    return 1 if missed else 0


def say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()
