"""By which names and addresses a till reaches this box. What lies in the folder of a box's own authority, and what can be wrong with it;
without the weight of what reads it."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterable, Iterator
from ipaddress import IPv4Address, IPv6Address, ip_address
from itertools import pairwise
from pathlib import Path

KEY = "ca.key"
SERVER = "server.pem"

NET = Path("/proc/self/net")
LABELS = re.compile(r"(?!-)[a-z0-9-]{1,63}(?<!-)(\.(?!-)[a-z0-9-]{1,63}(?<!-))*", re.ASCII)
GLOBAL_SCOPE = "00"
V6_FIELDS = 6

Address = IPv4Address | IPv6Address


class AuthorityError(Exception):
    """One line that says what is wrong with the authority, and what to do."""


def box_names(host: str, allowed_hosts: Iterable[str]) -> tuple[str, ...]:
    """What a certificate has to stand for when mcfd listens on `host`: host names first, then addresses; each once."""
    names = ["localhost", *host_names(), *(name.lower().rstrip(".") for name in allowed_hosts)]
    addresses: list[Address] = [ip_address("127.0.0.1"), ip_address("::1")]
    listening = address_of(host)
    if listening is None:
        names.append(host.lower())
    elif listening.is_unspecified:
        addresses += box_addresses()
    else:
        addresses.append(listening)
    dns = [name for name in names if LABELS.fullmatch(name) and address_of(name) is None]
    return tuple(dict.fromkeys([*dns, *map(str, addresses)]))


def host_names() -> tuple[str, str]:
    """The box's own name, and the one that mDNS (Avahi) makes of it."""
    own = socket.gethostname().lower()
    return own, f"{own.partition('.')[0]}.local"


def address_of(text: str) -> Address | None:
    try:
        return ip_address(text)
    except ValueError:
        return None


def box_addresses(net: Path = NET) -> list[Address]:
    """Those that other boxes can use; empty where the system does not tell."""
    found = [*_v4(_lines(net / "fib_trie")), *_v6(_lines(net / "if_inet6"))]
    return [address for address in dict.fromkeys(found) if not address.is_loopback and not address.is_link_local]


def _v4(lines: list[str]) -> Iterator[Address]:
    """An address of this box is a leaf of the routing table that is marked so, one line further down."""
    for leaf, kind in pairwise(lines):
        if kind.split() == ["/32", "host", "LOCAL"]:
            yield ip_address(leaf.split()[-1])


def _v6(lines: list[str]) -> Iterator[Address]:
    for line in lines:
        fields = line.split()
        if len(fields) == V6_FIELDS and fields[3] == GLOBAL_SCOPE:
            yield IPv6Address(int(fields[0], 16))


def _lines(file: Path) -> list[str]:
    try:
        return file.read_text("ascii").splitlines()
    except OSError:
        return []
