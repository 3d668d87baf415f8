"""Days on which a person decides against the facts, or the configuration changes under sales that are in doubt or wait."""

import random

from simulation.drawn.events import UNNUMBERED, Event, Script
from simulation.drawn.kinds import COPIES, DAY

from daemon.core.invoice.number import PATTERN

CLOSES = 1.0
"""Seconds after a sale's arrival in which 38h is on its way, most often."""


HARD_DAYS, HARD_DAYS_OF_SPARE = 0.1, 0.5
"""How many of the long days without tills outside, on which all answers come in time, are hard; and of those with a spare."""


TAKING_ON_DAYS = 0.1
"""On how many of all those the box takes on most of the sales that its machine cannot certify."""


def with_hard_day(draw: random.Random, script: Script) -> Script:
    # Nothing else may go wrong beside that sale.
    is_close = any(event.how.get("number") == "F-pair" for event in script.events)
    if is_close or script.is_late or script.lane is not None:
        return script
    return _taking_on(random.Random(f"taking on {script.seed}"), _hard(draw, script))


def _taking_on(draw: random.Random, script: Script) -> Script:
    if draw.random() >= TAKING_ON_DAYS:
        return script
    events = (
        event._replace(how={**event.how, "else_later": draw.random() < 0.8}) if event.what == "sell" else event
        for event in script.events
    )
    return script._replace(events=tuple(events))


def _hard(draw: random.Random, script: Script) -> Script:
    if draw.random() >= (HARD_DAYS_OF_SPARE if script.has_spare else HARD_DAYS):
        return _with_another_box(random.Random(f"changed box {script.seed}"), script)
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


ANOTHER_BOX_DAYS = 0.2
"""On how many of the days that are left the box gives other numbers, or the machine has another taxpayer."""
SYNCS = 9
"""At the most in a restore."""
PATTERNS = ("", "", "{year}/{type}/", PATTERN)
OTHER_TAXPAYER = "00099999X"


def _with_another_box(draw: random.Random, script: Script) -> Script:
    if draw.random() >= ANOTHER_BOX_DAYS:
        return script
    if any(event.what == "restore_twice" for event in script.events):
        return _with_kills(draw, script)
    if script.gives_numbers:
        return _with_other_numbers(draw, script)
    has_copies = any(event.what in COPIES for event in script.events)
    return script if has_copies or script.has_spare else _with_taxpayers(draw, script)


def _with_kills(draw: random.Random, script: Script) -> Script:
    """What puts a copy back is killed, and begun again."""

    def killed(event: Event) -> Event:
        kills = tuple(draw.randint(1, SYNCS) for _ in range(draw.choice((1, 2))))
        return event._replace(how={**event.how, "kills": kills}) if event.what == "restore_twice" else event

    return script._replace(events=tuple(map(killed, script.events)))


def _with_other_numbers(draw: random.Random, script: Script) -> Script:
    """The box gives them by another pattern, or none, and again; at the new year clocks jump by days over it. No till sells without a key then: another
    year has its numbers again."""
    sales = [event for event in script.events if event.what in ("sell", "defer")]
    added = []
    for _ in range(draw.choice((1, 2, 3))):
        sale = draw.choice(sales)
        at = sale.at + draw.choice((0.3, 1.0, 5.0)) * draw.random()
        added += [_end(draw, at), Event(at, "renumber", {"pattern": draw.choice(PATTERNS)})]
        if draw.random() < 0.5:
            added.append(Event(at + 10.0 * draw.random(), "renumber", {"pattern": PATTERN}))
        added.append(_again(sale, at + 10.0 * draw.random()))
    if script.is_new_year:
        for _ in range(draw.choice((0, 1, 2))):
            at, what = draw.choice(sales).at - draw.random(), draw.choice(("box_clock", "box_clock", "machine_clock"))
            jump = draw.choice((2 * DAY, 20 * DAY, -2 * DAY))
            added.append(Event(at, what, {"jump": jump, "seconds": round(10.0 * draw.random(), 3)}))
            if draw.random() < 0.5:
                added.append(Event(at + 20.0 * draw.random(), "repair_time", {}))
    script = _beside(script, added)
    keyed = (
        event._replace(how={**event.how, "keyed": True} if "keyed" in event.how else event.how)
        for event in script.events
    )
    return script._replace(events=tuple(keyed), synchronised=script.synchronised and not script.is_new_year)


def _with_taxpayers(draw: random.Random, script: Script) -> Script:
    """The machine is activated for another one, most often while a sale is in doubt or waits, and for the first one again."""
    sales = [event for event in script.events if event.what in ("sell", "defer")]
    added = []
    for _ in range(draw.choice((1, 2))):
        sale = draw.choice(sales)
        at = sale.at + draw.choice((0.05, 0.3, 5.0)) * draw.random()
        back = at + draw.choice((2.0, 20.0)) * draw.random()
        more = [_end(draw, at), Event(at, "activate_for", {"ifu": OTHER_TAXPAYER, "resets": draw.random() < 0.3})]
        if draw.random() < 0.8:
            more.append(Event(back, "activate_for", {"ifu": "", "resets": draw.random() < 0.3}))
        more += (_again(sale, at + draw.choice((0.3, 20.0)) * draw.random()) for _ in range(2))
        added += [event._replace(machine=sale.machine) for event in more]
    return _beside(script, added)


def _end(draw: random.Random, at: float) -> Event:
    """Just before."""
    kind = draw.choice(("unplug", "cut_machine", "kill"))
    return Event(at - 0.3 * draw.random(), kind, {"seconds": round(draw.choice((0.5, 10.0)) * draw.random(), 3)})
