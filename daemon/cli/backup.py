from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import click

from daemon import texts
from daemon.cli import answers, helps
from daemon.cli.ledger import existing, figures, now
from daemon.cli.shared import Failure, config_option, examples, json_option, print_json, say
from daemon.rotation import backup_name, rotate
from daemon.settings import load


@click.command(
    "backup",
    help=str(helps.HELP_BACKUP),
    epilog=examples(
        "mcfd backup /media/usb/mcfd.sqlite3",
        "mcfd backup --into /var/lib/mcfd/backups --keep-daily 14 --keep-monthly 12",
    ),
)
@config_option
@click.argument("file", required=False, type=click.Path(path_type=Path), metavar=str(helps.FILE))
@click.option("--into", type=click.Path(path_type=Path), metavar=str(helps.FOLDER), help=str(helps.HELP_INTO))
@click.option("--keep-daily", type=click.IntRange(min=1), metavar="N", help=str(helps.HELP_KEEP_DAILY))
@click.option("--keep-monthly", type=click.IntRange(min=0), default=0, metavar="N", help=str(helps.HELP_KEEP_MONTHLY))
@click.option("--force", is_flag=True, help=str(helps.HELP_FORCE))
@json_option
def command(  # noqa: PLR0917  # one for each option
    config: Path | None,
    file: Path | None,
    into: Path | None,
    keep_daily: int | None,
    keep_monthly: int,
    force: bool,
    as_json: bool,
) -> None:
    from daemon.store.backup import backup

    if (file is None) == (into is None):
        raise click.UsageError(answers.FILE_OR_INTO())
    if into is None and (keep_daily or keep_monthly):
        raise click.UsageError(texts.ONLY_WITH(other="--into"))
    ledger = existing(load(config))
    target = file or _dated(into)
    if target.exists() and (not force or target.samefile(ledger)):
        raise Failure(answers.EXISTS(path=target))
    findings = backup(ledger, target, at=now())
    gone = rotate(into, keep_daily=keep_daily, keep_monthly=keep_monthly) if into and keep_daily else []
    if as_json:
        print_json({"backup": str(target), "deleted": [str(path) for path in gone], **figures(findings)})
        return
    say(answers.BACKED_UP(path=target, records=findings.records, closures=findings.closures))
    for path in gone:
        say(answers.DELETED(path=path))


def _dated(into: Path | None) -> Path:
    folder = into or Path()
    folder.mkdir(parents=True, exist_ok=True)
    return folder / backup_name(datetime.now(UTC))
