from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from daemon.cli.failures import Failure
from daemon.cli.options import examples, file_option, json_option, progress_option, settings_option
from daemon.cli.output import counts, figures, print_json, say, warn
from daemon.cli.progress import Progress
from daemon.cli.whole_box import BoxCopy, back_up_box, sealing, tell_left_out, tell_new_key
from daemon.core.audit import Actor
from daemon.core.errors import StorageError
from daemon.language import ambient, tell, tr
from daemon.language.system import reason
from daemon.ledger_access import existing, now, shell_user, with_ledger
from daemon.owner import as_owner, by_owner
from daemon.rotation import BOX_SUFFIX, SUFFIX, backup_name, rotate
from daemon.settings import Settings

if TYPE_CHECKING:
    from daemon.store import Store
    from daemon.store.maintenance.verify import VerifyResult


@click.command(
    "backup",
    epilog=examples(
        "mcfd backup /media/usb/mcfd.sqlite3",
        "mcfd backup --into /var/lib/mcfd/backups --keep-daily 14 --keep-monthly 12",
        "sudo mcfd backup --all /media/usb/boitier.age",
    ),
)
@settings_option
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
@click.option(
    "--all",
    "whole",
    is_flag=True,
    help=tr("The whole box, encrypted: ledger, configuration, credentials, authority, people."),
)
@click.option(
    "--recipient", "recipients", multiple=True, metavar="age1…", help=tr("With --all: a public key that can open it.")
)
@file_option(
    "--passphrase-file", tr("With --all: the file with its passphrase; otherwise [backup], otherwise it is asked.")
)
@click.option(
    "--when-configured",
    is_flag=True,
    help=tr("With --all: do nothing without a [backup] section, for the nightly one."),
)
@click.option(
    "--new-key",
    is_flag=True,
    help=tr("Make a recovery key for paper, which opens backups of the whole box; nothing is copied."),
)
@json_option
def command(
    settings: Settings,
    *,
    file: Path | None,
    into: Path | None,
    keep_daily: int | None,
    keep_monthly: int,
    force: bool,
    person: str | None,
    address: str,
    telling: bool,
    whole: bool,
    recipients: tuple[str, ...],
    passphrase_file: Path | None,
    when_configured: bool,
    new_key: bool,
    as_json: bool,
) -> None:
    if new_key:
        tell_new_key(settings)
        return
    if (file is None) == (into is None):
        raise click.UsageError(tr("FILE or --into FOLDER is needed"))
    if into is None and (keep_daily or keep_monthly):
        raise click.UsageError(tr("means something only with {other}", other="--into"))
    if not whole and (recipients or passphrase_file or when_configured):
        raise click.UsageError(tr("means something only with {other}", other="--all"))
    if when_configured and settings.backup is None:
        return
    ledger, suffix = existing(settings), BOX_SUFFIX if whole else SUFFIX
    lock = sealing(settings, recipients, passphrase_file) if whole else None
    with as_owner(into or Path()):
        target = file or _dated(into, suffix)
    if target.exists() and (not force or target.samefile(ledger)):
        raise Failure(tr("{path} exists already", path=target))
    with Progress(telling=telling) as progress:
        copied = (
            BoxCopy(_ledger_copied(ledger, target, progress), [], "")
            if lock is None
            else back_up_box(settings, target, *lock, progress)
        )
    findings = copied.findings
    tell_left_out(copied.left_out)
    with as_owner(into or Path()):
        gone = (
            rotate(into, keep_daily=keep_daily, keep_monthly=keep_monthly, suffix=suffix) if into and keep_daily else []
        )
    typed = shell_user()
    by, detail = (Actor(person, address), {"through": typed.name}) if person else (typed, {})
    _note(settings, target, whole=whole, by=by, detail=detail)
    if as_json:
        signed = {"signed_by": copied.fingerprint} if whole else {}
        print_json({"backup": str(target), "deleted": [str(path) for path in gone], **figures(findings), **signed})
        return
    say(tr("verified copy: {path} ({records}, {closures})", path=target, **counts(findings)))
    if whole:
        say(tr("This box signs its backups; fingerprint: {fingerprint}", fingerprint=copied.fingerprint))
    for path in gone:
        say(tr("deleted: {path}", path=path))


def _ledger_copied(ledger: Path, target: Path, progress: Progress) -> VerifyResult:
    from daemon.store.maintenance.backup import backup

    try:
        with by_owner(target, ledger.parent) as copy, as_owner(ledger.parent):
            return backup(ledger, copy, at=now(), progress=progress)
    except OSError as error:
        raise Failure(tr("{path} cannot be written: {why}", path=target, why=reason(error))) from None


def _note(settings: Settings, target: Path, *, whole: bool, by: Actor, detail: dict[str, str]) -> None:
    """In the audit log; of the whole box on another disk than the ledger's also as what `doctor` asks for."""
    is_away = whole and target.stat().st_dev != settings.storage.path.stat().st_dev

    async def job(store: Store) -> None:
        await store.audit.note(
            "backup.taken", str(target), at=now(), by=by, detail={**detail, "all": "yes"} if whole else detail
        )
        if is_away:
            await store.retention.note_away(at=now())

    try:
        with_ledger(settings, job)
    except StorageError as error:  # as on a full disk: the copy is there and verified all the same
        warn(tr("the copy is made, but not in the audit log: {why}", why=tell(error, ambient())))


def _dated(into: Path | None, suffix: str) -> Path:
    folder = into or Path()
    folder.mkdir(parents=True, exist_ok=True)
    return folder / backup_name(datetime.now(UTC), suffix)
