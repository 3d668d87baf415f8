"""The header block of a NATS message. Any publisher may send any bytes as one: it is read without an error, and says whether it is as
it has to be. Which nats-server is too old: eleven advisories of 2026 are fixed in 2.11.15 and 2.12.6 (docs/upstream.md). The words of
NATS: `mcf.<NIM>.<what>`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

import msgspec

VERSION = b"NATS/1.0"
STATUS_DIGITS = 3

MINIMUM = "2.11.15, 2.12.6"
_VERSION = re.compile(r"v?(\d+)\.(\d+)\.(\d+)")

CLOSURE: Final = "closure"
"""Kept by the stream CLOSURES; acknowledged before it counts as sent."""
PRESENCE: Final = "presence"
"""Kept by the stream PRESENCE, the last word of each subject only."""
ASK: Final = "ask"
"""A request with the presence in it; headquarters answers with `common.wire.presence.PresenceAnswer`."""
CALL: Final = "call"
"""A request of the relay, answered by the box (`common.wire.call`)."""
LATER: Final = "later"
"""Kept by the stream CALLS: sales for a box that is off."""
LANE: Final = "Mcfd-Lane"
"""Header of a presence: what the relay has to know of the box (`common.wire.keys.LaneWord`)."""

CLOSURES_STREAM: Final = "CLOSURES"
PRESENCE_STREAM: Final = "PRESENCE"
CALLS_STREAM: Final = "CALLS"
CALLS_CONSUMER: Final = "relay"
"""Shared by all relays."""


class Headers(NamedTuple):
    """`is_sound` is false for what no NATS client writes; then what could be read is there all the same."""

    values: dict[str, str]
    """The last of each name: the server's own stand behind those of the sender."""
    status: str = ""
    description: str = ""
    is_sound: bool = True

    def get(self, name: str) -> str | None:
        return self.values.get(name)


class StreamRefusal(msgspec.Struct, frozen=True):
    """JetStream's own words (ADR-1)."""

    code: int = 0
    err_code: int = 0
    description: str = ""


class Acknowledgement(msgspec.Struct, frozen=True):
    """What the stream answers a publish with."""

    stream: str = ""
    seq: int = 0
    duplicate: bool = False
    error: StreamRefusal | None = None


def format_headers(values: Mapping[str, str]) -> bytes:
    lines = (b"%b: %b\r\n" % (name.encode(), value.encode()) for name, value in values.items())
    return b"NATS/1.0\r\n%b\r\n" % b"".join(lines)


def parse_headers(block: bytes) -> Headers:
    if not block:
        return Headers({})
    first, *lines = block.split(b"\r\n")
    values: dict[str, str] = {}
    is_sound = first.startswith(VERSION) and block.endswith(b"\r\n\r\n")
    for line in lines[:-2] if is_sound else lines:
        name, colon, value = line.partition(b":")
        is_name = bool(colon) and name.isascii() and name.strip() == name and name.decode("ascii").isprintable()
        is_sound = is_sound and is_name and b" " not in name and _is_utf8(value)
        if is_name:
            values[name.decode("ascii")] = value.strip().decode("utf-8", "replace")
    status, _, description = first.removeprefix(VERSION).decode("utf-8", "replace").strip().partition(" ")
    if status and not (len(status) == STATUS_DIGITS and status.isascii() and status.isdigit()):
        return Headers(values, is_sound=False)
    return Headers(values, status, description, is_sound)


def _is_utf8(value: bytes) -> bool:
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True


def is_outdated(version: str) -> bool:
    """As INFO says it; what cannot be read is not judged."""
    found = _VERSION.match(version)
    if found is None:
        return False
    of_server = tuple(map(int, found.groups()))
    return of_server < ((2, 11, 15) if of_server < (2, 12) else (2, 12, 6))
