"""People's passwords: scrypt of the standard library; each hash contains its cost, so that it can be raised later.
16 MB and some tenths of a second (OWASP's N=2^14, r=8, p=5): callers run it in a thread, one at a time."""

import base64
import hashlib
import hmac
import secrets
from functools import cache
from importlib.resources import files
from typing import Final

from common.language import Text

SHORTEST: Final = 10
LONGEST: Final = 200
"""Characters; longer ones would spend time on strangers."""
_N, _R, _P = 2**14, 8, 5
_SALT_BYTES: Final = 16
_HASH_BYTES: Final = 32
_MEMORY: Final = 64 * 1024 * 1024
_TYPED: Final = "abcdefghjkmnpqrstuvwxyz23456789"
_FEWEST: Final = 4
"""Different characters, at least: not aaaaaaaaaa, not 1212121212."""
DUMMY_HASH: Final = "$".join(("scrypt", str(_N), str(_R), str(_P), "A" * 22 + "==", "A" * 43 + "="))
"""For an unknown name: the check takes the same time, and no password matches."""


def fault_of_password(password: str, name: str) -> Text | None:
    """The fault of that person's new password; None if it has none."""
    if not SHORTEST <= len(password) <= LONGEST:
        return Text("has to have {least} to {most} characters", least=SHORTEST, most=LONGEST)
    if not password.isprintable():
        return Text("holds characters that cannot be typed")
    if len(set(password)) < _FEWEST or name.lower() in password.lower() or password.lower() in _common_passwords():
        return Text("is too easy to guess")
    return None


@cache
def _common_passwords() -> frozenset[str]:
    return frozenset((files("common") / "common_passwords.txt").read_text("utf-8").split())


def hash_password(password: str) -> str:
    """Returns `scrypt$N$r$p$salt$hash`, the last two in base64."""
    salt = secrets.token_bytes(_SALT_BYTES)
    derived = _derive(password, salt, _N, _R, _P)
    return "$".join(("scrypt", str(_N), str(_R), str(_P), _text(salt), _text(derived)))


def make_password() -> str:
    """A random password to type from a screen: 12 characters that are not confused with others, 59 bits."""
    return "-".join("".join(secrets.choice(_TYPED) for _ in range(4)) for _ in range(3))


def fits(password: str, stored: str) -> bool:
    """Whether `stored` is the password's hash. A wrong password, or a hash of an earlier, lower cost, takes as long."""
    _, n, r, p, salt, derived = stored.split("$")
    tried = password[: LONGEST + 1]
    found = _derive(tried, base64.b64decode(salt), int(n), int(r), int(p))
    if (int(n), int(r)) == (_N, _R) and int(p) < _P:
        _derive(tried, bytes(_SALT_BYTES), _N, _R, _P - int(p))
    return hmac.compare_digest(found, base64.b64decode(derived))


def is_of_today(stored: str) -> bool:
    """Whether the hash has today's cost; otherwise it is renewed at the next login."""
    return stored.split("$")[1:4] == [str(_N), str(_R), str(_P)]


def _derive(password: str, salt: bytes, n: int, r: int, p: int) -> bytes:
    return hashlib.scrypt(password.encode(), salt=salt, n=n, r=r, p=p, maxmem=_MEMORY, dklen=_HASH_BYTES)


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")
