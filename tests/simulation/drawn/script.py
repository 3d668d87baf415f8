"""What happens in one history, drawn from its seed before it begins: so an event can be left out, and the others stay what they were."""

import random
from collections.abc import Sequence
from typing import Any

import msgspec
from simulation.drawn.events import Event, LanePart, MachinePart, Script, by_total
from simulation.drawn.hard_days import with_hard_day
from simulation.drawn.kinds import COPIES, DAY, LASTING, MORE, TROUBLES, WEIGHTS
from support.hostile import FAMILY, slow_down

from simulator.machine.options import SimulatorOptions

NIMS = ("EL02000015-1", "EL02000016-1", "EL02000017-1")
LINE_SCALE = 10.0
"""`FAMILY` is written for timers that are about so many times as quick as the protocol's."""


def drawn(seed: int) -> Script:
    script = _usual(seed)
    return script if seed < SHORT_DAYS else with_hard_day(random.Random(f"hard day {seed}"), script)


def _usual(seed: int) -> Script:
    draw = random.Random(f"script {seed}")
    pace = draw.choice((0.001, 0.02, 0.02, 0.2))
    length = draw.choice((8.0, 20.0, 60.0))
    machines = draw.choices((1, 2, 3), (80, 15, 5))[0]
    parts = tuple(_part(draw, nim) for nim in NIMS[:machines])
    sales = draw.randint(*draw.choice(SALES if seed < SHORT_DAYS else SALES_OF_LONG_DAYS)) // machines
    tills = [till for machine in range(machines) for till in _tills(draw, length, sales, machine)]
    troubles, synchronised = _troubles(draw, length, tills), draw.random() < 0.5
    events = sorted((*tills, *troubles, *_evening(draw, length, machines)), key=lambda event: event.at)
    script = Script(seed, parts, pace, synchronised, tuple(_amid(draw, event) for event in events))
    script = _with_more(random.Random(f"more {seed}"), script, length)
    late = random.Random(f"late {seed}")
    if seed >= SHORT_DAYS and late.random() < LATE_DAYS:
        return _answered_late(late, script)
    return _with_pair(random.Random(f"pair {seed}"), script, length)


MORE_DAYS = 0.4
"""On how many days something happens beside that was thought of later. It has a generator of its own: what else is drawn from a seed stays what it was."""


def _with_more(draw: random.Random, script: Script, length: float) -> Script:
    """Most of it right after a sale, when something may be in doubt."""
    if draw.random() >= MORE_DAYS:
        return script
    sales = [event for event in script.events if event.what == "sell"]
    more = []
    for kind in draw.choices(list(MORE), k=draw.choice((1, 1, 2))):
        sale = draw.choice(sales)
        at = sale.at + draw.expovariate(1.0) if draw.random() < 0.7 else draw.uniform(0.0, length)
        how = {name: of(draw) for name, of in MORE[kind].items()}
        if kind == "daily_report":  # with an end of the line, or of the daemon, that leaves the sale in doubt
            end = _trouble(draw, draw.choice(("unplug", "kill", "cut_box", "cut_machine")), at - 0.05 * draw.random())
            more.append(end._replace(machine=sale.machine))
        more.append(Event(round(at, 3), kind, how, sale.machine))
    more = [event._replace(at=max(0.0, event.at)) for event in more]
    return script._replace(events=tuple(sorted((*script.events, *more), key=lambda event: event.at)))


PAIR_DAYS = 0.3
"""On how many evenings a sale meets something that matters only within the same second. With a generator of its own, as above."""
COMMANDS, SLOW = 5, 0.09
"""As many come before 38h of an invoice of one item, and each takes so many seconds."""


def _with_pair(draw: random.Random, script: Script, length: float) -> Script:
    if draw.random() >= PAIR_DAYS:
        return _with_impatience(random.Random(f"impatient {script.seed}"), script, length)
    pair = draw.choice((_stranger_in_doubt, _stranger_before_z, _z_before_outcome, _end_in_check, _number_of_sale))
    machine = draw.randrange(len(script.machines))
    at = round(length + draw.uniform(2.0, EVENING - 5.0), 3)
    sale = _sale(draw, 0, at)
    how = {**sale.how, "number": "F-pair", "kind": "FV", "prices": (500,), "mode": "TTC", "hangs_up": 0.0}
    machines = (part._replace(think=SLOW) if at == machine else part for at, part in enumerate(script.machines))
    script = script._replace(machines=tuple(machines))
    script, *more = pair(draw, script, Event(at, "sell", how, machine), at + (COMMANDS + draw.random()) * SLOW)
    beside = (event._replace(at=round(event.at, 3), machine=machine) for event in more)
    return script._replace(events=tuple(sorted((*script.events, *beside), key=lambda event: event.at)))


