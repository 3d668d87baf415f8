"""Joins headquarters or leaves it. The private key is made here and never leaves the box. The files are written in an
order that leaves either the old state or the new one after a power cut."""

import os
from importlib.metadata import version
from pathlib import Path
from typing import Final
from urllib.parse import urljoin, urlsplit

import msgspec

from common.files import sync_path, write_whole
from common.language import Text
from common.wire.joining import JoinAnswer, JoinLink, read_link
from common.wire.keys import KEY_BYTES, credentials_text, decode_seed, encode_seed, private_line
from common.wire.upstream_kinds import KINDS
from daemon.core.errors import JoinFailed, KeyRevoked
from daemon.owner import as_owner
from daemon.settings import Settings
from daemon.settings.source import (
    AUTHORITY,
    CREDENTIALS,
    FILES,
    KEY,
    RECORD,
    JoinedHeadquarters,
    is_joined,
)

NEXT: Final = "next.key"
"""The key of a join in progress: the same until an answer arrives, so that headquarters recognises a repetition."""
SECRET: Final = 0o600


async def join(settings: Settings, text: str, url: str = "", ca: Path | None = None) -> JoinedHeadquarters:
    """Joins with `text`: the address from headquarters, or a code together with headquarters' `url`. The running daemon
    applies it at its next reload. Raises JoinFailed (nothing has changed) or OSError."""
    if settings.upstream is not None and not is_joined(settings):
        raise JoinFailed(
            Text(
                "the configuration has a section [upstream], which goes first: take it out, then join",
                file=settings.file,
            )
        )
    from daemon.upstream.joining import ask_to_join  # noqa: PLC0415  # with its HTTP client: a box joins once

    link = _link(text, url)
    home, nims = settings.joined_home, tuple(machine.nim for machine in settings.machine if machine.enabled)
    if not nims:
        raise JoinFailed(Text("no machine is switched on in the configuration"))
    seed = _next_key(home)
    try:
        answer = await ask_to_join(link, seed, nims, version("mcfd"), ca)
    except KeyRevoked:
        seed = _new_key(home)
        answer = await ask_to_join(link, seed, nims, version("mcfd"), ca)
    joined = _joined(answer, link)
    with as_owner(home.parent):
        _write(home, joined, answer, seed)
    return joined


def leave(settings: Settings) -> bool:
    """False if no headquarters was joined. From the next reload on, closures stay in the outbox. Raises OSError."""
    home = settings.joined_home
    with as_owner(home.parent):
        was_joined = (home / RECORD).exists()
        for name in (*FILES, NEXT):
            (home / name).unlink(missing_ok=True)
            if name == RECORD and home.exists():
                sync_path(home)
        if home.exists():
            sync_path(home)
    return was_joined


def _link(text: str, url: str) -> JoinLink:
    try:
        link = read_link(text)
    except ValueError:
        raise JoinFailed(Text("this is neither a code (12 letters and digits) nor the address of one")) from None
    return msgspec.structs.replace(link, url=url.rstrip("/")) if url else link


def _next_key(home: Path) -> bytes:
    """The key of an unfinished join, or a new one. If only the last step is missing, this is the key in use; the box
    may join again with it."""
    with as_owner(home.parent):
        home.mkdir(mode=0o700, exist_ok=True)
        try:
            return decode_seed((home / NEXT).read_text("ascii").strip())
        except (FileNotFoundError, ValueError):
            return _new_key(home)


def _new_key(home: Path) -> bytes:
    seed = os.urandom(KEY_BYTES)
    with as_owner(home.parent):
        write_whole(home / NEXT, f"{encode_seed(seed)}\n".encode(), SECRET)
    return seed


def _joined(answer: JoinAnswer, link: JoinLink) -> JoinedHeadquarters:
    """Raises JoinFailed if the answer is not enough to send closures."""
    url = str(urljoin(f"{link.url}/", answer.url)) if answer.kind == "https" else answer.url
    kind = KINDS[answer.kind]
    servers = [urlsplit(server.strip()) for server in (url.split(",") if kind.takes_servers else [url])]
    if any(server.scheme not in kind.schemes or not server.hostname for server in servers):
        raise JoinFailed(
            Text("headquarters names no address for closures ({url}); its configuration is incomplete", url=url)
        )
    if kind.takes_credentials and not answer.jwt:
        raise JoinFailed(Text("headquarters gives no credentials for NATS; its configuration is incomplete"))
    return JoinedHeadquarters(kind=answer.kind, url=url, headquarters=link.url, label=answer.label)


def _write(home: Path, joined: JoinedHeadquarters, answer: JoinAnswer, seed: bytes) -> None:
    """Writes the record last: it decides which of the files is in use."""
    has_credentials = KINDS[joined.kind].takes_credentials
    file, other = (CREDENTIALS, KEY) if has_credentials else (KEY, CREDENTIALS)
    secret = credentials_text(answer.jwt, encode_seed(seed)) if has_credentials else private_line(seed) + "\n"
    write_whole(home / file, secret.encode("ascii"), SECRET)
    if answer.ca:
        write_whole(home / AUTHORITY, answer.ca.encode("ascii"), SECRET)
    else:
        (home / AUTHORITY).unlink(missing_ok=True)
    write_whole(home / RECORD, msgspec.json.encode(joined) + b"\n", SECRET)
    for name in (other, NEXT):
        (home / name).unlink(missing_ok=True)
    sync_path(home)
