"""One connection to the NATS servers of headquarters."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import structlog
from nats.aio.client import Client

from headquarters.intake.credentials import read_credentials

log = structlog.get_logger(__name__)

CONNECT_SECONDS = 5


@dataclass(frozen=True, kw_only=True)
class NatsOptions:
    """`url` may be several, with commas; `durable` names the consumers that all instances share."""

    url: str
    credentials_file: Path | None = None
    tls_ca: Path | None = None
    durable: str = "headquarters"


async def connected(options: NatsOptions) -> Client:
    """OSError, nats.errors.Error or BadCredentials when it cannot be had. One that is lost later is found by the next request
    that nobody answers; it does not come back by itself, so that whoever uses it begins with what may have been missed."""
    client = Client()
    named: dict[str, Any] = {}
    if options.credentials_file is not None:
        credentials = read_credentials(options.credentials_file)
        named["signature_cb"] = credentials.sign
        named["inbox_prefix"] = f"_INBOX.{credentials.public}".encode()
        if credentials.jwt:
            named["user_jwt_cb"] = credentials.jwt.encode
        else:
            client._public_nkey = credentials.public  # noqa: SLF001  # nats-py sets it from a file of its own format only
    servers = [server.strip() for server in options.url.split(",")]
    if any(server.startswith("tls://") for server in servers):
        named["tls"] = ssl.create_default_context(cafile=options.tls_ca)
    await client.connect(
        servers,
        name="mcfd-hq",
        connect_timeout=CONNECT_SECONDS,
        allow_reconnect=False,
        max_reconnect_attempts=1,
        error_cb=_heard,
        **named,
    )
    return client


async def _heard(error: Exception) -> None:
    """What the server says beside its answers; a refused subject is known by this alone."""
    log.warning("nats.error", reason=str(error)[:300])
