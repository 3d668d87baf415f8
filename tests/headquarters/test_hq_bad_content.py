"""What the database refuses for its content alone, while the others of its batch are taken; and words that come twice. On both databases."""

import asyncio

import pytest
from support.hq.paper_box import PaperBox
from support.hq.store import UTC

from common.wire.nats_headers import Headers
from headquarters.core.reception import Message, MessageRefused
from headquarters.intake.reception import Reception
from headquarters.intake.stream import message_of
from headquarters.store.book.closures import StoreOutcome
from headquarters.store.database import BadContent
from headquarters.store.stream_ranges import StreamName


@pytest.mark.parametrize(
    "trouble", [BadContent("no such text"), ValueError("no such number"), OverflowError("too large")]
)
async def test_one_of_ten(store, box, threads, monkeypatch, trouble):
    """It is refused as evidence, each of the others is kept, and all ten messages of the stream are taken."""
    closures = [box.close() for _ in range(10)]
    messages = [
        Message(via="nats", headers=headers, body=body, nim=box.nim, stream_seq=seq)
        for seq, (headers, body) in enumerate(map(box.sent, closures), 1)
    ]
    take = store.closures.store

    def choosy(batch, **options):
        if any(received.record.z == 7 for received in batch):
            raise trouble
        return take(batch, **options)

    monkeypatch.setattr(store.closures, "store", choosy)
    reception = Reception(store, threads, UTC)
    results = await reception.closures(messages, StreamName("CLOSURES", "2026"))
    assert [result for result in results if result is not StoreOutcome.STORED] == [results[6]]
    assert isinstance(results[6], MessageRefused)
    assert store.stream_ranges.ranges("CLOSURES", "2026") == [(1, 10)]
    assert [(one.reason, one.count) for one in store.evidence.counted("2020-01-01")] == [("malformed", 1)]


async def test_several_senders_over_https(store, box, threads, monkeypatch):
    """They are gathered into one transaction: the one whose content is refused gets an error, and the others are kept."""
    other = PaperBox("EL02000016-1")
    store.register.add(other.nim, other.key.public, now=1)
    take = store.closures.store

    def choosy(batch, **options):
        if any(received.data.nim == other.nim for received in batch):
            raise OverflowError("too large")
        return take(batch, **options)

    monkeypatch.setattr(store.closures, "store", choosy)
    reception = Reception(store, threads, UTC)
    async with reception.running():
        sent = [of.sent(of.close()) for of in (box, other, box)]
        messages = [Message(via="https", headers=headers, body=body) for headers, body in sent]
        results = await asyncio.gather(*map(reception.closure, messages), return_exceptions=True)
    assert [results[0], results[2]] == [StoreOutcome.STORED] * 2
    assert isinstance(results[1], MessageRefused)
    assert results[1].reason == "malformed"


async def test_a_presence_with_a_time_that_is_none(store, box, threads):
    """It is refused, and the one beside it is heard."""
    other = PaperBox("EL02000016-1")
    store.register.add(other.nim, other.key.public, now=1)
    reception = Reception(store, threads, UTC)
    sent = [box.sent_presence(box.presence(sold="yesterday")), other.sent_presence(other.presence())]
    messages = [Message(via="https", headers=headers, body=body) for headers, body in sent]
    async with reception.running():
        results = await asyncio.gather(*map(reception.presence, messages), return_exceptions=True)
    assert [getattr(result, "reason", "heard") for result in results] == ["malformed", "heard"]


async def test_a_subject_that_no_database_takes(store, box, threads):
    """What came on it is refused as any other junk, as a closure and as the last word of a box; the closure behind it is taken."""
    sent = [({}, b"x", "mcf.EL02\0X.closure"), (*box.sent(box.close()), f"mcf.{box.nim}.closure")]
    messages = [
        message_of(Headers(headers), body, subject, size=0, seq=seq)
        for seq, (headers, body, subject) in enumerate(sent, 1)
    ]
    reception = Reception(store, threads, UTC)
    refused, outcome = await reception.closures(messages, StreamName("CLOSURES", "2026"))
    assert isinstance(refused, MessageRefused)
    assert outcome is StoreOutcome.STORED
    assert await reception.new_presences(messages[:1]) == messages[:1]


def word(box, **changes):
    headers, body = box.sent_presence(box.presence(**changes))
    return Message(via="nats", headers=headers, body=body, nim=box.nim)


async def test_a_word_that_was_heard_before(store, box, threads):
    """It is left out; the box's next one, and the same bytes in the name of another box, are looked at."""
    reception = Reception(store, threads, UTC)
    first, second = word(box), word(box, disk=8000)
    stranger = Message(via="nats", headers=first.headers, body=first.body, nim="EL02000016-1")
    async with reception.running():
        assert await reception.new_presences([first]) == [first]
        await reception.presence(first)
    assert await reception.new_presences([first, second, stranger]) == [second, stranger]
    assert await reception.new_presences([]) == []


async def test_a_word_of_a_key_that_is_revoked_since(store, box, threads):
    """Its key was revoked: it is looked at again, and refused."""
    reception = Reception(store, threads, UTC)
    presence = word(box)
    async with reception.running():
        await reception.presence(presence)
    store.register.revoke(PaperBox().nim.partition("-")[0], box.key.id, 1)
    assert await reception.new_presences([presence]) == [presence]
