"""Where two truths give the same evidence: the list is an output of the search, and stands in docs/reliability.md."""

from collections.abc import Iterable, Iterator

from exhaustive.events import Event
from exhaustive.search import Evidence, Found, Seen, Way
from exhaustive.work import ALIKE, MISSING

Row = tuple[str, Way, Way]
"""A type, and two ways to the same evidence."""


def together(all_found: Iterable[Found]) -> Evidence:
    """What one piece takes for certain, another may show to be open."""
    evidence: Evidence = {}
    for what, seen in (pair for found in all_found for pair in found.evidence.items()):
        sightings = evidence.setdefault(what, Seen({}, {}))
        for ours, theirs in zip(sightings, seen, strict=True):
            for name, way in theirs.items():
                ours[name] = min(ours.get(name, way), way, key=lambda way: (way[0].tells_less, len(way[1])))
    return evidence


def needless(found: Found, every: Evidence, longest: int) -> list[str]:
    """Histories of at most that length after which an operator is asked, although none has the other truth. That an invoice is missing, or that the
    machine has another one under our number, nobody else could say; a machine that tells less than others leaves more open."""
    query = ((what, seen.decided["disputed"]) for what, seen in found.evidence.items() if "disputed" in seen.decided)
    single = ((what, way) for what, way in query if len(every[what].truths) == 1 and MISSING not in every[what].truths)
    open_ = ((what, way) for what, way in single if what[1] != ALIKE and not way[0].tells_less)
    short = ((what, way) for what, way in open_ if len(way[1]) <= longest)
    return [f"{habit}: {'; '.join(map(str, history))} → {what}" for what, (habit, history) in short]


def described(evidence: Evidence) -> str:
    """The shortest ones, as the rows of a table in Markdown: whatever happens besides leaves them undecidable."""
    items: list[Row] = []
    for row in sorted(_rows(evidence), key=lambda row: len(row[1][1]) + len(row[2][1])):
        if not any(row[0] == shorter[0] and _has(row[1], shorter[1]) and _has(row[2], shorter[2]) for shorter in items):
            items.append(row)
    return "".join(f"| {_in_words(one)} | {_in_words(other)} |\n" for _, one, other in items)


def _rows(evidence: Evidence) -> Iterator[Row]:
    for what, seen in evidence.items():
        ways = [_bare(seen.truths[truth]) for truth in sorted(seen.truths)]
        if len(ways) > 1 and not any(habit.tells_less for habit, _ in ways):
            yield str(what[0]), ways[0], ways[1]


def _bare(way: Way) -> Way:
    """Without the look that tells, and whatever the numbers are."""
    habit, history = way
    last = -1 if history[-1].what in ("look", "restart") else None
    return habit, tuple(event._replace(number="") for event in history[:last])


def _has(way: Way, part: Way) -> bool:
    left = iter(way[1])
    return all(event in left for event in part[1])


def _in_words(way: Way) -> str:
    habit, history = way
    return "; ".join(map(_word, history)) + (f" ({habit})" if habit.local else "")


def _word(event: Event) -> str:
    if event.what == "lost":
        return f"our {event.type}, answer lost" + ("" if event.executed else ", not executed")
    whose = {"sale": "our ", "stranger": "a stranger's "}.get(event.what)
    return f"{whose}{event.type}" if whose else event.what.replace("_", " ")
