"""docs/homologation.md names tests that there are."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
ROWS = re.findall(
    r"^\| (.+?) \| (.+?) \| (mcfd|till|open) \| (.+?) \|$", (ROOT / "docs/homologation.md").read_text(), re.MULTILINE
)


def test_what_is_done_is_shown_by_a_test():
    """Each line that says mcfd names a file of tests with tests in it; no other line claims one."""
    assert len(ROWS) > 25
    for _, asked, by, shown in ROWS:
        if by != "mcfd":
            assert shown == "–", asked
            continue
        file = ROOT / shown.strip("`")
        assert file.is_file(), shown
        assert "def test_" in file.read_text(), shown


def test_every_section_has_its_lines():
    """Sections 2 to 6 of the specification are all there."""
    assert {row[0][0] for row in ROWS} >= set("23456")
