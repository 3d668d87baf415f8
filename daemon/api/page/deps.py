"""Dependencies of the page in addition to the API's, passed by the composition root."""

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from datetime import tzinfo
from typing import Any, NamedTuple, Protocol

import msgspec

from common.language import Language
from daemon.api.access.login import Logins
from daemon.api.page.jobs import Jobs
from daemon.core.audit import Actor
from daemon.setup.request import PortResult, SetupResult
from daemon.store.decisions import OperatorDecisions
from daemon.store.ledger import Ledger
from daemon.usecases.worker.machine_worker import MachineWorker

MAX_RESULTS = 8


class Finding(msgspec.Struct, frozen=True):
    """An entry of `mcfd doctor --json`; `state` is ok, warn or fail."""

    check: str
    state: str
    found: str
    todo: str = ""
    nim: str = ""


class Copy(NamedTuple):
    """An existing backup."""

    name: str
    at: int
    """ms"""
    size: int
    """bytes"""


class LogLine(NamedTuple):
    """An event of the log, worded for people."""

    at: int
    """ms"""
    level: str
    """the log's level"""
    words: str
    values: str
    """further values of the event"""


Tell = Callable[[int, int], None]
"""Arguments: amount done, total (0: unknown)."""


class Verified(msgspec.Struct, frozen=True):
    """Result of `mcfd verify --json`."""

    ok: bool
    problems: tuple[str, ...]
    """in words"""
    records: int
    closures: int


class HeadquartersInfo(NamedTuple):
    """Destination of closures."""

    address: str = ""
    """empty: none"""
    is_configured: bool = False
    """Set in the configuration file: then the page can neither join nor leave."""


class PageDeps(msgspec.Struct, frozen=True, kw_only=True):
    """`examine` returns the findings of `mcfd doctor`; `back_up` copies the ledger into the box's folder and returns
    the file's name; `verify` checks the ledger (separate processes, so that tills do not wait). `export` writes a
    year's journal (from, to in ms) and returns the file's name. `authority` is the certificate to be trusted by tills,
    or empty. `send_again` retries events that receivers refused, returns their number and writes the audit entry.
    `log_lines` are the newest events since the start, newest first. `restore` orders a copy to be restored by a
    restart at once; with True it keeps what the ledger has since. `support` is the contact when sales stop; `labels`
    are names of payment methods; `probe` compares assumptions with a disabled machine. `join` takes a code and an
    address of headquarters and may raise BoxRefused; `leave` reverts it."""

    ledger: Ledger
    decisions: OperatorDecisions
    logins: Logins
    language: Language = "fr"
    zone: tzinfo
    tls: bool
    examine: Callable[[Language], Awaitable[Sequence[Finding]]]
    back_up: Callable[[Actor, Tell], Awaitable[str]]
    verify: Callable[[Tell], Awaitable[Verified]]
    backups: Callable[[], Sequence[Copy]]
    archives: Callable[[], Sequence[Copy]]
    read_backup: Callable[[str], Any]
    support: str
    certificate_end: Callable[[], int]
    """ms; 0 without TLS"""
    share_key: bytes = msgspec.field(default_factory=lambda: secrets.token_bytes(32))
    """Signs links to shared invoices; they end with the daemon's process."""
    restore: Callable[[str, bool, Actor], Awaitable[None]]
    export: Callable[[MachineWorker, int, str, tuple[int, int], Language, Tell], Awaitable[str]]
    exports: Callable[[], Sequence[Copy]]
    read_export: Callable[[str], Any]
    jobs: Jobs = msgspec.field(default_factory=Jobs)
    form_results: dict[str, asyncio.Task[str]] = msgspec.field(default_factory=dict)
    """The newest results, in memory only."""
    send_again: Callable[[int, Actor], Awaitable[int]]
    authority: Callable[[], bytes]
    labels: Callable[[Language], Mapping[str, str]]
    probe: Callable[[str], Awaitable[Sequence[object]]]
    """Findings of `daemon.probe`."""
    headquarters: Callable[[], HeadquartersInfo]
    join: Callable[[str, str, Actor], Awaitable[None]]
    leave: Callable[[Actor], Awaitable[None]]
    log_lines: Callable[[Language], Sequence[LogLine]]

    async def run_once(self, form: str, make: Callable[[], Coroutine[Any, Any, str]]) -> str:
        """The result of `make`; a repeated form among the newest gets the same result."""
        results = self.form_results
        task = results.get(form)
        if task is None or (task.done() and task.exception()):
            task = results[form] = asyncio.get_running_loop().create_task(make(), name="run once")
            for oldest in list(results)[:-MAX_RESULTS]:
                del results[oldest]
        return await asyncio.shield(task)


class SetupRequest(msgspec.Struct, frozen=True):
    """The person's choices; `network` is local, https or plain; `name` and `password` are the first technician's."""

    nims: tuple[str, ...]
    network: str
    isf: str
    till: str
    name: str
    password: str


class FirstStart(Protocol):
    """`code` is shown on the box and gives access; `language` is the box's. `search` tries all ports (or `place`);
    `carry_out` writes ledger and configuration or raises BoxFailed; `leave` ends the page and starts mcfd."""

    @property
    def code(self) -> str: ...
    @property
    def language(self) -> Language: ...
    @property
    def result(self) -> SetupResult | None: ...
    async def search(self, place: str) -> Sequence[PortResult]: ...
    async def probe(self, nim: str) -> Sequence[object]: ...
    async def carry_out(self, request: SetupRequest) -> SetupResult: ...
    def leave(self) -> None: ...
