"""Days on which a person decides against the facts, or the configuration changes under sales that are in doubt or wait."""

from __future__ import annotations

import random

from simulation.drawn.events import UNNUMBERED, Event, Script

CLOSES = 1.0
"""Seconds after a sale's arrival in which 38h is on its way, most often."""


HARD_DAYS, HARD_DAYS_OF_SPARE = 0.1, 0.5
"""How many of the long days without tills outside, on which all answers come in time, are hard; and of those with a spare."""


def with_hard_day(draw: random.Random, script: Script) -> Script:
    # Nothing else may go wrong beside that sale.
    is_close = any(event.how.get("number") == "F-pair" for event in script.events)
    if (
        draw.random() >= (HARD_DAYS_OF_SPARE if script.has_spare else HARD_DAYS)
        or is_close
        or script.is_late
        or script.lane is not None
    ):
        return script
    return _with_changes(draw, script) if script.has_spare else _with_errors(draw, script)


def _with_errors(draw: random.Random, script: Script) -> Script:
    """Sales come in doubt, most often beside a stranger's invoice, and who decides on the next of them is wrong."""
    sales = [event for event in script.events if event.what in ("sell", "defer")]
    added = []
    for _ in range(draw.choice((1, 2, 3))):
        sale, more = draw.choice(sales), []
        kind = draw.choice(("kill", "unplug", "cut_box"))
        end = Event(sale.at + CLOSES * draw.random(), kind, {"seconds": round(0.5 + 1.5 * draw.random(), 3)})
        more += [Event(sale.at - 1.0, "err", {}), end]
        if draw.random() < 0.8:
            how = {"kind": draw.choice(("FV", "FV", "FA", "EV")), "total": 700}
            more.append(Event(end.at + draw.random(), "foreign", how))
        if draw.random() < 0.5:  # and another till comes with the number
            more.append(_again(sale, end.at + 15.0 * draw.random()))
        if draw.random() < 0.5:  # what the machine has shows at a start
            more.append(Event(end.at + 5.0 + 15.0 * draw.random(), "kill", {"seconds": 1.0}))
        added += [event._replace(machine=sale.machine) for event in more]
    return _beside(script, added)


def _again(sale: Event, at: float) -> Event:
    """Another till comes with the number; the same one where the box gives it."""
    how = {name: value for name, value in sale.how.items() if name != "takes_back"}
    keyed = how["keyed"] and (sale.what == "sell" or str(how["number"]).startswith(UNNUMBERED))
    return Event(at, "sell", {**how, "keyed": bool(keyed), "is_twin": True, "hangs_up": 0.0})


def _beside(script: Script, more: list[Event]) -> Script:
    placed = (event._replace(at=round(max(0.0, event.at), 3)) for event in more)
    return script._replace(events=tuple(sorted((*script.events, *placed), key=lambda event: event.at)))


def _with_changes(draw: random.Random, script: Script) -> Script:
    """A spare goes, comes, or becomes the machine, most often while a sale is in doubt."""
    sales = [event for event in script.events if event.what in ("sell", "defer")]
    added = []
    for _ in range(draw.choice((1, 2, 3))):
        sale = draw.choice(sales)
        at = sale.at + draw.choice((0.3, 1.0, 5.0)) * draw.random()
        if draw.random() < 0.6:
            added.append(
                Event(
                    at - 0.3 * draw.random(),
                    draw.choice(("unplug", "cut_machine", "kill")),
                    {"seconds": round(20.0 * draw.random(), 3)},
                )
            )
        added.append(Event(at, "reconfigure", {"layout": draw.choice(("swapped", "first alone", "spare alone"))}))
        if draw.random() < 0.5:
            added.append(Event(at + 3.0 * draw.random(), "take_over", {}))
        if draw.random() < 0.7:
            added.append(Event(at + 15.0 * draw.random(), "reconfigure", {"layout": "pair"}))
        added.append(_again(sale, at + 10.0 * draw.random()))
    return _beside(script, added)
