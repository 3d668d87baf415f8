"""The context of a request (person, machine, language), and answers with screens."""

import hashlib
import re
import secrets
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from datetime import date, datetime, time, timedelta
from functools import partial
from typing import Any, Final
from urllib.parse import urlencode

import msgspec
from litestar import Request, get, post
from litestar.handlers import HTTPRouteHandler

from common.language import Language, Speaker, Text, chosen
from common.web import charts, formats, security
from common.web.assets import MenuItem, is_here
from common.web.security import RIGHT, cookie_of, is_own_form
from daemon.api.access.context import ApiDeps, check_rows
from daemon.api.http.answers import SCREEN_POLICY, Answer, Header, Reply
from daemon.api.http.middleware import address_of
from daemon.api.page.deps import FirstStart, PageDeps
from daemon.api.page.rendering import Fault, Foreign, NotLoggedIn, Rendering, fault_of
from daemon.api.page.views.sales_state import sales_state, without_last_z
from daemon.api.refusals import RoleNotAllowed
from daemon.api.request.body import fields, read_bytes
from daemon.core.audit import Actor, Call
from daemon.core.delivery import Backlog
from daemon.core.invoice.rules import IFU_PATTERN
from daemon.core.ledger.decision import Case
from daemon.core.people import Right, Session, may
from daemon.usecases.reports import inspect
from daemon.usecases.worker.machine_worker import MachineWorker

AnyRequest = Request[Any, Any, Any]
LANGUAGE_COOKIE: Final = "mcfd_language"
HTML: Final = b"text/html; charset=utf-8"
ATTENTION: Final = "/ui/attention"
POLICY: Final[tuple[Header, ...]] = (
    (b"content-security-policy", SCREEN_POLICY),
    (b"referrer-policy", b"same-origin"),
)
MENU: Final[tuple[tuple[str, Text, str, Right], ...]] = (
    ("/ui/", Text("Today"), "home", "look"),
    ("/ui/journal", Text("Journal"), "receipt", "look"),
    ("/ui/closures", Text("Closures"), "calendar-check", "report"),
    (ATTENTION, Text("To decide"), "alert-triangle", "administer"),
    ("/ui/box", Text("Box"), "server", "administer"),
)
WITHIN: Final = {
    "/ui/": ("/ui/sale", "/ui/cash", "/ui/waiting"),
    "/ui/closures": ("/ui/x", "/ui/z", "/ui/a", "/ui/vat", "/ui/files"),
    "/ui/box": ("/ui/log", "/ui/welcome", "/ui/spare"),
    "/ui/journal": ("/ui/outages",),
}
"""Screens that are not in the menu, by their menu item."""
BLANKS: Final = str.maketrans("", "", " \u00a0\u202f")
IFU: Final = re.compile(IFU_PATTERN)
THOUSANDS: Final = re.compile(r"[1-9][0-9]{0,2}([.,][0-9]{3})+")
CURRENCY: Final = re.compile("(F|FCFA|XOF)$", re.IGNORECASE)
TO_LOGIN: Final[Header] = (b"hx-redirect", b"/ui/login")


