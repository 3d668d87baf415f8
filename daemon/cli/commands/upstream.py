from __future__ import annotations

import asyncio
import uuid
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from common.language import Counted, tr
from common.language.reasons import from_stored
from common.language.system import reason
from daemon.cli.failures import Failure, find_machine
from daemon.cli.options import described, file_option, json_option, nim_argument_option, nim_option, settings_option
from daemon.cli.output import moment, print_json, print_table, say, stamp, warn
from daemon.core.delivery import Backlog
from daemon.ledger_access import change, now, read_ledger
from daemon.operations import NoteJoined, ReplayOutbox
from daemon.owner import as_owner
from daemon.settings import Settings

if TYPE_CHECKING:
    from daemon.store import Store

UPSTREAM = "upstream"


command = click.Group("upstream")


@command.command(
    "status", **described(tr("What waits, what is parked, the last error."), "mcfd upstream status --json")
)
@settings_option
@json_option
def status(settings: Settings, as_json: bool) -> None:
    lanes = read_ledger(settings, partial(_lanes, settings=settings))
    backlogs = _to_send(settings, lanes.pop(UPSTREAM))
    if as_json:
        kind = settings.upstream.kind if settings.upstream else None
        webhooks = {name: [_as_json(backlog) for backlog in found] for name, found in lanes.items()}
        print_json({"kind": kind, "machines": [_as_json(backlog) for backlog in backlogs], "webhooks": webhooks})
        return
    if settings.upstream is None:
        warn(tr("no [upstream] section: closures stay in the ledger"))
    heads = (tr("TO"), "NIM", tr("MODE"), tr("WAITING"), tr("PARKED"), tr("OLDEST"), tr("LAST SENT"), tr("LAST ERROR"))
    rows = [_row(UPSTREAM, backlog, settings) for backlog in backlogs]
    rows += [_row(name, backlog, settings) for name, found in lanes.items() for backlog in found]
    print_table(heads, rows)


async def _lanes(store: Store, settings: Settings) -> dict[str, Sequence[Backlog]]:
    """By name; the way upstream first."""
    names = [UPSTREAM, *(webhook.lane for webhook in settings.webhook)]
    return {name: await store.outbox_for(name).backlog() for name in names}


def _row(name: str, backlog: Backlog, settings: Settings) -> tuple[object, ...]:
    zone = settings.reports.zone
    return (
        name,
        backlog.nim,
        backlog.mode,
        backlog.waiting,
        backlog.parked,
        moment(backlog.oldest_at, zone),
        moment(backlog.last_sent_at, zone),
        _error(backlog, settings),
    )


@command.command(
    "replay",
    **described(
        tr("Send the parked closures again; with --from, all from that Z number on."),
        "mcfd upstream replay",
        "mcfd upstream replay --nim EL02000015-1 --from 120",
        "mcfd upstream replay --to caisse.example",
    ),
)
@settings_option
@click.option("--from", "from_z", type=click.IntRange(min=1), metavar="Z", help=tr("The first Z number to send again."))
@click.option("--to", "lane", metavar="NAME", help=tr("To a webhook, by its name; left out, upstream."))
@nim_option()
@json_option
def replay(settings: Settings, from_z: int | None, lane: str | None, nim: str, as_json: bool) -> None:
    names = [webhook.lane for webhook in settings.webhook]
    if lane not in (None, UPSTREAM, *names):
        raise Failure(tr("no webhook has the name {name}; there is: {known}", name=lane, known=", ".join(names) or "–"))
    outbox = lane or UPSTREAM
    again = change(settings, ReplayOutbox(outbox, nim, from_z))
    if as_json:
        print_json({"replayed": again})
    elif outbox == UPSTREAM:
        say(tr(Counted("{count} closure to be sent again", "{count} closures to be sent again", again)))
    else:
        say(tr(Counted("{count} event to be sent again", "{count} events to be sent again", again)))
    if again and outbox == UPSTREAM and settings.upstream is None:
        warn(tr("no [upstream] section: closures stay in the ledger"))


@command.command(
    "test",
    **described(
        tr("Send headquarters one signed message that says nothing, before the first Z. Exit 1 when it is not taken."),
        "mcfd upstream test",
    ),
)
@settings_option
@nim_argument_option
@json_option
def test(settings: Settings, nim: str, as_json: bool) -> int:
    upstream = settings.upstream
    if upstream is None:
        raise Failure(tr("no [upstream] section: closures stay in the ledger"))
    machine_nim = find_machine(settings, nim or settings.machine[0].nim).nim
    from daemon.app.outward.receivers import headquarters
    from daemon.cli.commands.webhook import print_results, send, sent_at
    from daemon.upstream.event import compose_trial
    from daemon.upstream.options import BadOptions

    try:
        receiver = headquarters(upstream)
    except BadOptions as error:
        raise Failure(error) from None
    event_id = str(uuid.uuid4())
    event = compose_trial(event_id, machine_nim, at=sent_at(), box=upstream.box, key_id=receiver.key_id)
    return print_results([(UPSTREAM, upstream.url, send(receiver, event, event_id, machine_nim))], as_json=as_json)


