"""The box: health (doctor, lines, disk, upstream), tills and keys, people, backups, audit log, version."""

import asyncio
import secrets
from contextlib import suppress
from functools import partial
from typing import Any, Final

from common.numbers import money
from common.one_line import fault_of_line
from common.passwords import fault_of_password, hash_password
from daemon.api.http.answers import Reply
from daemon.api.page.downloads import authority_link, day_of, file_route
from daemon.api.page.jobs import Job
from daemon.api.page.rendering import BoxFailed
from daemon.api.page.screens import account
from daemon.api.page.views.machine_view import line_charts, machine_view
from daemon.api.page.visit import Visit, html, is_fetched, redirect, render, screen
from daemon.core.audit import action_text, details, who, whom
from daemon.core.certified_core import CORE_VERSION, core_digest, waiting_version
from daemon.core.errors import InvalidRequest, McfdError, NotFound
from daemon.core.keys import LONGEST_LABEL, KeyTerms
from daemon.core.ledger.attempt import Mode
from daemon.core.people import ROLES, fault_of_name
from daemon.store.tables import keys as keys_table
from daemon.store.tables.audit import newest_entries
from daemon.store.tables.keys import list_keys, of_another_taxpayer
from daemon.store.tables.people import create_person, disable_person, list_people, set_password

ENTRIES: Final = 100
IN_WORDS: Final[dict[str, Any]] = {
    "action_text": action_text,
    "details": details,
    "money": money,
    "who": who,
    "whom": whom,
}
"""Functions that word entries of the audit log."""


async def _box(visit: Visit) -> Reply:
    figures = await visit.deps.box.figures() if visit.deps.box else None
    lines = [
        {
            "machine": machine_view(each, visit),
            "line": visit.deps.box.line(each) if visit.deps.box else None,
            "charts": await line_charts(visit, visit.deps.box.history(each)) if visit.deps.box else [],
        }
        for each in visit.deps.workers.all()
        if each.book.mode == "live"
    ]
    return await render(
        visit,
        "box.html",
        figures=figures,
        lines=lines,
        headquarters=visit.page.headquarters(),
        parked=sum(backlog.parked for backlogs in figures.outbox.values() for backlog in backlogs) if figures else 0,
        done=_done(visit),
    )


box = screen("/ui/box", "administer")(_box)


async def _keys(visit: Visit) -> Reply:
    keys, authority = await visit.page.ledger.read(list_keys), await authority_link(visit)
    former = await visit.page.ledger.read(of_another_taxpayer)
    return await render(
        visit,
        "box_keys.html",
        keys=keys,
        former=former,
        roles=ROLES,
        authority=authority,
        done=_done(visit),
        form_key=visit.form.get("form") or secrets.token_urlsafe(9),
    )


keys_screen = screen("/ui/box/keys", "administer")(_keys)


async def _people(visit: Visit) -> Reply:
    people = await visit.page.ledger.read(list_people)
    return await render(visit, "box_people.html", people=people, roles=ROLES, done=_done(visit))


people_screen = screen("/ui/box/people", "administer")(_people)


@screen("/ui/box/backups", "administer")
async def backups_screen(visit: Visit) -> Reply:
    return await render(visit, "box_backups.html", **_jobs(visit))


@screen("/ui/box/history", "administer")
async def history(visit: Visit) -> Reply:
    labels = {str(key.id): key.label for key in await visit.page.ledger.read(list_keys)}
    entries = await visit.page.ledger.read(newest_entries, limit=ENTRIES)
    return await render(visit, "box_history.html", labels=labels, entries=entries, **IN_WORDS)


@screen("/ui/box/update", "administer")
async def update(visit: Visit) -> Reply:
    return await render(
        visit,
        "box_update.html",
        core_version=CORE_VERSION,
        core_digest=core_digest()[:12],
        waiting=waiting_version(),
    )


def _done(visit: Visit) -> str:
    messages = {
        "revoked": visit.say("The key works no more."),
        "person": visit.say("Done; what was changed holds from now on."),
        "sent": visit.say("What was refused will be sent again."),
        "joined": visit.say("Headquarters is joined: closures go to it from now on."),
        "left": visit.say("Headquarters is left: closures stay in the outbox. It still has to revoke this box."),
    }
    return messages.get(visit.query.get("done", ""), "")


@screen("/ui/box/probe", "administer")
async def probe(visit: Visit) -> Reply:
    """Only for a disabled machine, since the line of an enabled one is in use."""
    nim = visit.worker.book.nim
    findings = await visit.page.probe(nim)
    return await render(visit, "probe.html", nim=nim, findings=findings, back="/ui/box")


@screen("/ui/box/findings", "administer")
async def findings(visit: Visit) -> Reply:
    """Doctor runs in a separate process, so its result is loaded after the rest of the screen."""
    found = await visit.page.examine(visit.language)
    if not is_fetched(visit.request):  # opened as a link, without JavaScript
        return await render(visit, "findings_alone.html", findings=found)
    return await html(visit.request, visit.page, "findings.html", findings=found)


@screen("/ui/box/key", "administer", change=True, form=_keys, faults=(InvalidRequest,))
async def create_key(visit: Visit) -> Reply:
    """Shows the key once, with a QR code for the till's camera; a repeated form shows the same key."""
    label, role = visit.form.get("label", ""), visit.form.get("role", "")
    if fault := fault_of_line(label, LONGEST_LABEL):
        raise InvalidRequest.at("label", fault)
    if role not in ROLES:
        raise InvalidRequest.at("role", visit.say("has to be one of {roles}", roles=", ".join(ROLES)))
    until = day_of(visit.form.get("until", ""))
    if visit.form.get("until") and not until:
        raise InvalidRequest.at("until", visit.say("has to be a date"))
    expires_at = visit.day_bounds(until)[1] if until else 0
    if until and expires_at <= visit.deps.clock():
        raise InvalidRequest.at("until", visit.say("is over already"))
    mode: Mode = "test" if visit.form.get("mode") == "test" else "live"
    terms, at = KeyTerms(role, expires_at, "strict" in visit.form), visit.deps.clock()
    create = partial(keys_table.create_key, nim=visit.worker.book.nim, mode=mode, label=label)
    text = await visit.run_once(lambda: visit.page.ledger.write(create, at=at, terms=terms, by=visit.actor))
    return await render(visit, "new_key.html", label=label, **await account.on_screen(visit, text))


