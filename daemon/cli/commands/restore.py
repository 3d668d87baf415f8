"""`mcfd restore`: restores a copy of the ledger, or a whole box from its encrypted file; into this box's folders."""

from __future__ import annotations

import sys
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Collection, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import click

from common.language import Counted, ambient, tr, translate
from common.language.system import reason
from common.web.formats import visible
from common.wire.instants import now_millis
from daemon.cli.commands.backup import prompt_passphrase, read_passphrase
from daemon.cli.options import config_option, examples, file_option, folder_option, json_option, last_z_option
from daemon.cli.output import (
    NO_ROOM,
    Failure,
    Progress,
    Unavailable,
    clean_up_when_stopped,
    complain,
    counts,
    figures,
    not_restored,
    print_json,
    require_terminal,
    say,
)
from daemon.core.audit import Actor
from daemon.core.clock import millis_text
from daemon.ledger_access import check_stopped, shell_user
from daemon.owner import as_owner, for_owner, new_file, private_folder
from daemon.settings import Settings, SettingsError, find, load, parse
from daemon.store.maintenance.backup import Restored, restore
from daemon.store.maintenance.continuation import invoices_text, lacking
from daemon.store.maintenance.numbers import LastZ
from daemon.whole_box.archive import CONFIG as TOML
from daemon.whole_box.archive import ArchiveReader, OutOfPlace, Places, RestorePlan, places_of, plan, put_back
from daemon.whole_box.sealed import NotOpened, check_identity, is_by_passphrase, is_sealed, opened
from daemon.whole_box.signature import NoKey, is_named, own_public, signer
from daemon.whole_box.verify_archive import fingerprint

CONFIG = Path("/etc/mcfd/mcfd.toml")


