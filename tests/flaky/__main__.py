"""`make flaky`: the suite in random order, again and again, on a machine that is busy with something else.

    make flaky COUNT=10                     ten runs, each in an order drawn by its seed
    make flaky SEED=7 COUNT=1               the order of seed 7 again
    make flaky BUSY=4 ARGS=tests/unit       four busy loops; only these tests

The files are shuffled, and the tests within each: a worker takes whole files, as in `make test`. Every failure is told with its seed, and
how often each test failed in all; what pytest said of a run with failures is in build/flaky/SEED.txt. Exit code 1 when one did.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

TREE = Path(__file__).parents[2]
TOLD = TREE / "build" / "flaky"
FAILED = re.compile(r"^(?:FAILED|ERROR) (\S.*?)(?: - .*)?$", re.MULTILINE)
ENDED = re.compile(r"^\d+ (?:failed|passed|error|skipped).* in [\d.]+s.*$", re.MULTILINE)
MOST_SECONDS = 3600.0
WORKERS = str(len(os.sched_getaffinity(0)) + 3)
"""As many as `make test` has."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="make flaky", description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6), help="of the first run")
    parser.add_argument("--count", type=int, default=10)
    parser.add_argument("--busy", type=int, default=1, help="busy loops beside the tests")
    parser.add_argument("pytest", nargs="*", help="what pytest takes, after --")
    options = parser.parse_args()
    failures: Counter[str] = Counter()
    tests = collected(options.pytest)
    say(
        f"flaky: {len(tests)} tests, {options.count} runs from seed {options.seed}, {options.busy} busy loops beside them"
    )
    with busy(options.busy):
        for seed in range(options.seed, options.seed + options.count):
            began = time.monotonic()
            failed, end = one_run(shuffled(tests, seed), TOLD / f"{seed}.txt")
            failures.update(failed)
            say(f"seed {seed}: {end}, {time.monotonic() - began:.0f} s")
            for test in failed:
                say(f"  failed: {test}")
    for test, times in failures.most_common():
        say(f"{times:3} of {options.count}: {test}")
    say("flaky: no failure" if not failures else f"flaky: {len(failures)} tests failed at least once")
    return 1 if failures else 0


def collected(arguments: list[str]) -> list[str]:
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", *arguments]
    done = subprocess.run(command, cwd=TREE, capture_output=True, text=True, check=False)
    tests = [line for line in done.stdout.splitlines() if "::" in line]
    if done.returncode != 0 or not tests:
        raise SystemExit(done.stdout[-3000:] + done.stderr[-3000:])
    return tests


def shuffled(tests: list[str], seed: int) -> list[str]:
    """By file, and within each file; the order of a seed is the same for the same tests."""
    dice = random.Random(seed)
    files: defaultdict[str, list[str]] = defaultdict(list)
    for test in sorted(tests):
        files[test.partition("::")[0]].append(test)
    names = sorted(files)
    dice.shuffle(names)
    for each in files.values():
        dice.shuffle(each)
    return [test for name in names for test in files[name]]


def one_run(tests: list[str], told_in: Path) -> tuple[list[str], str]:
    """What failed, and pytest's last line; all that it said goes into that file when something failed."""
    with tempfile.TemporaryDirectory(prefix="mcfd-flaky-") as folder:
        listed = Path(folder, "tests")
        listed.write_text("\n".join(tests) + "\n")
        command = [sys.executable, "-m", "pytest", "-q", "-n", WORKERS, "--max-worker-restart", "0", "--dist", "loadfile",
                   "--no-loadscope-reorder", "-p", "no:cacheprovider", f"@{listed}"]  # fmt: skip
        try:
            done = subprocess.run(command, cwd=TREE, capture_output=True, text=True, check=False, timeout=MOST_SECONDS)
        except subprocess.TimeoutExpired as over:
            told = over.stdout.decode(errors="replace") if isinstance(over.stdout, bytes) else ""
            keep(told_in, told)
            return [*FAILED.findall(told), "the run did not end"], "did not end"
        ends = ENDED.findall(done.stdout)
        failed = FAILED.findall(done.stdout)
        if done.returncode != 0 and not failed:
            failed = [f"pytest ended with {done.returncode}: {done.stdout[-500:]}"]
        if failed:
            keep(told_in, done.stdout + done.stderr)
        return failed, ends[-1] if ends else f"pytest ended with {done.returncode}"


def keep(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


@contextmanager
def busy(count: int) -> Iterator[None]:
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for each in loops:
            each.kill()
            each.wait()


def say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
