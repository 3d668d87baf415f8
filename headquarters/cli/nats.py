"""`mcfd-hq nats`: keys and permissions of the NATS servers as JWTs, for more boxes than one wants to write into `users.conf`."""

from __future__ import annotations

import contextlib
import os
import re
import time
from pathlib import Path

import click
import msgspec

from headquarters.cli.shared import refusal
from headquarters.core import nats_accounts
from headquarters.core.nats_accounts import Keys

KEYS = "operator-keys.json"
NIM = re.compile(r"[A-Z]{2}[0-9]{8}(-[0-9]{1,9})?", re.ASCII)
DIRECTORY = click.argument("directory", type=click.Path(path_type=Path, file_okay=False))


@click.group()
def nats() -> None:
    """Keys and permissions of the NATS servers, as JWTs."""


@nats.command()
@DIRECTORY
def init(directory: Path) -> None:
    """Make the keys, and with them users.conf, reader.creds and administrator.creds. Keep operator-keys.json off the servers: with it,
    boxes are let in."""
    _check_way(directory)
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise refusal(f"{directory}: {error.strerror}") from None
    keys, at = Keys.made(), int(time.time())
    _write(directory / KEYS, msgspec.json.encode(keys).decode() + "\n")
    _write(directory / "users.conf", nats_accounts.server_conf(keys, at))
    _write(directory / "reader.creds", nats_accounts.reader_credentials(keys, at)[0])
    _write(directory / "administrator.creds", nats_accounts.administrator_credentials(keys, at)[0])


@nats.command()
@DIRECTORY
@click.argument("nims", metavar="NIM...", nargs=-1, required=True)
@click.option("--to", type=click.Path(path_type=Path), required=True, help="The credentials file, for the box.")
def box(directory: Path, nims: tuple[str, ...], to: Path) -> None:
    """A box with these machines: writes its credentials file, prints its public key for `mcfd-hq boxes add`."""
    for nim in nims:
        if not NIM.fullmatch(nim):
            raise refusal(f"{nim} is not a NIM")
    for path in (directory, to):
        _check_way(path)
    try:
        keys = msgspec.json.decode((directory / KEYS).read_bytes(), type=Keys)
        credentials, public = nats_accounts.box_credentials(keys, nims, int(time.time()))
    except (OSError, ValueError) as error:
        raise refusal(f"{directory / KEYS}: {error}") from None
    _write(to, credentials)
    click.echo(public)


def _check_way(path: Path) -> None:
    """Root's keys go where root alone decides: in somebody else's folder a link may lead anywhere."""
    if os.geteuid() != 0:
        return
    for way in (path.absolute(), path.resolve()):
        for each in (way, *way.parents):
            with contextlib.suppress(FileNotFoundError):
                if each.lstat().st_uid != 0:
                    raise refusal(f"{each} is not root's: root writes keys into folders of its own alone")


def _write(path: Path, content: str) -> None:
    """For its owner's eyes, and never over another file."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError as error:
        raise refusal(f"{path}: {error.strerror}") from None
    with os.fdopen(descriptor, "w", encoding="ascii") as file:
        file.write(content)
