"""Findings and their handling; boxes with their last presence, joining and revocation; people and roles."""

from datetime import timedelta
from typing import Any
from urllib.parse import quote

from litestar import Response, get, post
from litestar.exceptions import NotFoundException
from litestar.response import Redirect

from common.language import Text, duration
from common.numbers import parse_integer
from common.passwords import fault_of_password
from common.turns import Busy
from common.web.security import RIGHT
from common.wire.instants import now_millis
from common.wire.joining import MAX_MACHINES
from headquarters.core.checks import machine_of
from headquarters.intake.joining import JoinService
from headquarters.page.shared import (
    NO_NAME,
    THROTTLED,
    AnyRequest,
    Screens,
    form_of,
    name_of_caller,
    names_of,
    page_of,
    text_of,
)
from headquarters.store.findings import MAX_ID
from headquarters.store.people import ROLES
from headquarters.store.register import is_name, is_nim
from headquarters.store.store import HqStore

MAX_FINDINGS = 500
SHOPS = 100
AMBER_DAYS, RED_DAYS = 5, 7
OWN_ACCOUNT = Text("You cannot disable your own account.")
CHANGED = Text("The box has named another ledger meanwhile: look again.")


@get("/ui/findings", opt={RIGHT: "reader"})
async def findings(request: AnyRequest, screens: Screens) -> Response[bytes]:
    everything, before = text_of(request, "all") == "1", parse_integer(text_of(request, "before"), 10) or MAX_ID
    of = None if everything else True
    found = await screens.run(screens.store.findings.listed, is_open=of, before=before, limit=MAX_FINDINGS)
    older = found[-1].id if len(found) == MAX_FINDINGS else 0
    return screens.render(request, "findings.html", findings=found, everything=everything, older=older)


@post("/ui/findings/{id_:int}/{what:str}", status_code=303, opt={RIGHT: "accountant"})
async def change(request: AnyRequest, screens: Screens, id_: int, what: str) -> Redirect:
    """`what` is `see`, or `solve` with a note."""
    now = now_millis()
    form = await form_of(request)
    if what == "see":
        await screens.run(screens.store.findings.mark_seen, id_, name_of_caller(request), now)
    elif what == "solve":
        note = str(form.get("note", ""))[:500].replace("\0", "")
        await screens.run(screens.store.findings.solve, id_, name_of_caller(request), note, now)
    return Redirect("/ui/findings", status_code=303)


@get("/ui/boxes", opt={RIGHT: "reader"})
async def boxes(request: AnyRequest, screens: Screens) -> Response[bytes]:
    some, count, page = await screens.run(screens.store.register.some, None, page_of(request), SHOPS)
    latest = await screens.run(screens.store.presences.latest, [box.machine for box in some])
    since = (screens.today() - timedelta(days=7)).isoformat()
    refused = await screens.run(screens.store.evidence.counted, since)
    paged: dict[str, Any] = {"boxes": some, "count": count, "page": page, "is_last": (page + 1) * SHOPS >= count}
    limits: dict[str, Any] = {"amber": AMBER_DAYS, "red": RED_DAYS, "duration": duration}
    return screens.render(request, "boxes.html", presences=latest, refused=refused, **paged, **limits)


@get("/ui/join", opt={RIGHT: "admin"})
async def join_form(request: AnyRequest, screens: Screens) -> Response[bytes]:
    return screens.render(request, "join.html", **await _codes(screens))


@post("/ui/join", status_code=200, opt={RIGHT: "admin"})
async def make_code(request: AnyRequest, screens: Screens, joining: JoinService) -> Response[bytes]:
    """The only time that the code is shown."""
    form = await form_of(request)
    nims = tuple(dict.fromkeys(str(form.get("nims", "")).upper().replace(",", " ").split()))
    named, problem = names_of(form), None
    if not 0 < len(nims) <= MAX_MACHINES or not all(map(is_nim, nims)):
        problem = Text("A NIM is two capital letters and eight digits, as EL02000015-1.")
    if problem is not None or named is None:
        problem = problem or NO_NAME
        return screens.render(request, "join.html", 422, **await _codes(screens), problem=problem, form=form)
    link = await joining.make_code(nims, by=name_of_caller(request), **named)
    return screens.render(request, "join.html", **{**await _codes(screens), "link": str(link), "nims": nims})


