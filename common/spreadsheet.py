"""Text that others wrote, in the cell of a spreadsheet: such a cell gets an apostrophe in front where it looks like a formula (OWASP: CSV
injection)."""

from __future__ import annotations

import re
from typing import Final

_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r", "＝", "＋", "－", "＠")
_BEFORE_A_FORMULA: Final = " ;,\t\"'\N{NO-BREAK SPACE}"
"""A spreadsheet may skip these, or take them for the end of a cell, before it looks for a formula."""
_INSIDE: Final = re.compile(r"""([;|\t\r\n][\s"']*)(?=[=+@\-＝＋－＠])""")
"""Where a spreadsheet that cuts at semicolons, as French ones do, would begin another cell."""


def plain_cell(text: str) -> str:
    """The text with an apostrophe wherever a spreadsheet would see a formula; other text as it is."""
    risky = text.startswith(_FORMULA) or text.lstrip(_BEFORE_A_FORMULA).startswith(_FORMULA)
    inside = _INSIDE.sub(r"\1'", text)
    return f"'{inside}" if risky else inside
