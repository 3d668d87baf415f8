"""Sentences of findings: in English for programs, in a person's language for people."""

from typing import Final

import msgspec

from common.language import Language, Text, duration
from common.web.formats import day

PASSING: Final[frozenset[str]] = frozenset({"gap", "late", "tax-server", "version", "clock", "deferred", "clone"})
"""Kinds that are solved automatically when the fact ends, and found anew when it returns. The other kinds are
permanent facts, which a person solves; so are numbers that no box will ever send."""

GONE = "gone"
"""`what` of a gap whose closures belonged to a lost ledger."""
NEVER = "–"
"""`since` or `silent` of a machine without any closure or presence."""
Value = int | str
Facts = dict[str, Value]
KIND: Final[dict[str, Text]] = {
    "fork": Text("Forked ledger"),
    "clone": Text("Two boxes as one"),
    "chain": Text("Broken chain"),
    "counters": Text("Counters"),
    "unexplained": Text("Unexplained invoices"),
    "refused": Text("Refused messages"),
    "deferred": Text("Sales not certified"),
    "gap": Text("Missing closure"),
    "late": Text("Late closure"),
    "tax-server": Text("Tax server"),
    "clock": Text("Clock"),
    "version": Text("Old version"),
}
"""Worst first."""
_SENTENCES: Final[dict[str, Text]] = {
    "gap": Text("Z {first} to {last} are missing"),
    "gap.one": Text("Z {first} is missing"),
    "gap.gone": Text("Z {first} to {last} have never come, and the box does not have them: a lost ledger gave them"),
    "gap.gone.one": Text("Z {first} has never come, and the box does not have it: a lost ledger gave it"),
    "late.never": Text("no Z and no other sign so far"),
    "late": Text("no Z since {since}, and no sign since {silent}"),
    "late.silent": Text("no Z since {since}, and no other sign so far"),
    "late.since": Text("no Z so far, and no sign since {silent}"),
    "fork.id": Text("Z {z} came a second time with other figures ({id})"),
    "fork.number": Text("two closures have the number Z {z}: {other} and {id}"),
    "fork.calendar": Text("{period} was closed a second time with other figures ({id})"),
    "fork.previous": Text("Z {other} and Z {z} follow the same closure: the ledger was put back"),
    "fork.again": Text(
        "Z {other} and Z {z} follow the same closure, and Z {z} has sales of Z {other} again: the ledger was put back; the totals count these sales twice"
    ),
    "fork.replaced": Text(
        "Z {other} and Z {z} follow the same closure, and Z {z} has all sales of Z {other} again: the ledger was put back; the totals count them once, in Z {z}"
    ),
    "fork.behind": Text("the box knows of Z {knows} only, headquarters has Z {z}: the ledger was put back"),
    "fork.ledger": Text("the box has a new ledger ({ledger}); headquarters holds up to Z {z} of another one"),
    "fork.head": Text("the box has another head ({has}) for Z {z} than headquarters ({held})"),
    "chain.head": Text("the head of Z {z} is not that of its figures"),
    "chain.previous": Text("Z {z} does not follow the one before it (names {has}, held {held})"),
    "counters.sum": Text("Z {z}: the counters grew by {grown}, the number of invoices is {told}"),
    "counters.down": Text("Z {z}: the counters {counter} went down"),
    "counters.opening": Text("Z {z} does not begin with the counters that the one before it ends with"),
    "counters.fvc": Text("Z {z} begins with FVC {start}, the one before it ends with {end}"),
    "unexplained": Text("Z {z}: {count} invoices on the machine that the ledger cannot explain"),
    "unexplained.one": Text("Z {z}: one invoice on the machine that the ledger cannot explain"),
    "tax-server": Text("the machine has not reached the tax server for {days} days"),
    "deferred": Text("a sale waits for its certification for {hours} hours; the law leaves 48"),
    "version": Text("version {has}, the newest is {newest}"),
    "clock.box": Text("the box's clock is off by {time}"),
    "refused": Text(
        "with this shop's NATS key came messages on {day} that are no closure and no presence ({reason}): a fault of the box, or a stolen key"
    ),
    "clone": Text(
        "two boxes speak as this one in turn (starts {first} and {second}): its card was copied; revoke the box, the right one joins by a new code"
    ),
    "clock.machine": Text("the clocks of box and machine differ by {time}"),
}


class Fact(msgspec.Struct, frozen=True):
    """`key` identifies the finding within its kind and book; `facts` are the values of its sentence."""

    kind: str
    key: str
    facts: Facts


def sentence(kind: str, facts: Facts, language: Language) -> str:
    """Formats a finding; the values are from `facts`."""
    what = facts.get("what")
    name = f"{kind}.{what}" if what else kind
    if (kind == "gap" and facts["first"] == facts["last"]) or (name == "unexplained" and facts["count"] == 1):
        name += ".one"
    if name == "late":
        name, facts = _late(facts, language)
    if kind == "clock":
        facts = facts | {"time": duration(int(facts["seconds"])).in_language(language)}
    return _SENTENCES[name](**facts).in_language(language)


def _late(facts: Facts, language: Language) -> tuple[str, Facts]:
    """Name of the sentence, and its times (YYYY-MM-DD HH:MM, UTC) in the format of the language."""
    times = {name: str(facts[name]) for name in ("since", "silent")}
    name = next((f"late.{each}" for each, time in times.items() if time == NEVER), "late")
    if language == "fr":
        times = {each: _in_french(time) for each, time in times.items() if time != NEVER}
    return name, facts | times


def _in_french(time: str) -> str:
    date, _, minute = time.partition(" ")
    return f"{day(date, 'fr')} à {minute}"
