"""What the composition root hands to the page beside what the API has."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from datetime import tzinfo
from typing import Any, NamedTuple, Protocol

import msgspec

from common.language import Language
from daemon.api.page.jobs import Jobs
from daemon.core.audit import Actor
from daemon.setup.request import PortResult, SetupResult
from daemon.store.decisions import OperatorDecisions
from daemon.store.ledger import Ledger
from daemon.usecases.worker.machine_worker import MachineWorker

MOST_RESULTS = 8


class Finding(msgspec.Struct, frozen=True):
    """As `mcfd doctor --json` says it; `state` is ok, warn or fail."""

    check: str
    state: str
    found: str
    todo: str = ""
    nim: str = ""


class Copy(NamedTuple):
    """A backup that is there."""

    name: str
    at: int
    """ms"""
    size: int
    """bytes"""


class LogLine(NamedTuple):
    """An event of the log in words."""

    at: int
    """ms"""
    level: str
    """as the log has it"""
    words: str
    values: str
    """what stands beside the words"""


Tell = Callable[[int, int], None]
"""How much is done, of how much (0: not known)."""


class Verified(msgspec.Struct, frozen=True):
    """What `mcfd verify --json` says."""

    ok: bool
    problems: tuple[str, ...]
    """in words"""
    records: int
    closures: int


class HeadquartersInfo(NamedTuple):
    """Where closures go."""

    address: str = ""
    """empty: nowhere"""
    is_configured: bool = False
    """By the file of the configuration: the page neither joins nor leaves."""


class PageDeps(msgspec.Struct, frozen=True, kw_only=True):
    """`examine` is what `mcfd doctor` finds, `back_up` makes a copy into the box's folder and gives its name, `verify` goes
    through the ledger (all three in processes of their own, so that no till waits for them); `export` writes the journal of a year, from
    and to in ms, into a file and gives its name; `authority` is the certificate that tills trust, empty without one. `send_again` offers
    what receivers refused once more and says how many; it is what writes that into the audit log. `log_lines` are the
    newest events since the start, newest first; `restore` has a copy put back by the next
    start, which comes at once; `support` is whom to call when nothing can be sold; `labels` name the methods of payment; `probe` asks a machine that is switched off what is assumed of it.
    `join` takes a code of a headquarters and its address, and may raise BoxRefused; `leave` undoes it."""

    ledger: Ledger
    decisions: OperatorDecisions
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
    share_key: bytes = msgspec.field(default_factory=lambda: secrets.token_bytes(32))
    """Signs the links to shared invoices: they end with the daemon that made them."""
    restore: Callable[[str, Actor], Awaitable[None]]
    export: Callable[[MachineWorker, int, str, tuple[int, int], Language, Tell], Awaitable[str]]
    exports: Callable[[], Sequence[Copy]]
    read_export: Callable[[str], Any]
    jobs: Jobs = msgspec.field(default_factory=Jobs)
    form_results: dict[str, asyncio.Task[str]] = msgspec.field(default_factory=dict)
    """The newest, in memory alone."""
    send_again: Callable[[int, Actor], Awaitable[int]]
    authority: Callable[[], bytes]
    labels: Callable[[Language], Mapping[str, str]]
    probe: Callable[[str, Language], Awaitable[Sequence[Probed]]]
    headquarters: Callable[[], HeadquartersInfo]
    join: Callable[[str, str, Actor], Awaitable[None]]
    leave: Callable[[Actor], Awaitable[None]]
    log_lines: Callable[[Language], Sequence[LogLine]]

    async def run_once(self, form: str, make: Callable[[], Coroutine[Any, Any, str]]) -> str:
        """What `make` gives, and the same again for a form that is among the newest."""
        results = self.form_results
        task = results.get(form)
        if task is None or (task.done() and task.exception()):
            task = results[form] = asyncio.get_running_loop().create_task(make(), name="run once")
            for oldest in list(results)[:-MOST_RESULTS]:
                del results[oldest]
        return await asyncio.shield(task)


class Probed(msgspec.Struct, frozen=True):
    """One assumption about a machine."""

    expected: str
    came: str
    verdict: str
    """confirmed, contradicted or not tried"""
    todo: str = ""


class SetupRequest(msgspec.Struct, frozen=True):
    """What the person decided; `network` is local, https or plain, and `name` with `password` the first technician."""

    nims: tuple[str, ...]
    network: str
    isf: str
    till: str
    name: str
    password: str


class FirstStart(Protocol):
    """`code` is on the box's screen and lets in; `language` is that of the box. `search` asks every port (or `place`), `carry_out`
    writes ledger and configuration, BoxFailed says why it could not; `leave` ends the page and starts mcfd."""

    @property
    def code(self) -> str: ...
    @property
    def language(self) -> Language: ...
    @property
    def result(self) -> SetupResult | None: ...
    async def search(self, place: str) -> Sequence[PortResult]: ...
    async def probe(self, nim: str, language: Language) -> Sequence[Probed]: ...
    async def carry_out(self, request: SetupRequest) -> SetupResult: ...
    def leave(self) -> None: ...
