from collections.abc import Iterator
from pathlib import Path

import pytest
from support.crash.lane import Lane


@pytest.fixture
def lane(tmp_path: Path) -> Iterator[Lane]:
    with Lane(tmp_path / "lane") as lane:
        yield lane
