"""Configuration of the relay (TOML). An error is one line with the key and the reason."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import msgspec

from common.settings import Port, Section
from common.wire.call import ANSWER_SECONDS
from common.wire.nats_pull import NatsServers

DEFAULT = Path("/etc/mcfd-relay/relay.toml")


class RelayServer(Section, frozen=True):
    """Port 0 selects a free port. The relay belongs behind a load balancer or web server with a certificate.
    `answer_seconds` is the time limit for a box's answer; it must be shorter if the load balancer's own limit is."""

    host: str = "127.0.0.1"
    port: Port = 8491
    answer_seconds: Annotated[float, msgspec.Meta(ge=1, le=ANSWER_SECONDS)] = ANSWER_SECONDS


class RelaySettings(Section, frozen=True):
    nats: NatsServers
    server: RelayServer = RelayServer()
