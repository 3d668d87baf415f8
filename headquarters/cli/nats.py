"""`mcfd-hq nats`: keys and permissions of the NATS servers as JWTs, for chains too large for `users.conf`."""

import contextlib
import os
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final, TypeVar

import click
import msgspec

from common.files import write_whole
from common.wire.closure import NIM
from common.wire.keys import OPERATOR, decode_public
from headquarters.cli.shared import refusal
from headquarters.core import nats_accounts
from headquarters.core.nats_accounts import NatsSeeds, Nkey, program_credentials

KEYS = "operator-keys.json"
REVOKED = "revoked.json"
ISSUED = "issued.json"
"""Public keys of boxes, each with its NIMs."""
PROGRAMS: Final = ("reader", "administrator")
OF_INIT = ("users.conf", *(f"{program}.creds" for program in PROGRAMS))
T = TypeVar("T")
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
    names = {path.name for path in directory.iterdir()}
    present = [name for name in (KEYS, *OF_INIT) if name in names]
    # One that was broken off is finished: its keys are there, with which nothing was issued yet, and not all that is made with them.
    is_unfinished = KEYS in names and not names.issuperset(OF_INIT) and names.isdisjoint((ISSUED, REVOKED))
    if present and not is_unfinished:
        raise refusal(f"{directory / present[0]}: File exists")
    keys, at = _keys(directory) if is_unfinished else NatsSeeds.generate(), int(time.time())
    if not is_unfinished:
        _write(directory / KEYS, msgspec.json.encode(keys).decode() + "\n")
    _write(directory / "users.conf", nats_accounts.server_conf(keys, at), replaces=True)
    for program in PROGRAMS:
        _write(directory / f"{program}.creds", program_credentials(keys, program, at)[0], replaces=True)


@nats.command()
@DIRECTORY
@click.argument("nims", metavar="NIM...", nargs=-1, required=True)
@click.option("--to", type=click.Path(path_type=Path), required=True, help="The credentials file, for the box.")
def box(directory: Path, nims: tuple[str, ...], to: Path) -> None:
    """A box with these machines: writes its credentials file, prints its public key for `mcfd-hq boxes add`."""
    for nim in nims:
        if not NIM.fullmatch(nim):
            raise refusal(f"{nim} is not a NIM")
    issued = _listed(directory / ISSUED, dict[str, list[str]])

    def make(keys: NatsSeeds, at: int) -> tuple[str, str]:
        credentials, public = nats_accounts.box_credentials(keys, nims, at)
        _write(directory / ISSUED, msgspec.json.encode(issued | {public: nims}).decode() + "\n", replaces=True)
        return credentials, public

    _issue(directory, to, make)


@nats.command()
@DIRECTORY
@click.option("--to", type=click.Path(path_type=Path), required=True, help="The credentials file, for headquarters.")
def reader(directory: Path, to: Path) -> None:
    """New credentials for headquarters itself, with the permissions of this version: prints their public key."""
    _issue(directory, to, lambda keys, at: program_credentials(keys, "reader", at))


@nats.command()
@DIRECTORY
@click.option("--to", type=click.Path(path_type=Path), required=True, help="The credentials file, for the relay.")
def relay(directory: Path, to: Path) -> None:
    """Credentials for mcfd-relay, one for all of them: prints their public key."""
    _issue(directory, to, lambda keys, at: program_credentials(keys, "relay", at))


