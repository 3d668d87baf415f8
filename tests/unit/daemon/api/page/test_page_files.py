"""Files for accountants, as the page hands them out."""

import asyncio
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from support.ledgers.ledger import opened_till

from daemon.api.page.jobs import Job, Jobs
from daemon.api.page.screens import files
from daemon.core.report.journal_csv import csv_lines


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


@pytest.mark.parametrize("count", [0, 1, 4, 5])
async def test_closures_are_read_in_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    """All of them stand in the file, in order and each as it was stored, and no more than a batch is in memory."""
    monkeypatch.setattr(files, "BATCH", 2)
    async with opened_till(tmp_path / "mcfd.sqlite3") as (store, till):
        for _ in range(count):
            await till.sell()
            await till.close()
        worker = cast("Any", SimpleNamespace(book=till.book, ledger=store.ledger))
        pieces = [piece async for piece in files.closure_pieces(worker, 0, files.EVER[1], None)]
        lines = [piece async for piece in files.closure_pieces(worker, 0, files.EVER[1], csv_lines)]
    assert [closure["z_number"] for closure in json.loads(b"".join(pieces))] == [*range(1, count + 1)]
    assert [row.partition(",")[0] for row in b"".join(lines).decode().splitlines()] == [
        "zNumber",
        *map(str, range(1, count + 1)),
    ]
    assert all(piece.count(b'"kind":"Z"') <= 2 for piece in pieces)
