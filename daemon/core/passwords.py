"""What is wrong with a name or a new password, in words (`common.passwords`)."""

from __future__ import annotations

import re
from typing import Final

from common.language import Text
from common.passwords import LONGEST, SHORTEST, fault_of

_NAME: Final = re.compile(r"[a-z0-9][a-z0-9._-]{0,31}")


def fault_of_name(name: str) -> Text | None:
    """What is wrong with a name to log in by; None when nothing is."""
    if _NAME.fullmatch(name):
        return None
    return Text("has to be 1 to 32 of the characters a-z 0-9 . _ - and begin with a letter or a digit")


def fault_of_password(password: str, name: str) -> Text | None:
    """What is wrong with a new password; None when nothing is."""
    match fault_of(password, name):
        case "length":
            return Text("has to have {least} to {most} characters", least=SHORTEST, most=LONGEST)
        case "characters":
            return Text("holds characters that cannot be typed")
        case "too_easy":
            return Text("is too easy to guess")
    return None
