"""What has to hold after every event: the books, and what tills are told, against what the machine did."""

from collections.abc import Iterator

from exhaustive import real, work
from exhaustive.model import World

from daemon.core.invoice.number import same_number


def wrong(before: World, world: World) -> str:
    """The first thing that does not hold; empty when all does."""
    return next(_wrong(before, world), "")


def _wrong(before: World, world: World) -> Iterator[str]:
    yield from (note for note in world.notes if isinstance(note, str))
    if world.log is not before.log or world.ledger is not before.ledger:
        numbers = [(one.number, one.taxpayer) for one in world.log if one.code not in world.excused]
        if len(set(numbers)) < len(numbers):
            yield "certified twice"
        yield from _entered(world)
        yield from _ended(before, world)
    if len(set(world.closed)) < len(world.closed):
        yield "a Z number is given twice"
    if work.is_serving(world) and work.is_lacking(world):
        yield "a certified number is free"
    if world.is_up and world.book.attention == "behind" and not before.book.attention and not _has_cause(before):
        yield "attention without a cause"


def _entered(world: World) -> Iterator[str]:
    truth = {one.code: one for one in world.log}
    for book in world.ledger.books:
        ended = [attempt for attempt in book.attempts if attempt.code]
        if len({attempt.code for attempt in ended}) < len(ended):
            yield "a code is entered twice"
        for attempt in ended:
            one = truth.get(attempt.code)
            if one is None and any(attempt.number == ours.number for ours in world.log):
                yield "an invoice has a stranger's code"
            if one is not None and not real.ask(same_number, one.number, attempt.number):
                yield "an invoice has another's code"
            if one is not None and book.ifu != one.taxpayer:
                yield "an invoice is in another taxpayer's book"


def _ended(before: World, world: World) -> Iterator[str]:
    """What was begun or disputed has its true end, also where an operator has still to look at the book."""
    if world.is_up and before.ledger.id == world.ledger.id:
        for attempt in before.book.attempts:
            is_there = any(one.number == attempt.number for one in world.ledger.books[before.ledger.at].attempts)
            if not is_there and work.machine_invoice(before, attempt):
                yield "a certified invoice is ended as not certified"


def _has_cause(before: World) -> bool:
    """Certified since the book's counters were written, a reset, or an older ledger; what only evidence could tell is asked of `needless`."""
    is_more = before.machine.total > before.book.accounted or before.machine.counters.tc > before.counters.tc
    return bool(work.missing(before)) or is_more or not before.machine.is_active
