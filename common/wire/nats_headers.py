"""NATS message headers: any publisher may send any bytes, so parsing never fails but reports whether they are well
formed. Minimum version of nats-server: eleven advisories of 2026 are fixed in 2.11.15 and 2.12.6 (docs/upstream.md).
Names in subjects: `mcf.<NIM>.<what>`."""

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

import msgspec

VERSION = b"NATS/1.0"
STATUS_DIGITS = 3

MINIMUM = "2.11.15, 2.12.6"
_VERSION = re.compile(r"v?(\d+)\.(\d+)\.(\d+)")

CLOSURE: Final = "closure"
"""Stored by the stream CLOSURES; counts as sent after its acknowledgement."""
PRESENCE: Final = "presence"
"""Stored by the stream PRESENCE, only the last one of each subject."""
ASK: Final = "ask"
"""A request that contains the presence; headquarters answers with `common.wire.presence.PresenceAnswer`."""
CALL: Final = "call"
"""A request of the relay to the box (`common.wire.call`)."""
LATER: Final = "later"
"""Stored by the stream CALLS: sales for a box that is off."""
LANE: Final = "Mcfd-Lane"
"""Header of a presence with the box's data for the relay (`common.wire.keys.LaneHeader`)."""

CLOSURES_STREAM: Final = "CLOSURES"
PRESENCE_STREAM: Final = "PRESENCE"
CALLS_STREAM: Final = "CALLS"
CALLS_CONSUMER: Final = "relay"
"""Shared by all relays."""


class Headers(NamedTuple):
    """`is_sound` is false for a block that no NATS client writes; its readable part is in `values` all the same."""

    values: dict[str, str]
    """The last value of each name: the server's headers follow the sender's."""
    status: str = ""
    description: str = ""
    is_sound: bool = True

    def get(self, name: str) -> str | None:
        return self.values.get(name)


class StreamRefusal(msgspec.Struct, frozen=True):
    """JetStream's error (ADR-1)."""

    code: int = 0
    err_code: int = 0
    description: str = ""


class Acknowledgement(msgspec.Struct, frozen=True):
    """The stream's answer to a publish."""

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
    """By the version in INFO; False if it cannot be parsed."""
    found = _VERSION.match(version)
    if found is None:
        return False
    of_server = tuple(map(int, found.groups()))
    return of_server < ((2, 11, 15) if of_server < (2, 12) else (2, 12, 6))