_Pair = tuple[Any, ...]
"""The script, and the events that are added to it."""


def _stranger_in_doubt(draw: random.Random, script: Script, sale: Event, closing: float) -> _Pair:
    """Another program certifies while the answer to 38h is lost: the machine's last invoice is not ours."""
    end = _ended(draw, closing, "kill", "unplug", "cut_box", seconds=1.0 + draw.random())
    how = {"kind": draw.choice(("FV", "FV", "FA", "EV")), "total": 700}
    return script, sale, end, Event(closing + SLOW + draw.random(), "foreign", how)


def _stranger_before_z(draw: random.Random, script: Script, sale: Event, closing: float) -> _Pair:
    """The Z is the first to see it."""
    how = {"kind": draw.choice(("FV", "FA")), "total": 700}
    return script, sale, Event(closing + SLOW, "foreign", how), _z(closing + SLOW + draw.random())


def _z_before_outcome(draw: random.Random, script: Script, sale: Event, closing: float) -> _Pair:
    """The disk refuses an outcome, is in order again, and a Z is made before the outcome is tried again."""
    disk = Event(closing, "disk", {"what": "commits", "seconds": round(0.1 + 0.5 * draw.random(), 3)})
    return script, sale, disk, _z(closing + draw.random())


def _end_in_check(draw: random.Random, script: Script, sale: Event, closing: float) -> _Pair:
    """The machine asks the tax server about a credit note, and the line or the daemon is back before it has the answer."""
    part = script.machines[sale.machine]
    options = msgspec.structs.replace(part.options, credit_style="pending", credit_check=draw.uniform(1.2, 1.6))
    machines = (part._replace(options=options) if each is part else each for each in script.machines)
    end = _ended(draw, closing + SLOW + 0.2 * draw.random(), "unplug", seconds=draw.random())
    return script._replace(machines=tuple(machines)), sale._replace(how={**sale.how, "kind": "FA"}), end


def _number_of_sale(draw: random.Random, script: Script, sale: Event, _closing: float) -> _Pair:
    """Another program has certified under a number of ours just before. Nothing else goes wrong: where an answer of ours was lost too, the two cannot
    be told apart."""
    events = tuple(event for event in script.events if event.what in ("sell", "close"))
    machines = tuple(part._replace(faults="") for part in script.machines)
    how = {"kind": "FV", "total": 500, "number": sale.how["number"]}
    before = Event(sale.at - 0.2 * draw.random(), "foreign", how)
    return script._replace(events=events, machines=machines), before, sale


IMPATIENT_DAYS = 0.05
"""On how many of the other evenings a sale is in doubt after a kill, and tills ask for its number without a key while the daemon begins anew: their
intents are still on their way to a disk that stands still when the line is back for the second time."""
IMPATIENT, THINKING = 8, 0.3


def _with_impatience(draw: random.Random, script: Script, length: float) -> Script:
    if draw.random() >= IMPATIENT_DAYS:
        return _with_failed_disk(random.Random(f"failed disk {script.seed}"), script, length)
    machine = draw.randrange(len(script.machines))
    at = round(length + draw.uniform(2.0, EVENING - 10.0), 3)
    how = {
        **_sale(draw, 0, at).how,
        "number": "F-again",
        "kind": "FV",
        "prices": (500,),
        "mode": "TTC",
        "hangs_up": 0.0,
    }
    how["keyed"] = False
    closing = at + (COMMANDS + draw.random()) * THINKING
    stall = Event(closing + draw.uniform(0.2, 1.2), "disk", {"what": "stall", "seconds": 4.0})
    ends = (
        _ended(draw, closing, "kill", seconds=0.0),
        _ended(draw, stall.at + 0.5 * draw.random(), "unplug", seconds=0.2),
    )
    again = (Event(closing + draw.uniform(0.2, 1.7), "sell", {**how, "is_twin": True}) for _ in range(IMPATIENT))
    beside = (event._replace(at=round(event.at, 3), machine=machine) for event in (stall, *ends, *again))
    slow = (part._replace(think=THINKING) if at == machine else part for at, part in enumerate(script.machines))
    events = tuple(sorted((*script.events, Event(at, "sell", how, machine), *beside), key=lambda event: event.at))
    return script._replace(machines=tuple(slow), events=events, pace=min(script.pace, 0.02))


