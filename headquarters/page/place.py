"""Where a request to log in comes from."""

from __future__ import annotations

import ipaddress

from common.login_limits import network_of
from headquarters.page.shared import AnyRequest


def network_of_request(request: AnyRequest, *, is_direct: bool) -> str:
    """As `network_of` says it; empty where it is not known. Without TLS of our own (`is_direct`) a web server is in front: it is that one's word, the
    last of `X-Forwarded-For`, and without it everybody would be one."""
    peer = request.client.host if request.client else ""
    if is_direct or not _is_near(peer):
        return network_of(peer)
    return network_of(request.headers.get("x-forwarded-for", "").rpartition(",")[2].strip()[:64])


def _is_near(host: str) -> bool:
    """On this computer or in a network of our own, as a web server in front is."""
    try:
        return ipaddress.ip_address(host).is_private
    except ValueError:
        return not host
