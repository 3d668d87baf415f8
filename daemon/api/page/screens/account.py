"""Who is logged in, and their own password."""

from __future__ import annotations

from common.passwords import SHORTEST, fault_of_password
from daemon.api.access.login import device_cookie, session_cookie
from daemon.api.http.answers import Reply
from daemon.api.page.visit import Visit, redirect, screen, shown
from daemon.api.refusals import WrongPassword
from daemon.core.errors import FieldError, InvalidRequest


@screen("/ui/account", "look")
async def account(visit: Visit) -> Reply:
    done = visit.say("Your password is changed. Wherever else you were logged in, it is asked for again.")
    return await shown(visit, "account.html", least=SHORTEST, done=done if visit.query.get("done") else "")


@screen("/ui/account/password", "look", change=True)
async def change_own_password(visit: Visit) -> Reply:
    """With the current one, so that nobody else does it at a screen that was left open; a wrong one counts as a wrong login does."""
    new = visit.form.get("password", "")
    if fault := fault_of_password(new, visit.session.name):
        raise InvalidRequest([FieldError("password", fault)])
    if new != visit.form.get("again", ""):
        raise InvalidRequest([FieldError("again", visit.say("is not the same"))])
    assert visit.deps.logins is not None  # noqa: S101  somebody is logged in
    try:
        made = await visit.deps.logins.change_password(visit.session, visit.form.get("current", ""), new, visit.address)
    except WrongPassword:
        raise InvalidRequest([FieldError("current", visit.say("is wrong"))]) from None
    tls = visit.page.tls
    known = device_cookie(visit.deps.logins.device_of(visit.session.name), tls=tls)
    return redirect(visit.link("/ui/account", done="password"), session_cookie(made, tls=tls), known)


HANDLERS = (account, change_own_password)