FAILED_DISK_DAYS = 0.1
"""On how many of the evenings that are left a sync, or a write, fails once during a sale, and most often the power goes while the next start writes the ledger anew."""


def _with_failed_disk(draw: random.Random, script: Script, length: float) -> Script:
    if draw.random() >= FAILED_DISK_DAYS:
        return _with_deferred(random.Random(f"deferred {script.seed}"), script, length)
    machine = draw.randrange(len(script.machines))
    at = length + draw.uniform(2.0, EVENING - 10.0)
    how = {**_sale(draw, 0, at).how, "number": "F-sync", "kind": "FV", "prices": (500,), "mode": "TTC", "hangs_up": 0.0}
    failure = {"what": draw.choice(("sync", "sync", "sync", "write")), "sync": draw.choice((0, 1, 2, 2, 2, 3, 5))}
    fails = Event(at + draw.random(), "fail_disk", failure)
    beside = (event._replace(at=round(event.at, 3), machine=machine) for event in (Event(at, "sell", how), fails))
    return script._replace(events=tuple(sorted((*script.events, *beside), key=lambda event: event.at)))


DEFERRED_DAYS = 0.15
"""On how many of the days that are left some tills do not wait for their certification."""


def _with_deferred(draw: random.Random, script: Script, length: float) -> Script:
    """Half of them while the machine or the daemon is gone; half are asked for by another till meanwhile, without a key."""
    if draw.random() >= DEFERRED_DAYS:
        return _with_spare(random.Random(f"spare {script.seed}"), script, length)
    return _with_deferred_sales(draw, script, length)


def _with_deferred_sales(draw: random.Random, script: Script, length: float) -> Script:
    more = []
    for each in range(draw.randint(1, 5)):
        machine, at = draw.randrange(len(script.machines)), draw.uniform(0.0, length + EVENING / 2)
        how = {
            **_sale(draw, each, at).how,
            "number": f"D-{each}",
            "kind": "FV",
            "mode": "TTC",
            "keyed": True,
            "hangs_up": 0.0,
        }
        back = round(20.0 * draw.random(), 3) if draw.random() < 0.2 else 0.0
        more.append(Event(at, "defer", {**how, "takes_back": back}, machine))
        if draw.random() < 0.5:
            kind = draw.choice(("kill", "cut_box", "unplug", "cut_machine"))
            more.append(
                _trouble(draw, kind, at + draw.choice((-1.0, 0.3, 3.0)) * draw.random())._replace(machine=machine)
            )
        if draw.random() < 0.5:
            beside = at + draw.choice((0.1, 5.0)) * draw.random()
            more.append(Event(beside, "sell", {**how, "keyed": False, "is_twin": True}, machine))
    placed = (event._replace(at=round(max(0.0, event.at), 3)) for event in more)
    return script._replace(events=tuple(sorted((*script.events, *placed), key=lambda event: event.at)))


SPARE_DAYS = 0.2
"""On how many of the days that are left of a box with one machine it has a spare beside it."""
NOT_OF_SPARE_DAYS = ("new_disk", "activate", "foreign", "rates", "second_operator")
"""What an operator has to decide by itself: what is looked at is which of the two machines certifies."""
SPARE = "EL02000099-1"


