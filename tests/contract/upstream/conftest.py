"""What the ways upstream share: a ledger with an outbox, and the two kinds of headquarters."""

import contextlib
import shutil
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path

import pytest
from support.ledgers.outbox import LedgerOutbox
from support.memory import memory
from support.receivers.headquarters import NatsHeadquarters, started


@pytest.fixture
def quick_folder() -> Iterator[Path]:
    """For ledgers: no power is cut here."""
    with tempfile.TemporaryDirectory(prefix="mcfd-upstream-", dir=memory()) as folder:
        yield Path(folder)


@pytest.fixture
async def ledger(quick_folder: Path) -> AsyncIterator[LedgerOutbox]:
    async with LedgerOutbox.open(quick_folder / "mcfd.sqlite3") as opened:
        yield opened


@pytest.fixture(scope="session")
def closed_before(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where ledgers lie whose closures were made once: each takes three milliseconds of a processor."""
    return tmp_path_factory.mktemp("ledgers")


@pytest.fixture
async def ledger_with(
    quick_folder: Path, closed_before: Path
) -> AsyncIterator[Callable[[dict[str, int]], Awaitable[LedgerOutbox]]]:
    """A ledger of the test's own in which so many closures of each machine wait."""
    async with contextlib.AsyncExitStack() as stack:

        async def opened(counts: dict[str, int]) -> LedgerOutbox:
            created = closed_before / "-".join(f"{nim}-{count}" for nim, count in counts.items())
            if not created.exists():
                async with LedgerOutbox.open(quick_folder / "made" / "mcfd.sqlite3") as ledger:
                    for nim, count in counts.items():
                        await ledger.add(nim, count)
                shutil.move(quick_folder / "made", created)
            shutil.copytree(created, quick_folder / "ledger")
            return await stack.enter_async_context(LedgerOutbox.open(quick_folder / "ledger" / "mcfd.sqlite3"))

        yield opened


@pytest.fixture
async def nats(tmp_path: Path) -> AsyncIterator[NatsHeadquarters]:
    async with started(NatsHeadquarters(tmp_path)) as server:
        yield server
