"""`backup --all` and `restore --all`: the whole box in one encrypted file, and back."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import click

from daemon.cli.failures import Failure
from daemon.cli.ledger import counts, existing, now, whoever_types
from daemon.cli.output import say, warn
from daemon.cli.progress import Progress
from daemon.core.clock import millis_text
from daemon.language import ambient, tell, tr
from daemon.language.system import reason
from daemon.owner import SCRATCH, as_owner, by_owner, for_owner
from daemon.settings import Settings, read_secret

if TYPE_CHECKING:
    from daemon.store.maintenance.backup import Restored
    from daemon.store.maintenance.verify import Findings
    from daemon.whole_box.age import Opened


def sealing(settings: Settings, recipients: tuple[str, ...], passphrase_file: Path | None) -> tuple[list[bytes], str]:
    """Public keys or a passphrase: of the command line, else of `[backup]`, else asked at the terminal."""
    from daemon.whole_box.age import read_recipient

    configured = settings.backup
    if not recipients and passphrase_file is None and configured is not None:
        recipients, passphrase_file = configured.recipients, configured.passphrase_file
    if recipients and passphrase_file:
        raise click.UsageError(tr("{option} excludes {other}", option="--recipient", other="--passphrase-file"))
    try:
        keys = [read_recipient(text) for text in recipients]
    except ValueError:
        raise Failure(tr("{value} is not a public key of age (age1…)", value=", ".join(recipients))) from None
    if keys:
        return keys, ""
    return [], _read(passphrase_file) if passphrase_file else _asked(twice=True)


def _read(file: Path) -> str:
    try:
        text = read_secret(file).decode().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise Failure(tr("{path} cannot be read: {why}", path=file, why=_why(error))) from None
    if not text:
        raise Failure(tr("{path} is empty", path=file))
    return text


def _why(error: Exception) -> object:
    return reason(error) if isinstance(error, OSError) else error


def _asked(*, twice: bool) -> str:
    if not sys.stdin.isatty():
        raise click.UsageError(tr("without a terminal {option} is needed", option="--passphrase-file"))
    text: str = click.prompt(tr("Passphrase of the backup"), hide_input=True, confirmation_prompt=twice)
    return text


def back_up_box(
    settings: Settings, target: Path, keys: list[bytes], passphrase: str, progress: Progress
) -> tuple[Findings, list[Path]]:
    """What the ledger holds, and what is not in the file because it is not there or may not be read."""
    from daemon.store.maintenance.backup import backup
    from daemon.whole_box.age import Sealing
    from daemon.whole_box.archive import pack

    ledger, at = existing(settings), now()
    part = target.with_name(target.name + ".part")
    try:
        with _scratch() as scratch:
            copy = scratch / "ledger"
            with by_owner(copy, ledger.parent) as made, as_owner(ledger.parent):
                findings = backup(ledger, made, at=at, progress=progress)
            with as_owner(target.parent):
                part.unlink(missing_ok=True)
                opened = open(part, "xb", opener=_for_its_owner)  # noqa: SIM115  written below, by root again
            with (
                opened as file,
                Sealing(file, recipients=keys, passphrase=passphrase) as sealed,
            ):
                left_out = pack(settings, copy, sealed, made_at=millis_text(at), version=version("mcfd"))
                sealed.close()
                file.flush()
                os.fsync(file.fileno())
        with as_owner(target.parent):
            part.replace(target)
    except OSError as error:
        raise Failure(tr("{path} cannot be written: {why}", path=target, why=reason(error))) from None
    finally:
        with as_owner(target.parent), suppress(OSError):
            part.unlink(missing_ok=True)
    return findings, left_out


def _for_its_owner(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


@contextmanager
def _scratch() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="mcfd-box-", dir=SCRATCH) as name:
        yield Path(name)


def restore_box(
    file: Path,
    config: Path | None,
    identity: Path | None,
    passphrase_file: Path | None,
    *,
    last_z: int | None,
    yes: bool,
) -> tuple[Settings, Restored, list[Path]]:
    """The settings in force from now on, what became of the ledger, and what was written beside it. The ledger goes first, the
    configuration last: a box that lost power in between starts nothing, and the same command again finishes it."""
    from daemon.store.maintenance.backup import restore
    from daemon.whole_box.age import NotOpened
    from daemon.whole_box.archive import LEDGER, put_back, settings_in, unpack

    with _scratch() as scratch:
        try:
            with as_owner(file.parent):
                opened = file.open("rb")
            with opened as source:
                manifest = unpack(_opened(source, identity, passphrase_file), scratch)
        except NotOpened as error:
            raise Failure(tell(error, ambient())) from None
        except OSError as error:
            raise Failure(tr("{path} cannot be read: {why}", path=file, why=reason(error))) from None
        place = (config or Path(manifest.config)).absolute()
        settings = settings_in(scratch, place)
        _confirm(settings, place, file, yes=yes)
        at, ledger = now(), settings.storage.path
        with as_owner(ledger.parent):
            ledger.parent.mkdir(parents=True, exist_ok=True)
        with for_owner(scratch / LEDGER, ledger.parent) as copy, as_owner(ledger.parent), Progress() as progress:
            restored = restore(copy, ledger, at=at, by=whoever_types(), origin=file, last_z=last_z, progress=progress)
        stamp = millis_text(at).replace(":", "").replace(".", "")
        try:
            return settings, restored, put_back(scratch, settings, place, stamp=stamp)
        except OSError as error:
            path = error.filename or place
            raise Failure(tr("{path} cannot be written: {why}", path=path, why=reason(error))) from None


def _opened(source: BinaryIO, identity: Path | None, passphrase_file: Path | None) -> Opened:
    from daemon.whole_box.age import NotOpened, Opened, is_by_passphrase, read_identity

    if is_by_passphrase(source):
        return Opened(source, passphrase=_read(passphrase_file) if passphrase_file else _asked(twice=False))
    if identity is None:
        raise click.UsageError(tr("this backup is for a key: {option} FILE is needed", option="--identity"))
    try:
        return Opened(source, identities=[read_identity(identity.read_text())])
    except ValueError as error:
        if isinstance(error, NotOpened):
            raise
        raise Failure(tr("{path} holds no identity of age (AGE-SECRET-KEY-1…)", path=identity)) from None


def _confirm(settings: Settings, place: Path, file: Path, *, yes: bool) -> None:
    there = [path for path in (settings.storage.path, place) if path.exists()]
    if not there or yes:
        return
    if not sys.stdin.isatty():
        raise click.UsageError(tr("without a terminal {option} is needed", option="--yes"))
    click.confirm(tr("Replace {path} by {file}?", path=", ".join(map(str, there)), file=file), abort=True)


def tell_restored(settings: Settings, restored: Restored, written: list[Path]) -> None:
    say(tr("{path} put back ({records}, {closures})", path=settings.storage.path, **counts(restored.findings)))
    for path in written:
        say(tr("put back: {path}", path=path))
    if restored.aside:
        say(tr("the ledger it replaces is kept: {path}", path=restored.aside))
    say(tr("next: mcfd doctor, then sudo systemctl restart mcfd; a new disk asks for the last Z (mcfd machine last-z)"))


def tell_left_out(left_out: list[Path]) -> None:
    for path in left_out:
        warn(tr("not in the backup, since it is not there or may not be read: {path}", path=path))
