"""`POST /join` to headquarters (`common.wire.joining`), repeated until an answer: a repetition gets the same one."""

import asyncio
import hashlib
import ssl
import time
import uuid
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import httpx
import msgspec

from common.language import Text
from common.sockets import is_loopback
from common.wire.errors import BadEvent
from common.wire.joining import (
    MAX_ANSWER_BYTES,
    PATH,
    TYPE,
    JoinAnswer,
    JoinLink,
    JoinRequest,
    read_answer,
)
from common.wire.keys import PrivateKey
from common.wire.signing import sign
from daemon.core.errors import JoinFailed, KeyRevoked
from daemon.upstream.options import BadOptions, certificate_fault, connection_fault, tls_context

TRIES: Final = 3
PAUSE_SECONDS: Final = 1.0
TIMEOUT: Final = 15.0
HTTPS_PORT: Final = 443
REFUSED: Final[dict[str, Text]] = {
    "CODE_UNKNOWN": Text("this headquarters has given no such code; look at each letter"),
    "CODE_USED": Text("another box has joined with this code; headquarters gives a new one"),
    "CODE_EXPIRED": Text("the code has ended; headquarters gives a new one"),
    "TOO_MANY_REQUESTS": Text("too many wrong codes from here; try again in some minutes"),
}


class _ProblemBody(msgspec.Struct, frozen=True):
    code: str = ""
    detail: str = ""


async def ask_to_join(link: JoinLink, seed: bytes, nims: tuple[str, ...], version: str, ca: Path | None) -> JoinAnswer:
    """Headquarters' answer to this key and these machines. `ca`: certificates instead of the system's. JoinFailed."""
    key = PrivateKey(seed)
    body = msgspec.json.encode(JoinRequest(type=TYPE, code=link.code, key=key.public, nims=nims, version=version))
    headers = {**sign([key], str(uuid.uuid4()), int(time.time()), body), "content-type": "application/json"}
    url = _checked(link)
    context = await asyncio.to_thread(_context, url, link.pin, ca)
    async with httpx.AsyncClient(verify=context, trust_env=False, timeout=TIMEOUT) as client:
        for tries_left in reversed(range(TRIES)):
            try:
                return await _ask(client, url, body, headers, nims)
            except (httpx.HTTPError, OSError) as error:
                if not tries_left:
                    raise JoinFailed(
                        Text("headquarters does not answer ({cause}); the same code again, later", cause=_cause(error))
                    ) from None
            await asyncio.sleep(PAUSE_SECONDS)
    raise AssertionError


async def _ask(
    client: httpx.AsyncClient, url: str, body: bytes, headers: dict[str, str], nims: tuple[str, ...]
) -> JoinAnswer:
    """Raises HTTPError without a valid answer."""
    received = bytearray()
    async with client.stream("POST", url, content=body, headers=headers) as answer:
        async for piece in answer.aiter_bytes():
            received += piece
            if len(received) > MAX_ANSWER_BYTES:
                break
        if answer.status_code >= httpx.codes.INTERNAL_SERVER_ERROR:
            answer.raise_for_status()
    try:
        if answer.status_code == httpx.codes.OK:
            return read_answer(bytes(received))
        problem = msgspec.json.decode(received, type=_ProblemBody)
    except (BadEvent, msgspec.MsgspecError, UnicodeError):
        raise JoinFailed(Text("what answers at {url} is no headquarters of mcfd", url=url)) from None
    if problem.code == "KEY_REVOKED":
        raise KeyRevoked(Text("headquarters has revoked the key of this box"))
    if problem.code == "OTHER_MACHINES":
        mine, theirs = ", ".join(nims), problem.detail.rpartition(": ")[2]
        raise JoinFailed(
            Text("the code is for {theirs}; the machines of this box are {mine}", theirs=theirs, mine=mine)
        )
    cause = f"{answer.status_code} {problem.code} {problem.detail}"[:200]
    raise JoinFailed(REFUSED.get(problem.code) or Text("headquarters answers {answer}", answer=cause))


def _checked(link: JoinLink) -> str:
    if not link.url:
        raise JoinFailed(Text("the code does not say which headquarters gave it: its address is needed, https://…"))
    not_one = JoinFailed(Text("{url} is not the address of a headquarters, https://…", url=link.url))
    try:
        url, _ = httpx.URL(link.url), urlsplit(link.url).port  # ValueError for a port above 65535
    except (httpx.InvalidURL, ValueError):
        raise not_one from None
    if url.scheme not in ("https", "http") or not url.host:
        raise not_one
    if url.scheme == "http" and not is_loopback(url.host):
        raise JoinFailed(Text("a code goes over https:// alone: the address is http://"))
    return f"{link.url.rstrip('/')}/{PATH}"


def _context(url: str, pin: str, ca: Path | None) -> ssl.SSLContext:
    """With a `pin` only its certificate is trusted: JoinFailed if headquarters shows another. Blocking."""
    parts = urlsplit(url)
    try:
        if not pin or parts.scheme == "http":
            return tls_context(ca, is_used=parts.scheme == "https")
        certificate = ssl.get_server_certificate((parts.hostname or "", parts.port or HTTPS_PORT), timeout=TIMEOUT)
    except BadOptions as error:
        raise JoinFailed(str(error)) from None
    except (OSError, UnicodeError) as error:  # UnicodeError: an invalid label in the host name
        raise JoinFailed(
            Text("headquarters does not answer ({cause}); the same code again, later", cause=_cause(error))
        ) from None
    if hashlib.sha256(ssl.PEM_cert_to_DER_cert(certificate)).hexdigest() != pin:
        raise JoinFailed(
            Text("what answers at {url} shows another certificate than the code says: it is not headquarters", url=url)
        )
    context = ssl.create_default_context(cadata=certificate)
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    return context


def _cause(error: Exception) -> Text | str:
    return certificate_fault(error) or connection_fault(error)
