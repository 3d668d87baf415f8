"""Who asks: a program by its key, a person by the session's cookie; and from which address."""

from __future__ import annotations

import ipaddress
import re
from typing import Any

from litestar import Request
from litestar.connection import ASGIConnection
from litestar.exceptions import NotAuthorizedException, PermissionDeniedException

from common.http_server import KEY_ACCEPTED
from common.web.security import cookie_of
from common.wire.instants import now_millis
from headquarters.intake.threads import Threads
from headquarters.store.people import HqPerson
from headquarters.store.store import HqStore

AnyConnection = ASGIConnection[Any, Any, Any, Any]
AnyRequest = Request[Any, Any, Any]
COOKIE = "hq_session"
_WITH_PORT = re.compile(r"\[([0-9A-Fa-f:.]+)\](?::[0-9]+)?|([0-9.]+):[0-9]+")


def mark_key_accepted(request: AnyConnection) -> None:
    """Its client has shown a key, or is logged in: HAProxy gives its address the larger limits."""
    request.scope["state"][KEY_ACCEPTED] = True


async def caller_of(request: AnyRequest, store: HqStore, threads: Threads) -> HqPerson | None:
    """What changes something takes a key: a cookie goes along with whatever another site makes a browser send."""
    scheme, _, key = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer" and key:
        role = await threads.run(store.people.role_of_key, key.strip())
        if role is None:
            return None
        mark_key_accepted(request)
        return HqPerson("key", role)
    return await person_of(request, store, threads) if request.method == "GET" else None


async def person_of(request: AnyConnection, store: HqStore, threads: Threads) -> HqPerson | None:
    token = cookie_of(request.scope["headers"], COOKIE)
    person = await threads.run(store.people.of_session, token, now_millis()) if token else None
    if person is not None:
        mark_key_accepted(request)
    return person


async def authenticate(request: AnyRequest, store: HqStore, threads: Threads, role: str = "reader") -> HqPerson:
    """Who asks, when they may; 401 or 403 otherwise."""
    caller = await caller_of(request, store, threads)
    if caller is None:
        headers = {"WWW-Authenticate": "Bearer"}
        raise NotAuthorizedException(detail="needs a key: Authorization: Bearer …", headers=headers)
    if not caller.may(role):
        raise PermissionDeniedException(detail=f"needs the role {role}")
    return caller


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
