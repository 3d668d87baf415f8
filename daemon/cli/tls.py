"""`mcfd tls`: the authority of this box, for tills that speak to it over the network."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from daemon import texts
from daemon.cli import answers, helps
from daemon.cli.machine import print_pairs
from daemon.cli.shared import Failure, config_option, examples, json_option, print_json, say, warn
from daemon.settings import Settings, load

if TYPE_CHECKING:
    from daemon.tls.authority import Shown


@click.group("tls", help=str(helps.HELP_TLS))
def command() -> None:
    pass


@command.command("init", help=str(helps.HELP_TLS_INIT), epilog=examples("sudo mcfd tls init"))
@config_option
@click.option("--force", is_flag=True, help=str(helps.HELP_TLS_FORCE))
@json_option
def init(config: Path | None, force: bool, as_json: bool) -> None:
    from daemon.tls.authority import create
    from daemon.tls.home import AuthorityError

    settings = load(config)
    try:
        made = create(settings.tls_home, _names(settings), datetime.now(UTC), replace=force)
    except AuthorityError as error:
        raise Failure(error) from None
    if as_json:
        print_json(_told(settings, made))
        return
    print_pairs(_pairs(settings, made))
    say(answers.TLS_TRUST)
    if not settings.server.tls:
        say(answers.TLS_SWITCH_ON(file=settings.file))


@command.command(
    "export-ca",
    help=str(helps.HELP_TLS_EXPORT),
    epilog=examples("mcfd tls export-ca > mcfd-ca.pem", "mcfd tls export-ca /media/usb/mcfd-ca.crt"),
)
@config_option
@click.argument("file", required=False, type=click.Path(path_type=Path), metavar=str(helps.FILE))
def export_ca(config: Path | None, file: Path | None) -> None:
    from daemon.settings.check import AUTHORITY
    from daemon.tls.authority import read, shown
    from daemon.tls.home import AuthorityError

    home = load(config).tls_home
    root = home / AUTHORITY
    if not root.exists():
        raise Failure(texts.NO_AUTHORITY(folder=home))
    try:
        fingerprint = shown(read(root)).fingerprint
    except AuthorityError as error:
        raise Failure(error) from None
    if file is None:
        click.echo(root.read_bytes(), nl=False)
    else:
        _write(file, root.read_bytes())
    warn(answers.TLS_FINGERPRINT(fingerprint=fingerprint))


@command.command("show", help=str(helps.HELP_TLS_SHOW), epilog=examples("mcfd tls show", "mcfd tls show --json"))
@config_option
@json_option
def show(config: Path | None, as_json: bool) -> None:
    from daemon.tls.authority import read, shown
    from daemon.tls.home import SERVER, AuthorityError

    settings = load(config)
    file = settings.server.tls_cert or settings.tls_home / SERVER
    try:
        found = shown(read(file))
    except AuthorityError as error:
        raise Failure(error) from None
    if as_json:
        print_json(_told(settings, found))
    else:
        print_pairs(_pairs(settings, found))


def ensure(settings: Settings, now: datetime) -> Path:
    """The authority's certificate; made, or its server certificate renewed, where that is needed."""
    from daemon.settings.check import AUTHORITY
    from daemon.tls.authority import create, renew_if_due
    from daemon.tls.home import AuthorityError

    root = settings.tls_home / AUTHORITY
    try:
        if root.exists():
            renew_if_due(settings.tls_home, _names(settings), now)
        else:
            create(settings.tls_home, _names(settings), now)
    except AuthorityError as error:
        raise Failure(error) from None
    return root


def _names(settings: Settings) -> tuple[str, ...]:
    from daemon.tls.names import box_names

    return box_names(settings.server.host, settings.server.allowed_hosts)


def _write(file: Path, content: bytes) -> None:
    try:
        with file.open("xb") as target:
            target.write(content)
    except FileExistsError:
        raise Failure(answers.EXISTS(path=file)) from None
    except OSError as error:
        raise Failure(texts.NOT_WRITABLE(path=file, why=texts.reason(error))) from None


def _pairs(settings: Settings, found: Shown) -> list[tuple[object, object]]:
    return [
        (answers.TLS_FOLDER, settings.tls_home),
        (answers.TLS_NAMES, ", ".join(found.names)),
        (answers.TLS_UNTIL, f"{found.until:%Y-%m-%d}"),
    ]


def _told(settings: Settings, found: Shown) -> dict[str, object]:
    return {
        "folder": str(settings.tls_home),
        "in_use": settings.server.tls is not None,
        "names": found.names,
        "until": found.until,
        "fingerprint": found.fingerprint,
    }
