"""What is wrong with a name to log in by, in words; of passwords, `common.passwords` says it."""

from __future__ import annotations

import re
from typing import Final

from common.language import Text

_NAME: Final = re.compile(r"[a-z0-9][a-z0-9._-]{0,31}")


def fault_of_name(name: str) -> Text | None:
    """None when nothing is."""
    if _NAME.fullmatch(name):
        return None
    return Text("has to be 1 to 32 of the characters a-z 0-9 . _ - and begin with a letter or a digit")
