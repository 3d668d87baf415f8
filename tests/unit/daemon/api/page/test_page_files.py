"""Files for accountants, as the page hands them out."""

from __future__ import annotations

import asyncio

from daemon.api.page.jobs import Job, Jobs


async def test_a_job_that_ends_while_a_screen_is_made_is_shown_as_running() -> None:
    """Its file is not among the files that were listed before it: shown as done, the screen would not ask again."""
    may_end = asyncio.Event()

    async def work(_: Job) -> str:
        await may_end.wait()
        return "journal.csv"

    jobs = Jobs()
    jobs.begin("export", "2026", work)
    (job,) = jobs.of("export")
    may_end.set()
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert (job.state, [each.state for each in jobs.of("export")]) == ("running", ["done"])
    await jobs.close()
