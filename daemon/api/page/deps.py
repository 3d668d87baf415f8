"""What the composition root hands to the page beside what the API has; and long work that a person begins and may leave: it goes on in the box, and
every screen can show how far it is."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import tzinfo
from typing import Any, Final, Literal, NamedTuple, Protocol

import msgspec

from common.language import Language
from daemon.api.page.rendering import Fault, fault_of
from daemon.core.audit import Actor
from daemon.setup.request import PortResult, SetupResult
from daemon.store.decisions import OperatorDecisions
from daemon.store.ledger import Ledger
from daemon.usecases.worker.machine_worker import MachineWorker

Kind = Literal["backup", "verify", "export"]
State = Literal["running", "done", "failed"]
MOST_JOBS: Final = 8
"""Of the last ones."""


class Job(msgspec.Struct):
    id: int
    kind: Kind
    subject: str
    state: State = "running"
    done: int = 0
    """pages or records"""
    of: int = 0
    """how many there are; 0 where it is not known"""
    result: str = ""
    """what came of it: a file's name, or a sentence's values"""
    fault: Fault | None = None
    """why nothing came of it"""

    def tell(self, done: int, of: int) -> None:
        self.done, self.of = done, of

    @property
    def percent(self) -> int | None:
        """None where it is not known."""
        return min(100, self.done * 100 // self.of) if self.of else None


Work = Callable[[Job], Awaitable[str]]
"""Gives the job's result; an error is the job's fault."""


class Jobs(msgspec.Struct):
    """One of a kind at a time: a second one while one runs is that one."""

    jobs: list[Job] = msgspec.field(default_factory=list)
    _tasks: set[asyncio.Task[None]] = msgspec.field(default_factory=set)

    def begin(self, kind: Kind, subject: str, work: Work) -> Job:
        if running := next((job for job in self.jobs if job.kind == kind and job.state == "running"), None):
            return running
        job = Job(self.jobs[-1].id + 1 if self.jobs else 1, kind, subject)
        self.jobs = [*self.jobs[-MOST_JOBS + 1 :], job]
        task = asyncio.get_running_loop().create_task(_run(job, work), name=f"page {kind}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return job

    def of(self, *kinds: Kind) -> list[Job]:
        """Newest first, as they are now: a job that ends while a screen is made stays as the screen's other values have it."""
        return [msgspec.structs.replace(job) for job in reversed(self.jobs) if job.kind in kinds]

    async def close(self) -> None:
        """What runs is broken off."""
        for task in self._tasks:
            task.cancel()
        for task in tuple(self._tasks):
            with contextlib.suppress(asyncio.CancelledError):
                await task


async def _run(job: Job, work: Work) -> None:
    try:
        job.result = await work(job)
        job.state = "done"
    except Exception as error:  # noqa: BLE001  on the screen, and logged where it is unexpected
        job.fault, job.state = fault_of(error), "failed"


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
    send_again: Callable[[int, Actor], Awaitable[int]]
    authority: Callable[[], bytes]
    labels: Callable[[Language], Mapping[str, str]]
    probe: Callable[[str, Language], Awaitable[Sequence[Probed]]]
    headquarters: Callable[[], HeadquartersInfo]
    join: Callable[[str, str, Actor], Awaitable[None]]
    leave: Callable[[Actor], Awaitable[None]]
    log_lines: Callable[[Language], Sequence[LogLine]]


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
