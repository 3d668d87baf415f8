"""What a daemon does at its machine: `recover`, the heartbeat, a sale, a Z, an operator's decision. The order of the steps is transcribed from
`daemon/usecases`; what is decided in them is asked of the product."""

from typing import NamedTuple

from exhaustive import real, store, water
from exhaustive.model import Attempt, Book, Certification, Counters, Ledger, World

from daemon.core.invoice.number import same_number
from daemon.core.ledger.paper import PaperInvoice
from daemon.core.ledger.verdict import (
    activated_since,
    behind,
    disagreement,
    fc_moved,
    is_last,
    judge,
    resembles,
    vanished,
    went_down,
)

MISSING = "ours is missing"
ALIKE = "another of our number"


class Question(NamedTuple):
    """For the oracle: all that a ledger could know, what is true, and what was decided."""

    evidence: tuple[object, ...]
    truth: str
    decided: str


def is_inactive(world: World) -> bool:
    """The machine tells no taxpayer, and had one: it may have forgotten what it certified."""
    return bool(world.book.ifu) and not world.machine.is_active


def is_serving(world: World) -> bool:
    return world.is_up and not world.book.attention


def recover(world: World) -> World:
    reading = world.machine.read()
    if reading.ifu and world.book.ifu and reading.ifu != world.book.ifu:
        world = store.book_of_taxpayer(world, reading.ifu, reading.activation)._replace(has_met=False)
    before, book = world, world.book
    is_activated, last = reading.activation != book.activation, real.standing(book, reading)
    has_begun = any(attempt.state == "begun" for attempt in book.attempts)
    has_forgotten = last == "gone" or real.ask(went_down, world.counters, reading.counters)
    has_forgotten = has_forgotten or (book.is_restored and last != "known")
    if is_inactive(world) and (has_begun or has_forgotten):
        return world._replace(is_up=False)
    if (
        not book.attention
        and is_activated
        and (
            real.ask(activated_since, world.counters, reading, last)
            if book.is_restored
            else water.is_lost(world, reading.ifu) and real.ask(vanished, reading, is_activated=True)
        )
    ):
        world = world.with_book(attention="another activation")
    if not world.book.attention and has_begun:
        world = _settle(world, real.verdicts(book, reading))
    if not world.book.attention and is_activated:
        world = store.begin_epoch(world, reading)
    if not world.book.attention:
        world = _take_over(world)
    if not has_begun and not book.attention and book.is_restored and book.seen:
        truth = MISSING if is_lacking(before) else "none of ours is missing"
        world = world.note(Question(evidence(before), truth, "disputed" if world.book.attention else "believed"))
    if world.book.attention:
        world = world.with_book(evidence=reading)
    return world._replace(is_up=True, has_met=world.has_met or not world.book.attention)


def _settle(world: World, found: tuple[real.Judged, ...]) -> World:
    reading, before = world.machine.read(), world
    for attempt, verdict, detail in found:
        if len(found) == 1 and before.book.seen:  # what 0.1.0 did not write down is unknown
            truth = "executed" if machine_invoice(before, attempt) else "not executed"
            world = world.note(Question(evidence(before, attempt.number, attempt.type), truth, verdict))
        world = store.settle(world, attempt, verdict, detail)
        if verdict == "certified" and not detail[2] and not world.has_met:
            last, ours = real.standing(before.book, reading), real.invoice(attempt.number, attempt.type)
            is_restored = before.book.is_restored
            if real.ask(behind, before.counters, "", reading, last, ours=ours, is_restored=is_restored):
                world = world.with_book(attention="behind")
    return world


def _take_over(world: World) -> World:
    reading, book = world.machine.read(), world.book
    is_lost = water.is_lost(world, reading.ifu)
    state = Book(counters=book.counters, is_restored=book.is_restored)
    last = real.standing(book, reading)
    if real.ask(disagreement, state, world.counters, reading, last, met=world.has_met, is_lost=is_lost):
        return world.with_book(attention="behind")
    return store.reconcile(world, reading)


def look(world: World) -> World | None:
    """The line is back, or the heartbeat."""
    if not world.is_up:
        return recover(_opened(world))
    reading, book = world.machine.read(), world.book
    if book.attention or (book.counters, book.activation) == (reading.counters, reading.activation):
        return None
    if real.ask(went_down, world.counters, reading.counters) or book.activation != reading.activation:
        return recover(world)
    return store.reconcile(world, reading)


def _opened(world: World) -> World:
    """At a start; where there is none, a ledger begins."""
    world = water.start(world) if not world.has_met else world
    if world.ledger.books:
        return world
    return world._replace(ledger=Ledger(id=world.serial + 1, is_new=True), serial=world.serial + 1)


def executed(world: World, number: str, kind: str) -> World:
    """The machine certifies an invoice of ours: the truth knows."""
    machine = world.machine.certify(number, kind)
    certification = Certification(number, kind, f"C{machine.total}", machine.taxpayer)
    return world._replace(machine=machine, log=(*world.log, certification))


