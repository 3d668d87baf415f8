"""The address that tills are given."""

from __future__ import annotations

import socket
from ipaddress import IPv6Address

from daemon.tls.names import address_of, box_addresses

ELSEWHERE = "192.0.2.1"
"""An address of nobody (RFC 5737): the route to it tells which of our own addresses the network sees. No byte is sent."""


def base_url(scheme: str, host: str, port: int) -> str:
    name = _for_tills(host)
    return f"{scheme}://{f'[{name}]' if isinstance(address_of(name), IPv6Address) else name}:{port}"


def _for_tills(host: str) -> str:
    address = address_of(host)
    if address is None or not address.is_unspecified:
        return host
    return _routed() or next(map(str, box_addresses()), socket.gethostname())


def _routed() -> str:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect((ELSEWHERE, 9))
        except OSError:
            return ""
        address: str = probe.getsockname()[0]
        return address