def _with_spare(draw: random.Random, script: Script, length: float) -> Script:
    """The machine dies at any moment, most often right after a sale, its spare takes over, it may come back, and is taken over from again; half of the days
    have sales that wait. Daemons die in between."""
    if draw.random() >= SPARE_DAYS or len(script.machines) > 1:
        return _with_lane(random.Random(f"tills outside {script.seed}"), script, length)
    if draw.random() < 0.5:
        script = _with_deferred_sales(draw, script, length)
    rest = tuple(event for event in script.events if event.what not in NOT_OF_SPARE_DAYS)
    sales = [event for event in rest if event.what in ("sell", "defer")]
    more = []
    for _ in range(draw.randint(1, 3)):
        dies = max(0.0, draw.choice(sales).at + draw.choice((0.02, 0.3, 2.0)) * draw.random())
        over, lasts = dies + draw.choice((0.1, 1.0, 8.0)) * draw.random(), draw.choice((2.0, 20.0)) * draw.random()
        back = over + lasts + draw.choice((-1.0, 3.0, 10.0)) * draw.random()
        more += [
            Event(dies, draw.choice(("unplug", "cut_machine")), {"seconds": round(over - dies + lasts, 3)}),
            Event(over, "take_over", {}),
            Event(over + lasts * draw.random(), "decide_doubt", {}),
        ]
        if draw.random() < 0.8:
            more.append(Event(back, "take_back", {}))
        if draw.random() < 0.5:
            kind, at = draw.choice(("kill", "cut_box")), draw.choice((dies, over, over, back))
            more.append(_amid(draw, _trouble(draw, kind, at + 0.1 * draw.random())))
        if draw.random() < 0.3:
            more.append(
                _trouble(draw, draw.choice(("unplug", "cut_machine")), over + draw.random())._replace(machine=1)
            )
        if draw.random() < 0.7:  # another till comes with a number that the dead machine may have certified
            again = draw.choice(sales)
            how = {name: value for name, value in again.how.items() if name != "takes_back"}
            how |= {"keyed": draw.random() < 0.5 and bool(how["keyed"]), "is_twin": True, "hangs_up": 0.0}
            more.append(Event(over + 0.5 * draw.random(), "sell", how))
    if draw.random() < 0.3:
        more += _put_back_before_a_take_over(draw, sales)
    events = sorted((*rest, *more), key=lambda event: event.at)
    placed = tuple(event._replace(at=round(max(0.0, event.at), 3)) for event in events)
    part = script.machines[0]
    spare = part._replace(options=msgspec.structs.replace(part.options, nim=SPARE))
    paired = script._replace(machines=(part, spare), events=placed, has_spare=True)
    return _with_numbers(random.Random(f"the box gives numbers {script.seed}"), paired, length)


def _put_back_before_a_take_over(draw: random.Random, sales: Sequence[Event]) -> list[Event]:
    """A copy of before a sale is put back after it, the machine is dead, its spare takes over, and the till comes again with the number."""
    sale = draw.choice(sales)
    highest, dies = max(0.0, sale.at - 0.1), sale.at + 3.0 * draw.random()
    back, over = dies + 0.5, dies + 1.5 + draw.random()
    how = {name: value for name, value in sale.how.items() if name != "takes_back"}
    again = Event(over + draw.random(), "sell", {**how, "is_twin": True, "hangs_up": 0.0})
    return [
        Event(highest, "restore", {"age": round(back - highest, 3), "vanishes": False}),
        Event(dies, "unplug", {"seconds": round(draw.choice((5.0, 30.0)) * draw.random() + 3.0, 3)}),
        Event(over, "take_over", {}),
        again,
    ]


LANE_DAYS = 0.2
"""On how many of the days that are left tills outside sell through two relays."""


