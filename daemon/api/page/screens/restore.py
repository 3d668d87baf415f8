"""A copy of the ledger put back in its place: what that means, a confirmation, and the wait for the daemon that comes after."""

from __future__ import annotations

from daemon.api.http.answers import Reply
from daemon.api.page.deps import Copy
from daemon.api.page.visit import Visit, screen, shown
from daemon.core.errors import FieldError, InvalidRequest, NotFound
from daemon.usecases.reports import report


@screen("/ui/box/backup/{name:str}/restore", "administer")
async def confirm(visit: Visit) -> Reply:
    """With what was certified since, which the copy does not have."""
    copy, now = _copy(visit), visit.worker.now()
    live = [worker for worker in visit.deps.workers.all() if worker.book.mode == "live"]
    since = [(worker.book.nim, (await report.a_report(worker, copy.at, now)).certs_count) for worker in live]
    return await shown(visit, "restore.html", copy=copy, since=since)


@screen("/ui/box/backup/{name:str}/restore", "administer", change=True)
async def restore(visit: Visit) -> Reply:
    """The last answer of this daemon."""
    copy = _copy(visit)
    if "sure" not in visit.form:
        raise InvalidRequest([FieldError("sure", visit.say("is needed"))])
    await visit.page.restore(copy.name, visit.actor)
    return await shown(visit, "restoring.html", copy=copy)


def _copy(visit: Visit) -> Copy:
    name = str(visit.request.path_params["name"])
    for copy in visit.page.backups():
        if copy.name == name:
            return copy
    raise NotFound("there is no such copy")


HANDLERS = (confirm, restore)
