"""Monitoring: liveness and readiness without a key, and `GET /metrics` for Prometheus.

Metrics contain no secret but show how much a shop sells. So they are open from the box itself (an agent, a tunnel);
from elsewhere they need an API key and show that key's book."""

import asyncio
from functools import partial
from typing import Annotated, Literal

import msgspec
import structlog
from litestar import get
from msgspec import Meta

from common.language import Language, preferred
from common.language.reasons import code_of, from_stored
from common.sockets import is_loopback
from daemon.api.access.auth import identify, in_force
from daemon.api.access.context import ApiDeps, ApiRequest, deps_of
from daemon.api.box import BoxFigures
from daemon.api.document.describe import described
from daemon.api.http.answers import Answer, encoded
from daemon.api.http.middleware import address_of
from daemon.api.refusals import TooManyRequests, Unauthenticated
from daemon.core.clock import millis_text
from daemon.core.delivery import Backlog
from daemon.core.errors import StorageError, without_paths
from daemon.core.keys import ApiKey
from daemon.core.machine.state import same_machine
from daemon.core.report.machine_info import tax_server
from daemon.store.tables.book import deferred
from daemon.store.tables.book.outages import out_since
from daemon.usecases.worker.machine_worker import MachineWorker

log = structlog.get_logger(__name__)

FIGURES_PATIENCE = 2.0
NAMELESS = "damaged (the entries are named to requests with a key)"
FAILED = "failed (the reason is given to requests with a key)"

_described = partial(described, tag="health", access="open")


class Live(msgspec.Struct, frozen=True):
    status: Annotated[Literal["live"], Meta(description="live")]
    version: Annotated[str, Meta(description="Version of mcfd")]


class MachineReady(msgspec.Struct, frozen=True, rename="camel"):
    nim: Annotated[str, Meta(description="The machine")]
    ready: Annotated[bool, Meta(description="Connected, and nothing for an operator to settle")]
    connected: Annotated[bool, Meta(description="Whether it answers")]
    attention: Annotated[str, Meta(description="What an operator has to settle; empty when nothing")]
    attention_code: Annotated[
        str, Meta(description="The same as a code, as `outcome_unknown`; empty where it has none")
    ]
    last_error: Annotated[str, Meta(description="Why it does not answer; empty when it does")]
    last_error_code: Annotated[str, Meta(description="The same as a code, as `no_answer`; empty where it has none")]
    waiting: Annotated[int, Meta(description="Requests at the machine and waiting for it")]
    clock_drift: Annotated[
        int | None, Meta(description="Seconds the box is ahead of the machine; null before the first reading")
    ]
    tax_server_days: Annotated[
        int | None,
        Meta(description="Days since the machine last met the tax server; null when not known. Read once an hour"),
    ]
    tax_server_waiting: Annotated[
        int | None, Meta(description="Transactions the machine still has to send there; null when not known")
    ]
    test_mode: Annotated[
        bool, Meta(description="Whether its codes begin with TESTFACT: nothing it certifies has fiscal value")
    ]
    spare_for: Annotated[str | None, Meta(description="Of a spare: the machine for which it may stand")] = None
    stands_for: Annotated[
        str | None, Meta(description="Of a spare that has taken over: the machine in whose place it certifies")
    ] = None
    replaced_by: Annotated[str | None, Meta(description="The spare that certifies in its place")] = None


class UpstreamLane(msgspec.Struct, frozen=True, rename="camel"):
    nim: Annotated[str, Meta(description="The machine")]
    mode: Annotated[Literal["live", "test"], Meta(description="live, or test for the sandbox")]
    waiting: Annotated[int, Meta(description="Closures still to be sent")]
    parked: Annotated[int, Meta(description="Closures that headquarters refused, for an operator to see")]
    oldest_at: Annotated[str | None, Meta(description="When the oldest waiting closure was made; null when none waits")]
    last_error: Annotated[str, Meta(description="Of the last try that failed; empty when there was none")]
    last_error_at: Annotated[str | None, Meta(description="When that was, or null")]
    last_sent_at: Annotated[str | None, Meta(description="When the last closure arrived, or null")]


class Ready(msgspec.Struct, frozen=True):
    status: Annotated[Literal["ready", "not ready"], Meta(description="ready, or not ready")]
    machines: Annotated[tuple[MachineReady, ...], Meta(description="Each configured live machine")]
    upstream: Annotated[
        tuple[UpstreamLane, ...] | None,
        Meta(description="Closures on their way to headquarters; null without upstream"),
    ]
    ledger: Annotated[
        tuple[str, ...], Meta(description="What is known to be damaged in the ledger; in words with a key")
    ] = ()
    disk: Annotated[
        str, Meta(description="That the disk failed again and again and has to be replaced; empty when it did not")
    ] = ""


@get(
    "/health/live",
    **_described(
        "check_live",
        summary="The service runs",
        description="200 as long as the service answers.",
        answer=Live,
    ),
)
async def live(request: ApiRequest) -> Answer:
    return encoded(Live(status="live", version=deps_of(request).version))


