"""What the composition root hands to the API, and what a request knows of itself once it is let in."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

import msgspec
from litestar import Request
from litestar.datastructures import State

from daemon.api.box import Box
from daemon.api.places import Places
from daemon.api.throttle import WrongKeys
from daemon.core.certification import Mode
from daemon.core.delivery import Backlog
from daemon.core.errors import NotFound
from daemon.usecases.desk import Desk, Desks
from daemon.usecases.events import Bells
from daemon.usecases.ports import Clock


class KeyOwner(Protocol):
    """What is known of a valid key; never the key."""

    @property
    def id(self) -> int | str: ...
    @property
    def nim(self) -> str: ...
    @property
    def mode(self) -> Mode: ...
    @property
    def label(self) -> str: ...


class KeyRing(Protocol):
    """The keys in force, in memory: asked for every request, so it takes microseconds and never waits."""

    def find(self, text: str) -> KeyOwner | None: ...


Figures: TypeAlias = Callable[[], Awaitable[Sequence[Backlog]]]
"""What waits to go upstream, for the body of `/health/ready`."""


EVENT_STREAMS = 8
EXPORTS = 2
"""Of one key at once."""


@dataclass(frozen=True, kw_only=True)
class ApiDeps:
    """`disabled` are the NIMs whose live machine is switched off on purpose: they do not make the box unready. `stopping`
    ends the answers that would go on."""

    desks: Desks
    keyring: KeyRing
    timezone: str
    clock: Clock
    allowed_hosts: tuple[str, ...] = ()
    upstream: Figures | None = None
    disabled: frozenset[str] = frozenset()
    version: str = ""
    box: Box | None = None
    wrong_keys: WrongKeys = field(default_factory=WrongKeys)
    bells: Bells = field(default_factory=Bells)
    stopping: asyncio.Event = field(default_factory=asyncio.Event)
    event_places: Places = field(default_factory=lambda: Places(EVENT_STREAMS))
    export_places: Places = field(default_factory=lambda: Places(EXPORTS))


class Visit(msgspec.Struct, frozen=True):
    """A request with a valid key. `found` is its book at work, None when this box has no such machine."""

    key: KeyOwner
    found: Desk | None

    @property
    def desk(self) -> Desk:
        if self.found is None:
            raise NotFound(
                "this box has no machine for this key (a machine taken out of the configuration, or no sandbox)"
            )
        return self.found


ApiRequest: TypeAlias = Request[None, Visit, State]


def deps_of(request: ApiRequest) -> ApiDeps:
    deps: ApiDeps = request.app.state["deps"]
    return deps