def sale(world: World, number: str, kind: str) -> World:
    """From C3h to the outcome in the ledger; the number is free."""
    if world.machine.refuses(number, world.book.ifu):
        return refused(world, number, kind)
    counters = world.counters
    world = store.begin(executed(world, number, kind), number, kind)
    attempt, reading = world.book.attempts[-1], world.machine.read()
    before = _counters_after(reading.counters, kind, counters)
    if reading.counters.tc > counters.tc and real.ask(fc_moved, kind, counters, before):
        return store.certify(world, attempt, f"C{world.machine.total}", before, reading.activation)
    if world.book.activation != reading.activation or is_inactive(world):
        return recover(world)  # the answer is not believed
    verdict = real.ask(judge, attempt, counters, reading, real.standing(world.book, reading))
    world = _settle(world, real.judged((attempt,), [(attempt, verdict)]))
    world = world if world.book.attention else _take_over(world)
    return world.with_book(evidence=reading) if world.book.attention else world


def _counters_after(now: Counters, kind: str, before: Counters) -> Counters:
    """As 38h tells the counters, where nothing else has happened; else C1h."""
    if now.tc <= before.tc:
        return before._replace(tc=now.tc)
    if now.tc == before.tc + 1 and kind == "FA" and now.frc == before.frc + 1:
        return now._replace(fvc=before.fvc)
    return (
        now._replace(frc=before.frc) if now.tc == before.tc + 1 and kind == "FV" and now.fvc == before.fvc + 1 else now
    )


def refused(world: World, number: str, kind: str) -> World:
    """Perhaps since it was certified for an earlier attempt of ours."""
    reading, book = world.machine.read(), world.book
    last, was_tried = reading.last, any(real.ask(same_number, one, number) and of == kind for one, of in book.tried)
    is_ours = real.ask(is_last, real.invoice(number, kind), reading)
    if last is None or not is_ours or not was_tried or real.has_code(book, last.code):
        return store.refuse(world, number, kind)
    world = store.begin(world, number, kind)
    return store.certify(world, world.book.attempts[-1], last.code, reading.counters)


def close(world: World) -> World | None:
    reading = world.machine.read()
    is_activated = reading.activation != world.book.activation
    if is_activated or real.ask(went_down, world.counters, reading.counters):
        return recover(world)
    return store.close(world, reading)


def decide(world: World, decision: str, code: str = "") -> World | None:
    """An operator's decision on the case as the daemon has kept it; `code` is that on the machine's paper. None where it is refused."""
    book, case = world.book, real.case(world.book)
    paper = PaperInvoice(code, real.TIME) if decision == "certified" and not case.is_last else None
    if book.evidence is None or case.obstacle(decision, paper, is_taken=real.has_code(book, code)):
        return None
    disputed = next((attempt for attempt in book.attempts if attempt.state == "disputed"), None)
    if disputed is None:
        world = store.adopt(world, book.evidence)
    elif decision == "not-certified":
        world = store.end(world, disputed, sent=True)
    elif (word := case.certified(paper)) is not None:
        world = store.certify(world, disputed, *real.word(word))
        if paper is not None:
            after = case.after(paper, case.attempt, word.counters).state
            is_next = after.counters != case.state.counters
            seen = (Certification(disputed.number, disputed.type, code),) if is_next else book.seen
            counters = real.counters_of(after.counters) if after.counters else None
            world = world.with_book(counters=counters, seen=seen, activation=book.activation)
    return store.decided(world)


# -- the truth ------------------------------------------------------------------------------------------------------------


def machine_invoice(world: World, attempt: Attempt) -> Certification | None:
    """What the machine certified of it, and no book has."""
    same = (attempt.number, attempt.type, world.book.ifu)
    return next((one for one in missing(world) if (one.number, one.type, one.taxpayer) == same), None)


def missing(world: World) -> list[Certification]:
    """Certifications of ours that no book has, by its code or, where C1h told none, by its number."""
    ended = [one for book in world.ledger.books for one in book.attempts if one.state == "certified"]
    entered = {one.code or one.number for one in ended} | world.excused
    return [one for one in world.log if one.code not in entered and one.number not in entered]


def is_lacking(world: World) -> bool:
    """Whether a number is used of which the present book knows nothing."""
    return any(
        one.taxpayer == world.book.ifu and store.holder(world.book, one.number) is None for one in missing(world)
    )


def evidence(world: World, number: str = "", kind: str = "") -> tuple[object, ...]:
    """All that a ledger could know. `kind` of the invoice in doubt; none where the question is whether the ledger lacks one."""
    book, reading = world.book, world.machine.read()
    last, result = reading.last, "another"
    if last is None:
        result = "none"
    elif real.has_code(book, last.code):
        result = "in the ledger"
    elif (last,) == book.seen:
        result = "as before"
    elif number and real.ask(is_last, real.invoice(number, kind), reading):
        result = "ours"
    elif number and real.ask(resembles, real.invoice(number, kind), last):
        result = ALIKE
    moved = tuple(now - before for now, before in zip(reading.counters, world.counters, strict=True))
    names = (reading.activation != book.activation, bool(reading.ifu), book.is_restored)
    return kind, result, last and (last.type, bool(last.code)), moved, *names
