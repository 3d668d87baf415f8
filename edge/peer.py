"""Which addresses are counted as one."""

from __future__ import annotations

import ipaddress


def peer(host: str) -> str:
    """Who is counted as one: an IPv4 address, or the /64 that a single box on IPv6 may move about in."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host
    if isinstance(address, ipaddress.IPv4Address) or address.is_link_local:
        return host
    if address.ipv4_mapped:
        return str(address.ipv4_mapped)
    return str(ipaddress.IPv6Address(int(address) >> 64 << 64))
