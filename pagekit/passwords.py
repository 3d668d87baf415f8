"""Passwords as scrypt hashes (RFC 7914); the parameters stand in the hash, so that they can grow."""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets

LEAST = 8
MOST = 200
_COST, _BLOCK, _PARALLEL = 2**14, 8, 1  # 16 MB and some 50 ms
_SALT = 16


class BadPassword(ValueError):
    """Says what a password has to be."""


def hash_password(password: str) -> str:
    """BadPassword when it is too short to be one."""
    if not LEAST <= len(password) <= MOST:
        raise BadPassword(f"a password has {LEAST} to {MOST} characters")
    salt = secrets.token_bytes(_SALT)
    parts = (_COST, _BLOCK, _PARALLEL, _text(salt), _text(_hash(password, salt, _COST, _BLOCK, _PARALLEL)))
    return "scrypt$" + "$".join(str(part) for part in parts)


def is_password(password: str, hashed: str | None) -> bool:
    """In the same time for nobody (`hashed` None) as for somebody with another password."""
    known = hashed or _NOBODY
    _, cost, block, parallel, salt, expected = known.split("$")
    found = _hash(password[:MOST], base64.b64decode(salt), int(cost), int(block), int(parallel))
    return hmac.compare_digest(found, base64.b64decode(expected)) and hashed is not None


def _hash(password: str, salt: bytes, cost: int, block: int, parallel: int) -> bytes:
    memory = 256 * cost * block
    return hashlib.scrypt(password.encode(), salt=salt, n=cost, r=block, p=parallel, maxmem=memory, dklen=32)


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


_NOBODY = f"scrypt${_COST}${_BLOCK}${_PARALLEL}${_text(bytes(_SALT))}${_text(bytes(32))}"
