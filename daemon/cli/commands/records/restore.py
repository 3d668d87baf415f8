from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from daemon.cli.failures import Failure, not_restored
from daemon.cli.options import config_option, examples, file_option, json_option, last_z_option
from daemon.cli.output import counts, figures, print_json, say
from daemon.cli.progress import Progress
from daemon.cli.restore_box import Wanted, restore_box, tell_asked, tell_restored
from daemon.language import tr
from daemon.ledger_access import now, shell_user
from daemon.owner import as_owner, for_owner
from daemon.settings import Settings, load

if TYPE_CHECKING:
    from daemon.store.maintenance.backup import Restored
    from daemon.store.maintenance.numbers import LastZ


@click.command(
    "restore",
    epilog=examples("mcfd restore /media/usb/mcfd.sqlite3", "sudo mcfd restore --all /media/usb/boitier.age"),
)
@config_option
@click.argument("file", type=click.Path(path_type=Path), metavar=tr("FILE"))
@click.option("--yes", is_flag=True, help=tr("Ask nothing."))
@last_z_option
@click.option("--all", "whole", is_flag=True, help=tr("FILE is a whole box (mcfd backup --all): put all of it back."))
@file_option("--identity", tr("With --all: the file with the private key (age) that opens it."))
@file_option("--passphrase-file", tr("With --all: the file with its passphrase; otherwise it is asked."))
@click.option(
    "--place",
    "places",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar=tr("FOLDER"),
    help=tr("With --all: a folder that may be written beside those of this box's configuration, ledger and authority."),
)
@click.option(
    "--signed-by",
    default="",
    metavar=tr("FINGERPRINT"),
    help=tr("With --all: the box that has to have signed it, as its paper says; otherwise this one."),
)
@click.option(
    "--foreign", is_flag=True, help=tr("With --all: also one that another box has signed, or none, as mcfd 0.1.0.")
)
@json_option
def command(
    config: Path | None,
    file: Path,
    *,
    yes: bool,
    last_z: LastZ,
    whole: bool,
    identity: Path | None,
    passphrase_file: Path | None,
    places: tuple[Path, ...],
    signed_by: str,
    foreign: bool,
    as_json: bool,
) -> None:
    if not file.is_file():
        raise Failure(tr("{path} cannot be read: {why}", path=file, why=tr("there is no such file")))
    if whole:
        done = restore_box(
            Wanted(file, config, identity, passphrase_file, places, signed_by, foreign, last_z=last_z, yes=yes)
        )
        if as_json:
            told = {"written": list(map(str, done.written)), "outside": [key for key, _ in done.outside]}
            print_json({**_told(done.settings, done.ledger), **told, "signature": done.signed_by})
        else:
            tell_restored(done)
        return
    if identity or passphrase_file or places or signed_by or foreign:
        raise click.UsageError(tr("means something only with {other}", other="--all"))
    settings = load(config)
    _restore_ledger(settings, file, yes=yes, last_z=last_z, as_json=as_json)


def _restore_ledger(settings: Settings, file: Path, *, yes: bool, last_z: LastZ, as_json: bool) -> None:
    from daemon.store.maintenance.backup import restore

    path = settings.storage.path
    if path.exists() and path.samefile(file):
        raise Failure(tr("{path} is the ledger itself", path=file))
    if path.exists() and not yes:
        if not sys.stdin.isatty():
            raise click.UsageError(tr("without a terminal {option} is needed", option="--yes"))
        click.confirm(tr("Replace {path} by {file}?", path=path, file=file), abort=True)
    try:
        with for_owner(file, path.parent) as source, as_owner(path.parent), Progress() as progress:
            restored = restore(source, path, at=now(), by=shell_user(), origin=file, last_z=last_z, progress=progress)
    except OSError as error:
        raise not_restored(file, error) from None
    if as_json:
        print_json(_told(settings, restored))
        return
    say(tr("{path} put back ({records}, {closures})", path=path, **counts(restored.findings)))
    if restored.aside:
        say(tr("the ledger it replaces is kept: {path}", path=restored.aside))
    tell_asked(restored)
    say(tr("at the next start it is compared with the machine; should that have certified since: mcfd machine settle"))


def _told(settings: Settings, restored: Restored) -> dict[str, object]:
    aside = str(restored.aside) if restored.aside else None
    return {
        "ledger": str(settings.storage.path),
        "aside": aside,
        "asks_last_z": list(restored.asks),
        **figures(restored.findings),
    }
