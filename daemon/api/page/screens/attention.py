"""Attention: what was found, ledger and machine side by side, and the decisions that fit."""

from __future__ import annotations

from typing import cast

from common.language import Text, tell
from daemon.api.http.answers import Reply
from daemon.api.page.shown.attention_words import in_plain_words
from daemon.api.page.visit import Visit, redirect, screen, shown
from daemon.core.errors import FieldError, InvalidRequest
from daemon.core.ledger.decision import MEANINGS, SAID, Decision, DecisionRefused, Obstacle
from daemon.core.ledger.paper import read_paper

OBSTACLES: dict[Obstacle, Text] = {
    "does not fit": Text("this decision does not fit any more"),
    "machine unknown": Text("it is not known what the machine says: plug it in"),
    "not its last": Text(
        "the machine's last invoice is not this one: its code and time have to come from the machine's paper"
    ),
    "its last": Text("the machine's last invoice is this one: it did certify it"),
    **SAID,
}
REASON = Text("a reason is needed; it is kept in the ledger")
SHORTEST_REASON = 4


@screen("/ui/attention", "administer")
async def attention(visit: Visit) -> Reply:
    cases = [(worker, await visit.page.decisions.case(worker.book)) for worker in visit.deps.workers.all()]
    return await shown(
        visit,
        "attention.html",
        cases=[(worker, case) for worker, case in cases if case.is_open],
        meanings=MEANINGS,
        obstacles=OBSTACLES,
        done=visit.say("Decided. The machine goes on within seconds.") if visit.query.get("done") else "",
        plain=in_plain_words,
    )


@screen("/ui/attention", "administer", change=True)
async def decide(visit: Visit) -> Reply:
    case = await visit.page.decisions.case(visit.worker.book)
    form = visit.form
    decision, reason = cast("Decision", form.get("decision", "")), form.get("reason", "")
    fields = form.get("code", ""), form.get("time", ""), form.get("counters", "")
    as_printed = bool(form.get("as_printed"))
    paper, errors = read_paper(*fields, as_printed=as_printed) if decision == "certified" else (None, [])
    if errors:
        raise InvalidRequest([FieldError(error.field, str(tell(error.message, visit.language))) for error in errors])
    if len(reason) < SHORTEST_REASON:
        raise InvalidRequest([FieldError("reason", REASON.told(visit.language))])
    if form.get("case") != case.shown:
        raise _refused("changed" if case.state.attention else "does not fit", visit)
    at = visit.worker.now()
    try:
        async with visit.deps.workers.at_rest((visit.worker.book,)):
            await visit.page.decisions.carry_out(case, decision, reason=reason, at=at, by=visit.actor, paper=paper)
    except DecisionRefused as error:
        raise _refused(error.obstacle, visit) from error
    return redirect(visit.link("/ui/attention", done="1"))


def _refused(obstacle: Obstacle, visit: Visit) -> InvalidRequest:
    return InvalidRequest([FieldError("decision", OBSTACLES[obstacle].told(visit.language))])


HANDLERS = (attention, decide)
