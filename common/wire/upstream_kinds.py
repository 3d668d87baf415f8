"""The kinds of headquarters. A new one needs an entry here, its name in `UpstreamKindName`, and a module
`daemon.upstream.NAME` with `open_receiver(options)`."""

from typing import Final, Literal, NamedTuple

UpstreamKindName = Literal["https", "nats"]
"""Values of the configuration's `upstream.kind`."""


class UpstreamKind(NamedTuple):
    schemes: tuple[str, ...]
    """URL schemes, the usual one first."""
    takes_servers: bool = False
    """Several addresses, separated by commas."""
    takes_credentials: bool = False
    """A `credentials_file`, whose key signs if there is no other."""


KINDS: Final[dict[str, UpstreamKind]] = {
    "https": UpstreamKind(("https", "http")),
    "nats": UpstreamKind(("nats", "tls"), takes_servers=True, takes_credentials=True),
}
