"""Addresses of the network."""

from __future__ import annotations

import ipaddress


def is_loopback(host: str) -> bool:
    """Whether only this computer can be meant."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
