"""The configuration, TOML. What is wrong in it is one line that names the key and why."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import msgspec

from common.settings import Port, Section
from common.wire.call import ANSWER_SECONDS
from common.wire.nats_pull import NatsServers

DEFAULT = Path("/etc/mcfd-relay/relay.toml")


class RelayServer(Section, frozen=True):
    """`port` 0 takes a free one. It belongs behind a load balancer, or a web server, that has a certificate. `answer_seconds`: for so long a
    box's answer is waited for; less where that load balancer gives up sooner."""

    host: str = "127.0.0.1"
    port: Port = 8491
    answer_seconds: Annotated[float, msgspec.Meta(ge=1, le=ANSWER_SECONDS)] = ANSWER_SECONDS


class RelaySettings(Section, frozen=True):
    nats: NatsServers
    server: RelayServer = RelayServer()
