"""A page's static files. A URL has a hash of its content: browsers cache it without limit; an upgrade changes it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files


@cache
def content(package: str, name: str) -> bytes:
    """`name` is a constant of the caller, never from outside."""
    return files(package).joinpath("static", name).read_bytes()


@cache
def tag(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()[:16]


def addresses(packages: Mapping[str, str]) -> dict[str, str]:
    """URLs by file name, for templates; `packages` has the package of each file."""
    return {name: f"/ui/static/{name}?{tag(content(package, name))}" for name, package in packages.items()}


def cache_control(body: bytes, query: bytes) -> str:
    """A URL without the hash, or with another version's, is requested again each time."""
    return "max-age=31536000, immutable" if query.decode("latin-1") == tag(body) else "no-cache"
