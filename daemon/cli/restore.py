from __future__ import annotations

import sys
from pathlib import Path

import click

from daemon import texts
from daemon.cli import answers, helps
from daemon.cli.ledger import figures, give_to_owner, now
from daemon.cli.shared import Failure, config_option, examples, json_option, print_json, say
from daemon.settings import load


@click.command("restore", help=str(helps.HELP_RESTORE), epilog=examples("mcfd restore /media/usb/mcfd.sqlite3"))
@config_option
@click.argument("file", type=click.Path(path_type=Path), metavar=str(helps.FILE))
@click.option("--yes", is_flag=True, help=str(helps.HELP_YES))
@json_option
def command(config: Path | None, file: Path, yes: bool, as_json: bool) -> None:
    from daemon.store.backup import restore

    path = load(config).storage.path
    if not file.is_file():
        raise Failure(texts.NOT_READABLE(path=file, why=texts.NO_SUCH_FILE))
    if path.exists() and path.samefile(file):
        raise Failure(answers.SAME_FILE(path=file))
    if path.exists() and not yes and sys.stdin.isatty():
        click.confirm(answers.ASK_RESTORE(path=path, file=file), abort=True)
    try:
        restored = restore(file, path, at=now())
    finally:
        give_to_owner(path)
    if as_json:
        aside = str(restored.aside) if restored.aside else None
        print_json({"ledger": str(path), "aside": aside, **figures(restored.findings)})
        return
    findings = restored.findings
    say(answers.RESTORED(path=path, records=findings.records, closures=findings.closures))
    if restored.aside:
        say(answers.KEPT_ASIDE(path=restored.aside))
    say(answers.COMPARED_NEXT)
