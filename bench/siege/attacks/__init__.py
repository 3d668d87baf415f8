"""Every attack by its name. Each is a coroutine on a `Target` that goes on until it is cancelled."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeAlias

from bench.siege.attacks import framing, hoarding, sandbox, storms
from bench.siege.target import Target

Attack: TypeAlias = Callable[[Target], Awaitable[None]]

ATTACKS: dict[str, Attack] = {
    "blank-lines": framing.blank_lines,
    "tiny-chunks": framing.tiny_chunks,
    "drops": framing.drops,
    "header-bombs": framing.header_bombs,
    "costly-heads": framing.costly_heads,
    "key-updates": framing.key_updates,
    "half-handshakes": hoarding.half_handshakes,
    "idle": hoarding.idle,
    "slow-headers": hoarding.slow_headers,
    "slow-bodies": hoarding.slow_bodies,
    "large-logins": hoarding.large_logins,
    "slow-readers": hoarding.slow_readers,
    "event-streams": hoarding.event_streams,
    "resets": storms.resets,
    "reconnects": storms.reconnects,
    "eight-addresses": storms.eight_addresses,
    "wrong-keys": storms.wrong_keys,
    "sandbox-objects": sandbox.objects,
    "sandbox-json": sandbox.json_bombs,
    "sandbox-pages": sandbox.pages,
    "sandbox-sales": sandbox.sales,
}
