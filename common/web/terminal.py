"""What others have said, on a terminal."""

from __future__ import annotations

import re

_UNSEEN = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


def visible(text: str) -> str:
    """A name at the login, a label, a machine, as a terminal may show it: no escape sequence, no line of its own, no change of direction."""
    return _UNSEEN.sub(lambda found: found[0].encode("unicode_escape").decode(), text)