class Visit(msgspec.Struct, frozen=True):
    """A request of a logged-in person. `query` and `form` have the first value of each field; `fault` is the reason
    why a form is shown again."""

    request: AnyRequest
    deps: ApiDeps
    page: PageDeps
    session: Session
    language: Language
    query: dict[str, str]
    form: dict[str, str]
    fault: Fault | None = None

    def typed(self, action: str) -> dict[str, str]:
        """The form's values, for the form with this path on a screen with several."""
        return self.form if self.request.scope["path"] == action else {}

    @property
    def say(self) -> Speaker:
        return Speaker(self.language)

    @property
    def address(self) -> str:
        return address_of(self.request.scope)

    @property
    def actor(self) -> Actor:
        return Actor(f"user:{self.session.name}", self.address)

    @property
    def holder(self) -> str:
        """Holder of places for exports and streams."""
        return f"page {self.session.person_id}"

    def call(self, key: str = "", content: str = "") -> Call:
        """The `Call` of a form; one with the same `key` and `content` is a repeat, also after an upgrade of mcfd."""
        fingerprint = hashlib.sha256(content.encode()).digest()[:16] if content else b""
        return Call(self.request.scope["state"]["request_id"], key, fingerprint, by=self.actor)

    async def run_once(self, make: Callable[[], Coroutine[Any, Any, str]]) -> str:
        """The result of `make`; the same form repeated on this day gets the same result."""
        form = {"form": secrets.token_urlsafe(9), **self.form}
        place = (self.session.person_id, self.request.scope["path"], self.worker.book.id, self.today())
        return await self.page.run_once(repr((place, sorted(form.items()))), make)

    async def backlogs(self) -> Sequence[Backlog]:
        """Events not yet received by headquarters; none if closures stay here."""
        headquarters = self.page.headquarters()
        sends = headquarters.is_configured or headquarters.address
        return await self.deps.upstream() if self.deps.upstream and sends else ()

    def is_logged_in(self) -> bool:
        """For streams: False after logout, idleness or disabling. Does not prolong the session."""
        headers = self.request.scope["headers"]
        return self.page.logins.who_of(headers, tls=self.page.tls, is_used=False) is not None

    def may(self, right: Right) -> bool:
        return may(self.session.role, right)

    @property
    def worker(self) -> MachineWorker:
        """The selected machine: `m` of query or form (`NIM` or `NIM:test`), by default the first one or, during a
        take-over, its spare."""
        name = self.form.get("m") or self.query.get("m") or ""
        return next((worker for worker in self.workers if name_of(worker) == name), self._usual)

    @property
    def workers(self) -> Sequence[MachineWorker]:
        """All that can be selected: also machines that are no longer configured, to be read and closed."""
        return (*self.deps.workers.all(), *self.retired)

    @property
    def retired(self) -> list[MachineWorker]:
        """Machines that are no longer configured; their sandboxes are of no use."""
        return [each for each in self.deps.workers.retired() if each.book.mode == "live"]

    @property
    def _usual(self) -> MachineWorker:
        return self.deps.workers.all()[0].in_use

    def moment(self, at: int) -> str:
        return formats.moment(at, self.page.zone, self.language)

    def clock(self, at: int) -> str:
        return f"{datetime.fromtimestamp(at / 1000, self.page.zone):%H:%M}"

    def since(self, at: int) -> str:
        """For "since": the time, with the day unless it is today."""
        day, clock = self.day_of(at), self.clock(at)
        if day == self.today():
            return clock
        return self.say("{day} at {time}", day=formats.day(day.isoformat(), self.language), time=clock)

    def day_of(self, at: int) -> date:
        return datetime.fromtimestamp(at / 1000, self.page.zone).date()

    def today(self) -> date:
        return self.day_of(self.worker.now())

    def day_bounds(self, day: date, days: int = 1) -> tuple[int, int]:
        """Start of the local day and end of the last of `days`, in ms."""
        ends = (datetime.combine(each, time(), self.page.zone) for each in (day, day + timedelta(days=days)))
        start, end = (int(each.timestamp() * 1000) for each in ends)
        return start, end

    def link(self, path: str, **query: object) -> str:
        values = {"m": name_of(self.worker), **query} if len(self.workers) > 1 else query
        pairs = {name: value for name, value in values.items() if value not in (None, "")}
        return f"{path}?{urlencode(pairs)}" if pairs else path

    def look(self, path: str) -> str:
        """Link without the default machine's name, so that the screen follows a take-over."""
        return path if self.worker is self._usual else self.link(path)


def name_of(worker: MachineWorker) -> str:
    """The machine's name in URLs: its NIM, with `:test` for its sandbox."""
    return worker.book.nim if worker.book.mode == "live" else f"{worker.book.nim}:test"


def is_fetched(request: AnyRequest) -> bool:
    return "hx-request" in request.headers


