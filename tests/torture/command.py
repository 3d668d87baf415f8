"""`make torture`: rounds of everything that can go wrong, until the time is over or one goes wrong.

A round draws everything from its seed: `make torture SEED=n ROUNDS=1` does round n again. What two tills do at the same moment is
decided by the real time, so a round that failed may need a few more tries.
"""

import argparse
import asyncio
import random
import sys
import tempfile
import time
from pathlib import Path

from support.nursery import Nursery
from torture.kill_round import kill_round
from torture.memory_round import Round

from common import logs

ROUND_SECONDS = 300


def main() -> None:
    parser = argparse.ArgumentParser(prog="make torture")
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6), help="of the first round")
    parser.add_argument("--rounds", type=int, default=sys.maxsize)
    options = parser.parse_args()
    ends_at = time.monotonic() + 60 * options.minutes
    say(f"torture: {options.minutes:g} minutes from seed {options.seed}")
    with Nursery() as nursery:
        for each in range(options.seed, options.seed + options.rounds):
            if time.monotonic() > ends_at:
                break
            one_round(each, nursery)
    say("torture: nothing lost, nothing doubled")


def one_round(seed: int, nursery: Nursery) -> None:
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="mcfd-torture-") as folder:
        log = Path(folder) / "log"
        with log.open("w") as lines:
            logs.configure(form="json", stream=lines)
            try:
                result = kill_round(Path(folder), seed, nursery) if seed % 2 else in_memory(Path(folder), seed)
            except BaseException:
                lines.flush()
                say(log.read_text()[-20_000:])
                say(f"torture: seed {seed} failed; again with: make torture SEED={seed} ROUNDS=1")
                raise
    say(f"seed {seed}: {result}; {time.monotonic() - began:.0f} s")


def in_memory(folder: Path, seed: int) -> str:
    async def run() -> str:
        async with asyncio.timeout(ROUND_SECONDS):
            return await Round(folder, seed).run()

    return asyncio.run(run())


def say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()
