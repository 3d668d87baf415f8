"""One ledger for the tests of a module, of which each has a copy."""

import asyncio
import shutil
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from daemon.store.sqlite.high_water import mark_path


def filled(fill: Callable[[Path], Awaitable[None]]) -> tuple[Any, Any]:
    """Two fixtures: the ledger that `fill` makes, once, and a copy of it, with the file beside it that has its Z numbers."""

    @pytest.fixture(scope="module")
    def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
        path = tmp_path_factory.mktemp("original") / "ledger.sqlite3"
        asyncio.run(fill(path))
        return path

    @pytest.fixture
    def path(original: Path, tmp_path: Path) -> Path:
        if (mark := mark_path(original)).exists():
            shutil.copy(mark, tmp_path)
        return Path(shutil.copy(original, tmp_path / original.name))

    return original, path