def language_of(request: AnyRequest, configured: Language) -> Language:
    accepted = request.headers.get("accept-language", "")
    cookie = cookie_of(request.scope["headers"], LANGUAGE_COOKIE, tls=request.scope["scheme"] == "https")
    return chosen(cookie, accepted, configured)


def without_thousands(text: str) -> str:
    """Removes thousands separators and the currency: "15 000", "15.000", "15,000" and "15 000 F CFA" are fifteen
    thousand, since amounts never have three decimals."""
    plain = CURRENCY.sub("", text.translate(BLANKS))
    return plain.replace(".", "").replace(",", "") if THOUSANDS.fullmatch(plain) else plain


def plain_ifu(text: str) -> str:
    """An IFU without blanks, in capitals; other text unchanged."""
    plain = text.translate(BLANKS).upper()
    return plain if IFU.fullmatch(plain) else text


async def enter(request: AnyRequest, right: Right, *, unattended: bool = False) -> Visit:
    """Raises NotLoggedIn, RoleNotAllowed, or Foreign for a change from another site. `unattended` marks automatic
    requests, which do not prolong the session."""
    deps: ApiDeps = request.app.state["deps"]
    page: PageDeps = request.app.state["page"]
    headers = request.scope["headers"]
    is_change = request.scope["method"] != "GET"
    if is_change and not is_own_form(request.headers):
        raise Foreign
    session = page.logins.who_of(headers, tls=page.tls, is_used=not unattended)
    if session is None:
        raise NotLoggedIn
    if not may(session.role, right):
        raise RoleNotAllowed(session.role, right)
    check_rows(request.path_params)
    raw = await read_bytes(headers, request.receive) if is_change else b""
    return Visit(
        request,
        deps,
        page,
        session,
        language_of(request, page.language),
        fields(request.scope["query_string"].decode("latin-1")),
        fields(raw.decode("utf-8", "replace")),
    )


Screen = Callable[[Visit], Awaitable[Reply]]


def screen(
    path: str,
    right: Right,
    *,
    change: bool = False,
    unattended: bool = False,
    whole: bool = True,
    form: Screen | None = None,
    faults: tuple[type[Exception], ...] = (),
) -> Callable[[Screen], HTTPRouteHandler]:
    """Route of a screen for roles with `right`; errors are shown as a page. `whole` is False for parts of screens and
    files, to which a login does not return. After one of the `faults` of a change, `form` is shown again with the
    input."""

    def route(show: Screen) -> HTTPRouteHandler:
        async def handle(request: AnyRequest) -> Reply:
            visit = None
            try:
                visit = await enter(request, right, unattended=unattended)
                try:
                    return await show(visit)
                except faults as error:
                    return await (form or show)(msgspec.structs.replace(visit, fault=fault_of(error)))
            except Exception as error:  # noqa: BLE001  every error of a screen is a page
                return await fault_page(request, error, visit)

        handle.__name__ = show.__name__
        handle.__annotations__ = {"request": AnyRequest, "return": Reply}
        if change:
            return post(path, status_code=200)(handle)
        return get(path, opt={RIGHT: right} if whole and not unattended else {})(handle)

    return route


async def fault_page(request: AnyRequest, error: Exception, visit: Visit | None = None) -> Reply:
    """Error page, with the menu if logged in. A part of a screen cannot show the login: the whole screen is
    redirected."""
    page: PageDeps | FirstStart = request.app.state["page"]
    if isinstance(error, NotLoggedIn):
        way_back = remember_return_url(request)
        if is_fetched(request):
            return Answer(b"", media_type=HTML, headers=(TO_LOGIN, way_back))
        return redirect("/ui/login" if request.scope["method"] == "GET" else "/ui/login?ended=1", way_back)
    fault = fault_of(error)
    content: dict[str, Any] = {
        "answered": fault.status,
        "problem": fault.message(Speaker(language_of(request, page.language))),
        "is_change": request.scope["method"] != "GET",
        "back": security.return_url(request) if request.scope["method"] != "GET" else "",
    }
    if visit is None and isinstance(error, RoleNotAllowed) and not content["is_change"]:
        visit = await enter(request, "look", unattended=True)  # every role may: with the menu of what else it may see
    if visit:
        return await render(visit, "fault.html", status=fault.status, **content)
    return await html(request, page, "fault.html", status=fault.status, **content)


