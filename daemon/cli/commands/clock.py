"""`mcfd time`: shows clocks and books' times; repairs a book that a wrong clock has moved ahead (decision 21)."""

import asyncio
import re

import click

from common.language import Counted, tr
from common.wire.instants import now_millis
from daemon.cli.book import live_states
from daemon.cli.options import explained, json_option, settings_option
from daemon.cli.output import Failure, moment, print_json, print_table, read_reason, say
from daemon.core.clock import BOUND, DAY, EARLIEST, HOUR, millis_text
from daemon.core.errors import NotFound
from daemon.core.ledger.book import BookState
from daemon.core.machine.state import same_machine
from daemon.ledger_access import change, read_ledger
from daemon.operations import AcceptTime, RepairTime
from daemon.settings import Settings
from daemon.store.tables.book.entries import hours_ahead
from daemon.time_sync import is_synchronised

_AHEAD = re.compile(r"([0-9]{1,5})([dh])")
_UNITS = {"d": DAY, "h": HOUR}


command = click.Group("time")


@command.command(
    "show", help=tr("Show the box's clock, whether it is synchronised, and the youngest time of each book.")
)
@settings_option
@json_option
def show(settings: Settings, as_json: bool) -> None:
    states = read_ledger(settings, live_states)
    at, synchronised = now_millis(), asyncio.run(is_synchronised())
    if as_json:
        books = [{"nim": s.book.nim, "last_at": millis_text(s.last_at) if s.last_at else None} for s in states]
        print_json({"box": millis_text(at), "synchronised": synchronised, "books": books})
        return
    zone = settings.reports.zone
    say("box: {at}, {how}", at=moment(at, zone), how=tr("synchronised") if synchronised else tr("not synchronised"))
    rows = [(s.book.nim, moment(s.last_at, zone) if s.last_at else "–", _remark(s, at)) for s in states]
    print_table(("NIM", tr("last entry"), ""), rows)


def _remark(state: BookState, at: int) -> str:
    if at < EARLIEST:
        return tr("the box's clock says {at}, which cannot be right: set it first", at=millis_text(at))
    if state.last_at > at + HOUR:
        return tr("still to come: mcfd time repair {nim}", nim=state.book.nim)
    if state.last_at and at > state.last_at + BOUND:
        return tr("long ago: confirm the clock (mcfd time accept)")
    return ""


@command.command(
    "repair",
    **explained(
        "Set a book right whose time a wrong clock has moved ahead. The daemon has to be stopped, and the box's clock has to be right. "
        "What was written keeps its hash; an entry of the chain says what it is taken for.",
        'mcfd time repair EL02000015-1 --reason "année fausse sur la machine"',
        'mcfd time repair --ahead 3653d --reason "année fausse sur la machine"',
    ),
)
@settings_option
@click.argument("nim", required=False)
@click.option(
    "--ahead",
    metavar="3653d",
    help=tr(
        "By how much the clock was ahead, in days or hours (3653d, 5h); left out, it is taken from the last entry."
    ),
)
@click.option("--reason", default="", help=tr("Why; it is written into the chain."))
@json_option
def repair(settings: Settings, nim: str | None, ahead: str | None, reason: str, as_json: bool) -> None:
    right = _right_now()
    state = _one(settings, nim)
    why = read_reason(reason)
    by = _read_ahead(ahead) or hours_ahead(state.last_at, right)
    try:
        change(settings, RepairTime(state.book, right, by, why))
    except NotFound as error:
        at = millis_text(state.last_at)
        raise Failure("{nim}: nothing to repair, the book ends at {at}", nim=state.book.nim, at=at) from error
    if as_json:
        ends = {"from": millis_text(state.last_at), "to": millis_text(right)}
        print_json({"nim": state.book.nim, "ahead_ms": by, **ends})
        return
    zone = settings.reports.zone
    say(
        "{nim}: the book ends at {new} instead of {old}; what was written with that clock counts {hours} earlier",
        nim=state.book.nim,
        new=moment(right, zone),
        old=moment(state.last_at, zone),
        hours=Counted("{count} hour", "{count} hours", by // HOUR),
    )


@command.command(
    "accept",
    **explained(
        "Confirm that the box's clock is right, when the last entry is so long ago that it cannot be checked. The daemon goes on within seconds.",
        "mcfd time accept",
    ),
)
@settings_option
def accept(settings: Settings) -> None:
    upto = _right_now() + DAY
    change(settings, AcceptTime(upto))
    say("accepted: {at}", at=millis_text(upto - DAY))


def _right_now() -> int:
    at = now_millis()
    if at < EARLIEST:
        raise Failure("the box's clock says {at}, which cannot be right: set it first", at=millis_text(at))
    return at


def _read_ahead(text: str | None) -> int:
    if text is None:
        return 0
    found = _AHEAD.fullmatch(text)
    if found is None or not int(found[1]):
        raise click.UsageError(tr("--ahead: {text} is no number of days or hours, as 3653d or 5h", text=text))
    return int(found[1]) * _UNITS[found[2]]


def _one(settings: Settings, nim: str | None) -> BookState:
    states = read_ledger(settings, live_states)
    found = [state for state in states if nim is None or same_machine(state.book.nim, nim)]
    if len(found) != 1:
        raise Failure("which one? {nims}", nims=", ".join(state.book.nim for state in states))
    return found[0]
