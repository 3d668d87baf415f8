"""What can happen, one event at a time. Each makes the next world of one, or None where it cannot happen or changes nothing."""

from collections.abc import Callable
from typing import NamedTuple

from exhaustive import real, store, water, work
from exhaustive.model import OTHER, OURS, STRANGER, Counters, Ledger, World


class Event(NamedTuple):
    """`what` is the name of a function here, and of a method of the replay; the others say of which invoice. `then` is the next one's number, whose intent
    is durable when the daemon is killed."""

    what: str
    number: str = ""
    type: str = ""
    executed: bool = False
    then: str = ""

    def __str__(self) -> str:
        words = [self.what.replace("_", " "), self.number, self.type]
        if self.what == "lost":
            words.append("executed" if self.executed else "not executed")
        return " ".join(filter(None, [*words, self.then and f"with {self.then} begun"]))


def happen(event: Event, world: World) -> World | None:
    return DO[event.what](world, event)


def _can_begin(world: World, number: str) -> bool:
    return work.is_serving(world) and store.holder(world.book, number) is None


def sale(world: World, event: Event) -> World | None:
    """The till sends it, and has its answer."""
    return work.sale(world, event.number, event.type) if _can_begin(world, event.number) else None


def refused(world: World, event: Event) -> World | None:
    """For something in it; it was at the machine."""
    return work.refused(world, event.number, event.type) if _can_begin(world, event.number) else None


def lost(world: World, event: Event) -> World | None:
    """38h has no answer, and the line is gone."""
    number, kind, then = event.number, event.type, event.then
    if not _can_begin(world, number) or world.machine.refuses(number, world.book.ifu):
        return None
    world = store.begin(world, number, kind)
    if then:
        if store.holder(world.book, then) is not None:
            return None
        world = store.begin(world, then, kind)
    world = work.executed(world, number, kind) if event.executed else world
    return world._replace(is_up=False, has_met=world.has_met and not then)


def stranger(world: World, event: Event) -> World | None:
    """Another program on the machine."""
    machine = world.machine
    return world._replace(machine=machine.certify(STRANGER, event.type)) if machine.is_active else None


def daily_report(world: World, _: Event) -> World:
    machine = world.machine
    counters = machine.counters._replace(tc=machine.counters.tc + 1)
    return world._replace(machine=machine._replace(counters=counters))


def look(world: World, _: Event) -> World | None:
    return work.look(world)


def restart(world: World, _: Event) -> World | None:
    return work.look(world._replace(is_up=False, has_met=False))


def backup(world: World, _: Event) -> World | None:
    return world._replace(backup=world.ledger) if world.ledger.books else None


def restore(world: World, _: Event) -> World | None:
    """Over the ledger, or onto the disk that has none."""
    if world.backup is None:
        return None
    return _replaced(water.put_back(world, world.backup))


def upgrade(world: World, _: Event) -> World | None:
    """The ledger is one of 0.1.0."""
    books = tuple(book._replace(seen=()) for book in world.ledger.books)
    return world._replace(ledger=world.ledger._replace(books=books), is_up=False, has_met=False)


def new_disk(world: World, _: Event) -> World:
    return _replaced(world._replace(ledger=Ledger(()), marks=None))


def vanish(world: World, _: Event) -> World:
    """The ledger's file alone."""
    return _replaced(world._replace(ledger=Ledger(())))


def _replaced(world: World) -> World:
    """Of what an attempt stands for that is begun in this ledger, it does know."""
    begun = {one[:2] for book in world.ledger.books for one in book.attempts if one.state != "certified"}
    lost = {one.code for one in work.missing(world) if one[:2] not in begun}
    return world._replace(unknown=world.unknown | lost, is_up=False, has_met=False, case=None)


def last_z(world: World, _: Event) -> World | None:
    """An operator says it from paper."""
    book = world.book
    if not world.is_up or book.question <= 0:
        return None
    highest = max((number for ifu, number in world.closed if ifu == world.book.ifu), default=0)
    return world.with_book(z_number=max(highest, book.z_number), question=-book.question)


def reset(world: World, _: Event) -> World:
    """The machine's memory and its taxpayer are erased."""
    machine = world.machine._replace(counters=Counters(), last=None, is_active=False)
    return _excused(world, world._replace(machine=machine))


def activation(world: World, _: Event, taxpayer: str = OURS) -> World | None:
    """Another taxpayer only after a reset."""
    machine = world.machine
    if machine.is_active and machine.taxpayer != taxpayer:
        return None
    activated = machine._replace(activation=machine.activation + 1, taxpayer=taxpayer, is_active=True)
    return world._replace(machine=activated)


def other_taxpayer(world: World, event: Event) -> World | None:
    return activation(world, event, OTHER)


def close(world: World, _: Event) -> World | None:
    return work.close(world) if work.is_serving(world) else None


def settle(world: World, _: Event) -> World | None:
    """An operator decides as it is, and a true decision is taken."""
    after = _decided(world) if world.is_up and world.book.attention else None
    return after and _taken_up(after)


def _taken_up(world: World) -> World:
    """The daemon goes on, unless there is more to decide."""
    return world if world.book.attention else work.recover(world)


def _decided(world: World) -> World | None:
    book, last = world.book, world.machine.last
    if book.evidence is None:
        return None
    disputed = next((attempt for attempt in book.attempts if attempt.state == "disputed"), None)
    if disputed is None:
        after = work.decide(world, "adopt")
        return after and _excused(world, after, last.code if last and book.evidence.last else "")
    certification = work.machine_invoice(world, disputed)
    decision = "certified" if certification else "not-certified"
    after = work.decide(world, decision, certification.code if certification else "")
    return after or world.note(f"the true decision, {decision}, is refused")


def read_case(world: World, _: Event) -> World | None:
    """A second operator opens the page."""
    return world._replace(case=world.book) if world.is_up and world.book.attention else None


def settle_as_read(world: World, _: Event) -> World | None:
    """And carries out what he saw there."""
    case = world.case
    if case is None or not world.is_up or not real.case(case).is_still(real.case(world.book)):
        return None
    after = _decided(world.with_book(evidence=case.evidence, attention=case.attention))
    if after is not None and after.counters < world.counters:
        return after.note("the known counters go back")
    return after and _taken_up(after._replace(case=None))


def _excused(world: World, after: World, expected: str = "") -> World:
    """What only a replaced ledger and the machine's memory knew, but for what that tells."""
    gone = {one.code for one in work.missing(world) if one.code in world.unknown and one.code != expected}
    return after._replace(excused=after.excused | gone)


DO: dict[str, Callable[[World, Event], World | None]] = {
    function.__name__: function
    for function in (
        sale, refused, lost, stranger, daily_report, look, restart, backup, restore, upgrade, new_disk, vanish, last_z, reset, activation,
        other_taxpayer, close, settle, read_case, settle_as_read,
    )
}  # fmt: skip
