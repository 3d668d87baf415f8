"""The rule for a text that a person enters and others read on one line: a name, a label, a reason."""

import re
import unicodedata
from typing import Final

from common.language import Text

CONTROL: Final = r"\x00-\x1f\x7f-\x9f\u2028\u2029"
"""C0, DEL and C1, line and paragraph separator, for a character class."""
ONE_LINE: Final = rf"^[^{CONTROL}]*\Z"
NOT_BLANK: Final = rf"^[^{CONTROL}]*[^\s{CONTROL}][^{CONTROL}]*\Z"
"""One line that shows something, as far as a pattern can say it."""
UNSEEN: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
"""Categories of characters that show nothing, or that no font knows."""
BLANK: Final = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U0001d159\U000e0100-\U000e01ef]"
)
"""Invisible characters of other categories: default-ignorable ones (fillers, joiners, variation selectors) and blanks
that are no spaces."""
_UNPRINTABLE: Final = re.compile(f"[{CONTROL}\ud800-\udfff]")  # halves of surrogate pairs, which no UTF-8 can carry


def fault_of_line(text: str, longest: int, *, may_be_blank: bool = False) -> Text | None:
    """Why it is not one line of at most `longest` characters that shows something; None for one that is."""
    if len(text) > longest:
        return Text("must have at most {longest} characters", longest=longest)
    if not text.isprintable() and _UNPRINTABLE.search(text):
        return Text("must not contain control characters")
    return None if may_be_blank or not shows_nothing(text) else Text("must not be blank")


def shows_nothing(text: str) -> bool:
    if text.isascii():
        return not text.strip()
    return all(char.isspace() or unicodedata.category(char) in UNSEEN or BLANK.match(char) for char in text)