@get(
    "/health/ready",
    **_described(
        "check_ready",
        summary="The machines answer",
        description="""200 when each machine in use answers, with nothing for an operator to settle, and nothing in the ledger is known to be damaged, otherwise
503 with the same body, which says which does not. A spare is in use while it stands for its machine, and that machine is not. Trouble upstream
or with the disk does not change the status, nor does a machine that answers and refuses invoices, as a blocked one does: `GET …/outages` has that.""",
        answer=Ready,
        also={503: (Ready, "A machine does not answer")},
    ),
)
async def ready(request: ApiRequest) -> Answer:
    deps = deps_of(request)
    expected = [
        worker for worker in deps.workers.all() if worker.book.mode == "live" and not deps.is_disabled(worker.book.nim)
    ]
    language = preferred(request.headers.get("accept-language", ""))
    machines = tuple(_machine(worker, language) for worker in expected)
    damage = tuple(from_stored(found).in_language(language) for found in deps.damage())
    in_use = {worker.book.nim for worker in expected if worker.is_in_use}
    well = all(machine.ready for machine in machines if machine.nim in in_use) and not damage
    body = Ready(
        status="ready" if well else "not ready",
        machines=machines,
        upstream=await _upstream(request),
        ledger=damage if _has_key(request) else (NAMELESS,) * bool(damage),
        disk=from_stored(deps.disk()).in_language(language),
    )
    return encoded(body, status=200 if well else 503)


def _has_key(request: ApiRequest) -> bool:
    try:
        return in_force(deps_of(request), request.scope["headers"])
    except StorageError:
        return False


def _machine(worker: MachineWorker, language: Language) -> MachineReady:
    drift = worker.time.drift
    server = tax_server(worker.server_link, worker.now()) if worker.server_link else None
    return MachineReady(
        nim=worker.book.nim,
        ready=worker.connected and not worker.obstacle,
        connected=worker.connected,
        attention=worker.obstacle.in_language(language),
        attention_code=code_of(worker.obstacle),
        last_error="" if worker.connected else without_paths(worker.offline_reason.in_language(language), language),
        last_error_code="" if worker.connected else code_of(worker.offline_reason),
        waiting=worker.waiting,
        clock_drift=None if drift is None else round(drift),
        tax_server_days=server.days_since_contact if server else None,
        tax_server_waiting=server.waiting if server else None,
        test_mode=worker.in_test_mode,
        spare_for=worker.first.book.nim if worker.first else None,
        stands_for=first.book.nim if (first := worker.stands_for) else None,
        replaced_by=worker.in_use.book.nim if worker.is_replaced else None,
    )


async def _upstream(request: ApiRequest) -> tuple[UpstreamLane, ...] | None:
    """The outbox's figures; None if they cannot be read, so that monitoring gets an answer in any case."""
    figures = deps_of(request).upstream
    if figures is None:
        return None
    try:
        async with asyncio.timeout(FIGURES_PATIENCE):
            in_full = _has_key(request)
            return tuple(_lane(backlog, in_full=in_full) for backlog in await figures())
    except Exception as error:  # noqa: BLE001  in the log, and the rest of the answer stands
        log.warning("ready.no_upstream_figures", reason=repr(error))
        return None


def _lane(backlog: Backlog, *, in_full: bool) -> UpstreamLane:
    """`in_full`: with headquarters' last answer, which may contain names of hosts and users."""
    return UpstreamLane(
        nim=backlog.nim,
        mode=backlog.mode,
        waiting=backlog.waiting,
        parked=backlog.parked,
        oldest_at=_moment(backlog.oldest_at),
        last_error=str(from_stored(backlog.last_error)) if in_full or not backlog.last_error else FAILED,
        last_error_at=_moment(backlog.last_error_at),
        last_sent_at=_moment(backlog.last_sent_at),
    )


def _moment(at: int) -> str | None:
    return millis_text(at) if at else None


@get(
    "/metrics",
    **_described(
        "get_metrics",
        summary="Metrics for Prometheus",
        description="""Without a key from the box itself; from elsewhere with a key, which shows the figures of its own NIM and mode, and those of the box.
Names and alerts: `config/prometheus-alerts.yml`.""",
        media=("text/plain",),
        problems=(Unauthenticated, TooManyRequests),
    ),
)
async def metrics(request: ApiRequest) -> Answer:
    from daemon.api.document.metrics_text import MEDIA_TYPE, Seen, SeenMachine, exposition  # noqa: PLC0415  on first use, see there

    deps = deps_of(request)
    owner = _authorized_key(deps, request)
    box = deps.box
    machines, retired = [
        [
            SeenMachine(
                worker,
                await worker.ledger.read(deferred.backlog, worker.book),
                worker.ledger.peek(out_since, worker.book),
                box.line(worker) if box else None,
            )
            for worker in workers
            if _is_visible(worker, owner, deps)
        ]
        for workers in (deps.workers.all(), deps.workers.retired())
    ]
    figures = None if box is None else _for(owner, await box.figures())
    seen = Seen(deps.clock(), deps.version, machines, retired, figures)
    return Answer(exposition(seen), media_type=MEDIA_TYPE)


def _authorized_key(deps: ApiDeps, request: ApiRequest) -> ApiKey | None:
    """The key of the request; None from the box itself, which may see everything."""
    address = address_of(request.scope)
    return None if is_loopback(address) else identify(deps, request.scope["headers"], address)


def _is_visible(worker: MachineWorker, owner: ApiKey | None, deps: ApiDeps) -> bool:
    """Whether the request may see that worker; a disabled machine is left out."""
    book = worker.book
    if book.mode == "live" and deps.is_disabled(book.nim):
        return False
    return owner is None or _is_its_own(owner, book.nim, book.mode)


def _is_its_own(owner: ApiKey, nim: str, mode: str) -> bool:
    """Whether the key is for that machine, whatever its activation counter (decision 26)."""
    return same_machine(owner.nim, nim) and owner.mode == mode


def _for(owner: ApiKey | None, figures: BoxFigures) -> BoxFigures:
    if owner is None:
        return figures
    its_own = {
        destination: tuple(backlog for backlog in backlogs if _is_its_own(owner, backlog.nim, backlog.mode))
        for destination, backlogs in figures.outbox.items()
    }
    return msgspec.structs.replace(figures, outbox=its_own)
