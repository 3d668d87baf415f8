"""What the composition root hands to the API, and what a request knows of itself once it is let in."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

import msgspec
from litestar import Request
from litestar.datastructures import State

from common.language import Text
from daemon.api.access.login import Logins
from daemon.api.access.rehearsal import MetCases, SandboxControls
from daemon.api.access.throttle import ConcurrencyLimit, KeyRates, SandboxShare, WrongKeys
from daemon.api.box import Box, Paper
from daemon.api.http.middleware import CrossOrigin
from daemon.core.audit import Actor
from daemon.core.clock import Clock
from daemon.core.delivery import Backlog
from daemon.core.errors import NotFound
from daemon.core.keys import ApiKey
from daemon.core.ledger.take_over import MachineIsSpare
from daemon.core.machine.state import same_machine
from daemon.store.tables.keys import ApiKeyRing
from daemon.usecases.delivery.events import EventNotifier
from daemon.usecases.worker.machine_worker import MachineWorker
from daemon.usecases.worker.machine_workers import MachineWorkers

Uses: TypeAlias = dict[int | str, int]
"""When each key was used last (ms), by its id; what writes it to the ledger empties it."""

Figures: TypeAlias = Callable[[], Awaitable[Sequence[Backlog]]]
"""What waits to go upstream, for the body of `/health/ready`."""

EVENT_STREAMS = 8
EXPORTS = 2
"""Of one key at once."""
MAX_ROW: Final = 2**63 - 1
"""SQLite's largest integer."""


class ApiDeps(msgspec.Struct, frozen=True, kw_only=True):
    """`disabled` are the NIMs whose live machine is switched off on purpose: they do not make the box unready. `stopping`
    ends the answers that would go on."""

    workers: MachineWorkers
    keyring: ApiKeyRing
    timezone: str
    clock: Clock
    allowed_hosts: tuple[str, ...] = ()
    cross_origin: CrossOrigin = msgspec.field(default_factory=CrossOrigin)
    public_url: str = ""
    """Where customers reach this box; empty: as its tills do."""
    upstream: Figures | None = None
    disabled: frozenset[str] = frozenset()
    version: str = ""
    box: Box | None = None
    paper: Paper = msgspec.field(default_factory=Paper)
    wrong_keys: WrongKeys = msgspec.field(default_factory=WrongKeys)
    key_rates: KeyRates = msgspec.field(default_factory=KeyRates)
    notifier: EventNotifier = msgspec.field(default_factory=EventNotifier)
    stopping: asyncio.Event = msgspec.field(default_factory=asyncio.Event)
    event_streams: ConcurrencyLimit = msgspec.field(default_factory=lambda: ConcurrencyLimit(EVENT_STREAMS))
    logins: Logins | None = None
    sandbox: SandboxShare = msgspec.field(default_factory=SandboxShare)
    sandboxes: Mapping[int, SandboxControls] = msgspec.field(default_factory=dict)
    """By the id of their book."""
    met_cases: MetCases = msgspec.field(default_factory=MetCases)
    uses: Uses = msgspec.field(default_factory=dict)
    damage: Callable[[], Sequence[str]] = tuple
    """What is known to be damaged in the ledger."""
    disk: Callable[[], str] = str
    """What is wrong with the disk, and what to do; empty when nothing is."""
    exports: ConcurrencyLimit = msgspec.field(default_factory=lambda: ConcurrencyLimit(EXPORTS))

    def is_disabled(self, nim: str) -> bool:
        return any(same_machine(nim, disabled) for disabled in self.disabled)


class RequestContext(msgspec.Struct, frozen=True):
    """A request with a valid key. `found` is the book at work for it, that of the spare while it stands for the key's machine; None when this box has no such machine; `address` is the peer's."""

    key: ApiKey
    found: MachineWorker | None
    address: str = ""
    expires: float = 0.0
    """When it is not carried out any more (loop time); 0 for never, as all that came over the shop's network."""

    @property
    def actor(self) -> Actor:
        """For the audit log."""
        return Actor(f"key:{self.key.id}", self.address)

    @property
    def worker(self) -> MachineWorker:
        if self.found is None:
            raise NotFound(
                Text("this box has no machine for this key (a machine taken out of the configuration, or no sandbox)")
            )
        return self.found

    @property
    def named(self) -> MachineWorker:
        """The machine that the path names, also while its spare stands for it: for what is about the machine itself."""
        worker = self.worker
        if worker.first is not None and not same_machine(self.key.nim, worker.book.nim):
            return worker.first
        return worker

    @property
    def selling(self) -> MachineWorker:
        """The same for what tills sell; MachineIsSpare for a key of a spare, whatever that stands for now."""
        worker = self.worker
        if worker.first is not None and self.named is worker:
            raise MachineIsSpare(worker.book.nim, worker.first.book.nim)
        return worker


ApiRequest: TypeAlias = Request[None, RequestContext, State]


def deps_of(request: ApiRequest) -> ApiDeps:
    deps: ApiDeps = request.app.state["deps"]
    return deps


def check_rows(path_params: Mapping[str, Any]) -> None:
    """NotFound for a number in the path that no row can have."""
    if any(isinstance(value, int) and value > MAX_ROW for value in path_params.values()):
        raise NotFound(Text("there is nothing at this path"))