def _with_lane(draw: random.Random, script: Script, length: float) -> Script:
    """Half of their sales meet an end of a relay, of the connections, of the daemon or of the line, or a disk that stands still; some are sent by two
    tills at once, or are sold in the shop as well. With limits so short that waiting matters."""
    if draw.random() >= LANE_DAYS or any(event.what == "fail_job" for event in script.events):
        # What shares its commit with a failed job is rare enough.
        return _with_numbers(random.Random(f"unnumbered {script.seed}"), script, length)
    part = LanePart(draw.choice((0.0, 0.05, 0.2)), draw.choice((0.0, 0.1, 0.4)), draw.choice((0.0, 0.05, 0.2)))
    more = []
    for each in range(draw.randint(2, 8)):
        machine, at = draw.randrange(len(script.machines)), draw.uniform(0.0, length + EVENING / 2)
        limit = draw.choice((0.0, 2.0, 8.0))
        others = draw.choice(("", "", "", "twin", "shop"))
        how = {
            "number": f"R-{each}",
            "prices": tuple(draw.randint(1, 9999) for _ in range(draw.randint(1, 3))),
            "limit": limit,
            "later": draw.random() < 0.3,
            "leaves": draw.random() < 0.4,
            "pause": round(draw.choice((0.05, 0.5, 2.0)) * draw.random(), 3),
            "relay": draw.randrange(2),
            "alone": not others,
        }
        more.append(Event(at, "sell_outside", how, machine))
        if others == "twin":
            beside = at + draw.choice((0.0, 0.3, 5.0)) * draw.random()
            more.append(Event(beside, "sell_outside", {**how, "relay": 1 - how["relay"]}, machine))
        elif others == "shop":
            beside = at + draw.choice((0.1, 5.0)) * draw.random()
            sale = {"number": how["number"], "prices": how["prices"], "kind": "FV", "mode": "TTC", "keyed": False}
            more.append(Event(beside, "sell", {**_sale(draw, each, at).how, **sale, "is_twin": True}, machine))
        if draw.random() < 0.6:
            more.append(_end_beside(draw, at + draw.choice((-2.0, 0.1, 0.5, 3.0)) * draw.random(), machine))
    placed = (event._replace(at=round(max(0.0, event.at), 3)) for event in more)
    return script._replace(events=tuple(sorted((*script.events, *placed), key=lambda event: event.at)), lane=part)


NUMBERED_DAYS = 0.25
"""On how many of the days that are left, and of those with a spare, the box gives the numbers of most sales."""
NOT_OF_NUMBERED_DAYS = ("restore", "new_disk")
"""An older ledger gives numbers again."""
FIRST_TOTAL = 100_000


def _with_numbers(draw: random.Random, script: Script, length: float) -> Script:
    """Half of them over the end of a year, where no clock is wrong by days."""
    if draw.random() >= NUMBERED_DAYS:
        return _with_copies(random.Random(f"copies {script.seed}"), script, length)
    if not script.has_spare and draw.random() < 0.5:
        script = _with_deferred_sales(draw, script, length)
    is_new_year = draw.random() < 0.5
    events, names = [], dict[tuple[int, object], int]()
    for event in script.events:
        how = event.how
        jump = how.get("jump", 0.0)
        if event.what in NOT_OF_NUMBERED_DAYS or (is_new_year and isinstance(jump, float) and abs(jump) > DAY):
            continue
        if event.what in ("sell", "defer") and (how["kind"], how["mode"]) == ("FV", "TTC"):
            total = FIRST_TOTAL + names.setdefault((event.machine, how["number"]), len(names))
            if total % 4:
                # Its key alone says which sale it is: no till takes another one for it.
                after = "leave" if how["after"] == "leave" else "again"
                how = {**how, "number": by_total(total), "prices": (total,), "keyed": True, "after": after}
        events.append(event._replace(how=how))
    machines = script.machines
    if is_new_year:
        machines = tuple(
            part._replace(options=msgspec.structs.replace(part.options, clock_offset=0.0)) for part in machines
        )
    script = script._replace(machines=machines, events=tuple(events), gives_numbers=True, is_new_year=is_new_year)
    return (
        script if script.has_spare else _with_copies(random.Random(f"copies of numbers {script.seed}"), script, length)
    )


COPY_DAYS = 0.4
"""On how many of the long days that are left, and of those on which the box gives numbers, copies are put back near a sale, and most often a
stranger's invoice comes while one is in doubt."""


def _with_copies(draw: random.Random, script: Script, length: float) -> Script:
    if script.seed < SHORT_DAYS or draw.random() >= COPY_DAYS:
        return script
    sales = [event for event in script.events if event.what == "sell"]
    more = []
    for kind in draw.choices(list(COPIES), (1, 1, 3), k=draw.choice((0, 1, 1, 2))):
        sale = draw.choice(sales)
        how = {name: of(draw) for name, of in COPIES[kind].items()}
        more.append(Event(max(0.0, sale.at + draw.uniform(-3.0, 3.0)), kind, how, sale.machine))
    for _ in range(draw.choice((0, 1, 2))):
        sale = draw.choice(sales)
        end = _ended(draw, sale.at + 0.3 * draw.random(), "kill", "unplug", "cut_box", seconds=1.0 + draw.random())
        stranger = Event(end.at + draw.random(), "foreign", {"kind": draw.choice(("FV", "FA", "EV")), "total": 700})
        more += [event._replace(machine=sale.machine) for event in (end, stranger)]
    events = sorted(
        (*script.events, *(event._replace(at=round(event.at, 3)) for event in more)), key=lambda event: event.at
    )
    return script._replace(events=tuple(events))


