"""What the oracle does not ask of a history, each with its reason: two truths leave the same evidence there (test_exemptions.py shows both).

What is no exemption: an operator may be asked after a cause (`World.blame`), and a machine that was given other rates may disagree."""

from collections.abc import Sequence
from itertools import pairwise

from simulation.box import PAIRS
from simulation.world import World

from daemon.core.clock import BOUND, EARLIEST, FIRST_BOUND, SLACK
from daemon.core.invoice.invoice import CREDITS
from daemon.core.invoice.number import DIGITS
from daemon.core.ledger.attempt import Record
from daemon.core.report.receipt import Receipt
from simulator.machine.fiscal_memory import CertifiedInvoice

MOMENT = 1500
"""Milliseconds by which a time may be early: the machine tells whole seconds."""


def code_was_reported(world: World, code: str) -> bool:
    """Such a machine tells a code in its answer to 38h alone: where that is lost, it is in no ledger."""
    return not code and world.options.no_codes


def name_is_another(world: World, record: Record, expected: Receipt, entry: CertifiedInvoice) -> bool:
    """When the answer to 38h is lost (the line took no time then), an activation just before a sale looks like one just after it where the counters go
    on: either name will do, when the other one has no such sale. A machine that does not tell its suffix tells of no activation."""
    if world.options.short_nim or (record.line_ms == 0 and sales_are_named_alike(world)):
        return True
    log = world.session.machine.fiscal.log
    alike = (e for e in log if e.fvc == expected.fvc and world.names[e.code] == expected.nim and e.type not in CREDITS)
    return record.line_ms == 0 and (entry.type in CREDITS or next(alike, None) is None)


def tc_is_later(record: Record, entry: CertifiedInvoice) -> bool:
    """The machine's report of the day moves TC before an invoice, or between it and the C1h by which it was found."""
    return record.counters is not None and record.counters.tc >= entry.tc


def other_counter_is_untold(world: World) -> bool:
    """The answer to 38h has TC and the counter of its own kind. Where an invoice of another program follows before C1h is read, nothing tells whether one of
    the other kind was counted before ours or after it (seed 9920166)."""
    return world.foreign > 1


def sales_are_named_alike(world: World) -> bool:
    """A machine that does not tell its suffix and was reset gives two sales one name: it cannot be known which of them a credit note is on. So does an
    operator who enters what a reset machine printed with counters that were given before: a decision has no name of the machine (seed 7770414)."""
    return world.was_reset and (world.options.short_nim or world.entered_as_printed)


def is_lost(number: str, lost: set[str]) -> bool:
    """An older ledger has no trace of what was certified since, of its keys and answers, nor has a machine that was reset: it tells its last invoice alone."""
    return number in lost


def number_was_unknown(world: World, number: str, taken_over: Sequence[tuple[int, str]]) -> bool:
    """An older ledger lacks more than one invoice, and the machine names only its last: the series goes on after that one, where it is of that series
    and the ledger takes it over. `taken_over`: how many invoices there were then, and the number of the last."""
    log = world.session.machine.fiscal.log
    places = [place for place, entry in enumerate(log) if entry.number == number and not entry.foreign]
    return all(
        any(
            one < count <= other and not (last[:-DIGITS] == number[:-DIGITS] and last >= number)
            for count, last in taken_over
        )
        for one, other in pairwise(places)
    )


def strangers_are_uncounted(world: World) -> bool:
    """What a reset machine had counted is gone. To an older ledger ours and strangers' invoices are the same. What an operator decided rests on paper. And a new
    ledger begins with what its machine has counted, of any program."""
    return world.was_reset or world.was_restored or bool(world.decided) or world.is_unsure_of_foreign


def periods_are_mixed(world: World) -> bool:
    """An invoice that a Z's counters hold may be of another activation, missing in an older ledger, or entered from paper when its Z was long made."""
    return world.was_reset or world.was_restored or bool(world.decided)


def export_may_be_a_report(world: World, found: str) -> bool:
    """TC alone has moved, and the machine tells no last invoice, or its last without a code: an export on a machine that never tells one, or a second
    one under the last number (seed 9731068), or reports of the day."""
    is_untold = "no last invoice" in found or world.options.no_codes
    return "(E" in found and is_untold and (world.box.is_another_day or world.had_report)


def reset_has_no_name(world: World) -> bool:
    """A machine that does not tell its suffix was reset: by an activation, or it is another machine."""
    return world.options.short_nim


def reset_left_nothing(world: World, *, is_blank: bool) -> bool:
    """A machine that does not tell its suffix and was reset looks, to a copy from before its first invoice, like one that has done nothing since."""
    return is_blank and world.was_reset and world.options.short_nim


def pair_is_unknown(world: World, *, vanished: bool) -> bool:
    """A ledger that is gone takes the pair with it: where the configuration names one machine alone, the box does not know of the other, which would
    have to be compared first (seed 989)."""
    return vanished and world.box.layout not in PAIRS


def machine_has_no_past(world: World) -> bool:
    """A machine that has counted nothing looks the same whatever Z were made of nothing: after a restore onto a new disk the last one is not requested."""
    return not world.session.machine.fiscal.tc


def outages_are_unsure(world: World) -> bool:
    """A wrong clock moves the book's time between a refusal and its outage, and an older ledger has not heard of it."""
    return (
        bool(world.wrong_box_times)
        or world.clock_was_wrong
        or world.was_restored
        or world.was_reset
        or world.was_activated
        or world.box.was_reconfigured
    )


def repair_is_to_the_hour(world: World) -> bool:
    """By how much a clock was ahead a repair of the time knows in whole hours: outages of that hour may come to one moment, each with its length
    (seeds 7770699, 9991098)."""
    return world.time_was_repaired


def latest_time(world: World) -> int:
    """A box whose clock nothing confirms may be right or ahead: its book follows as far as its bound, each time that it is wrong (seed 51000506); from
    there on a machine that is further ahead may be right (881679)."""
    wrong_times = world.wrong_box_times and world.wrong_box_times + world.wrong_machine_times
    latest = world.box.true_millis() + (wrong_times * BOUND + SLACK if wrong_times else MOMENT)
    return max(latest, EARLIEST + FIRST_BOUND) if world.box_was_wrong_at_first else latest
