"""The kinds of headquarters. Another one is an entry here, its name in `UpstreamKindName`, and the module `daemon.upstream.NAME` with
`open_receiver(options)`."""

from __future__ import annotations

from typing import Final, Literal, NamedTuple

UpstreamKindName = Literal["https", "nats"]
"""As the configuration's `upstream.kind` says it."""


class UpstreamKind(NamedTuple):
    schemes: tuple[str, ...]
    """Of an address, the usual one first."""
    takes_servers: bool = False
    """Several addresses, with commas between."""
    takes_credentials: bool = False
    """A `credentials_file`, whose key signs where no other does."""


KINDS: Final[dict[str, UpstreamKind]] = {
    "https": UpstreamKind(("https", "http")),
    "nats": UpstreamKind(("nats", "tls"), takes_servers=True, takes_credentials=True),
}
