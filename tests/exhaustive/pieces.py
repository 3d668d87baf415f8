"""The pieces: events that belong together, each small enough to be enumerated to its bound."""

from collections.abc import Iterator

from exhaustive.events import Event
from exhaustive.model import COUNTING, EXPORTS, SILENT, TEXTS, USUAL, Habit
from exhaustive.search import Piece


def events(*lines: str) -> tuple[Event, ...]:
    return tuple(event for line in lines for event in _read(*line.split()))


def _read(what: str, *words: str) -> Iterator[Event]:
    """`sale a1 FV EV`, `lost a1 FV` (executed and not), `lost a1 FV A1` (with A1 begun behind it), `stranger FV FA`, `look settle`."""
    match what, *words:
        case "lost", number, kind, *then:
            yield from (Event(what, number, kind, is_executed, *then) for is_executed in (True, False))
        case "sale" | "refused", number, *kinds:
            yield from (Event(what, number, kind) for kind in kinds)
        case "stranger", *kinds:
            yield from (Event(what, type=kind) for kind in kinds)
        case _:
            yield from map(Event, (what, *words))


# fmt: off
PIECES = (
    Piece("answers lost: sales", 6, COUNTING[:2], events(
        "sale a1 FV", "lost a1 FV", "lost b1 FV", "stranger FV EV FA", "daily_report look restart settle")),
    Piece("answers lost: exports and credits", 6, COUNTING, events(
        "sale a1 EV", "lost a1 EV", "lost a1 FA", "lost b1 EA", "stranger FV EV FA", "daily_report look settle")),
    Piece("answers lost: a machine that tells no last invoice", 5, SILENT, events(
        "sale a1 FV", "lost a1 FV", "lost a1 EV", "lost b1 EA", "stranger FV FA", "daily_report look settle")),
    Piece("older backups", 6, COUNTING[:2], events(
        "sale a1 FV", "sale b1 EV", "lost a1 FV", "lost a1 EV", "lost b1 EV", "stranger FV EV",
        "backup restore daily_report look settle")),
    Piece("older backups with several begun", 7, COUNTING[:2], events(
        "lost a1 FV b1", "sale b1 FV", "lost b1 EV", "stranger FV", "backup restore look settle")),
    Piece("older backups of a machine that tells no last invoice", 4, SILENT, events(
        "lost a1 EV", "sale b1 FV", "backup restore daily_report look settle")),
    Piece("activations", 6, COUNTING[:2], events(
        "sale a1 FV", "lost a1 FV", "lost b1 EV", "stranger FV EV", "reset activation daily_report look settle")),
    Piece("older backups and activations", 7, (*TEXTS, EXPORTS), events(
        "sale a1 FV", "lost a1 FV", "stranger FV", "backup restore reset activation look settle")),
    Piece("numbers alike", 5, (*TEXTS, EXPORTS, Habit("EV", capitals=True)), events(
        "sale a1 FV EV", "sale A1 FV", "lost a1 FV", "lost A1 FV", "lost A1 EV", "lost a1 FV A1", "refused a1 FV", "stranger FV",
        "backup restore daily_report activation look settle")),
    Piece("a ledger of 0.1.0", 6, (*TEXTS, EXPORTS), events(
        "sale a1 FV", "lost a1 FV", "lost b1 EV", "stranger FV", "daily_report upgrade backup restore look settle")),
    Piece("two operators", 7, (USUAL,), events(
        "sale a1 FV", "sale b1 FV", "stranger FV", "backup restore restart settle read_case settle_as_read")),
    Piece("taxpayers", 7, (USUAL,), events(
        "sale a1 FV", "lost a1 FV", "reset activation other_taxpayer close backup restore look settle")),
    Piece("Z numbers", 9, (USUAL,), events("close backup restore new_disk last_z look settle")),
)
# fmt: on
