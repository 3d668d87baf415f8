"""Passwords of people: scrypt of the standard library, its cost written beside each hash so that it can be raised later.

16 MB and some tenths of a second (OWASP's N=2^14, r=8, p=5): whoever calls it does so in a thread, one at a time.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
import secrets
from typing import Final

from daemon.language import Text

SHORTEST: Final = 10
LONGEST: Final = 200
"""Characters; more would be time spent for strangers."""
_N, _R, _P = 2**14, 8, 5
_SALT_BYTES: Final = 16
_HASH_BYTES: Final = 32
_MEMORY: Final = 64 * 1024 * 1024
_TYPED: Final = "abcdefghjkmnpqrstuvwxyz23456789"
_NAME: Final = re.compile(r"[a-z0-9][a-z0-9._-]{0,31}")


def fault_of_name(name: str) -> Text | None:
    """What is wrong with a name to log in by; None when nothing is."""
    if _NAME.fullmatch(name):
        return None
    return Text("has to be 1 to 32 of the characters a-z 0-9 . _ - and begin with a letter or a digit")


def fault_of_password(password: str, name: str) -> Text | None:
    """What is wrong with a new password; None when nothing is."""
    if not SHORTEST <= len(password) <= LONGEST:
        return Text("has to have {least} to {most} characters", least=SHORTEST, most=LONGEST)
    if not password.isprintable():
        return Text("holds characters that cannot be typed")
    if len(set(password)) <= 3 or name in password.lower():  # noqa: PLR2004  aaaaaaaaaa, 1212121212
        return Text("is too easy to guess")
    return None


def hash_password(password: str) -> str:
    """`scrypt$N$r$p$salt$hash`, the last two in base64."""
    salt = secrets.token_bytes(_SALT_BYTES)
    derived = _derive(password, salt, _N, _R, _P)
    return "$".join(("scrypt", str(_N), str(_R), str(_P), _text(salt), _text(derived)))


def make_password() -> str:
    """One that nobody has thought of, to be typed from a screen: 12 characters that cannot be taken for another, 59 bits."""
    return "-".join("".join(secrets.choice(_TYPED) for _ in range(4)) for _ in range(3))


def fits(password: str, stored: str) -> bool:
    """Whether it is the password that `stored` was made of. Takes as long when it is not."""
    _, n, r, p, salt, derived = stored.split("$")
    found = _derive(password[: LONGEST + 1], base64.b64decode(salt), int(n), int(r), int(p))
    return hmac.compare_digest(found, base64.b64decode(derived))


NOBODY: Final = "$".join(("scrypt", str(_N), str(_R), str(_P), "A" * 22 + "==", "A" * 43 + "="))
"""Stands in for the password of a name that is not there: an answer takes as long, and nothing fits it."""


def _derive(password: str, salt: bytes, n: int, r: int, p: int) -> bytes:
    return hashlib.scrypt(password.encode(), salt=salt, n=n, r=r, p=p, maxmem=_MEMORY, dklen=_HASH_BYTES)


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")
