"""The table "to change X, go to Y" of docs/architecture.md: its rows are there, and five of its changes are made on a copy."""

from __future__ import annotations

import re
from pathlib import Path

from layout import PAGE, page_with, picture

ROOT = Path(__file__).parents[2]
ROW = re.compile(r"^\| (?P<what>[^|]+) \| `(?P<place>[^`]+)` \| `(?P<tests>[^`]+)` \|$", re.MULTILINE)
ROWS = {row["what"]: row for row in ROW.finditer((ROOT / "docs/architecture.md").read_text())}


def test_twenty_rows_that_are_there() -> None:
    """Each place and each folder of tests that the table names exists."""
    assert len(ROWS) == 20
    for row in ROWS.values():
        assert (ROOT / row["place"]).exists(), row["place"]
        assert (ROOT / row["tests"]).is_dir(), row["tests"]


def test_the_picture_is_the_house() -> None:
    """docs/architecture.md shows the packages and arrows that the imports have; `make layout` writes it anew."""
    assert page_with(picture()) == PAGE.read_text(), "run make layout"
