"""The dependencies of the API, and the context of an authenticated request."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

import msgspec
from litestar import Request
from litestar.datastructures import State

from common.language import Text
from daemon.api.access.rehearsal import PlayedCases, SandboxControls
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
"""Last use of each key (ms) by its id; emptied when written to the ledger."""

Figures: TypeAlias = Callable[[], Awaitable[Sequence[Backlog]]]
"""Reads what waits to go upstream, for the body of `/health/ready`."""

EVENT_STREAMS = 8
EXPORTS = 2
"""Greatest number of exports at a time with one key."""
MAX_ROW: Final = 2**63 - 1
"""SQLite's largest integer."""


class ApiDeps(msgspec.Struct, frozen=True, kw_only=True):
    """`disabled`: NIMs whose live machine is disabled in the configuration, which does not make the box unready.
    `stopping` ends streams."""

    workers: MachineWorkers
    keyring: ApiKeyRing
    timezone: str
    clock: Clock
    allowed_hosts: tuple[str, ...] = ()
    cross_origin: CrossOrigin = msgspec.field(default_factory=CrossOrigin)
    public_url: str = ""
    """Address of this box for customers; empty: the same as for tills."""
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
    sandbox: SandboxShare = msgspec.field(default_factory=SandboxShare)
    sandboxes: Mapping[int, SandboxControls] = msgspec.field(default_factory=dict)
    """By the id of the sandbox's book."""
    met_cases: PlayedCases = msgspec.field(default_factory=PlayedCases)
    uses: Uses = msgspec.field(default_factory=dict)
    damage: Callable[[], Sequence[str]] = tuple
    """Known damage of the ledger."""
    disk: Callable[[], str] = str
    """The disk's problem and what to do; empty for none."""
    exports: ConcurrencyLimit = msgspec.field(default_factory=lambda: ConcurrencyLimit(EXPORTS))

    def is_disabled(self, nim: str) -> bool:
        return any(same_machine(nim, disabled) for disabled in self.disabled)


class RequestContext(msgspec.Struct, frozen=True):
    """A request with a valid key. `found`: the worker of the machine, of the spare while that replaces it; None if this
    box has no such machine. `address`: of the peer."""

    key: ApiKey
    found: MachineWorker | None
    address: str = ""
    expires: float = 0.0
    """Loop time after which the request is not carried out; 0 for never, as from the shop's network."""

    @property
    def actor(self) -> Actor:
        """The actor for the audit log."""
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
        """The worker of the machine in the path, even while its spare replaces it."""
        worker = self.worker
        if worker.first is not None and not same_machine(self.key.nim, worker.book.nim):
            return worker.first
        return worker

    @property
    def selling(self) -> MachineWorker:
        """The worker for a sale; MachineIsSpare for a key of a spare."""
        worker = self.worker
        if worker.first is not None and self.named is worker:
            raise MachineIsSpare(worker.book.nim, worker.first.book.nim)
        return worker


ApiRequest: TypeAlias = Request[None, RequestContext, State]


def deps_of(request: ApiRequest) -> ApiDeps:
    deps: ApiDeps = request.app.state["deps"]
    return deps


def check_rows(path_params: Mapping[str, Any]) -> None:
    """NotFound for a number in the path above SQLite's largest integer."""
    if any(isinstance(value, int) and value > MAX_ROW for value in path_params.values()):
        raise NotFound(Text("there is nothing at this path"))
