"""All histories of a piece up to its bound: breadth first, each world once."""

from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

from exhaustive.events import Event, happen
from exhaustive.model import Habit, Machine, World
from exhaustive.oracle import wrong
from exhaustive.work import Question, recover

History = tuple[Event, ...]
Way = tuple[Habit, History]


class Piece(NamedTuple):
    """A set of events; `bound` is how many of them a history has within the suite."""

    name: str
    bound: int
    habits: tuple[Habit, ...]
    events: tuple[Event, ...]


class Fault(NamedTuple):
    habit: Habit
    history: History
    what: str

    def __str__(self) -> str:
        return f"{self.habit}: {'; '.join(map(str, self.history))} → {self.what}"


class Seen(NamedTuple):
    """One piece of evidence: the shortest way to it for each truth, and for each decision."""

    truths: dict[str, Way]
    decided: dict[str, Way]


Evidence = dict[tuple[object, ...], Seen]


class Found(NamedTuple):
    worlds: int
    faults: list[Fault]
    evidence: Evidence


def search(piece: Piece, bound: int = 0, *, most: int = 0) -> Found:
    """`most`: how many faults are enough; 0 looks for all. What comes after a fault is not looked at."""
    faults: list[Fault] = []
    evidence: Evidence = defaultdict(lambda: Seen({}, {}))
    worlds = 0
    for habit in piece.habits:
        start = recover(World(Machine(habit)))._replace(notes=())
        visited = {hash(start)}
        frontier: list[tuple[World, History]] = [(start, ())]
        for _ in range(bound or piece.bound):
            reached: list[tuple[World, History]] = []
            for after, history, what in _steps(piece, frontier):
                _keep(evidence, after, (habit, history))
                bare = after._replace(notes=()) if after.notes else after
                key = hash((bare, what) if what else bare)
                if key in visited:
                    continue
                visited.add(key)
                if not what:
                    reached.append((bare, history))
                    continue
                faults.append(Fault(habit, history, what))
                if len(faults) == most:
                    return Found(worlds + len(visited), faults, evidence)
            frontier = reached
        worlds += len(visited)
    return Found(worlds, faults, evidence)


def _steps(piece: Piece, frontier: list[tuple[World, History]]) -> Iterator[tuple[World, History, str]]:
    """Each world that is one event further, and what does not hold there."""
    for world, history in frontier:
        for event in piece.events:
            after = happen(event, world)
            if after is not None:
                yield after, (*history, event), wrong(world, after)


def _keep(evidence: Evidence, world: World, way: Way) -> None:
    for note in world.notes:
        if isinstance(note, Question):
            seen = evidence[note.evidence]
            seen.truths.setdefault(note.truth, way)
            seen.decided.setdefault(note.decided, way)