def _end_beside(draw: random.Random, at: float, machine: int) -> Event:
    kind = draw.choice(("kill_relay", "cut_lines", "kill", "cut_box", "stop", "unplug", "disk"))
    seconds = round(draw.choice((0.0, 3.0, 20.0)) * draw.random(), 3)
    how: dict[str, object] = {"seconds": seconds}
    if kind == "kill_relay":
        how = {"relay": draw.randrange(2), "seconds": seconds}
    elif kind == "cut_lines":
        how = {}
    elif kind == "disk":
        how = {"what": "stall", "seconds": seconds}
    return Event(at, kind, how, machine)


def _z(at: float) -> Event:
    return Event(at, "close", {"key": "Z at once", "twin": False, "pause": 0.05})


def _ended(draw: random.Random, at: float, *kinds: str, seconds: float) -> Event:
    return Event(at, draw.choice(kinds), {"seconds": round(seconds, 3)})


LATE_DAYS = 0.05
"""How many of the long days are such that 38h is answered seconds late, the daemon begins anew meanwhile, and its links begin near the SEQ that is still to
be answered: each of these is rare, and what they do together one day in three thousand would show."""
LATE = "late:6@38=70%"
ENDS = 8


def _answered_late(draw: random.Random, script: Script) -> Script:
    first, *others = script.machines
    sales = [event for event in script.events if event.what == "sell" and not event.machine]
    ends = [
        _trouble(draw, draw.choice(("kill", "stop")), draw.choice(sales).at + draw.expovariate(0.2))
        for _ in range(ENDS)
    ]
    short = [end._replace(how={"seconds": round(2.0 * draw.random(), 3)}) for end in ends]
    events = sorted((*script.events, *short), key=lambda event: event.at)
    # A code that only the late answer tells is not known to be an earlier one's.
    options = msgspec.structs.replace(first.options, no_codes=draw.random() < 0.75)
    first = first._replace(faults=LATE, options=options)
    return script._replace(machines=(first, *others), events=tuple(events), is_late=True)


SYNCS = {"cut_box": 4, "cut_all": 4, "restore": 9}
"""Before which sync from then on the power goes at the latest; as many as there are in what is written there."""


def _amid(draw: random.Random, event: Event) -> Event:
    """Half of the power cuts, and some of what is put back, are cut off in the middle of what they write."""
    if event.what not in SYNCS or draw.random() < 0.5:
        return event
    return event._replace(how={**event.how, "sync": draw.randint(1, SYNCS[event.what])})


def _part(draw: random.Random, nim: str) -> MachinePart:
    lines = draw.sample(sorted(set(FAMILY) - {"all of it"}), draw.choice((0, 0, 0, 1, 1, 2)))
    faults = ",".join(slow_down(FAMILY[line], LINE_SCALE) for line in lines)
    return MachinePart(_options(draw, nim), faults, draw.choice((0.0, 0.0, 0.01, 0.09)))


def _options(draw: random.Random, nim: str) -> SimulatorOptions:
    def maybe(chance: float = 0.15) -> bool:
        return draw.random() < chance

    return SimulatorOptions(
        nim=nim,
        credit_check=draw.choice((0.0, 0.3, 3.0)),
        credit_style=draw.choice(("pending", "silent", "syn")),
        short_nim=maybe(),
        dashed_codes=maybe(),
        close_prefix=maybe(),
        close_number=maybe(),
        fc_per_type=maybe(0.1),
        fvc_local=maybe(0.3),
        no_codes=maybe(0.05),
        vat=draw.choice(("half-up", "half-up", "down", "cents")),
        clock_offset=draw.choice((0.0, 0.0, 40.0, -90.0, 10 * 366 * DAY, -10 * 366 * DAY)) if maybe(0.3) else 0.0,
    )


SHORT_DAYS = 500
"""The first so many seeds, which the suite plays, are short days."""
SALES, SALES_OF_LONG_DAYS = ((5, 16),), ((15, 50), (40, 100))
"""How many there are, from and to."""


