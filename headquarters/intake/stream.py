"""Queries to streams, and reading a stream by number without its consumer, for
acknowledged messages that are no longer stored.

Reads with batched `DIRECT.GET` (nats-server 2.11 and newer), which changes nothing on the server."""

import contextlib
from collections.abc import AsyncIterator, Sequence
from datetime import datetime
from typing import Any, NamedTuple

import msgspec

from common.wire.errors import NatsError, NoAnswer
from common.wire.nats_client import Client, Msg
from common.wire.nats_headers import CLOSURE, CLOSURES_STREAM, Headers
from headquarters.core.reception import Message

BATCH = 250
WAIT_SECONDS = 5.0
MAX_HEADERS = 8192
"""Bytes of a header block; a box's has about 300."""
SEQUENCE, SUBJECT, TIME = "Nats-Sequence", "Nats-Subject", "Nats-Time-Stamp"
ALL = f"mcf.*.{CLOSURE}"
NOT_FOUND = 404
WORDS = 9
"""Number of words in a message's reply subject, in its first form."""


class NoSuchStream(NatsError):
    """No such stream or consumer."""


class StreamInfo(msgspec.Struct, frozen=True):
    """`created` distinguishes a stream from an earlier one with the same name."""

    created: str
    last_seq: int
    room: int | None = None
    """Messages that the subject can still take; None: unlimited."""


async def call(client: Client, what: str, request: Any) -> dict[str, Any]:
    """An answer of JetStream's API. Raises NatsError if it is an error or does not arrive."""
    answer = await client.request(f"$JS.API.{what}", msgspec.json.encode(request), WAIT_SECONDS)
    found = msgspec.json.decode(answer.data, type=dict[str, Any])
    error = found.get("error")
    if error is not None:
        kind = NoSuchStream if error.get("code") == NOT_FOUND else NatsError
        raise kind(f"{what}: {error.get('description', '')}")
    return found


async def stream_info(client: Client, stream: str, subject: str = "") -> StreamInfo:
    """`subject`: whose room is to be returned."""
    found = await call(client, f"STREAM.INFO.{stream}", {"subjects_filter": subject} if subject else {})
    most = int(found["config"].get("max_msgs_per_subject", -1))
    count = int((found["state"].get("subjects") or {}).get(subject, 0))
    room = max(0, most - count) if subject and most > 0 else None
    return StreamInfo(str(found["created"]), int(found["state"]["last_seq"]), room)


def nim_of_subject(subject: str) -> str:
    """The NIM in the subject, unchecked but without NUL, which a server without permissions lets through and
    PostgreSQL rejects."""
    return subject.removeprefix("mcf.").rpartition(".")[0].replace("\0", "")


def message_of(
    headers: Headers, body: bytes, subject: str, *, size: int, seq: int | None = None, at: int | None = None
) -> Message:
    """`size` of the header block in bytes. Faults are noted in `damage` for the reception to refuse."""
    damage = "" if headers.is_sound else "the header block is none of NATS"
    if size > MAX_HEADERS:
        damage = f"headers larger than {MAX_HEADERS} bytes"
    signed = {} if damage else {n.lower(): t for n, t in headers.values.items() if n.lower().startswith("webhook-")}
    return Message(
        via="nats", headers=signed, body=body, nim=nim_of_subject(subject), stream_seq=seq, at=at, damage=damage
    )


class Delivery(NamedTuple):
    """The consumer's data on a message, from its reply subject."""

    seq: int
    at: int
    """ms, when the stream received it"""
    pending: int
    """Messages not yet delivered by the consumer."""


def delivery_of(msg: Msg) -> Delivery:
    """`$JS.ACK.<stream>.<consumer>.<deliveries>.<stream seq>.<consumer seq>.<ns>.<pending>`; newer servers insert two
    words before the stream and may append one."""
    words = msg.reply.split(".")
    _, seq, _, nanoseconds, pending = map(int, words[4:9] if len(words) == WORDS else words[6:11])
    return Delivery(seq, nanoseconds // 1_000_000, pending)


def message_of_consumer(msg: Msg) -> Message:
    delivery = delivery_of(msg)
    return message_of(msg.headers, msg.data, msg.subject, size=len(msg.block), seq=delivery.seq, at=delivery.at)


async def read_stream(
    client: Client, start: int, subject: str = ALL, stream: str = CLOSURES_STREAM
) -> AsyncIterator[list[Message]]:
    """Batches in order, from the number `start` to the present end. Raises NatsError without permission."""
    while True:
        found = await _batch(client, start, subject, stream)
        messages = [_message(msg) for msg in found]
        if not messages:
            return
        yield messages  # a short batch need not be the last: large messages end it early
        start = (messages[-1].stream_seq or 0) + 1


async def _batch(client: Client, start: int, subject: str, stream: str) -> Sequence[Msg]:
    request = msgspec.json.encode({"seq": start, "next_by_subj": subject, "batch": BATCH})
    found: list[Msg] = []
    with client.exchange(f"$JS.API.DIRECT.GET.{stream}", request) as answers:
        while (msg := await answers.next(WAIT_SECONDS)).headers.get(SEQUENCE) is not None:
            found.append(msg)
    if msg.headers.status not in ("204", "404"):  # 204 ends a batch, 404: no messages; others are errors
        raise NoAnswer(f"{msg.headers.status} {msg.headers.description}")
    return found


def _message(msg: Msg) -> Message:
    headers = msg.headers
    seq, subject, stamp = (headers.values.get(name, "") for name in (SEQUENCE, SUBJECT, TIME))
    at = None
    with contextlib.suppress(ValueError):
        at = round(datetime.fromisoformat(stamp).timestamp() * 1000)
    return message_of(headers, msg.data, subject, size=len(msg.block), seq=int(seq), at=at)
