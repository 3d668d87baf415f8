"""`mcfd backup`: a copy of the ledger, or the whole box in one encrypted file; the recovery key that opens it."""

from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

import click

from common.files import read_secret
from common.language import ambient, tr, translate
from common.language.system import reason
from common.wire.instants import now_millis
from daemon.cli.commands.archive import archive_years, signing_key
from daemon.cli.options import examples, file_option, folder_option, json_option, progress_option, settings_option
from daemon.cli.output import (
    Failure,
    Progress,
    clean_up_when_stopped,
    complain,
    counts,
    figures,
    not_written,
    output_file,
    print_json,
    require_terminal,
    say,
    writing,
)
from daemon.core.clock import millis_text
from daemon.core.errors import StorageError
from daemon.ledger_access import change, existing
from daemon.operations import NoteBackup
from daemon.owner import as_owner, by_owner, private_folder
from daemon.paper.logo import qr_for_terminal
from daemon.rotation import BOX_SUFFIX, SUFFIX, backup_name, box_suffix, remove_unfinished, rotate
from daemon.settings import Settings
from daemon.store.maintenance.backup import backup
from daemon.store.maintenance.verify import VerifyResult
from daemon.whole_box.archive import pack
from daemon.whole_box.sealed import TooMuchToSeal, new_identity, read_recipient, sealed
from daemon.whole_box.verify_archive import fingerprint

NEW_KEY = "mcfd backup --new-key"


@click.command(
    "backup",
    epilog=examples(
        "mcfd backup /media/usb/mcfd.sqlite3",
        "mcfd backup --into /var/lib/mcfd/backups --keep-daily 14 --keep-monthly 12",
        "sudo mcfd backup --all /media/usb/boitier.age",
    ),
)
@settings_option
@click.argument("file", required=False, type=click.Path(path_type=Path), metavar=f"[{tr('FILE')}]")
@folder_option("--into", text=tr("The directory to put a dated copy in."))
@click.option(
    "--keep-daily", type=click.IntRange(min=1), metavar="N", help=tr("With --into: keep the newest of so many days.")
)
@click.option(
    "--keep-monthly", type=click.IntRange(min=0), default=0, metavar="N", help=tr("With --into: and of so many months.")
)
@click.option("--force", is_flag=True, help=tr("Replace FILE if it exists."))
@click.option("--unnoted", is_flag=True, hidden=True, help="The page notes it in the audit log, with its person.")
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
    "--passphrase-file",
    tr("With --all: the file with its passphrase; otherwise [backup], otherwise it is prompted for."),
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
    unnoted: bool,
    for_program: bool,
    whole: bool,
    recipients: tuple[str, ...],
    passphrase_file: Path | None,
    when_configured: bool,
    new_key: bool,
    as_json: bool,
) -> None:
    if new_key:
        print_new_key(settings)
        return
    clean_up_when_stopped()
    if (file is None) == (into is None):
        raise click.UsageError(tr("FILE or --into FOLDER is needed"))
    if into is None and (keep_daily or keep_monthly):
        raise click.UsageError(tr("means something only with {other}", other="--into"))
    if not whole and (recipients or passphrase_file or when_configured):
        raise click.UsageError(tr("means something only with {other}", other="--all"))
    if when_configured and settings.backup is None:
        return
    ledger = existing(settings)
    lock = sealing(settings, recipients, passphrase_file) if whole else None
    suffixes = _suffixes(settings, whole=whole)
    target = file or _dated(into or Path(), suffixes)
    if target.exists() and (not force or target.samefile(ledger)):
        raise Failure("{path} exists already", path=target)
    with Progress(for_program=for_program) as progress:
        copied = (
            BoxCopy(_ledger_copied(ledger, target, progress), [], "")
            if lock is None
            else back_up_box(settings, target, *lock, progress, is_new=not force)
        )
    findings = copied.findings
    warn_left_out(copied.left_out)
    with as_owner(into or Path()):
        gone = (
            rotate(target, keep_daily=keep_daily, keep_monthly=keep_monthly, suffixes=suffixes)
            if into and keep_daily
            else []
        )
    _note(settings, target, is_whole=whole, unnoted=unnoted)
    _archive(settings, None if whole else into, silent=as_json)
    if as_json:
        signed = {"signed_by": copied.fingerprint} if whole else {}
        print_json({"backup": str(target), "deleted": [str(path) for path in gone], **figures(findings), **signed})
        return
    say("verified copy: {path} ({records}, {closures})", path=target, **counts(findings))
    if whole:
        say("This box signs its backups; fingerprint: {fingerprint}", fingerprint=copied.fingerprint)
    for path in gone:
        say("deleted: {path}", path=path)


def _suffixes(settings: Settings, *, whole: bool) -> list[str]:
    """Of the copies among which the rotation chooses, this one's first."""
    return [box_suffix(fingerprint(signing_key(settings).public)), BOX_SUFFIX] if whole else [SUFFIX]


