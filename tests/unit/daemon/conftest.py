"""What tests of several packages need."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from common import passwords


@pytest.fixture
def folder() -> Iterator[Path]:
    """Where other users may look, as they may not in pytest's own."""
    with tempfile.TemporaryDirectory(prefix="mcfd-test-", dir="/var/tmp") as name:
        Path(name).chmod(0o755)
        yield Path(name)


@pytest.fixture
def cheap_passwords(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a hash costs is a fact of its own (test_core_passwords.py)."""
    monkeypatch.setattr(passwords, "_N", 2)
    monkeypatch.setattr(passwords, "_P", 1)
