"""One attack as a process: `python -m siege.attacker NAME SECONDS TARGET`, where TARGET is JSON.

It runs at the lowest priority: in a shop it would have a processor of its own, and here it must not take the daemon's."""

from __future__ import annotations

import asyncio
import os
import resource
import sys
from contextlib import suppress

import msgspec

from siege.attacks import ATTACKS
from siege.target import Target


async def attack(name: str, seconds: float, target: Target) -> None:
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda *_: None)  # connections that the daemon ends are what is hoped for
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await ATTACKS[name](target)


def main() -> None:
    name, seconds, told = sys.argv[1:]
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 8192), hard))
    os.nice(15)
    asyncio.run(attack(name, float(seconds), msgspec.json.decode(told, type=Target)))


if __name__ == "__main__":
    main()