@screen("/ui/box/key/{key:int}/revoke", "administer", change=True)
async def revoke_key(visit: Visit) -> Reply:
    key, by = int(visit.request.path_params["key"]), visit.actor
    with suppress(NotFound):  # revoked in another window meanwhile
        await visit.page.ledger.write(keys_table.revoke_key, key, at=visit.deps.clock(), by=by)
    return redirect(visit.link("/ui/box/keys", done="revoked"))


@screen("/ui/box/person", "administer", change=True, form=_people, faults=(McfdError,))
async def add_person(visit: Visit) -> Reply:
    name, role = visit.form.get("name", ""), visit.form.get("role", "")
    if role not in ROLES:
        raise InvalidRequest.at("role", visit.say("has to be one of {roles}", roles=", ".join(ROLES)))
    if fault := fault_of_name(name):
        raise InvalidRequest.at("name", fault)
    password = await _hashed(visit, name)
    await visit.page.ledger.write(create_person, name, role, password, at=visit.deps.clock(), by=visit.actor)
    return redirect(visit.link("/ui/box/people", done="person"))


@screen("/ui/box/person/{name:str}/password", "administer", change=True, form=_people, faults=(McfdError,))
async def change_password(visit: Visit) -> Reply:
    name = str(visit.request.path_params["name"])
    password = await _hashed(visit, name)
    try:
        await visit.page.ledger.write(set_password, name, password, at=visit.deps.clock(), by=visit.actor)
    except NotFound:  # disabled in another window meanwhile
        raise InvalidRequest.at("name", visit.say("there is no user {name}", name=name)) from None
    return redirect(visit.link("/ui/box/people", done="person"))


@screen("/ui/box/person/{name:str}/disable", "administer", change=True, form=_people, faults=(McfdError,))
async def disable(visit: Visit) -> Reply:
    name = str(visit.request.path_params["name"])
    if name == visit.session.name:
        raise InvalidRequest.at("name", visit.say("you cannot disable your own account"))
    with suppress(NotFound):  # disabled in another window meanwhile
        await visit.page.ledger.write(disable_person, name, at=visit.deps.clock(), by=visit.actor)
    return redirect(visit.link("/ui/box/people", done="person"))


async def _hashed(visit: Visit, name: str) -> str:
    password = visit.form.get("password", "")
    if fault := fault_of_password(password, name):
        raise InvalidRequest.at("password", fault)
    return await asyncio.to_thread(hash_password, password)


@screen("/ui/box/jobs", "administer", whole=False)
async def jobs(visit: Visit) -> Reply:
    """The part of the screen that is reloaded during a job."""
    return await html(visit.request, visit.page, "box_jobs.html", moment=visit.moment, **_jobs(visit))


def _jobs(visit: Visit) -> dict[str, Any]:
    return {
        "jobs": visit.page.jobs.of("backup", "verify"),
        "backups": visit.page.backups(),
        "archives": visit.page.archives(),
    }


@screen("/ui/box/backup", "administer", change=True)
async def back_up(visit: Visit) -> Reply:
    """Takes long on a large ledger; the command writes the audit entry."""
    page, actor = visit.page, visit.actor
    page.jobs.begin("backup", "", lambda job: page.back_up(actor, job.tell))
    return redirect(visit.link("/ui/box/backups"))


@screen("/ui/box/verify", "administer", change=True)
async def verify(visit: Visit) -> Reply:
    page = visit.page

    async def work(job: Job) -> str:
        found = await page.verify(job.tell)
        job.tell(found.records, found.records)
        if not found.ok:
            raise BoxFailed("; ".join(found.problems[:3]))
        return ""

    page.jobs.begin("verify", "", work)
    return redirect(visit.link("/ui/box/backups"))


@screen("/ui/box/send-again", "administer", change=True)
async def send_again(visit: Visit) -> Reply:
    """Retries events that receivers refused; the outbox writes the audit entry in the same transaction."""
    await visit.page.send_again(visit.deps.clock(), visit.actor)
    return redirect(visit.link("/ui/box", done="sent") + "#upstream")


@screen("/ui/box/join", "administer", change=True, form=_box, faults=(InvalidRequest, BoxFailed))
async def join(visit: Visit) -> Reply:
    """Joins headquarters by the code it shows for this box."""
    code, url = visit.form.get("code", ""), visit.form.get("url", "")
    if not code:
        raise InvalidRequest.at("code", visit.say("is needed"))
    await visit.page.join(code, url, visit.actor)
    return redirect(visit.link("/ui/box", done="joined") + "#upstream")


@screen("/ui/box/leave", "administer", change=True)
async def leave(visit: Visit) -> Reply:
    await visit.page.leave(visit.actor)
    return redirect(visit.link("/ui/box", done="left") + "#upstream")


download = file_route(
    "/ui/box/backup/{name:str}",
    "administer",
    lambda page: (*page.backups(), *page.archives()),
    lambda page, name: page.read_backup(name),
    lambda name: b"application/x-tar" if name.endswith(".tar") else b"application/vnd.sqlite3",
    absent="there is no such copy",
)
