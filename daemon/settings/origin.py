"""`allowed_origins`: only what a browser really sends can ever be equal to it, so nothing else is taken."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

USUAL_PORTS = {"http": 80, "https": 443}
HOST = re.compile(r"[a-z0-9_-]+(\.[a-z0-9_-]+)*|\[[0-9a-f:.]+\]")


def origin_of(url: str) -> str:
    """The origin of an address as browsers write it (scheme, host, and the port unless it is the usual one); empty when it has none."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return ""
    host = parts.netloc.rpartition("@")[2].lower()
    host = host.removesuffix(f":{port}") if port is not None else host
    if parts.scheme not in USUAL_PORTS or not HOST.fullmatch(host) or port == 0:
        return ""
    shown = "" if port in (None, USUAL_PORTS[parts.scheme]) else f":{port}"
    return f"{parts.scheme}://{host}{shown}"
