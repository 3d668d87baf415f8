"""`mcfd upstream` and `mcfd webhook`: deliveries to headquarters and webhooks; a test sends one signed message and
shows the result in a sentence."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from common.language import Counted, tr
from common.language.reasons import from_stored
from common.wire.instants import now_millis
from daemon.cli.options import (
    ROW_NUMBER,
    explained,
    file_option,
    json_option,
    nim_argument_option,
    nim_option,
    settings_option,
)
from daemon.cli.output import (
    FOUND_WRONG,
    Failure,
    complain,
    find_machine,
    moment,
    print_json,
    print_table,
    record_json,
    say,
    writing,
)
from daemon.core.clock import millis_text
from daemon.core.delivery import Backlog, Delivered, Delivery
from daemon.core.events import TEST, Envelope, MachineEvent
from daemon.core.machine.state import short_nim
from daemon.ledger_access import change, read_ledger
from daemon.operations import NoteAction, ReplayOutbox
from daemon.owner import as_owner
from daemon.settings import Settings
from daemon.store.store import Store

if TYPE_CHECKING:
    from daemon.core.delivery import UpstreamReceiver

UPSTREAM = "upstream"


command = click.Group("upstream")
webhook = click.Group("webhook")


@command.command("status", **explained("What waits, what is parked, the last error.", "mcfd upstream status --json"))
@settings_option
@json_option
def status(settings: Settings, as_json: bool) -> None:
    backlogs_of = read_ledger(settings, partial(_backlogs, settings=settings))
    backlogs = _to_send(settings, backlogs_of.pop(UPSTREAM))
    if as_json:
        kind = settings.upstream.kind if settings.upstream else None
        webhooks = {name: [_as_json(backlog) for backlog in found] for name, found in backlogs_of.items()}
        print_json({"kind": kind, "machines": [_as_json(backlog) for backlog in backlogs], "webhooks": webhooks})
        return
    if settings.upstream is None:
        complain("no [upstream] section: closures stay in the ledger")
    heads = (tr("TO"), "NIM", tr("MODE"), tr("WAITING"), tr("PARKED"), tr("OLDEST"), tr("LAST SENT"), tr("LAST ERROR"))
    rows = [_row(UPSTREAM, backlog, settings) for backlog in backlogs]
    rows += [_row(name, backlog, settings) for name, found in backlogs_of.items() for backlog in found]
    print_table(heads, rows)


async def _backlogs(store: Store, settings: Settings) -> dict[str, Sequence[Backlog]]:
    """By destination; upstream first."""
    names = [UPSTREAM, *(each.destination for each in settings.webhook)]
    return {name: await store.outbox_for(name).backlog() for name in names}


def _row(name: str, backlog: Backlog, settings: Settings) -> tuple[object, ...]:
    zone = settings.reports.zone
    times = moment(backlog.oldest_at, zone), moment(backlog.last_sent_at, zone)
    error = tr(from_stored(backlog.last_error))
    last_error = f"{moment(backlog.last_error_at, zone)} {error}" if error else ""
    return name, backlog.nim, backlog.mode, backlog.waiting, backlog.parked, *times, last_error


@command.command(
    "replay",
    **explained(
        "Send the parked closures again; with --from, all from that Z number on.",
        "mcfd upstream replay",
        "mcfd upstream replay --nim EL02000015-1 --from 120",
        "mcfd upstream replay --to caisse.example",
    ),
)
@settings_option
@click.option("--from", "from_z", type=ROW_NUMBER, metavar="Z", help=tr("The first Z number to send again."))
@click.option("--to", "destination", metavar=tr("NAME"), help=tr("To a webhook, by its name; left out, upstream."))
@nim_option()
@json_option
def replay(settings: Settings, from_z: int | None, destination: str | None, nim: str, as_json: bool) -> None:
    names = [each.destination for each in settings.webhook]
    if destination not in (None, UPSTREAM, *names):
        raise Failure(
            "no webhook has the name {name}; there is: {known}", name=destination, known=", ".join(names) or "–"
        )
    outbox = destination or UPSTREAM
    again = change(settings, ReplayOutbox(outbox, nim, from_z))
    if nim and not again:  # one that is no longer configured may have some
        find_machine(settings, nim)
    if as_json:
        print_json({"replayed": again})
    elif outbox == UPSTREAM:
        say(Counted("{count} closure to be sent again", "{count} closures to be sent again", again))
    else:
        say(Counted("{count} event to be sent again", "{count} events to be sent again", again))
    if again and outbox == UPSTREAM and settings.upstream is None:
        complain("no [upstream] section: closures stay in the ledger")


@command.command(
    "test",
    **explained(
        "Send headquarters one signed message that says nothing, before the first Z. Exit 1 when it is not taken.",
        "mcfd upstream test",
    ),
)
@settings_option
@nim_argument_option
@json_option
def test(settings: Settings, nim: str, as_json: bool) -> int:
    upstream = settings.upstream
    if upstream is None:
        raise Failure("no [upstream] section: closures stay in the ledger")
    machine_nim = find_machine(settings, nim or settings.machine[0].nim).nim
    from daemon.app.outward.replication import headquarters
    from daemon.upstream.options import BadOptions, compose_trial

    try:
        receiver = headquarters(upstream)
    except BadOptions as error:
        raise Failure(error) from None
    event_id = str(uuid.uuid4())
    at = millis_text(now_millis())
    event = compose_trial(event_id, machine_nim, at=at, box=upstream.box, key_id=receiver.key_id)
    return _print_results([(UPSTREAM, upstream.url, _send(receiver, event, event_id, machine_nim))], as_json=as_json)


@command.command(
    "join",
    **explained(
        "Join a headquarters by the code that it gives for this box: makes the key, fetches what is needed, closures go there.",
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

    with writing(settings.joined_home):
        joined = asyncio.run(join_headquarters(settings, code, url, ca))
    change(settings, NoteAction("upstream.joined", joined.headquarters), make=True)
    if as_json:
        print_json(record_json(joined, "headquarters", "kind", "url", box=joined.label or None))
        return
    say("joined {url}; closures go to it from now on ({kind})", url=joined.headquarters, kind=joined.kind)


@command.command(
    "leave",
    **explained("Leave the headquarters that was joined: closures stay in the outbox.", "mcfd upstream leave"),
)
@settings_option
def leave(settings: Settings) -> None:
    from daemon.app.outward.joining import leave as leave_headquarters

    with writing(settings.joined_home):
        was_joined = leave_headquarters(settings)
    if not was_joined:
        raise Failure("this box has joined no headquarters")
    change(settings, NoteAction("upstream.left", ""), make=True)
    say("left; closures stay in the outbox. Headquarters still has to revoke the key of this box")


@command.command(
    "keygen",
    **explained(
        "Make a private key (Ed25519) in FILE and show the public one, for headquarters.",
        "mcfd upstream keygen /etc/mcfd/credentials/upstream.key",
    ),
)
@click.argument("file", type=click.Path(path_type=Path), metavar=tr("FILE"))
def keygen(file: Path) -> None:
    from daemon.upstream.options import generate

    with writing(file), as_owner(file.parent):
        public = generate(file)
    complain(
        'private key written to {path}; in [upstream]: key_file = "{path}"; the public key for headquarters:',
        path=file,
    )
    click.echo(public)


def _to_send(settings: Settings, found: Sequence[Backlog]) -> list[Backlog]:
    """One for each configured machine and each book with something to send; sandboxes only if they are sent."""
    sandbox = settings.upstream is not None and settings.upstream.include_sandbox
    backlogs = [backlog for backlog in found if backlog.mode == "live" or sandbox]
    covered = {short_nim(backlog.nim) for backlog in backlogs}
    nims = [machine.nim for machine in settings.machine if short_nim(machine.nim) not in covered]
    return backlogs + [Backlog(nim, "live", 0, 0, 0, "", 0, 0) for nim in nims]


def _as_json(backlog: Backlog) -> dict[str, object]:
    age = max(0, now_millis() - backlog.oldest_at) // 1000 if backlog.oldest_at else None
    return record_json(backlog, oldest_age_seconds=age, last_error=str(from_stored(backlog.last_error)) or None)


# -- webhooks ----------------------------------------------------------------------------------------------------------


@webhook.command(
    "test",
    **explained(
        "Send each webhook, or the one of that NAME, one signed event `webhook.test`. Exit 1 when it is not taken.",
        "mcfd webhook test",
        "mcfd webhook test caisse.example",
    ),
)
@settings_option
@click.argument("name", required=False, metavar=f"[{tr('NAME')}]")
@json_option
def test_webhooks(settings: Settings, name: str | None, as_json: bool) -> int:
    names = [each.destination for each in settings.webhook]
    if not names:
        raise Failure("no [[webhook]] section: events are sent nowhere")
    if name not in (None, *names):
        raise Failure("no webhook has the name {name}; there is: {known}", name=name, known=", ".join(names))
    from daemon.app.outward.replication import webhook_receiver
    from daemon.upstream.options import BadOptions

    nim, at = settings.machine[0].nim, millis_text(now_millis())
    data = msgspec.Raw(msgspec.json.encode(MachineEvent(nim=nim, mode="live", at=at)))
    event = msgspec.json.encode(Envelope(type=TEST, timestamp=at, nim=nim, mode="live", data=data))
    found = []
    for number, each in enumerate(settings.webhook):
        if name in (None, each.destination):
            try:
                receiver = webhook_receiver(number, each)
            except BadOptions as error:
                raise Failure(error) from None
            found.append((each.destination, each.url, _send(receiver, event, str(uuid.uuid4()), nim)))
    return _print_results(found, as_json=as_json)


def _send(receiver: UpstreamReceiver, event: bytes, event_id: str, nim: str) -> Delivery:
    async def job() -> Delivery:
        try:
            return await receiver.trial(event, event_id=event_id, nim=nim)
        finally:
            await receiver.aclose()

    return asyncio.run(job())


def _print_results(found: list[tuple[str, str, Delivery]], *, as_json: bool) -> int:
    """`found`: name, address, result. Returns the exit code: 1 if a message was not accepted."""
    rows = []
    for name, url, done in found:
        where, error = {"name": name, "url": url}, None if isinstance(done, Delivered) else done.error
        rows.append({**where, "ok": error is None, "error": error})
        if error is None and not as_json:
            say("{name}: {url} has taken the test message", **where)
        elif error is not None and not as_json:
            complain("{name}: {url} did not take the test message: {why}", **where, why=from_stored(error))
    if as_json:
        print_json(rows)
    return 0 if all(row["ok"] for row in rows) else FOUND_WRONG
