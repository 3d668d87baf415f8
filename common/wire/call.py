"""A call: one HTTP request from the relay to a box, and the box's reply (decision 46 of docs/decisions.md).

NATS request and reply on `mcf.<NIM>.call`, both MessagePack, so that bodies are the client's bytes. An empty request is
a ping: each listening box replies with its `boot` and status 0. Fields may be added; none is renamed or dropped."""

import hashlib
import re
from collections.abc import Iterable, Mapping
from typing import Annotated, Final, Literal, TypeVar

import msgspec

from common.language import Text
from common.wire.closure import Shape
from common.wire.errors import BadEvent

MAX_BODY: Final = 256 * 1024
"""Bytes of a request's body; an invoice of a thousand items has some 200 KB."""
MAX_PATH: Final = 4096
MAX_HEADERS: Final = 8 * 1024
"""Bytes of all names and values together."""
MAX_CALL: Final = MAX_BODY + 2 * MAX_PATH + 2 * MAX_HEADERS
"""Bytes of an encoded call; a sealed one (`LaterCall`) is some hundred bytes larger than its content."""
MAX_REPLY: Final = 960 * 1024
"""Bytes of an encoded reply: `max_payload` of config/nats/jetstream.conf is 1 MB."""
ANSWER_SECONDS: Final = 90.0
"""Longest wait of a client; a credit note may take the machine a minute."""
LATER_SECONDS: Final = 24 * 3600
"""Longest wait of a sale for a box that is off."""
LIMIT_PASSED: Final = Text("Mcfd-Not-After {limit}: it is {now} here (compare the clocks); nothing was certified")
"""Both are times in UTC."""

METHOD = Literal["GET", "POST", "DELETE"]
REQUEST_HEADERS: Final = frozenset(
    {
        "accept",
        "accept-language",
        "authorization",
        "content-digest",
        "content-encoding",
        "content-type",
        "idempotency-key",
        "mcfd-not-after",
        "mcfd-strict",
        "mcfd-test",
        "prefer",
        "signature",
        "signature-input",
        "x-request-id",
    }
)
"""Request headers that are passed on; a box ignores all others."""
_KEY_ID: Final = re.compile(r'keyid="([0-9a-f]{16})"')
IDEMPOTENCY_KEY: Final = re.compile(r"[ -~]{1,200}", re.ASCII)
_QUOTED: Final = re.compile(r'"(?:[^"\\]|\\.)*"')
_RESPOND_ASYNC: Final = re.compile(r"respond-async(\s*=\s*)?", re.IGNORECASE)
_PATH: Final = re.compile(r"/v1/(me|mcf/[!-~]+)", re.ASCII)
_NAME: Final = re.compile(r"[a-z0-9-]{1,64}", re.ASCII)
_UNPRINTABLE: Final = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]|[^\x00-\xff]")

Millis = Annotated[int, msgspec.Meta(ge=0, le=2**53 - 1)]
Headers = tuple[tuple[str, str], ...]
"""Names in lower case; values as in HTTP, one byte for each character."""
T = TypeVar("T", bound=Shape)


class RelayedCall(Shape, frozen=True, omit_defaults=True):
    """`boot` names the box, from its last presence; any other box does not carry the call out. Times are milliseconds
    since 1970 by the relay's clock: the box refuses the call from `not_after` on; `sent_at` is the time of sending."""

    boot: Annotated[str, msgspec.Meta(min_length=1, max_length=64)]
    not_after: Millis
    sent_at: Millis
    method: METHOD = "GET"
    path: str = ""
    """As in the request line, with the query."""
    headers: Headers = ()
    body: bytes = b""
    sealed: bytes = b""
    """A call that waited for the box (`LaterCall.sealed`), instead of the four fields above."""
    begin_by: Millis = 0
    """`not_after` by the box's `clock`, 0 if that is not known: clocks of relay and box may differ."""