async def _codes(screens: Screens) -> dict[str, Any]:
    now = now_millis()
    return {"link": "", "waiting": await screens.run(screens.store.joining.waiting, now), "nims": ()}


@post("/ui/shops/{nim:str}/revoke", status_code=303, opt={RIGHT: "admin"})
async def revoke(screens: Screens, nim: str) -> Redirect:
    """Revokes the box with all its machines."""
    await screens.run(screens.store.register.revoke_box, machine_of(nim), now_millis())
    return Redirect(f"/ui/shops/{quote(nim)}", status_code=303)


@get("/ui/people", opt={RIGHT: "admin"})
async def people(request: AnyRequest, screens: Screens) -> Response[bytes]:
    return await _people(request, screens)


@post("/ui/people", status_code=303, opt={RIGHT: "admin"})
async def add_person(request: AnyRequest, screens: Screens) -> Response[bytes] | Redirect:
    form = await form_of(request)
    name, role = str(form.get("name", "")).strip(), str(form.get("role", ""))
    password, now = str(form.get("password", "")), now_millis()
    problem = _fault(name, role, password)
    if problem is None:
        try:
            hashed = await screens.guard.hash(password)
        except Busy:
            problem = THROTTLED
        else:
            is_new = await screens.run(screens.store.people.create, name, hashed, role, now)
            problem = None if is_new else Text("That name is taken.")
    if problem is None:
        return Redirect("/ui/people", status_code=303)
    return await _people(request, screens, 422, problem=problem, form=form)


async def _people(request: AnyRequest, screens: Screens, status: int = 200, **values: Any) -> Response[bytes]:
    listed = await screens.run(screens.store.people.listed)
    return screens.render(request, "people.html", status, people=listed, roles=ROLES, **values)


def _fault(name: str, role: str, password: str) -> Text | None:
    """The fault in the data of a new person."""
    if not (name and is_name(name)):
        return Text("A name has 1 to 64 characters that can be seen.")
    if role not in ROLES:
        return Text("There is no such role.")
    fault = fault_of_password(password, name)
    return Text("Password: {fault}", fault=fault) if fault else None


@post("/ui/people/disable", status_code=303, opt={RIGHT: "admin"})
async def disable(request: AnyRequest, screens: Screens) -> Response[bytes] | Redirect:
    """The name is a form field, since a name with a slash or of two dots changes a path."""
    name = str((await form_of(request)).get("name", ""))
    if name == name_of_caller(request):  # the last administrator would be locked out
        return await _people(request, screens, 422, problem=OWN_ACCOUNT)
    await screens.run(screens.store.people.change, name, now_millis(), disabled=True)
    return Redirect("/ui/people", status_code=303)


@get("/ui/shops/{nim:str}/ledger", opt={RIGHT: "admin"})
async def ledger(request: AnyRequest, screens: Screens, nim: str) -> Response[bytes]:
    """Shows what will be accepted, for confirmation."""
    return screens.render(request, "ledger.html", **await screens.run(_seen, screens.store, machine_of(nim)))


@post("/ui/shops/{nim:str}/ledger", status_code=303, opt={RIGHT: "admin"})
async def accept(request: AnyRequest, screens: Screens, nim: str) -> Response[bytes] | Redirect:
    """Accepts the displayed ledger; 409 if the box has named another one meanwhile."""
    machine = machine_of(nim)
    values = await screens.run(_seen, screens.store, machine)
    ledger = (await form_of(request)).get("ledger")
    if not values["is_new"] or ledger != values["stored"].presence.ledger:
        return screens.render(request, "ledger.html", 409, **values, problem=CHANGED)
    now = now_millis()
    await screens.run(screens.store.register.accept_ledger, machine, str(ledger), name_of_caller(request), now)
    return Redirect(f"/ui/shops/{values['box'].nim}", status_code=303)


def _seen(store: HqStore, machine: str) -> dict[str, Any]:
    """The box's last presence, its last stored closure, and whether the presence names another ledger than the
    followed one."""
    box = store.register.box(machine)
    if box is None:
        raise NotFoundException
    stored = store.presences.latest([machine]).get(machine)
    last = store.figures.last_closure(machine)
    accepted = store.register.ledgers(machine)
    current = accepted[0].ledger_id if accepted else last.ledger_id if last else ""
    named = stored.presence.ledger if stored is not None and stored.presence.mode == "live" else ""
    return {"box": box, "stored": stored, "last": last, "is_new": bool(current and named and named != current)}