async def cases(visit: Visit) -> list[tuple[MachineWorker, Case]]:
    """Open cases of all machines in the ledger, including ones removed from the configuration."""
    found = {case.state.book.id: case for case in await visit.page.decisions.open_cases()}
    return [(each, found[each.book.id]) for each in visit.deps.workers.everyone() if each.book.id in found]


async def render(visit: Visit, template: str, *, status: int = 200, **values: Any) -> Reply:
    """A screen with its frame: menu, machine, person, and the fault of a form."""
    fault = visit.fault
    to_decide = await cases(visit) if visit.may("administer") else []
    here, count = visit.request.scope["path"], len(to_decide)
    count += len(without_last_z(visit)) if visit.may("administer") else 0
    menu = [
        MenuItem(visit.look(path), visit.say(words), icon, is_within(path, here), count if path == ATTENTION else 0)
        for path, words, icon, right in MENU
        if visit.may(right)
    ]
    return await html(
        visit.request,
        visit.page,
        template,
        status=fault.status if fault else status,
        **{
            "visit": visit,
            "problem": fault.message(visit.say) if fault else "",
            # Another language would ask for it again, and lose it.
            "shown_once": visit.request.scope["method"] != "GET",
            "person": visit.session,
            "menu": menu,
            "cases": to_decide,
            "state": await sales_state(visit),
            "brand": await _brand(visit),
            "till": visit.worker.defaults.operator_name,
            "worker": visit.worker,
            "workers": visit.workers,
            "has_one_till": _has_one_till(visit),
            "name_of": name_of,
            # Of an invoice or a Z that another machine has not, or has another under that number: the list of them.
            "section": re.split(r"/\d", visit.request.scope["path"])[0],
            "moment": visit.moment,
            "paid": visit.page.labels(visit.language),
            **values,
        },
    )


def _has_one_till(visit: Visit) -> bool:
    """True for a single live machine that is displayed: then the choice of the sandbox is in the account menu."""
    live = [each for each in visit.deps.workers.all() if each.book.mode == "live"]
    return visit.worker.book.mode == "live" and len(live) == 1


def is_within(path: str, here: str) -> bool:
    """Whether the screen `here` belongs to the menu item `path`."""
    return any(is_here(each, here) for each in (path, *WITHIN.get(path, ())))


async def _brand(visit: Visit) -> str:
    """The shop's name from the machine; if it is offline the last known one."""
    await inspect.learn_taxpayer(visit.worker)
    return visit.deps.paper.shop(visit.worker, visit.language).name or "mcfd"


async def html(
    request: AnyRequest,
    page: PageDeps | FirstStart,
    template: str,
    *,
    status: int = 200,
    headers: tuple[Header, ...] = POLICY,
    **values: Any,
) -> Reply:
    language = language_of(request, page.language)
    context = {
        "say": Speaker(language),
        "language": language,
        "here": request.scope["path"],
        "day": lambda text: formats.day(text, language),
        "month": lambda text: formats.month(text, language),
        "bars": partial(charts.bars, language=language),
        "visit": None,
        "person": None,
        "site": "mcfd",
        "problem": "",
        "done": "",
        **values,
    }
    rendering: Rendering = request.app.state["rendering"]
    return Answer(await rendering.screen(template, context), status=status, media_type=HTML, headers=headers)


def redirect(path: str, *headers: Header) -> Reply:
    return Answer(b"", status=303, media_type=HTML, headers=((b"location", path.encode()), *headers))


RETURN_COOKIE: Final = "mcfd_asked"


def remember_return_url(request: AnyRequest) -> Header:
    return b"set-cookie", security.return_cookie(RETURN_COOKIE, security.return_url(request)).encode()
