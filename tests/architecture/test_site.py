"""The documentation site builds, without a dead link, and is read without a network."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

TREE = Path(__file__).parents[2]
LOADED = re.compile(
    r"""(?:<(?:script|img|iframe)[^>]*\bsrc|<link\b(?![^>]*rel="(?:index|search|next|prev)")[^>]*\bhref)="(https?:)?//"""
)


@pytest.mark.long
def test_the_site_builds_without_a_warning_and_loads_nothing_from_a_network(tmp_path: Path) -> None:
    """Every page is reached from the index by its reader's heading, every link and anchor leads somewhere, search works from a file,
    and the page of the configuration has every key."""
    site = tmp_path / "site"
    built = subprocess.run(
        [
            sys.executable,
            "-m",
            "sphinx",
            "-q",
            "-W",
            "--keep-going",
            "-b",
            "html",
            "-d",
            tmp_path / "doctrees",
            "docs",
            site,
        ],
        cwd=TREE,
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stderr
    pages = {page.stem for page in site.glob("*.html")}
    assert {page.stem for page in (TREE / "docs").glob("*.md")} <= pages
    assert (site / "searchindex.js").is_file()
    assert "reserve_mb" in (site / "configuration.html").read_text(encoding="utf-8")
    assert [page.name for page in site.glob("*.html") if LOADED.search(page.read_text(encoding="utf-8"))] == []
