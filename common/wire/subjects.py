"""The words of NATS: `mcf.<NIM>.<what>`."""

from __future__ import annotations

from typing import Final

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
"""Header of a presence: what the relay has to know of the box (`common.wire.seal.LaneWord`)."""

CLOSURES_STREAM: Final = "CLOSURES"
PRESENCE_STREAM: Final = "PRESENCE"
CALLS_STREAM: Final = "CALLS"
CALLS_CONSUMER: Final = "relay"
"""Shared by all relays."""
