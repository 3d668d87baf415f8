"""For whoever watches the box: alive, and ready to certify. No key is needed, and none is told."""

from __future__ import annotations

import asyncio

import structlog
from litestar import get

from daemon.api.answers import Answer, encoded
from daemon.api.deps import ApiRequest, deps_of
from daemon.api.describe import Doc
from daemon.api.shapes import Live, MachineReady, Ready, UpstreamLane
from daemon.core.clock import millis_text
from daemon.core.delivery import Backlog
from daemon.core.machine_info import tax_server
from daemon.core.words import without_paths
from daemon.usecases.desk import Desk

log = structlog.get_logger(__name__)

FIGURES_PATIENCE = 2.0


@get(
    "/health/live",
    doc=Doc(
        tag="health",
        summary="Le service tourne · The service runs",
        text="""200 tant que le service répond. 200 as long as the service answers.""",
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
        summary="Les machines répondent · The machines answer",
        text="""200 quand chaque machine configurée répond et peut certifier, sinon 503 avec le même corps, qui dit laquelle ne le peut pas.
Un retard vers le siège ne change pas le statut.

200 when each configured machine answers and may certify, otherwise 503 with the same body, which says which does not.
Trouble upstream does not change the status.""",
        answer=Ready,
        also={503: (Ready, "Une machine ne répond pas · A machine does not answer")},
        open=True,
    ),
)
async def ready(request: ApiRequest) -> Answer:
    deps = deps_of(request)
    expected = [desk for desk in deps.desks.all() if desk.book.mode == "live" and desk.book.nim not in deps.disabled]
    machines = tuple(_machine(desk, deps.clock()) for desk in expected)
    well = all(machine.ready for machine in machines)
    body = Ready(status="ready" if well else "not ready", machines=machines, upstream=await _upstream(request))
    return encoded(body, status=200 if well else 503)


def _machine(desk: Desk, now: int) -> MachineReady:
    drift = desk.drift_seconds
    server = tax_server(desk.server_link, now) if desk.server_link else None
    return MachineReady(
        nim=desk.book.nim,
        ready=desk.connected and not desk.attention,
        connected=desk.connected,
        attention=desk.attention,
        last_error="" if desk.connected else without_paths(desk.offline_reason),
        waiting=desk.waiting,
        clock_drift=None if drift is None else round(drift),
        tax_server_days=server.days_since_contact if server else None,
        tax_server_waiting=server.waiting if server else None,
    )


async def _upstream(request: ApiRequest) -> tuple[UpstreamLane, ...] | None:
    """Whoever watches the machines gets an answer even when the figures of the outbox cannot be had."""
    figures = deps_of(request).upstream
    if figures is None:
        return None
    try:
        async with asyncio.timeout(FIGURES_PATIENCE):
            return tuple(_lane(backlog) for backlog in await figures())
    except Exception as error:  # noqa: BLE001  said in the log, and the rest of the answer stands
        log.warning("ready.no_upstream_figures", reason=repr(error))
        return None


def _lane(backlog: Backlog) -> UpstreamLane:
    return UpstreamLane(
        nim=backlog.nim,
        mode=backlog.mode,
        waiting=backlog.waiting,
        parked=backlog.parked,
        oldest_at=_moment(backlog.oldest_at),
        last_error=backlog.last_error,
        last_error_at=_moment(backlog.last_error_at),
        last_sent_at=_moment(backlog.last_sent_at),
    )


def _moment(at: int) -> str | None:
    return millis_text(at) if at else None


HANDLERS = (live, ready)
