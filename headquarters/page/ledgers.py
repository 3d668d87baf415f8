"""A box whose ledger was lost: a person looks at it, and says that it is so."""

from __future__ import annotations

import time
from typing import Any

from litestar import Response, get, post
from litestar.exceptions import NotFoundException
from litestar.response import Redirect

from common.language import Text
from common.web.asked import RIGHT
from headquarters.core.held import machine_of
from headquarters.page.shared import AnyRequest, Screens
from headquarters.store.store import HqStore

CHANGED = Text("The box has named another ledger meanwhile: look again.")


@get("/ui/shops/{nim:str}/ledger", opt={RIGHT: "admin"})
async def ledger(request: AnyRequest, screens: Screens, nim: str) -> Response[bytes]:
    """What is accepted by whom says yes."""
    caller = await screens.caller(request, "admin")
    return screens.shown(request, "ledger.html", caller, **await screens.run(_seen, screens.store, machine_of(nim)))


@post("/ui/shops/{nim:str}/ledger", status_code=303)
async def accept(request: AnyRequest, screens: Screens, nim: str) -> Response[bytes] | Redirect:
    """The very ledger that the person has seen; when the box has named another one since, nothing is accepted."""
    caller = await screens.caller(request, "admin")
    machine = machine_of(nim)
    values = await screens.run(_seen, screens.store, machine)
    said = (await request.form()).get("ledger")
    if not values["is_new"] or said != values["word"].presence.ledger:
        return screens.shown(request, "ledger.html", caller, 409, **values, problem=CHANGED)
    now = time.time_ns() // 1_000_000
    await screens.run(screens.store.register.accept_ledger, machine, str(said), caller.name, now)
    return Redirect(f"/ui/shops/{values['box'].nim}", status_code=303)


def _seen(store: HqStore, machine: str) -> dict[str, Any]:
    """The box's last word, the last closure that is here, and whether the word names another ledger than the one that is followed."""
    box = store.register.box(machine)
    if box is None:
        raise NotFoundException
    said = store.presences.last_words([machine]).get(machine)
    held = store.figures.last_held(machine)
    accepted = store.register.ledgers(machine)
    current = accepted[0].ledger_id if accepted else held.ledger_id if held else ""
    named = said.presence.ledger if said is not None and said.presence.mode == "live" else ""
    return {"box": box, "word": said, "held": held, "is_new": bool(current and named and named != current)}