def _tills(draw: random.Random, length: float, sales: int, machine: int) -> list[Event]:
    """All through the day, or most of them in two rushes."""
    count = max(3, sales)
    rushes = [draw.uniform(0.0, length) for _ in range(draw.choice((0, 0, 2)))]
    sales = [_sale(draw, each, _moment(draw, length, rushes)) for each in range(count)]
    twins = [_twin(draw, sale) for sale in sales if draw.random() < 0.15]
    closings = (_closing(draw, each, length) for each in range(draw.choice((0, 1, 1, 2))))
    return [event._replace(machine=machine) for event in (*sales, *twins, *closings)]


def _moment(draw: random.Random, length: float, rushes: Sequence[float]) -> float:
    if rushes and draw.random() < 0.8:
        return draw.choice(rushes) + draw.uniform(0.0, 0.6)
    return draw.uniform(0.0, length)


def _sale(draw: random.Random, each: int, at: float) -> Event:
    """`after`: what the till does when it is told that nothing was certified. `hangs_up`: seconds it waits for its first answer."""
    kind = draw.choices(("FV", "EV", "ET", "FT", "FA"), (70, 5, 4, 4, 12))[0]
    return Event(
        round(at, 3),
        "sell",
        {
            "number": f"F-{each}",
            "kind": kind,
            "prices": tuple(draw.randint(1, 9999) for _ in range(draw.randint(1, 3))),
            "mode": "HT" if draw.random() < 0.15 else "TTC",
            "keyed": draw.random() < 0.8,
            "after": draw.choice(("again", "again", "other key", "other body", "leave")),
            "hangs_up": round(draw.uniform(0.0, 1.5), 3) if draw.random() < 0.15 else 0.0,
            "pause": round(draw.choice((0.05, 0.5, 2.0)) * draw.random(), 3),
            "pick": draw.choice((0.0, round(draw.random(), 3))),
        },
    )


def _twin(draw: random.Random, sale: Event) -> Event:
    """Another till, or the same in its impatience, with the same key: with the same body, or with another one."""
    how = {**sale.how, "hangs_up": 0.0, "keyed": True, "is_twin": True}
    if draw.random() < 0.3:
        how["prices"] = (*sale.how["prices"], 7)  # type: ignore[misc]
    return Event(round(sale.at + draw.choice((0.0, 0.01, 0.3, 5.0)) * draw.random(), 3), "sell", how)


def _closing(draw: random.Random, each: int, length: float) -> Event:
    how = {"key": f"Z {each}", "twin": draw.random() < 0.2, "pause": round(draw.random(), 3)}
    return Event(round(draw.uniform(0.0, length), 3), "close", how)


def _troubles(draw: random.Random, length: float, sales: Sequence[Event]) -> list[Event]:
    """Half of them just after a till came, when there is something to break; half of what lasts is met by an end of the daemon."""
    events: list[Event] = []
    for kind in draw.choices(list(TROUBLES), WEIGHTS, k=draw.choice((0, 1, 2, 2, 3, 4))):
        sale = draw.choice(sales)
        at = sale.at + draw.expovariate(2.0) if draw.random() < 0.5 else draw.uniform(0.0, length)
        events.append(_trouble(draw, kind, at)._replace(machine=sale.machine))
        if kind in LASTING and draw.random() < 0.5:
            seconds = events[-1].how["seconds"]
            assert isinstance(seconds, float)
            end = draw.choice(("kill", "cut_box", "stop", "unplug"))
            events.append(_trouble(draw, end, at + seconds * draw.random())._replace(machine=sale.machine))
    return events


EVENING = 30.0
"""Seconds from when the tills have gone to the last Z; box and machine stay on."""


def _evening(draw: random.Random, length: float, machines: int) -> list[Event]:
    """No sale makes good what goes wrong now: what the daemon has seen by itself is all it knows."""
    kinds = draw.choices(list(TROUBLES), WEIGHTS, k=draw.choice((0, 0, 0, 0, 0, 2, 3)))
    return [
        _trouble(draw, kind, length + draw.uniform(0.0, EVENING))._replace(machine=draw.randrange(machines))
        for kind in kinds
    ]


def _trouble(draw: random.Random, kind: str, at: float) -> Event:
    return Event(round(at, 3), kind, {name: how(draw) for name, how in TROUBLES[kind][1].items()})
