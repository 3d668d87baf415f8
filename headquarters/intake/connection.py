"""One connection to the NATS servers of headquarters."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from pathlib import Path

from common.wire.credentials import read_credentials
from common.wire.nats_client import Client, open_client

CONNECT_SECONDS = 5


@dataclass(frozen=True, kw_only=True)
class NatsOptions:
    """`url` may be several, with commas; `durable` names the consumers that all instances share."""

    url: str
    credentials_file: Path | None = None
    tls_ca: Path | None = None
    durable: str = "headquarters"


async def connected(options: NatsOptions) -> Client:
    """OSError, NatsError or BadCredentials when it cannot be had. One that is lost does not come back by itself, so that whoever
    uses it begins with what may have been missed."""
    credentials = (
        None
        if options.credentials_file is None
        else read_credentials(options.credentials_file, "nats.credentials_file")
    )
    servers = [server.strip() for server in options.url.split(",")]
    context = ssl.create_default_context(cafile=options.tls_ca)
    return await open_client(servers, credentials, context, name="mcfd-hq", seconds=CONNECT_SECONDS)
