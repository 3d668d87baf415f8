"""What joining a headquarters has left beside the ledger: it stands in the place of a section [upstream], which goes before it.

A folder of the daemon's own, since its page joins too, and writes no configuration."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import msgspec

from common.language import tr
from common.language.system import reason
from common.settings import SettingsError
from common.wire.upstream_kinds import KINDS, UpstreamKindName
from daemon.owner import as_owner
from daemon.settings.model import Settings, Upstream

RECORD: Final = "joined.json"
"""Written last: without it the others mean nothing."""
KEY: Final = "box.key"
"""https: the private key, `whsk_…`."""
CREDENTIALS: Final = "box.creds"
"""nats: credentials with the private key."""
AUTHORITY: Final = "ca.pem"
FILES: Final = (RECORD, KEY, CREDENTIALS, AUTHORITY)


class JoinedHeadquarters(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`url`: where closures go; `headquarters`: what was joined; `label`: what it calls the shop."""

    kind: UpstreamKindName
    url: str
    headquarters: str
    label: str = ""


def read_joined(home: Path) -> JoinedHeadquarters | None:
    """None where nothing was joined, or where this user may not look; SettingsError."""
    file = home / RECORD
    try:
        return msgspec.json.decode(file.read_bytes(), type=JoinedHeadquarters)
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return None
    except OSError as error:
        raise SettingsError(file, "", tr("cannot be read: {why}", why=reason(error))) from None
    except msgspec.MsgspecError as error:
        raise SettingsError(file, "", error) from None


def upstream_of(joined: JoinedHeadquarters, home: Path) -> Upstream:
    has_credentials, authority = KINDS[joined.kind].takes_credentials, home / AUTHORITY
    return Upstream(
        kind=joined.kind,
        url=joined.url,
        key_file=None if has_credentials else home / KEY,
        credentials_file=home / CREDENTIALS if has_credentials else None,
        tls_ca=authority if authority.exists() else None,
        receipt=not has_credentials,
        box=joined.label,
    )


def with_joined(settings: Settings) -> Settings:
    """The same settings where [upstream] is configured, or nothing was joined."""
    home = settings.joined_home
    if settings.upstream is not None:
        return settings
    with as_owner(home.parent):  # root follows nobody's links
        joined = read_joined(home)
        return settings if joined is None else msgspec.structs.replace(settings, upstream=upstream_of(joined, home))


def is_joined(settings: Settings) -> bool:
    """Whether closures go where joining has said."""
    upstream = settings.upstream
    files = () if upstream is None else (upstream.key_file, upstream.credentials_file)
    return any(file is not None and file.parent == settings.joined_home for file in files)
