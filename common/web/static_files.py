"""The files of a page. Their address has a hash of their content: a browser has each as long as it likes, and another one after an upgrade."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files


@cache
def content(package: str, name: str) -> bytes:
    """`name` is one that the caller knows, never one from outside."""
    return files(package).joinpath("static", name).read_bytes()


@cache
def tag(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()[:16]


def addresses(packages: Mapping[str, str]) -> dict[str, str]:
    """By the name of each file, for templates; `packages` says where it is."""
    return {name: f"/ui/static/{name}?{tag(content(package, name))}" for name, package in packages.items()}


def cache_control(body: bytes, query: bytes) -> str:
    """An address without the hash, or with that of another version, is asked for anew each time."""
    return "max-age=31536000, immutable" if query.decode("latin-1") == tag(body) else "no-cache"
