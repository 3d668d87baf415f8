"""Who asks for a screen: a person, or the screen itself."""

import weakref
from types import SimpleNamespace
from typing import Any

import pytest
from litestar.handlers import HTTPRouteHandler

from common.language import Speaker
from daemon.api.http.answers import Answer, Headers
from daemon.api.page.rendering import Fault, fault_of
from daemon.api.page.screens.invoices import journal_screen
from daemon.api.page.screens.today import today, today_part
from daemon.api.page.visit import Visit
from daemon.core.errors import (
    CertifiedElsewhere,
    LineLost,
    MachineOffline,
    MachineRefused,
    NothingDone,
    OutcomeNotStored,
    ZNumberUnknown,
)
from daemon.core.ledger.deferred import NotWaiting

IN_DOUBT = "On ne sait pas encore ce qu'il en est : renvoyez-le, rien n'est fait deux fois."


class NoSession:
    """Logins without a session; `used` says of each request whether it would have kept one from ending by idleness."""

    def __init__(self) -> None:
        self.used: list[bool] = []

    def who_of(self, _headers: Headers, *, tls: bool, is_used: bool = True) -> None:
        del tls
        self.used.append(is_used)


@pytest.mark.parametrize(("handler", "is_used"), [(today, True), (journal_screen, True), (today_part, False)])
async def test_what_a_screen_asks_by_itself_keeps_nobody_logged_in(handler: HTTPRouteHandler, is_used: bool) -> None:
    """Today renews itself as long as it is open; only what a person asks for counts as use."""
    logins = NoSession()
    await answered(handler, logins)
    assert logins.used == [is_used]


async def test_nobody_is_shown_the_way_in_by_the_whole_screen() -> None:
    """A part that a screen asks for sends all of the screen to the login; a page is the login."""
    part = await answered(today_part, NoSession(), {"hx-request": "true"})
    assert (part.status, (b"hx-redirect", b"/ui/login") in part.headers) == (200, True)
    page = await answered(today, NoSession())
    assert (page.status, (b"location", b"/ui/login") in page.headers) == (303, True)


async def answered(handler: HTTPRouteHandler, logins: NoSession, headers: dict[str, str] | None = None) -> Answer:
    page = SimpleNamespace(tls=False, language="fr", logins=logins)
    request: Any = SimpleNamespace(
        app=SimpleNamespace(state={"deps": SimpleNamespace(), "page": page}),
        scope={"method": "GET", "headers": [], "raw_path": b"/ui/", "query_string": b""},
        headers=headers or {},
    )
    answer = await handler.fn(request)
    assert isinstance(answer, Answer)
    return answer


@pytest.mark.parametrize(
    ("error", "status", "expected"),
    [
        (
            ZNumberUnknown("EL02000015-1"),
            409,
            (
                "Le numéro du dernier Z doit d'abord être saisi (le dernier Z de EL02000015-1 n'est pas connu après une restauration, "
                "et aucun Z n'est possible tant qu'un technicien n'en a pas saisi le numéro, d'après le papier)."
            ),
        ),
        (MachineOffline("the machine is not there"), 503, "La machine ne répond pas ; rien n'a été fait."),
        (MachineRefused("E:12"), 502, "La machine ne l'a pas fait (la machine a refusé : E:12)."),
        (NothingDone(LineLost("gone"), "again"), 503, "La machine ne répond pas ; rien n'a été fait."),
        (LineLost("gone"), 503, IN_DOUBT),
        (OutcomeNotStored(), 507, IN_DOUBT),
        (CertifiedElsewhere("EL02000099-1", "CODE", "F-1"), 503, "La machine demande d'abord une décision."),
        (NotWaiting(), 409, "Cette décision ne convient plus."),
    ],
    ids=["last Z", "offline", "refused", "line lost before", "line lost", "not stored", "elsewhere", "not waiting"],
)
def test_a_fault_is_told_once_and_with_what_to_do(error: Exception, status: int, expected: str) -> None:
    """What only the error knows stands behind the sentence; what the sentence has said already does not."""
    fault = fault_of(error)
    assert (fault.status, fault.message(Speaker("fr")).replace("\N{NO-BREAK SPACE}", " ")) == (status, expected)


def test_a_fault_keeps_nothing_of_its_request() -> None:
    """Who is refused again and again would fill the memory until the collector comes."""

    class Body:
        """What the request brought."""

    def read(_: Body) -> None:
        raise NotWaiting

    def handle() -> tuple[weakref.ref[Body], Fault]:
        body = Body()
        try:
            read(body)
        except NotWaiting as error:
            fault = fault_of(error)
        return weakref.ref(body), fault

    body, fault = handle()
    assert (body(), fault.status) == (None, 409)


def test_a_form_sent_again_after_an_upgrade_is_the_same_request() -> None:
    """Key and content as 0.13.0 had them give the fingerprint that 0.13.0 stored: a repeated Z of the page is no second one."""
    visit: Any = SimpleNamespace(request=SimpleNamespace(scope={"state": {"request_id": "r"}}), actor="user:awa")
    call = Visit.call(visit, "page abc 7", "page z 7")
    assert (call.key, call.fingerprint.hex()) == ("page abc 7", "e2f6093a9343e972c81f21113f0f8f5f")
    assert Visit.call(visit).fingerprint == b""
