"""What a technician has to decide: findings, ledger and machine compared, possible decisions; and the last Z on paper,
where nothing knows it after a restore."""

from typing import Final, cast

from common.language import Text, translate
from common.numbers import parse_integer
from common.one_line import fault_of_line
from daemon.api.http.answers import Reply
from daemon.api.page.views.machine_view import in_plain_words
from daemon.api.page.views.sales_state import without_last_z
from daemon.api.page.visit import ATTENTION, BLANKS, Visit, cases, redirect, render, screen
from daemon.core.audit import LONGEST_REASON
from daemon.core.errors import FieldError, InvalidRequest
from daemon.core.ledger.decision import MEANINGS, OBSTACLE_TEXTS, Decision, DecisionRefused, Obstacle
from daemon.core.ledger.paper import read_paper
from daemon.store.maintenance.numbers import check_last_z
from daemon.store.tables.book.books import book_state

OBSTACLES: dict[Obstacle, Text] = {
    "does not fit": Text("this decision does not fit any more, perhaps since another one was made meanwhile"),
    "machine unknown": Text("it is not known what the machine says: plug it in"),
    "not its last": Text(
        "the machine's last invoice is not this one: its code and time have to come from the machine's paper"
    ),
    "its last": Text("the machine's last invoice is this one: it did certify it"),
    **OBSTACLE_TEXTS,
}
DONE: Final = {
    "1": Text("Decided. The machine goes on within seconds."),
    "z": Text("Entered: days can be closed again."),
}
LAST_Z: Final = "last-z"
REASON = Text("a reason is needed; it is kept in the ledger")
SHORTEST_REASON = 4


def reason_of(visit: Visit) -> str:
    """The reason of a decision, for the ledger. Raises InvalidRequest if it is too short, too long or not one line."""
    reason = visit.form.get("reason", "").strip()
    if fault := REASON if len(reason) < SHORTEST_REASON else fault_of_line(reason, LONGEST_REASON):
        raise InvalidRequest.at("reason", fault)
    return reason


async def _attention(visit: Visit) -> Reply:
    done = DONE.get(visit.query.get("done", ""))
    return await render(
        visit,
        "attention.html",
        meanings=MEANINGS,
        obstacles=OBSTACLES,
        done=visit.say(done) if done else "",
        plain=in_plain_words,
        last_z=[(each, each.ledger.peek(book_state, each.book).z_number) for each in without_last_z(visit)],
    )


attention = screen(ATTENTION, "administer")(_attention)


@screen(ATTENTION, "administer", change=True, form=_attention, faults=(InvalidRequest,))
async def decide(visit: Visit) -> Reply:
    form = visit.form
    if form.get("decision") == LAST_Z:
        return await _enter_last_z(visit)
    case_of_form = next((each for each in await cases(visit) if each[1].fingerprint == form.get("case")), None)
    worker, case = case_of_form or (visit.worker, await visit.page.decisions.case(visit.worker.book))
    decision = cast("Decision", form.get("decision", ""))
    fields = form.get("code", ""), form.get("time", ""), form.get("counters", "")
    as_printed = bool(form.get("as_printed"))
    paper, errors = read_paper(*fields, as_printed=as_printed) if decision == "certified" else (None, [])
    if errors:
        raise InvalidRequest(
            [FieldError(error.field, str(translate(error.message, visit.language))) for error in errors]
        )
    reason = reason_of(visit)
    if form.get("case") != case.fingerprint:
        raise _refused("changed" if case.state.attention else "does not fit", visit)
    at = worker.now()
    try:
        async with visit.deps.workers.at_rest((worker.book,)):
            await visit.page.decisions.carry_out(case, decision, reason=reason, at=at, by=visit.actor, paper=paper)
    except DecisionRefused as error:
        raise _refused(error.obstacle, visit) from error
    return redirect(visit.link(ATTENTION, done="1"))


async def _enter_last_z(visit: Visit) -> Reply:
    """Takes the number of the last Z on paper, typed twice, after a restore (decision 30)."""
    worker, form = visit.worker, visit.form
    state = worker.ledger.peek(book_state, worker.book)
    if not state.needs_last_z:
        raise _refused("does not fit", visit)
    number, again = (parse_integer(form.get(field, "").translate(BLANKS)) for field in ("last_z", "again"))
    if number is None or number != again:
        raise InvalidRequest.at("last_z", visit.say("a whole number, the same in both fields"))
    check_last_z(state, number)
    await visit.page.decisions.set_last_z(worker.book, number, at=worker.now(), by=visit.actor)
    return redirect(visit.link(ATTENTION, done="z"))


def _refused(obstacle: Obstacle, visit: Visit) -> InvalidRequest:
    return InvalidRequest.at("decision", OBSTACLES[obstacle].in_language(visit.language))
