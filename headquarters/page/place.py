"""Where a request to log in comes from."""

from __future__ import annotations

import ipaddress
import re

from headquarters.page.shared import AnyRequest

_WITH_PORT = re.compile(r"\[([0-9A-Fa-f:.]+)\](?::[0-9]+)?|([0-9.]+):[0-9]+")


def address_of_request(request: AnyRequest, *, is_direct: bool) -> str:
    """Empty where it is not known. Without TLS of our own (`is_direct`) a web server is in front: it is that one's word, the
    last of `X-Forwarded-For`, and without it everybody would be one. Some web servers add a line of their own behind the browser's, and some a port."""
    peer = request.client.host if request.client else ""
    if is_direct or not _is_near(peer):
        return peer
    lines = request.headers.getall("x-forwarded-for", [""])
    address = lines[-1].rpartition(",")[2].strip()[:64]
    with_port = _WITH_PORT.fullmatch(address)
    return (with_port[1] or with_port[2]) if with_port else address


def _is_near(host: str) -> bool:
    """On this computer or in a network of our own, as a web server in front is."""
    try:
        return ipaddress.ip_address(host).is_private
    except ValueError:
        return not host
