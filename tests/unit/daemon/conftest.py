"""What tests of several rooms need."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def folder() -> Iterator[Path]:
    """Where other users may look, as they may not in pytest's own."""
    with tempfile.TemporaryDirectory(prefix="mcfd-test-", dir="/var/tmp") as name:
        Path(name).chmod(0o755)
        yield Path(name)
