"""`backup --all`: the whole box in one encrypted file, and the recovery key that opens it. `restore --all` is in `cli.restore_box`."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from common.credentials import read_secret
from daemon.cli.failures import Failure
from daemon.cli.output import say, warn
from daemon.cli.progress import Progress
from daemon.core.clock import millis_text
from daemon.language import tr
from daemon.language.system import reason
from daemon.ledger_access import existing, now
from daemon.owner import as_owner, new_file, private_folder
from daemon.settings import Settings

if TYPE_CHECKING:
    from daemon.store.maintenance.verify import VerifyResult
    from daemon.whole_box.signature import BoxKey

NEW_KEY = "mcfd backup --new-key"


def sealing(settings: Settings, recipients: tuple[str, ...], passphrase_file: Path | None) -> tuple[Sequence[str], str]:
    """Public keys or a passphrase: of the command line, else of `[backup]`, else asked at the terminal."""
    from daemon.whole_box.sealed import check_recipient

    configured = settings.backup
    if not recipients and passphrase_file is None and configured is not None:
        recipients, passphrase_file = configured.recipients, configured.passphrase_file
    if recipients and passphrase_file:
        raise click.UsageError(tr("{option} excludes {other}", option="--recipient", other="--passphrase-file"))
    try:
        for text in recipients:
            check_recipient(text)
    except ValueError:
        raise Failure(tr("{value} is not a public key of age (age1…)", value=", ".join(recipients))) from None
    if recipients:
        return recipients, ""
    return [], read_passphrase(passphrase_file) if passphrase_file else ask_passphrase(twice=True)


def read_passphrase(file: Path) -> str:
    try:
        text = read_secret(file).decode().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise Failure(tr("{path} cannot be read: {why}", path=file, why=_why(error))) from None
    if not text:
        raise Failure(tr("{path} is empty", path=file))
    return text


def _why(error: Exception) -> object:
    return reason(error) if isinstance(error, OSError) else error


def ask_passphrase(*, twice: bool) -> str:
    if not sys.stdin.isatty():
        raise click.UsageError(tr("without a terminal {option} is needed", option="--passphrase-file"))
    text: str = click.prompt(tr("Passphrase of the backup"), hide_input=True, confirmation_prompt=twice)
    return text


class BoxCopy(NamedTuple):
    """`left_out` is what is not in the file, because it is not there or may not be read; `fingerprint` that of the key that signed it."""

    findings: VerifyResult
    left_out: list[Path]
    fingerprint: str


def back_up_box(settings: Settings, target: Path, keys: Sequence[str], passphrase: str, progress: Progress) -> BoxCopy:
    from daemon.store.maintenance.backup import backup
    from daemon.whole_box.archive import pack
    from daemon.whole_box.sealed import TooMuchToSeal, sealed
    from daemon.whole_box.signature import fingerprint

    ledger, at = existing(settings), now()
    part = target.with_name(target.name + ".part")
    try:
        key = signing_key(settings)
        with private_folder(ledger.parent) as scratch:
            copy = scratch / "ledger"
            with as_owner(scratch):
                findings = backup(ledger, copy, at=at, progress=progress)
            with as_owner(target.parent):
                part.unlink(missing_ok=True)
            with new_file(part) as file:
                with sealed(file, recipients=keys, passphrase=passphrase) as plain:
                    left_out = pack(settings, copy, plain, key, made_at=millis_text(at), version=version("mcfd"))
                file.flush()
                os.fsync(file.fileno())
        with as_owner(target.parent):
            part.replace(target)
    except OSError as error:
        raise Failure(tr("{path} cannot be written: {why}", path=target, why=reason(error))) from None
    except TooMuchToSeal:
        raise Failure(
            tr("the box is too large for a passphrase; make a recovery key for it: {command}", command=NEW_KEY)
        ) from None
    finally:
        with as_owner(target.parent), suppress(OSError):
            part.unlink(missing_ok=True)
    return BoxCopy(findings, left_out, fingerprint(key.public))


def signing_key(settings: Settings) -> BoxKey:
    from daemon.whole_box.signature import NoKey, key_file, own_key

    ledger = settings.storage.path
    try:
        return own_key(ledger)
    except NoKey:
        raise Failure(tr("{path} holds no key; once it is deleted a new one is made", path=key_file(ledger))) from None


def tell_new_key(settings: Settings) -> None:
    """A recovery key for paper; the box keeps its public half alone."""
    import segno

    from daemon.whole_box.sealed import new_identity
    from daemon.whole_box.signature import fingerprint

    identity, recipient = new_identity()
    say(tr("Recovery key of this box's backups: print it, keep it where the box is not. It is shown this once."))
    say(f"\n{identity}\n")
    code = io.StringIO()
    segno.make_qr(identity, error="m").terminal(code, compact=True)
    say(code.getvalue())
    if settings.storage.path.exists():
        say(
            tr(
                "This box signs its backups; fingerprint: {fingerprint}",
                fingerprint=fingerprint(signing_key(settings).public),
            )
        )
    say(tr("Into the configuration, in place of a passphrase:"))
    say(f'\n[backup]\nrecipients = ["{recipient}"]')


def tell_left_out(left_out: list[Path]) -> None:
    for path in left_out:
        warn(tr("not in the backup, since it is not there or may not be read: {path}", path=path))