def _archive(settings: Settings, into: Path | None, *, silent: bool) -> None:
    """Adds the missing archives of closed years; an error here does not make the copy fail."""
    if into is None:
        return
    try:
        archives, _ = archive_years(settings, into)
    except Exception as error:  # noqa: BLE001  the copy is complete, whatever the error
        complain("the copy is made, but no archive of a closed year: {why}", why=translate(error, ambient()))
        return
    for path in () if silent else archives:
        say("verified archive: {path}", path=path)


def _ledger_copied(ledger: Path, target: Path, progress: Progress) -> VerifyResult:
    room = ledger.stat().st_size
    with writing(target), by_owner(target, ledger.parent, room) as copy, as_owner(ledger.parent):
        return backup(ledger, copy, at=now_millis(), progress=progress)


def _note(settings: Settings, target: Path, *, is_whole: bool, unnoted: bool) -> None:
    """An entry in the audit log; for a whole box on another disk also the backup that `doctor` checks for."""
    if unnoted:
        return
    is_away = is_whole and target.stat().st_dev != settings.storage.path.stat().st_dev
    try:
        change(settings, NoteBackup(str(target), is_whole, is_away))
    except StorageError as error:  # for example a full disk: the copy is there and verified
        complain("the copy is made, but not in the audit log: {why}", why=translate(error, ambient()))


def _dated(folder: Path, suffixes: Sequence[str]) -> Path:
    now = datetime.now(UTC)
    with writing(folder), as_owner(folder):
        folder.mkdir(parents=True, exist_ok=True)
        remove_unfinished(folder, now, suffixes)
    return folder / backup_name(now, suffixes[0])


def sealing(settings: Settings, recipients: tuple[str, ...], passphrase_file: Path | None) -> tuple[Sequence[str], str]:
    """Public keys or a passphrase: from the command line, else from `[backup]`, else typed at the terminal."""
    configured = settings.backup
    if not recipients and passphrase_file is None and configured is not None:
        recipients, passphrase_file = configured.recipients, configured.passphrase_file
    if recipients and passphrase_file:
        raise click.UsageError(tr("{option} excludes {other}", option="--recipient", other="--passphrase-file"))
    try:
        for text in recipients:
            read_recipient(text)
    except ValueError:
        raise Failure("{value} is not a public key of age (age1…)", value=", ".join(recipients)) from None
    if recipients:
        return recipients, ""
    return [], read_passphrase(passphrase_file) if passphrase_file else prompt_passphrase(twice=True)


def read_passphrase(file: Path) -> str:
    """Also from a pipe, as /dev/stdin or a shell's <(…)."""
    try:
        text = read_secret(file, may_be_pipe=True).decode().strip()
    except (OSError, UnicodeDecodeError) as error:
        why = reason(error) if isinstance(error, OSError) else error
        raise Failure("{path} cannot be read: {why}", path=file, why=why) from None
    if not text:
        raise Failure("{path} is empty", path=file)
    return text


def prompt_passphrase(*, twice: bool) -> str:
    require_terminal("--passphrase-file")
    text: str = click.prompt(tr("Passphrase of the backup"), hide_input=True, confirmation_prompt=twice)
    return text


class BoxCopy(NamedTuple):
    """`left_out` are files that were missing or unreadable; `fingerprint` is the signing key's."""

    findings: VerifyResult
    left_out: list[Path]
    fingerprint: str


def back_up_box(
    settings: Settings, target: Path, keys: Sequence[str], passphrase: str, progress: Progress, *, is_new: bool
) -> BoxCopy:
    """Failure if the file `is_new` and exists."""
    ledger, at = existing(settings), now_millis()
    try:
        key = signing_key(settings)
        with private_folder(ledger.parent, ledger.stat().st_size) as scratch:
            copy = scratch / "ledger"
            with as_owner(scratch):
                findings = backup(ledger, copy, at=at, progress=progress)
            with (
                output_file(target, is_new=is_new) as file,
                sealed(file, recipients=keys, passphrase=passphrase) as plain,
            ):
                left_out = pack(settings, copy, plain, key, created_at=millis_text(at), version=version("mcfd"))
    except OSError as error:
        raise not_written(target, error) from None
    except TooMuchToSeal:
        raise Failure(
            "the box is too large for a passphrase; make a recovery key for it: {command}", command=NEW_KEY
        ) from None
    return BoxCopy(findings, left_out, fingerprint(key.public))


def print_new_key(settings: Settings) -> None:
    """Prints a new recovery key; the box stores only its public half."""
    identity, recipient = new_identity()
    say("Recovery key of this box's backups: print it, keep it where the box is not. It is shown this once.")
    say(f"\n{identity}\n")
    say(qr_for_terminal(identity))
    if settings.storage.path.exists():
        own = fingerprint(signing_key(settings).public)
        say("This box signs its backups; fingerprint: {fingerprint}", fingerprint=own)
    say("Into the configuration, in place of a passphrase:")
    say(f'\n[backup]\nrecipients = ["{recipient}"]')


def warn_left_out(left_out: list[Path]) -> None:
    for path in left_out:
        complain("not in the backup, since it is not there or may not be read: {path}", path=path)
