"""Reading the stream by number, beside its consumer: for what headquarters has acknowledged once and holds no more.

Asks with `DIRECT.GET` in batches (nats-server 2.11 and newer), which changes nothing on the server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence

import msgspec
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.errors import TimeoutError as NoAnswer

from exchange.subjects import CLOSURE, CLOSURES_STREAM
from headquarters.core.reception import Message

BATCH = 250
WAIT_SECONDS = 5.0
SEQUENCE, SUBJECT, STATUS = "Nats-Sequence", "Nats-Subject", "Status"
ALL = f"mcf.*.{CLOSURE}"


def lowered(headers: Mapping[str, str] | None) -> dict[str, str]:
    """The signature's headers, by their names in small letters."""
    return {name.lower(): text for name, text in (headers or {}).items() if name.lower().startswith("webhook-")}


def nim_of_subject(subject: str) -> str:
    return subject.removeprefix("mcf.").rpartition(".")[0]


async def read_stream(client: Client, start: int, subject: str = ALL) -> AsyncIterator[list[Message]]:
    """In order, from that sequence on to the end as it is now. NoAnswer when the server does not let us."""
    while True:
        found = await _batch(client, start, subject)
        messages = [_message(msg) for msg in found]
        if messages:
            yield messages
        if len(messages) < BATCH:
            return
        start = (messages[-1].stream_seq or 0) + 1


async def _batch(client: Client, start: int, subject: str) -> Sequence[Msg]:
    inbox = client.new_inbox()
    subscription = await client.subscribe(inbox)
    try:
        request = msgspec.json.encode({"seq": start, "next_by_subj": subject, "batch": BATCH})
        await client.publish(f"$JS.API.DIRECT.GET.{CLOSURES_STREAM}", request, reply=inbox)
        found: list[Msg] = []
        async with asyncio.timeout(WAIT_SECONDS * 4):
            while True:
                msg = await subscription.next_msg(WAIT_SECONDS)
                if SEQUENCE not in (msg.headers or {}):
                    _check(msg)
                    return found
                found.append(msg)
    finally:
        await subscription.unsubscribe()


def _check(msg: Msg) -> None:
    """204 ends a batch, 404 says that there is nothing; anything else is a refusal."""
    if (msg.headers or {}).get(STATUS) not in ("204", "404"):
        raise NoAnswer


def _message(msg: Msg) -> Message:
    headers = msg.headers or {}
    seq = int(headers[SEQUENCE])
    return Message(
        via="nats", headers=lowered(headers), body=msg.data, nim=nim_of_subject(headers[SUBJECT]), stream_seq=seq
    )
