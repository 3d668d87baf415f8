"""What is heard at the workers is in the ledger before anybody is woken for it."""

import asyncio

from structlog.testing import capture_logs

from daemon.core.errors import StorageFull
from daemon.core.ledger.book import Book
from daemon.usecases.delivery.events import EventBus
from daemon.usecases.worker.machine_worker import BookEvent

BOOK, OTHER = Book(1, "EL02000015-1", "live"), Book(2, "EL02000016-1", "live")


class Events:
    """Notes what is written, each only when `gate` is open."""

    def __init__(self) -> None:
        self.written: list[tuple[str, int, str]] = []
        self.gate = asyncio.Event()
        self.trouble: Exception | None = None

    async def add(self, book: Book, kind: str, *, at: int, ref: int = 0, detail: str = "") -> None:
        del book, ref
        await self.gate.wait()
        if self.trouble:
            raise self.trouble
        self.written.append((kind, at, detail))


async def settle(event_bus: EventBus) -> None:
    async with asyncio.timeout(30):
        await event_bus._unwritten.join()


async def test_a_machine_that_comes_and_goes_is_written_down_first() -> None:
    """In the order in which it happened, at the time at which it happened; then the listeners of its book are notified."""
    events, now = Events(), iter((10, 20))
    event_bus = EventBus(events, lambda: next(now))
    heard: list[str] = []
    event_bus.listeners.append(lambda event: heard.append(event.type))
    with event_bus.notifier.listening(BOOK) as news, event_bus.notifier.listening(OTHER) as other:
        async with event_bus.running():
            event_bus.on_event(BookEvent("mcf.disconnected", BOOK, detail="unplugged"))
            event_bus.on_event(BookEvent("mcf.connected", BOOK))
            await asyncio.sleep(0)
            assert not news.is_set()
            assert heard == []
            events.gate.set()
            await settle(event_bus)
            assert news.is_set()
    assert events.written == [("mcf.disconnected", 10, "unplugged"), ("mcf.connected", 20, "")]
    assert heard == ["mcf.disconnected", "mcf.connected"]
    assert not other.is_set()


async def test_what_the_ledger_wrote_itself_rings_at_once() -> None:
    """It is published after its commit, and is not written twice."""
    events = Events()
    event_bus = EventBus(events, lambda: 0)
    heard: list[BookEvent] = []
    event_bus.listeners.append(heard.append)
    with event_bus.notifier.listening(BOOK) as news:
        for kind in ("cert.issued", "closure.created", "mcf.attention", "taxserver.alert"):
            news.clear()
            event_bus.on_event(BookEvent(kind, BOOK, 7))
            assert news.is_set()
    assert len(heard) == 4
    assert events.written == []


async def test_a_full_disk_loses_the_event_and_nothing_else() -> None:
    """It is said in the log, and the next one is written again."""
    events = Events()
    events.gate.set()
    events.trouble = StorageFull("full")
    event_bus = EventBus(events, lambda: 5)
    async with event_bus.running():
        with capture_logs() as logs:
            event_bus.on_event(BookEvent("mcf.connected", BOOK))
            await settle(event_bus)
        events.trouble = None
        event_bus.on_event(BookEvent("mcf.disconnected", BOOK))
        await settle(event_bus)
    assert [line["event"] for line in logs] == ["event.not_stored"]
    assert [kind for kind, _, _ in events.written] == ["mcf.disconnected"]
