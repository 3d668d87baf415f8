"""People who may log in to the shop's page, and their sessions."""

from __future__ import annotations

import msgspec

from daemon.core.roles import Role


class Session(msgspec.Struct, frozen=True):
    """Of a person who may log in. Times in ms."""

    person_id: int
    name: str
    role: Role
    opened_at: int
    used_at: int
    """to the minute"""


class Person(msgspec.Struct, frozen=True):
    """Times in ms."""

    id: int
    name: str
    role: Role
    created_at: int
    disabled_at: int = 0
    """0 while they may log in"""
    seen_at: int = 0
    """0 when they have no session"""
