"""`GET /metrics`: for Prometheus, or whatever else looks after the boxes of a chain from afar.

There is no secret in it, but there is how much a shop sells. So it is open to this box itself (an agent on it, a tunnel to it);
from elsewhere it takes an API key, and shows the book of that key. A proxy on this box speaks for whoever it lets through."""

from __future__ import annotations

import msgspec
from litestar import get

from common.sockets import is_loopback
from daemon.api.access.auth import identify
from daemon.api.access.context import ApiDeps, ApiRequest, deps_of
from daemon.api.box import BoxFigures
from daemon.api.document.describe import described
from daemon.api.http.answers import Answer
from daemon.api.refusals import TooManyRequests, Unauthenticated
from daemon.core.keys import ApiKey
from daemon.core.machine.nim import same_machine
from daemon.usecases.deferred.look import backlog
from daemon.usecases.outages.look import open_outage
from daemon.usecases.worker.machine_worker import MachineWorker


@get(
    "/metrics",
    **described(
        "get_metrics",
        tag="health",
        summary="Metrics for Prometheus",
        description="""Without a key from the box itself; from elsewhere with a key, which shows the figures of its own NIM and mode, and those of the box.
Names and alerts: `config/prometheus-alerts.yml`.""",
        media=("text/plain",),
        problems=(Unauthenticated, TooManyRequests),
        access="open",
    ),
)
async def metrics(request: ApiRequest) -> Answer:
    from daemon.api.document.metrics_text import MEDIA_TYPE, Seen, exposition  # noqa: PLC0415  on first use, see there

    deps = deps_of(request)
    owner = _may_look(deps, request)
    workers = [worker for worker in deps.workers.all() if _is_visible(worker, owner, deps)]
    box = deps.box
    seen = Seen(
        now=deps.clock(),
        version=deps.version,
        workers=workers,
        deferred=[(worker, await backlog(worker)) for worker in workers],
        outages=[(worker, outage.since if (outage := open_outage(worker)) else 0) for worker in workers],
        lines=[(worker, line) for worker in workers if box is not None and (line := box.line(worker)) is not None],
        box=None if box is None else _for(owner, await box.figures()),
    )
    return Answer(exposition(seen), media_type=MEDIA_TYPE)


def _may_look(deps: ApiDeps, request: ApiRequest) -> ApiKey | None:
    """None for this box itself, which sees everything."""
    client = request.scope["client"]
    address = client[0] if client else ""
    if is_loopback(address):
        return None
    return identify(deps, request.scope["headers"], address)


def _is_visible(worker: MachineWorker, owner: ApiKey | None, deps: ApiDeps) -> bool:
    """A machine switched off on purpose is not one that fails."""
    book = worker.book
    if book.mode == "live" and deps.is_disabled(book.nim):
        return False
    return owner is None or _is_its_own(owner, book.nim, book.mode)


def _is_its_own(owner: ApiKey, nim: str, mode: str) -> bool:
    """A key is for the machine, whatever its activation counter is by now (decision 26)."""
    return same_machine(owner.nim, nim) and owner.mode == mode


def _for(owner: ApiKey | None, figures: BoxFigures) -> BoxFigures:
    if owner is None:
        return figures
    its_own = {
        destination: tuple(lane for lane in lanes if _is_its_own(owner, lane.nim, lane.mode))
        for destination, lanes in figures.outbox.items()
    }
    return msgspec.structs.replace(figures, outbox=its_own)


HANDLERS = (metrics,)