@command.command(
    "join",
    **described(
        tr(
            "Join a headquarters by the code that it gives for this box: makes the key, fetches what is needed, closures go there."
        ),
        "mcfd upstream join https://hq.example/join/K7QF-92XM-4HTR",
        "mcfd upstream join K7QF-92XM-4HTR --url https://hq.example",
    ),
)
@settings_option
@click.argument("code", metavar="CODE")
@click.option(
    "--url", default="", metavar="URL", help=tr("The address of headquarters, where the code does not say it.")
)
@file_option("--ca", tr("Certificates (PEM) to trust instead of the system's own."))
@json_option
def join(settings: Settings, code: str, url: str, ca: Path | None, as_json: bool) -> None:
    from daemon.app.outward.joining import join as join_headquarters

    try:
        joined = asyncio.run(join_headquarters(settings, code, url, ca))
    except OSError as error:
        raise _not_written(settings, error) from None
    change(settings, NoteJoined(joined.headquarters), make=True)
    if as_json:
        print_json(
            {"headquarters": joined.headquarters, "kind": joined.kind, "url": joined.url, "box": joined.label or None}
        )
        return
    say(tr("joined {url}; closures go to it from now on ({kind})", url=joined.headquarters, kind=joined.kind))


@command.command(
    "leave",
    **described(tr("Leave the headquarters that was joined: closures stay in the outbox."), "mcfd upstream leave"),
)
@settings_option
def leave(settings: Settings) -> None:
    from daemon.app.outward.joining import leave as leave_headquarters

    try:
        was_joined = leave_headquarters(settings)
    except OSError as error:
        raise _not_written(settings, error) from None
    if not was_joined:
        raise Failure(tr("this box has joined no headquarters"))
    change(settings, NoteJoined(""), make=True)
    say(tr("left; closures stay in the outbox. Headquarters still has to revoke the key of this box"))


def _not_written(settings: Settings, error: OSError) -> Failure:
    return Failure(tr("{path} cannot be written: {why}", path=settings.joined_home, why=reason(error)))


@command.command(
    "keygen",
    **described(
        tr("Make a private key (Ed25519) in FILE and show the public one, for headquarters."),
        "mcfd upstream keygen /etc/mcfd/credentials/upstream.key",
    ),
)
@click.argument("file", type=click.Path(path_type=Path), metavar=tr("FILE"))
def keygen(file: Path) -> None:
    from daemon.upstream.options import generate

    try:
        with as_owner(file.parent):
            public = generate(file)
    except FileExistsError:
        raise Failure(tr("{path} exists already; it is not replaced", path=file)) from None
    except OSError as error:
        raise Failure(tr("{path} cannot be written: {why}", path=file, why=reason(error))) from None
    warn(
        tr(
            'private key written to {path}; in [upstream]: key_file = "{path}"; the public key for headquarters:',
            path=file,
        )
    )
    click.echo(public)


def _to_send(settings: Settings, found: Sequence[Backlog]) -> list[Backlog]:
    """One for each configured machine and for each that has something to send; the sandbox only where it is sent."""
    sandbox = settings.upstream is not None and settings.upstream.include_sandbox
    backlogs = [backlog for backlog in found if backlog.mode == "live" or sandbox]
    covered = {backlog.nim for backlog in backlogs}
    nims = [machine.nim for machine in settings.machine if machine.nim not in covered]
    return backlogs + [Backlog(nim, "live", 0, 0, 0, "", 0, 0) for nim in nims]


def _error(backlog: Backlog, settings: Settings) -> str:
    if not backlog.last_error:
        return ""
    return f"{moment(backlog.last_error_at, settings.reports.zone)} {tr(from_stored(backlog.last_error))}"


def _as_json(backlog: Backlog) -> dict[str, object]:
    age = max(0, now() - backlog.oldest_at) // 1000 if backlog.oldest_at else None
    return {
        "nim": backlog.nim,
        "mode": backlog.mode,
        "waiting": backlog.waiting,
        "parked": backlog.parked,
        "oldest_at": stamp(backlog.oldest_at),
        "oldest_age_seconds": age,
        "last_sent_at": stamp(backlog.last_sent_at),
        "last_error": str(from_stored(backlog.last_error)) or None,
        "last_error_at": stamp(backlog.last_error_at),
    }
