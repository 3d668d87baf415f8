"""Authentication of programs (key) and people (session cookie), and the client's address."""

import contextlib
import ipaddress
import re
from typing import Any

from litestar import Request
from litestar.connection import ASGIConnection
from litestar.exceptions import NotAuthorizedException, PermissionDeniedException

from common.http_server import KEY_ACCEPTED
from headquarters.intake.threads import Threads
from headquarters.store.people import HqPerson
from headquarters.store.store import HqStore

AnyConnection = ASGIConnection[Any, Any, Any, Any]
AnyRequest = Request[Any, Any, Any]
_WITH_PORT = re.compile(r"\[([0-9A-Fa-f:.]+)\](?::[0-9]+)?|([0-9.]+):[0-9]+")


def mark_key_accepted(request: AnyConnection) -> None:
    """Marks an authenticated client: HAProxy applies the larger limits to its address."""
    request.scope["state"][KEY_ACCEPTED] = True


async def authenticate(request: AnyRequest, store: HqStore, threads: Threads, role: str = "reader") -> HqPerson:
    """The program with this role. Raises 401 or 403."""
    scheme, _, key = request.headers.get("authorization", "").partition(" ")
    found = await threads.run(store.people.role_of_key, key.strip()) if scheme.lower() == "bearer" else None
    if found is None:
        headers = {"WWW-Authenticate": "Bearer"}
        raise NotAuthorizedException(detail="needs a key: Authorization: Bearer …", headers=headers)
    mark_key_accepted(request)
    caller = HqPerson("key", found)
    if not caller.may(role):
        raise PermissionDeniedException(detail=f"needs the role {role}")
    return caller


def address_of_request(request: AnyRequest, *, is_direct: bool) -> str:
    """The client's address; empty if unknown. Without TLS of our own (`is_direct`) it is the last one in
    `X-Forwarded-For` from the reverse proxy, since all requests come from the proxy's address. Some proxies append a
    header line of their own, some a port."""
    peer = request.client.host if request.client else ""
    if is_direct or not _is_near(peer):
        return peer
    lines = request.headers.getall("x-forwarded-for", [""])
    address = lines[-1].rpartition(",")[2].strip()[:64]
    with_port = _WITH_PORT.fullmatch(address)
    return (with_port[1] or with_port[2]) if with_port else address


def _is_near(host: str) -> bool:
    """Whether the peer is on this computer or in a private network, like a reverse proxy."""
    with contextlib.suppress(ValueError):
        return ipaddress.ip_address(host).is_private
    return not host