@nats.command()
@DIRECTORY
@click.argument("names", metavar="NIM|PUBLIC-KEY...", nargs=-1, required=True)
def revoke(directory: Path, names: tuple[str, ...]) -> None:
    """Credentials that are stolen or no longer used, by the public key (U...) that was printed when they were made, or all that a box was given:
    writes users.conf anew, prints the keys. Put it on each server and reload it; then the connections of these keys are cut, and they never come in
    again. What a box has signed with the same key is another matter: `mcfd-hq boxes revoke`."""
    _check_way(directory)
    issued = _listed(directory / ISSUED, dict[str, list[str]])
    found = {public for name in names for public in _named(name, issued)}
    revoked = sorted({*_listed(directory / REVOKED, list[str]), *found})
    users = directory / "users.conf"
    try:
        conf = nats_accounts.server_conf(_keys(directory), int(time.time()), revoked, users.read_text(encoding="ascii"))
    except (OSError, ValueError) as error:
        raise refusal(f"{users}, which the servers have, is needed here: {error}") from None
    _write(directory / REVOKED, msgspec.json.encode(revoked).decode() + "\n", replaces=True)
    _write(users, conf, replaces=True)
    for public in sorted(found):
        click.echo(public)


@nats.command()
@DIRECTORY
@click.option("--to", type=click.Path(path_type=Path), required=True, help="For headquarters: nats.issuer_file.")
def issuer(directory: Path, to: Path) -> None:
    """What headquarters needs to let boxes in that join, and to cut off those that are revoked: writes it to a file, which is as secret as these
    keys. The first time users.conf is written anew, too: put it on each server, and restart one after the other; from then on they keep what
    headquarters tells them (in /var/lib/nats/jwt)."""
    for path in (directory, to):
        _check_way(path)
    keys, at, users = _keys(directory), int(time.time()), directory / "users.conf"
    if not keys.operator_signer:
        keys = msgspec.structs.replace(keys, operator_signer=Nkey(OPERATOR).seed)
        revoked = _listed(directory / REVOKED, list[str])
        # The keys come last: with them it is not the first time any more.
        _write(users, nats_accounts.server_conf(keys, at, revoked), replaces=True)
        _write(directory / KEYS, msgspec.json.encode(keys).decode() + "\n", replaces=True)
        click.echo(f"{users} has changed: put it on each server, and restart one after the other", err=True)
    _write(to, msgspec.json.encode(nats_accounts.issuer_of(keys, at)).decode() + "\n")


def _issue(directory: Path, to: Path, make: Callable[[NatsSeeds, int], tuple[str, str]]) -> None:
    for path in (directory, to):
        _check_way(path)
    credentials, public = make(_keys(directory), int(time.time()))
    _write(to, credentials)
    click.echo(public)


def _keys(directory: Path) -> NatsSeeds:
    try:
        return msgspec.json.decode((directory / KEYS).read_bytes(), type=NatsSeeds)
    except (OSError, ValueError) as error:
        raise refusal(f"{directory / KEYS}: {error}") from None


def _listed(path: Path, kind: type[T]) -> T:
    """The file's content; empty if there is no file."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except FileNotFoundError:
        return kind()
    except (OSError, ValueError) as error:
        raise refusal(f"{path}: {error}") from None


def _named(name: str, issued: Mapping[str, Sequence[str]]) -> list[str]:
    """Public keys of a NIM's credentials, or the named key itself."""
    if NIM.fullmatch(name):
        found = [public for public, nims in issued.items() if name in nims]
        if not found:
            raise refusal(f"no credentials were made here for {name}: name their public key (U...)")
        return found
    try:
        decode_public(name)
    except ValueError:
        raise refusal(f"{name} is neither a NIM nor the public key of a NATS user (U...)") from None
    return [name]


def _check_way(path: Path) -> None:
    """Root writes keys only into directories owned by root: elsewhere a symbolic link could redirect them."""
    if os.geteuid() != 0:
        return
    for way in (path.absolute(), path.resolve()):
        for each in (way, *way.parents):
            with contextlib.suppress(FileNotFoundError, NotADirectoryError):
                if each.lstat().st_uid != 0:
                    raise refusal(f"{each} is not root's: root writes keys into folders of its own alone")


def _write(path: Path, content: str, *, replaces: bool = False) -> None:
    """Writes for the owner only and completely, or nothing; never over an existing file unless it `replaces` one."""
    try:
        write_whole(path, content.encode("ascii"), 0o600, is_new=not replaces)
    except OSError as error:
        raise refusal(f"{path}: {error.strerror}") from None
