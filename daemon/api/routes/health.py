"""For whoever watches the box: alive, and ready to certify. No key is needed, and none is told."""

from __future__ import annotations

import asyncio

import structlog
from litestar import get

from daemon.api.access.auth import OWNER
from daemon.api.access.context import ApiRequest, deps_of
from daemon.api.document.describe import Doc
from daemon.api.document.shapes import Live, MachineReady, Ready, UpstreamLane
from daemon.api.http.answers import Answer, encoded
from daemon.core.clock import millis_text
from daemon.core.delivery import Backlog
from daemon.core.errors import without_paths
from daemon.core.report.machine_info import tax_server
from daemon.language import Text
from daemon.usecases.worker.machine_worker import MachineWorker

log = structlog.get_logger(__name__)

FIGURES_PATIENCE = 2.0
NAMELESS = "damaged (which entries is told to who asks with a key)"
FAILED = "failed (the reason is told to who asks with a key)"


@get(
    "/health/live",
    doc=Doc(
        tag="health",
        summary=Text("The service runs"),
        text=Text("200 as long as the service answers."),
        answer=Live,
        open=True,
    ),
)
async def live(request: ApiRequest) -> Answer:
    return encoded(Live(status="live", version=deps_of(request).version))


@get(
    "/health/ready",
    doc=Doc(
        tag="health",
        summary=Text("The machines answer"),
        text=Text("""200 when each configured machine answers and may certify and nothing in the ledger is known to be damaged, otherwise 503 with
the same body, which says which does not. Trouble upstream does not change the status."""),
        answer=Ready,
        also={503: (Ready, Text("A machine does not answer"))},
        open=True,
    ),
)
async def ready(request: ApiRequest) -> Answer:
    deps = deps_of(request)
    expected = [
        worker for worker in deps.workers.all() if worker.book.mode == "live" and not deps.is_disabled(worker.book.nim)
    ]
    machines = tuple(_machine(worker, deps.clock()) for worker in expected)
    damage = tuple(deps.damage())
    well = all(machine.ready for machine in machines) and not damage
    body = Ready(
        status="ready" if well else "not ready",
        machines=machines,
        upstream=await _upstream(request),
        ledger=damage if OWNER in request.scope["state"] else (NAMELESS,) * bool(damage),
    )
    return encoded(body, status=200 if well else 503)


def _machine(worker: MachineWorker, now: int) -> MachineReady:
    drift = worker.drift_seconds
    server = tax_server(worker.server_link, now) if worker.server_link else None
    return MachineReady(
        nim=worker.book.nim,
        ready=worker.connected and not worker.obstacle,
        connected=worker.connected,
        attention=worker.obstacle,
        last_error="" if worker.connected else without_paths(worker.offline_reason),
        waiting=worker.waiting,
        clock_drift=None if drift is None else round(drift),
        tax_server_days=server.days_since_contact if server else None,
        tax_server_waiting=server.waiting if server else None,
        test_mode=worker.in_test_mode,
    )


async def _upstream(request: ApiRequest) -> tuple[UpstreamLane, ...] | None:
    """Whoever watches the machines gets an answer even when the figures of the outbox cannot be had."""
    figures = deps_of(request).upstream
    if figures is None:
        return None
    try:
        async with asyncio.timeout(FIGURES_PATIENCE):
            in_full = OWNER in request.scope["state"]
            return tuple(_lane(backlog, in_full=in_full) for backlog in await figures())
    except Exception as error:  # noqa: BLE001  said in the log, and the rest of the answer stands
        log.warning("ready.no_upstream_figures", reason=repr(error))
        return None


def _lane(backlog: Backlog, *, in_full: bool) -> UpstreamLane:
    """What headquarters answered is for those with a key: it may name hosts and users."""
    return UpstreamLane(
        nim=backlog.nim,
        mode=backlog.mode,
        waiting=backlog.waiting,
        parked=backlog.parked,
        oldest_at=_moment(backlog.oldest_at),
        last_error=backlog.last_error if in_full or not backlog.last_error else FAILED,
        last_error_at=_moment(backlog.last_error_at),
        last_sent_at=_moment(backlog.last_sent_at),
    )


def _moment(at: int) -> str | None:
    return millis_text(at) if at else None


HANDLERS = (live, ready)