class LaterCall(Shape, frozen=True, omit_defaults=True):
    """A sale for a box that is off, stored by the stream CALLS on `mcf.<NIM>.later`. `sealed` is an encoded
    `RelayedCall` in an age file for the box's key (`common.wire.keys`)."""

    not_after: Millis
    sealed: bytes


class RelayedReply(Shape, frozen=True, omit_defaults=True):
    """Status 0: not carried out, since `boot` is another box's or the call was a ping."""

    boot: str
    line: str = ""
    """Names the box's connection: no reply comes to a call that arrived by an earlier one."""
    nim: str = ""
    """With status 0: the name under which the machine's presences are published."""
    under_way: int | None = None
    """With status 0: calls for that machine which the box carries out; None from boxes before 0.16."""
    status: Annotated[int, msgspec.Meta(ge=0, le=599)] = 0
    headers: Headers = ()
    body: bytes = b""
    clock: Millis = 0
    """The box's monotonic clock when it replied, in milliseconds; 0 from boxes before 0.21."""


def prefers_async(preferences: Iterable[str]) -> bool:
    """Whether `Prefer: respond-async` (RFC 7240) is among these headers; an empty value counts as none."""
    each_one = _QUOTED.sub("", ",".join(preferences)).split(",")
    return any(_RESPOND_ASYNC.fullmatch(each.partition(";")[0].strip()) for each in each_one)


def encode(message: RelayedCall | RelayedReply | LaterCall) -> bytes:
    return msgspec.msgpack.encode(message)


def read_call(content: bytes) -> RelayedCall:
    """Raises BadEvent, naming the field, for anything that is not a call or is over a limit."""
    call = _decoded(content, RelayedCall, MAX_CALL + MAX_HEADERS)
    if call.sealed:
        return call
    check_call(call)
    return call


def check_call(call: RelayedCall) -> None:
    """Raises BadEvent, naming the field, for a path, header or body over its limit or not allowed in HTTP."""
    if len(call.path) > MAX_PATH or not _PATH.fullmatch(call.path):
        raise BadEvent("path", f"none below /v1, or longer than {MAX_PATH} characters")
    if len(call.body) > MAX_BODY:
        raise BadEvent("body", f"larger than {MAX_BODY} bytes")
    check_headers(call.headers)


def check_headers(headers: Iterable[tuple[str, str]]) -> None:
    size = 0
    for name, value in headers:
        size += len(name) + len(value)
        # A signature does not cover blanks around a value: with them one signed request would become many.
        if not _NAME.fullmatch(name) or _UNPRINTABLE.search(value) or value != value.strip(" \t"):
            raise BadEvent("headers", "none of HTTP")
    if size > MAX_HEADERS:
        raise BadEvent("headers", f"larger than {MAX_HEADERS} bytes")


def read_reply(content: bytes) -> RelayedReply:
    """Raises BadEvent for anything that is not a reply."""
    reply = _decoded(content, RelayedReply, MAX_REPLY)
    check_headers(reply.headers)
    return reply


def read_later(content: bytes) -> LaterCall:
    """Raises BadEvent for anything that is not a later call."""
    return _decoded(content, LaterCall, MAX_CALL + MAX_HEADERS)


def _decoded(content: bytes, shape: type[T], most: int) -> T:
    if len(content) > most:
        raise BadEvent("", f"larger than {most} bytes")
    try:
        return msgspec.msgpack.decode(content, type=shape)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise BadEvent("", str(error)) from None


def key_id_of(headers: Mapping[str, str]) -> str:
    """As the box names the key in its presence (`common.wire.keys.LaneHeader`), not checked; empty for what can be none."""
    if signed := _KEY_ID.search(headers.get("signature-input", "")):
        return signed[1]
    scheme, _, token = headers.get("authorization", "").partition(" ")
    return hashlib.sha256(token.strip().encode()).hexdigest()[:16] if scheme.lower() == "bearer" else ""
