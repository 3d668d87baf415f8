"""One attack as a process: `python -m bench.siege.attacker NAME SECONDS TARGET`, where TARGET is JSON.

It prints `ready` and begins at a line on stdin: its start is no attack. A real attacker has its own processor; here it
must not take the daemon's, so it runs only when a processor is idle (`--idle`), or with low priority."""

from __future__ import annotations

import asyncio
import os
import resource
import sys
from contextlib import suppress

import msgspec

from bench.siege.attacks import ATTACKS
from bench.siege.target import Target


async def attack(name: str, seconds: float, target: Target) -> None:
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda *_: None)  # connections ended by the daemon are expected
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await ATTACKS[name](target)


def main() -> None:
    name, seconds, target_json, *idle = sys.argv[1:]
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 8192), hard))
    if idle:
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    else:
        os.nice(15)
    target = msgspec.json.decode(target_json, type=Target)
    print("ready", flush=True)
    sys.stdin.readline()
    asyncio.run(attack(name, float(seconds), target))


if __name__ == "__main__":
    main()
