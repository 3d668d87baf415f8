from __future__ import annotations

import sys
from pathlib import Path

import click

from daemon.cli.ledger import figures, now, whoever_types, with_ledger
from daemon.cli.shared import Failure, config_option, examples, json_option, print_json, say
from daemon.language import tr
from daemon.owner import as_owner, for_owner
from daemon.settings import load


@click.command(
    "restore",
    help=tr(
        "Put a copy back in the ledger's place (daemon stopped). It is compared with the machine at the next start."
    ),
    epilog=examples("mcfd restore /media/usb/mcfd.sqlite3"),
)
@config_option
@click.argument("file", type=click.Path(path_type=Path), metavar=tr("FILE"))
@click.option("--yes", is_flag=True, help=tr("Ask nothing."))
@click.option(
    "--last-z",
    type=click.IntRange(min=0),
    help=tr("Number of the last Z on paper, where the box remembers none (a new disk)."),
)
@json_option
def command(config: Path | None, file: Path, yes: bool, last_z: int | None, as_json: bool) -> None:
    from daemon.store.maintenance.backup import restore

    settings = load(config)
    path = settings.storage.path
    if not file.is_file():
        raise Failure(tr("{path} cannot be read: {why}", path=file, why=tr("there is no such file")))
    if path.exists() and path.samefile(file):
        raise Failure(tr("{path} is the ledger itself", path=file))
    if path.exists() and not yes:
        if not sys.stdin.isatty():
            raise click.UsageError(tr("without a terminal {option} is needed", option="--yes"))
        click.confirm(tr("Replace {path} by {file}?", path=path, file=file), abort=True)
    with for_owner(file, path.parent) as source, as_owner(path.parent):
        restored = restore(source, path, at=now(), last_z=last_z)
    with_ledger(
        settings,
        lambda store: store.audit.note(
            "ledger.restored", str(path), at=now(), by=whoever_types(), detail={"from": str(file)}
        ),
    )
    if as_json:
        aside = str(restored.aside) if restored.aside else None
        print_json({"ledger": str(path), "aside": aside, **figures(restored.findings)})
        return
    findings = restored.findings
    say(
        tr(
            "{path} put back ({records} record(s), {closures} Z closure(s))",
            path=path,
            records=findings.records,
            closures=findings.closures,
        )
    )
    if restored.aside:
        say(tr("the ledger it replaces is kept: {path}", path=restored.aside))
    say(tr("at the next start it is compared with the machine; should that have certified since: mcfd machine settle"))
