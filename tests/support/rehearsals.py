"""The table of docs/testing-your-till.md: what a till gets in each rehearsed failure."""

import re
from pathlib import Path
from typing import NamedTuple

PAGE = Path(__file__).parents[2] / "docs" / "testing-your-till.md"
_LINE = re.compile(
    r"\| `(?P<case>[a-z0-9-]+)`(?:, `(?P=case):1`…`(?P<most>\d+)`)? \| [^|]+ "
    r"\| (?P<status>\d{3})(?: `(?P<code>[A-Z_]+)`|, the receipt)(?:, `Retry-After: (?P<wait>\d+)`)? \| [^|]+ \|"
)


class Rehearsed(NamedTuple):
    """`code` is empty for a receipt; `retry_after` and `most` in seconds, 0 for none."""

    status: int
    code: str
    retry_after: int
    most: int


def rehearsed_cases() -> dict[str, Rehearsed]:
    lines = PAGE.read_text().partition("<!-- cases -->\n")[2].partition("<!-- cases end -->")[0].splitlines()[2:]
    found = {}
    for line in lines:
        cells = _LINE.fullmatch(line)
        assert cells is not None, line
        found[cells["case"]] = Rehearsed(
            int(cells["status"]), cells["code"] or "", int(cells["wait"] or 0), int(cells["most"] or 0)
        )
    return found
