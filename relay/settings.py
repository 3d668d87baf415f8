"""The configuration, TOML. What is wrong in it is one line that names the key and why."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import msgspec

from common.language import tr
from common.language.system import reason
from common.settings import Port, Section, SettingsError, convert, read_toml
from common.wire.call import ANSWER_SECONDS

DEFAULT = Path("/etc/mcfd-relay/relay.toml")


class RelayServer(Section, frozen=True):
    """`port` 0 takes a free one. It belongs behind a load balancer, or a web server, that has a certificate. `answer_seconds`: for so long a
    box's answer is waited for; less where that load balancer gives up sooner."""

    host: str = "127.0.0.1"
    port: Port = 8491
    answer_seconds: Annotated[float, msgspec.Meta(ge=1, le=ANSWER_SECONDS)] = ANSWER_SECONDS


class RelayNats(Section, frozen=True):
    """`url` may be several, with commas."""

    url: str
    credentials_file: Path | None = None
    tls_ca: Path | None = None


class RelaySettings(Section, frozen=True):
    nats: RelayNats
    server: RelayServer = RelayServer()


def load(path: Path) -> RelaySettings:
    """SettingsError when it cannot be read, or anything in it is wrong or unknown."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise SettingsError(path, "", tr("cannot be read: {why}", why=reason(error))) from None
    return convert(read_toml(content, path), RelaySettings, path)
