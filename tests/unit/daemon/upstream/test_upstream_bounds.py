"""What is taken and sent at most, to the byte."""

from __future__ import annotations

from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any

import nats.errors
import pytest
from nats.js.api import PubAck

from daemon.upstream import https
from daemon.upstream import nats as jetstream


async def test_an_answer_without_end_is_read_to_its_limit() -> None:
    """One piece beyond it, and no more."""
    given = 0

    async def pieces() -> AsyncIterator[bytes]:
        nonlocal given
        while given < 100:
            given += 1
            yield b"x" * 1024

    received = bytearray()
    answer: Any = SimpleNamespace(aiter_raw=pieces)
    await https._read(answer, received)
    assert (given, len(received)) == (https.ANSWER_LIMIT // 1024 + 1, https.ANSWER_LIMIT + 1024)


@pytest.mark.parametrize("beyond", [0, 1])
async def test_a_closure_is_as_large_as_the_server_takes_with_its_headers(
    monkeypatch: pytest.MonkeyPatch, beyond: int
) -> None:
    """To the last byte of what the server said; a byte more is never sent."""
    published: list[bytes] = []

    async def publish(topic: str, event: bytes, **_: object) -> PubAck:
        published.append(event)
        return PubAck(stream="closures", seq=1)

    client = jetstream._Client(None, plain=True, patience=60.0)
    monkeypatch.setattr(client, "jetstream", lambda: SimpleNamespace(publish=publish))
    client._max_payload = 1000
    headers = {"Nats-Msg-Id": "0b9f"}
    event = b"x" * (1000 - len("NATS/1.0\r\nNats-Msg-Id: 0b9f\r\n\r\n") + beyond)
    if beyond:
        with pytest.raises(nats.errors.MaxPayloadError):
            await client.publish_acknowledged("a.b", event, headers)
    else:
        assert (await client.publish_acknowledged("a.b", event, headers)).stream == "closures"
    assert published == ([] if beyond else [event])
