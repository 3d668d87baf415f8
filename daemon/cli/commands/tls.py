"""`mcfd tls`: the box's own authority, for tills on the network."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from common.language import tr
from daemon.cli.options import explained, json_option, settings_option
from daemon.cli.output import Failure, complain, output_file, print_json, print_pairs, record_json, say
from daemon.core.errors import StorageError
from daemon.owner import as_owner
from daemon.settings import Settings
from daemon.settings.check import AUTHORITY
from daemon.setup.carry_out import make_authority, note_authority
from daemon.tls import SERVER_PAIR, AuthorityError

if TYPE_CHECKING:
    from daemon.tls.authority import CertificateInfo


FOR_ALL = 0o644
"""Mode of an exported certificate."""

command = click.Group("tls")


@command.command(
    "init",
    **explained(
        "Make the authority and the first certificate, which is renewed by itself from then on.",
        "sudo mcfd tls init",
    ),
)
@settings_option
@click.option(
    "--force", is_flag=True, help=tr("Make a new one even if there is one: tills then have to trust it anew.")
)
@json_option
def init(settings: Settings, force: bool, as_json: bool) -> None:
    try:
        certificate = make_authority(settings, replace=force)
        note_authority(settings)
    except AuthorityError as error:
        raise Failure(error) from None
    except StorageError as error:  # the authority is made nevertheless
        complain("not in the audit log: {why}", why=error)
    if as_json:
        print_json(_as_json(settings, certificate))
        return
    print_pairs(_pairs(settings, certificate))
    say("tills have to trust it: mcfd tls export-ca > mcfd-ca.pem")
    if not settings.server.tls:
        say(
            'to put it in use: tls = "internal" in [server] of {file}, then sudo systemctl restart mcfd',
            file=settings.file,
        )


@command.command(
    "export-ca",
    **explained(
        "The authority's certificate, to be installed on the tills; on stdout, or into FILE.",
        "mcfd tls export-ca > mcfd-ca.pem",
        "mcfd tls export-ca /media/usb/mcfd-ca.crt",
    ),
)
@settings_option
@click.argument("file", required=False, type=click.Path(path_type=Path), metavar=f"[{tr('FILE')}]")
def export_ca(settings: Settings, file: Path | None) -> None:
    from daemon.tls.authority import describe, read

    home = settings.tls_home
    root = home / AUTHORITY
    try:
        with as_owner(home):
            exists = root.exists()
            content = root.read_bytes() if exists else b""
            fingerprint = describe(read(root)).fingerprint if exists else ""
    except (AuthorityError, OSError) as error:
        raise Failure(error) from None
    if not exists:
        raise Failure("no authority in {folder} yet: mcfd tls init", folder=home)
    if file is None:
        click.echo(content, nl=False)
    else:
        with output_file(file, FOR_ALL) as target:
            target.write(content)
    complain("SHA-256 fingerprint: {fingerprint}", fingerprint=fingerprint)


@command.command("show", **explained("The certificate that tills are shown.", "mcfd tls show", "mcfd tls show --json"))
@settings_option
@json_option
def show(settings: Settings, as_json: bool) -> None:
    from daemon.tls.authority import describe, read

    file = settings.server.tls_cert or settings.tls_home / SERVER_PAIR
    try:
        with as_owner(file.parent):
            found = describe(read(file))
    except AuthorityError as error:
        raise Failure(error) from None
    if as_json:
        print_json(_as_json(settings, found))
    else:
        print_pairs(_pairs(settings, found))


def _pairs(settings: Settings, found: CertificateInfo) -> list[tuple[object, object]]:
    return [
        (tr("FOLDER"), settings.tls_home),
        (tr("NAMES"), ", ".join(found.names)),
        (tr("UNTIL"), f"{found.until:%Y-%m-%d}"),
    ]


def _as_json(settings: Settings, found: CertificateInfo) -> dict[str, object]:
    place = {"folder": str(settings.tls_home), "in_use": settings.server.tls is not None}
    return place | record_json(found, "names", "until", "fingerprint")
