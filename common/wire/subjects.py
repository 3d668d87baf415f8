"""The words of NATS: `mcf.<NIM>.<what>`."""

from __future__ import annotations

from typing import Final

CLOSURE: Final = "closure"
"""Kept by the stream CLOSURES; acknowledged before it counts as sent."""
PRESENCE: Final = "presence"
"""Kept by the stream PRESENCE, the last word of each subject only."""
ASK: Final = "ask"
"""A request with the presence in it; headquarters answers with `common.wire.presence.PresenceAnswer`."""

CLOSURES_STREAM: Final = "CLOSURES"
PRESENCE_STREAM: Final = "PRESENCE"
