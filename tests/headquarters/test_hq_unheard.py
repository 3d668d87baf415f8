"""A word that comes a second time, from the stream: nothing is done for it. On both databases."""

from support.hq.paper_box import PaperBox
from support.hq.store import UTC

from headquarters.core.reception import Message
from headquarters.intake.reception import Reception


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
