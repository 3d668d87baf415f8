"""Whether the box's clock is synchronised (decision 21): by systemd-timesyncd's file or, for chrony and others, by the
kernel's state. timedatectl reads that state: the service itself may not."""

from pathlib import Path

BOOTED = Path("/run/systemd/system")
"""Exists if systemd runs the box (sd_booted(3))."""
SYNCHRONISED = Path("/run/systemd/timesync/synchronized")
ASK = ("timedatectl", "show", "--property=NTPSynchronized", "--value")
PATIENCE = 2.0
"""Seconds."""


async def is_synchronised() -> bool:
    import asyncio  # noqa: PLC0415  a command that wants the time alone starts without it
    from asyncio.subprocess import DEVNULL, PIPE  # noqa: PLC0415

    if SYNCHRONISED.exists():  # noqa: ASYNC240  in memory
        return True
    if not BOOTED.is_dir():  # noqa: ASYNC240  in memory
        return False
    try:
        process = await asyncio.create_subprocess_exec(*ASK, stdout=PIPE, stderr=DEVNULL, stdin=DEVNULL)
    except OSError:
        return False
    try:
        async with asyncio.timeout(PATIENCE):
            answer, _ = await process.communicate()
    except TimeoutError:
        process.kill()
        await process.wait()
        return False
    return answer.strip() == b"yes"
