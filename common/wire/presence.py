"""Presence: a box's word, every five minutes, that it is there and how it is. Flat JSON of under 500 bytes, signed.

Nothing of a customer, no amount. Only the last word counts, so it is sent once and never stored for later. Hashes are shortened
to 16 hex digits: the receiver of the closures compares them with the whole hash."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from common.wire.closure import Count, Id, Mode, Nim, Shape, Text, Whole
from common.wire.errors import BadEvent, decoded
from common.wire.instants import instant_millis

TYPE = "bf.mcfd.presence.v1"
CONTENT_TYPE = "application/json"
EVERY_SECONDS = 300
MOST_BYTES = 500
HEAD_DIGITS = 16
Head = Annotated[str, msgspec.Meta(pattern=rf"^([0-9a-f]{{{HEAD_DIGITS}}})?\Z")]
"""It becomes the key of a finding, and a database need not take every text for one."""
MOST_ANSWER_BYTES = 4096


class Presence(Shape, frozen=True, omit_defaults=True):
    """Times are RFC 3339 in UTC. Its `webhook-id` is made by the sender, another one each time."""

    type: Literal["bf.mcfd.presence.v1"]
    nim: Nim
    at: Text
    """By the box's clock."""
    ledger: Id
    """The ledger's id."""
    boot: Text
    """Another one after each start of the daemon: 8 hex digits."""
    version: Text
    key: Text
    """Id of the key that signs first."""
    epoch: Count = 0
    mode: Mode = "live"
    z: Count = 0
    """The last closure, and its chain head."""
    z_head: Head = ""
    seq: Count = 0
    """The last entry of the book, and the head of the chain there."""
    head: Head = ""
    counters: tuple[Count, Count, Count] | None = None
    """tc, fvc, frc, as the ledger knows them."""
    certified: Text = ""
    """When something was last certified."""
    waiting: Count = 0
    parked: Count = 0
    oldest: Text = ""
    """When the oldest closure that waits was made."""
    connected: bool = False
    attention: bool = False
    """A person has something to settle before anything is certified."""
    drift: Whole | None = None
    """Seconds by which the box is ahead of the machine."""
    tax_days: Whole | None = None
    """Days since the machine reached the tax server."""
    disk: Count = 0
    """Free, in MB."""
    config: Text = ""
    """Digest of the configuration: 8 hex digits."""
    sold: Text = ""
    """When the oldest sale that still waits for its certification was made; the law leaves 48 hours."""
    stands_for: Text = ""
    """Of a spare that has taken over: the machine in whose place it certifies."""
    outage: Text = ""
    """Since when the machine cannot certify, as the register of outages has it."""
    asks: bool = False
    """A ledger was put back where nothing remembers the last Z number: no Z is made before a person enters it."""

    @property
    def wants_last_z(self) -> bool:
        """Also a ledger that has made no Z yet: it may stand in the place of one that is lost."""
        return self.asks or not self.z


class WantedClosures(Shape, frozen=True):
    """What headquarters misses of a book: these Z. A headquarters of 0.1.0 names no end, and misses everything from that Z on; a box of
    0.1.0 sends everything from it on."""

    mode: Mode
    from_z: Count
    to_z: Count | msgspec.UnsetType = msgspec.UNSET


class PresenceAnswer(Shape, frozen=True):
    """To a presence; an empty one, or none at all, asks for nothing."""

    replay: tuple[WantedClosures, ...] = ()
    last_z: Count | msgspec.UnsetType = msgspec.UNSET
    """The last Z number that headquarters has heard of in this book, for a box that wants to know it."""


def encode_presence(presence: Presence) -> bytes:
    return msgspec.json.encode(presence)


def read_presence(content: bytes) -> Presence:
    """BadEvent, naming the field, when it is none."""
    if len(content) > MOST_BYTES:
        raise BadEvent("", f"larger than {MOST_BYTES} bytes")
    presence = decoded(content, Presence)
    instant_millis(presence.at, "at")
    if presence.sold:
        instant_millis(presence.sold, "sold")
    return presence


def read_answer(content: bytes) -> PresenceAnswer:
    """What cannot be read asks for nothing: presence is no conversation that has to succeed."""
    try:
        return decoded(content[:MOST_ANSWER_BYTES], PresenceAnswer)
    except BadEvent:
        return PresenceAnswer()
