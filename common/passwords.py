"""Passwords of people: scrypt of the standard library, its cost written beside each hash so that it can be raised later.

16 MB and some tenths of a second (OWASP's N=2^14, r=8, p=5): callers run it in a thread, one at a time.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
from typing import Final

from common.language import Text

SHORTEST: Final = 10
LONGEST: Final = 200
"""Characters; more would be time spent for strangers."""
_N, _R, _P = 2**14, 8, 5
_SALT_BYTES: Final = 16
_HASH_BYTES: Final = 32
_MEMORY: Final = 64 * 1024 * 1024
_TYPED: Final = "abcdefghjkmnpqrstuvwxyz23456789"
_FEWEST: Final = 4
"""Different characters: not aaaaaaaaaa, not 1212121212."""
DUMMY_HASH: Final = "$".join(("scrypt", str(_N), str(_R), str(_P), "A" * 22 + "==", "A" * 43 + "="))
"""Stands in for the password of a name that is not there: an answer takes as long, and nothing fits it."""


def fault_of_password(password: str, name: str) -> Text | None:
    """What is wrong with a new password of that person; None when nothing is."""
    if not SHORTEST <= len(password) <= LONGEST:
        return Text("has to have {least} to {most} characters", least=SHORTEST, most=LONGEST)
    if not password.isprintable():
        return Text("holds characters that cannot be typed")
    if len(set(password)) < _FEWEST or name.lower() in password.lower():
        return Text("is too easy to guess")
    return None


def hash_password(password: str) -> str:
    """`scrypt$N$r$p$salt$hash`, the last two in base64."""
    salt = secrets.token_bytes(_SALT_BYTES)
    derived = _derive(password, salt, _N, _R, _P)
    return "$".join(("scrypt", str(_N), str(_R), str(_P), _text(salt), _text(derived)))


def make_password() -> str:
    """A random one, to be typed from a screen: 12 characters that cannot be taken for another, 59 bits."""
    return "-".join("".join(secrets.choice(_TYPED) for _ in range(4)) for _ in range(3))


def fits(password: str, stored: str) -> bool:
    """Whether it is the password that `stored` was made of. Takes as long when it is not, and as long for a hash of an earlier, lower cost."""
    _, n, r, p, salt, derived = stored.split("$")
    tried = password[: LONGEST + 1]
    found = _derive(tried, base64.b64decode(salt), int(n), int(r), int(p))
    if (int(n), int(r)) == (_N, _R) and int(p) < _P:
        _derive(tried, bytes(_SALT_BYTES), _N, _R, _P - int(p))
    return hmac.compare_digest(found, base64.b64decode(derived))


def is_of_today(stored: str) -> bool:
    """Whether it has the cost that a new hash has; one that has not is made anew at the next login."""
    return stored.split("$")[1:4] == [str(_N), str(_R), str(_P)]


def _derive(password: str, salt: bytes, n: int, r: int, p: int) -> bytes:
    return hashlib.scrypt(password.encode(), salt=salt, n=n, r=r, p=p, maxmem=_MEMORY, dklen=_HASH_BYTES)


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")
