from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import click

from daemon.cli.ledger import existing, figures, now, whoever_types, with_ledger
from daemon.cli.shared import (
    Failure,
    config_option,
    examples,
    json_option,
    print_json,
    progress_option,
    say,
    tell_progress,
)
from daemon.core.audit import Actor
from daemon.language import tr
from daemon.language.system import reason
from daemon.owner import as_owner, by_owner
from daemon.rotation import backup_name, rotate
from daemon.settings import load


@click.command(
    "backup",
    help=tr("Copy the ledger, also while the daemon runs, and verify the copy."),
    epilog=examples(
        "mcfd backup /media/usb/mcfd.sqlite3",
        "mcfd backup --into /var/lib/mcfd/backups --keep-daily 14 --keep-monthly 12",
    ),
)
@config_option
@click.argument("file", required=False, type=click.Path(path_type=Path), metavar=tr("FILE"))
@click.option(
    "--into", type=click.Path(path_type=Path), metavar=tr("FOLDER"), help=tr("The directory to put a dated copy in.")
)
@click.option(
    "--keep-daily", type=click.IntRange(min=1), metavar="N", help=tr("With --into: keep the newest of so many days.")
)
@click.option(
    "--keep-monthly", type=click.IntRange(min=0), default=0, metavar="N", help=tr("With --into: and of so many months.")
)
@click.option("--force", is_flag=True, help=tr("Replace FILE if it exists."))
@click.option("--by", "person", hidden=True, help="Whom the page makes it for, as the audit log has it.")
@click.option("--from-address", "address", default="", hidden=True)
@progress_option
@json_option
def command(  # noqa: PLR0917  # one for each option
    config: Path | None,
    file: Path | None,
    into: Path | None,
    keep_daily: int | None,
    keep_monthly: int,
    force: bool,
    person: str | None,
    address: str,
    telling: bool,
    as_json: bool,
) -> None:
    from daemon.store.maintenance.backup import backup

    if (file is None) == (into is None):
        raise click.UsageError(tr("FILE or --into FOLDER is needed"))
    if into is None and (keep_daily or keep_monthly):
        raise click.UsageError(tr("means something only with {other}", other="--into"))
    settings = load(config)
    ledger = existing(settings)
    with as_owner(into or Path()):
        target = file or _dated(into)
    if target.exists() and (not force or target.samefile(ledger)):
        raise Failure(tr("{path} exists already", path=target))
    try:
        with by_owner(target, ledger.parent) as copy, as_owner(ledger.parent):
            findings = backup(ledger, copy, at=now(), progress=tell_progress if telling else lambda _, __: None)
    except OSError as error:
        raise Failure(tr("{path} cannot be written: {why}", path=target, why=reason(error))) from None
    with as_owner(into or Path()):
        gone = rotate(into, keep_daily=keep_daily, keep_monthly=keep_monthly) if into and keep_daily else []
    typed = whoever_types()
    by, detail = (Actor(person, address), {"through": typed.name}) if person else (typed, {})
    with_ledger(settings, lambda store: store.audit.note("backup.taken", str(target), at=now(), by=by, detail=detail))
    if as_json:
        print_json({"backup": str(target), "deleted": [str(path) for path in gone], **figures(findings)})
        return
    say(
        tr(
            "verified copy: {path} ({records} record(s), {closures} Z closure(s))",
            path=target,
            records=findings.records,
            closures=findings.closures,
        )
    )
    for path in gone:
        say(tr("deleted: {path}", path=path))


def _dated(into: Path | None) -> Path:
    folder = into or Path()
    folder.mkdir(parents=True, exist_ok=True)
    return folder / backup_name(datetime.now(UTC))