@click.command(
    "restore",
    epilog=examples("mcfd restore /media/usb/mcfd.sqlite3", "sudo mcfd restore --all /media/usb/boitier.age"),
)
@config_option
@click.argument("file", type=click.Path(path_type=Path), metavar=tr("FILE"))
@click.option("--yes", is_flag=True, help=tr("Ask nothing."))
@click.option(
    "--keep-newer",
    is_flag=True,
    help=tr("Of a damaged ledger in place, take over what it has since; a sound one stays."),
)
@last_z_option
@click.option("--all", "whole", is_flag=True, help=tr("FILE is a whole box (mcfd backup --all): put all of it back."))
@file_option("--identity", tr("With --all: the file with the private key (age) that opens it."))
@file_option("--passphrase-file", tr("With --all: the file with its passphrase; otherwise it is prompted for."))
@folder_option(
    "--place",
    "places",
    multiple=True,
    text=tr("With --all: a folder that may be written beside those of this box's configuration, ledger and authority."),
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
def command(*, whole: bool, as_json: bool, **options: Any) -> None:
    clean_up_when_stopped()
    wanted = RestoreOptions(**options)
    if not wanted.file.is_file():
        if wanted.file.is_dir():
            why = tr("it is a directory")
        else:
            why = tr("it is not a file") if wanted.file.exists() else tr("there is no such file")
        raise Failure("{path} cannot be read: {why}", path=wanted.file, why=why)
    if whole:
        done = restore_box(wanted)
        if as_json:
            paths = {"written": list(map(str, done.written)), "outside": [key for key, _ in done.outside]}
            print_json({**_as_json(done.settings, done.ledger), **paths, "signature": done.signed_by})
        else:
            _print_restored(done.settings.storage.path, done.ledger, done.written)
            say("next: mcfd doctor, then sudo systemctl restart mcfd")
        return
    if wanted.identity or wanted.passphrase_file or wanted.places or wanted.signed_by or wanted.foreign:
        raise click.UsageError(tr("means something only with {other}", other="--all"))
    _restore_ledger(load(wanted.config), wanted, as_json=as_json)


def _restore_ledger(settings: Settings, wanted: RestoreOptions, *, as_json: bool) -> None:
    path, file = settings.storage.path, wanted.file
    if path.exists() and path.samefile(file):
        raise Failure("{path} is the ledger itself", path=file)
    check_stopped(path)
    try:
        with for_owner(file, path.parent) as source, as_owner(path.parent):
            if is_sealed(source):
                raise Failure(
                    "{path} is the backup of a whole box: {command}", path=file, command=f"mcfd restore --all {file}"
                )
            _warn(wanted, source, path)
            if path.exists() and not wanted.yes:
                require_terminal("--yes")
                click.confirm(tr("Replace {path} by {file}?", path=path, file=file), abort=True)
            restored = _restored(wanted, source, path, at=now_millis(), by=shell_user())
    except OSError as error:
        raise not_restored(file, error) from None
    if as_json:
        print_json(_as_json(settings, restored))
        return
    _print_restored(path, restored, ())
    if not restored.is_unchanged:
        say("at the next start it is compared with the machine; should that have certified since: mcfd machine settle")


def _warn(wanted: RestoreOptions, copy: Path, ledger: Path) -> None:
    if not wanted.keep_newer and (lacks := lacking(copy, ledger)):
        complain(
            "{file} lacks {invoices} of the ledger in place: a till that sends such an invoice again has it certified "
            "twice; --keep-newer takes over what is newer",
            invoices=invoices_text(lacks),
            file=wanted.file,
        )
    if wanted.yes:
        return
    numbers = {"": wanted.last_z} if isinstance(wanted.last_z, int) else wanted.last_z or {}
    for nim, number in numbers.items():
        option = f"--last-z {nim}={number}" if nim else f"--last-z {number}"
        complain("{option}: the next Z will be {number}; that cannot be taken back", option=option, number=number + 1)


def _restored(wanted: RestoreOptions, copy: Path, ledger: Path, *, at: int, by: Actor) -> Restored:
    last_z, keep_newer = wanted.last_z, wanted.keep_newer
    with Progress() as progress:
        return restore(
            copy, ledger, at=at, by=by, origin=wanted.file, last_z=last_z, keep_newer=keep_newer, progress=progress
        )


def _as_json(settings: Settings, restored: Restored) -> dict[str, object]:
    aside = str(restored.aside) if restored.aside else None
    return {
        "ledger": str(settings.storage.path),
        "aside": aside,
        "asks_last_z": list(restored.asks),
        "is_unchanged": restored.is_unchanged,
        "newer": len(restored.newer),
        **figures(restored.findings),
    }


class RestoreOptions(NamedTuple):
    """The options of the command line."""

    file: Path
    config: Path | None
    identity: Path | None
    passphrase_file: Path | None
    places: tuple[Path, ...]
    signed_by: str
    foreign: bool
    last_z: LastZ
    yes: bool
    keep_newer: bool


class BoxRestored(NamedTuple):
    """`settings` are now in force; `written` are files beside the ledger; `outside` were not written, by their keys."""

    settings: Settings
    ledger: Restored
    written: list[Path]
    outside: tuple[tuple[str, Path], ...]
    signed_by: str


def restore_box(wanted: RestoreOptions) -> BoxRestored:
    """The ledger is written first, the configuration last: after a power cut in between nothing starts, and the same
    command again completes it."""
    place = _place(wanted.config)
    present = _present(place)
    if present is not None:
        check_stopped(present.storage.path)
    with ExitStack() as stack:
        with _decrypted(wanted) as source:
            reader = ArchiveReader(source)
            settings = parse(reader.files[TOML], place, {})
            planned = _planned(reader, settings, places_of(place, present, wanted.places))
            home = planned.ledger.parent
            with as_owner(home):
                home.mkdir(parents=True, exist_ok=True)
            copy = stack.enter_context(private_folder(home)) / "ledger"
            with new_file(copy) as file:
                reader.copy_ledger(file)
        # From here on the archive is known to be complete.
        signed_by = _checked_signature(reader, {(present or Settings()).storage.path, planned.ledger}, wanted)
        with as_owner(home):
            _warn(wanted, copy, planned.ledger)
        _confirm(wanted, reader, planned, place, signed_by)
        at, by = now_millis(), shell_user()
        with as_owner(home):
            restored = _restored(wanted, copy, planned.ledger, at=at, by=by)
        stamp = millis_text(at).replace(":", "").replace(".", "")
        try:
            written = put_back(planned, reader.files[TOML], place, stamp=stamp)
        except OSError as error:
            raise _not_written(Path(error.filename or place), error) from None
        return BoxRestored(settings, restored, written, planned.outside, signed_by)


def _place(config: Path | None) -> Path:
    """Path of the configuration, found as by every command; never a path from the archive."""
    try:
        return find(config).absolute()
    except SettingsError:
        return CONFIG


def _present(place: Path) -> Settings | None:
    """The configuration in force on this box; None if it is missing or invalid."""
    try:
        return load(place)
    except SettingsError:
        return None


@contextmanager
def _decrypted(wanted: RestoreOptions) -> Iterator[BinaryIO]:
    try:
        with as_owner(wanted.file.parent):
            source = wanted.file.open("rb")
        with source:
            if is_by_passphrase(source):
                file = wanted.passphrase_file
                key = {"passphrase": read_passphrase(file) if file else prompt_passphrase(twice=False)}
            else:
                key = {"identity": _recovery_key(wanted.identity)}
            with opened(source, **key) as plain:
                yield plain
    except NotOpened as error:
        raise Failure(translate(error, ambient())) from None
    except OSError as error:
        raise not_restored(wanted.file, error) from None


def _recovery_key(file: Path | None) -> str:
    """The age private key: from its file, or typed from the paper."""
    if file is None:
        if not sys.stdin.isatty():
            raise click.UsageError(tr("this backup is for a key: {option} FILE is needed", option="--identity"))
        text = click.prompt(tr("Recovery key (AGE-SECRET-KEY-1…)"), hide_input=True)
    else:
        with as_owner(file.parent):
            text = _decoded(file.read_bytes())
    try:
        return check_identity(text)
    except ValueError:
        where = file or tr("what was typed")
        raise Failure("{path} holds no identity of age (AGE-SECRET-KEY-1…), or a mistyped one", path=where) from None


def _decoded(content: bytes) -> str:
    """The text of a file, also as Windows' Notepad saves it."""
    is_wide = content.startswith((BOM_UTF16_LE, BOM_UTF16_BE))
    return content.decode("utf-16" if is_wide else "utf-8", errors="replace")


def _planned(reader: ArchiveReader, settings: Settings, places: Places) -> RestorePlan:
    try:
        return plan(reader.files, settings, places)
    except OutOfPlace as error:
        raise Failure(
            "the backup wants {key} at {path}, in no folder of this box; nothing was written. If it is to be there: --place {folder}",
            key=error.key,
            path=visible(str(error.path)),
            folder=visible(str(error.path.parent)),
        ) from None


def _checked_signature(reader: ArchiveReader, ledgers: Collection[Path], wanted: RestoreOptions) -> str:
    """The signer, in words. Raises Failure unless it is this box or the options allow another. On a new disk, without
    ledger and key, the person compares the fingerprint with their paper."""
    key = signer(reader.signature, reader.entries) if reader.signature else None
    if key is None and reader.signature is not None:
        raise Failure("the signature of the backup is not of what is in it")
    if key is None:
        if not wanted.foreign:
            raise Failure(
                "the backup is not signed, as those of mcfd 0.1.0 are not; if you know where it comes from: --foreign"
            )
        return tr("not signed")
    name = fingerprint(key)
    if wanted.signed_by and not is_named(key, wanted.signed_by):
        raise Failure("the backup is signed by {fingerprint}, not by {given}", fingerprint=name, given=wanted.signed_by)
    own = _own_keys(ledgers)
    if key in own:
        return tr("signed by this box ({fingerprint})", fingerprint=name)
    is_new = not own and not any(ledger.exists() for ledger in ledgers)
    if not (wanted.signed_by or wanted.foreign or is_new):
        raise Failure(
            "the backup is not this box's: it is signed by {fingerprint}. If that is on your paper: --signed-by {fingerprint}; "
            "any box's: --foreign",
            fingerprint=name,
        )
    return tr("signed by {fingerprint}: compare it with the paper of the recovery key", fingerprint=name)


def _own_keys(ledgers: Collection[Path]) -> set[bytes]:
    found = set()
    for ledger in ledgers:
        with suppress(OSError, NoKey):  # an unreadable key proves nothing
            found.add(own_public(ledger))
    return {key for key in found if key is not None}


def _confirm(wanted: RestoreOptions, reader: ArchiveReader, planned: RestorePlan, place: Path, signed_by: str) -> None:
    """Lists every file to be written, and prompts unless `--yes`."""
    manifest = reader.manifest
    origin = {"file": wanted.file, "at": manifest.created_at, "version": manifest.version}
    click.echo(visible(tr("{file}: made {at} by mcfd {version}", **origin)), err=True)
    click.echo(signed_by, err=True)
    targets = [planned.ledger, *(each.path for each, _ in planned.files), place]
    for path in targets:
        is_there = path in {planned.ledger, place} and path.exists()
        suffix = tr(" (what is there is kept beside it)") if is_there else ""
        click.echo(f"  {visible(str(path))}{suffix}", err=True)
    for key, path in planned.outside:
        complain(
            "not written, since it is in no folder of this box (--place) or has a name of the ledger's: {key} = {path}",
            key=key,
            path=path,
        )
    if wanted.yes:
        return
    require_terminal("--yes")
    click.confirm(tr("Write these files?"), abort=True, err=True)


def _not_written(path: Path, error: OSError) -> Failure:
    text = tr(
        "{path} cannot be written: {why}; the ledger is put back, the same command again does the rest",
        path=path,
        why=reason(error),
    )
    return Unavailable(text) if error.errno in NO_ROOM else Failure(text)


def _print_restored(path: Path, restored: Restored, files: Iterable[Path]) -> None:
    newer = Counted("{count} invoice", "{count} invoices", len(restored.newer))
    if restored.is_unchanged:
        say(
            "{path} stays as it is ({records}, {closures}): it is sound, and has all of the copy and {invoices} since",
            path=path,
            invoices=newer,
            **counts(restored.findings),
        )
    else:
        say("{path} put back ({records}, {closures})", path=path, **counts(restored.findings))
        if restored.newer:
            say("taken over from the ledger it replaces: {invoices} that the copy lacks", invoices=newer)
        if restored.why_not:
            say("nothing was taken over from the ledger it replaces ({why})", why=restored.why_not)
    for problem in restored.findings.problems:
        complain(problem)
    for note in restored.findings.notes:
        say(note)
    for file in files:
        say("put back: {path}", path=file)
    if restored.aside:
        say("the ledger it replaces is kept: {path}", path=restored.aside)
    for nim in restored.asks:
        say("nothing here knows the last Z of {nim}; before its next Z: mcfd machine last-z {nim} NUMBER", nim=nim)
