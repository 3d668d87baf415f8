"""Presence: a box's report on itself, every five minutes. Flat JSON of under 500 bytes, signed, without customers or
amounts. Only the last one counts, so it is sent once and never stored for later. Hashes are shortened to 16 hex digits:
the receiver of the closures compares them with the whole hash."""

from typing import Annotated, Literal

import msgspec

from common.wire.closure import Count, Id, Mode, Nim, Shape, Text, Whole
from common.wire.errors import BadEvent, decoded
from common.wire.instants import instant_millis

TYPE = "bf.mcfd.presence.v1"
CONTENT_TYPE = "application/json"
EVERY_SECONDS = 300
MAX_BYTES = 500
HEAD_DIGITS = 16
Head = Annotated[str, msgspec.Meta(pattern=rf"^([0-9a-f]{{{HEAD_DIGITS}}})?\Z")]
"""It is part of a finding's key, and not every database accepts every text."""
MAX_ANSWER_BYTES = 4096


class Presence(Shape, frozen=True, omit_defaults=True):
    """Times are RFC 3339 in UTC. The sender makes a new `webhook-id` for each."""

    type: Literal["bf.mcfd.presence.v1"]
    nim: Nim
    at: Text
    """By the box's clock."""
    ledger: Id
    """The ledger's id."""
    boot: Text
    """Changes at each start of the daemon: 8 hex digits."""
    version: Text
    key: Text
    """Id of the first signing key."""
    epoch: Count = 0
    mode: Mode = "live"
    z: Count = 0
    """Number of the last closure; its chain head follows."""
    z_head: Head = ""
    seq: Count = 0
    """Number of the book's last entry; its chain head follows."""
    head: Head = ""
    counters: tuple[Count, Count, Count] | None = None
    """tc, fvc, frc, from the ledger."""
    certified: Text = ""
    """Time of the last certification."""
    waiting: Count = 0
    parked: Count = 0
    oldest: Text = ""
    """Time of the oldest closure that waits."""
    connected: bool = False
    attention: bool = False
    """A person has to settle something before the next certification."""
    drift: Whole | None = None
    """Seconds by which the box is ahead of the machine."""
    tax_days: Whole | None = None
    """Days since the machine reached the tax server."""
    disk: Count = 0
    """Free MB."""
    config: Text = ""
    """Digest of the configuration: 8 hex digits."""
    sold: Text = ""
    """Time of the oldest sale that waits for its certification; the law allows 48 hours."""
    stands_for: Text = ""
    """For a spare that has taken over: the machine in whose place it certifies."""
    outage: Text = ""
    """Start of the machine's outage, from the register of outages."""
    asks: bool = False
    """A ledger was restored and the last Z number is unknown: no Z before a person enters it."""

    @property
    def wants_last_z(self) -> bool:
        """True also for a ledger without any Z: it may replace a lost one."""
        return self.asks or not self.z


class WantedClosures(Shape, frozen=True):
    """Z closures of a book that headquarters misses. Headquarters 0.1.0 sends no `to_z` and misses all from `from_z`; a
    box 0.1.0 sends all from it on."""

    mode: Mode
    from_z: Count
    to_z: Count | msgspec.UnsetType = msgspec.UNSET


class PresenceAnswer(Shape, frozen=True):
    """Answer to a presence; an empty one, or none, requests nothing."""

    replay: tuple[WantedClosures, ...] = ()
    last_z: Count | msgspec.UnsetType = msgspec.UNSET
    """The last Z number of this book at headquarters, for a box that needs it."""


def encode_presence(presence: Presence) -> bytes:
    return msgspec.json.encode(presence)


def read_presence(content: bytes) -> Presence:
    """Raises BadEvent, naming the field, if it is no presence."""
    if len(content) > MAX_BYTES:
        raise BadEvent("", f"larger than {MAX_BYTES} bytes")
    presence = decoded(content, Presence)
    instant_millis(presence.at, "at")
    if presence.sold:
        instant_millis(presence.sold, "sold")
    return presence


def read_answer(content: bytes) -> PresenceAnswer:
    """An unreadable answer requests nothing: an exchange of presences need not succeed."""
    try:
        return decoded(content[:MAX_ANSWER_BYTES], PresenceAnswer)
    except BadEvent:
        return PresenceAnswer()
