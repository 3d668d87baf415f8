"""Every attack by its name. Each is a coroutine on a `Target` that goes on until it is cancelled."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeAlias

from bench.siege.attacks import connections
from bench.siege.target import Target

Attack: TypeAlias = Callable[[Target], Awaitable[None]]

ATTACKS: dict[str, Attack] = {
    "blank-lines": connections.blank_lines,
    "tiny-chunks": connections.tiny_chunks,
    "drops": connections.drops,
    "header-bombs": connections.header_bombs,
    "costly-heads": connections.costly_heads,
    "key-updates": connections.key_updates,
    "half-handshakes": connections.half_handshakes,
    "idle": connections.idle,
    "slow-headers": connections.slow_headers,
    "slow-bodies": connections.slow_bodies,
    "large-logins": connections.large_logins,
    "slow-readers": connections.slow_readers,
    "event-streams": connections.event_streams,
    "resets": connections.resets,
    "reconnects": connections.reconnects,
    "eight-addresses": connections.eight_addresses,
    "wrong-keys": connections.wrong_keys,
    "sandbox-objects": connections.objects,
    "sandbox-json": connections.json_bombs,
    "sandbox-pages": connections.pages,
    "sandbox-sales": connections.sales,
}
