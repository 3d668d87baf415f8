from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from daemon import texts
from daemon.cli import answers, helps
from daemon.cli.ledger import now, with_ledger
from daemon.cli.shared import (
    Failure,
    config_option,
    examples,
    json_option,
    moment,
    nim_option,
    print_json,
    print_table,
    say,
    stamp,
    warn,
)
from daemon.core.delivery import Backlog
from daemon.settings import Settings, load


@click.group("upstream", help=str(helps.HELP_UPSTREAM))
def command() -> None:
    pass


@command.command("status", help=str(helps.HELP_UPSTREAM_STATUS), epilog=examples("mcfd upstream status --json"))
@config_option
@json_option
def status(config: Path | None, as_json: bool) -> None:
    settings = load(config)
    found = with_ledger(settings, lambda store: store.outbox.backlog())
    backlogs = _to_send(settings, found)
    if as_json:
        kind = settings.upstream.kind if settings.upstream else None
        print_json({"kind": kind, "machines": [_shown(backlog) for backlog in backlogs]})
        return
    if settings.upstream is None:
        warn(answers.NO_UPSTREAM)
    zone = settings.reports.zone
    heads = (
        "NIM",
        answers.MODE,
        answers.WAITING,
        answers.PARKED,
        answers.OLDEST,
        answers.LAST_SENT,
        answers.LAST_ERROR,
    )
    rows = [
        (
            b.nim,
            b.mode,
            b.waiting,
            b.parked,
            moment(b.oldest_at, zone),
            moment(b.last_sent_at, zone),
            _error(b, settings),
        )
        for b in backlogs
    ]
    print_table(heads, rows)


@command.command(
    "replay",
    help=str(helps.HELP_UPSTREAM_REPLAY),
    epilog=examples("mcfd upstream replay", "mcfd upstream replay --nim EL02000015-1 --from 120"),
)
@config_option
@click.option("--from", "from_z", type=click.IntRange(min=1), metavar="Z", help=str(helps.HELP_FROM))
@nim_option()
@json_option
def replay(config: Path | None, from_z: int | None, nim: str, as_json: bool) -> None:
    settings = load(config)
    again = with_ledger(settings, lambda store: store.outbox.replay(nim=nim or None, from_z=from_z))
    if as_json:
        print_json({"replayed": again})
    else:
        say(answers.REPLAYED(count=again))
    if again and settings.upstream is None:
        warn(answers.NO_UPSTREAM)


@command.command(
    "keygen",
    help=str(helps.HELP_UPSTREAM_KEYGEN),
    epilog=examples("mcfd upstream keygen /etc/mcfd/credentials/upstream.key"),
)
@click.argument("file", type=click.Path(path_type=Path), metavar=str(helps.FILE))
def keygen(file: Path) -> None:
    from daemon.upstream.signing import generate

    try:
        public = generate(file)
    except FileExistsError:
        raise Failure(answers.KEY_EXISTS(path=file)) from None
    except OSError as error:
        raise Failure(texts.NOT_WRITABLE(path=file, why=texts.reason(error))) from None
    warn(answers.KEY_MADE(path=file))
    click.echo(public)


def _to_send(settings: Settings, found: Sequence[Backlog]) -> list[Backlog]:
    """One for each configured machine and for each that has something to send; the sandbox only where it is sent."""
    sandbox = settings.upstream is not None and settings.upstream.include_sandbox
    backlogs = [backlog for backlog in found if backlog.mode == "live" or sandbox]
    known = {backlog.nim for backlog in backlogs}
    nims = [machine.nim for machine in settings.machine if machine.nim not in known]
    return backlogs + [Backlog(nim, "live", 0, 0, 0, "", 0, 0) for nim in nims]


def _error(backlog: Backlog, settings: Settings) -> str:
    if not backlog.last_error:
        return ""
    return f"{moment(backlog.last_error_at, settings.reports.zone)} {backlog.last_error}"


def _shown(backlog: Backlog) -> dict[str, object]:
    age = max(0, now() - backlog.oldest_at) // 1000 if backlog.oldest_at else None
    return {
        "nim": backlog.nim,
        "mode": backlog.mode,
        "waiting": backlog.waiting,
        "parked": backlog.parked,
        "oldest_at": stamp(backlog.oldest_at),
        "oldest_age_seconds": age,
        "last_sent_at": stamp(backlog.last_sent_at),
        "last_error": backlog.last_error or None,
        "last_error_at": stamp(backlog.last_error_at),
    }
