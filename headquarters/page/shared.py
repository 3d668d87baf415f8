"""Shared parts of all pages: the person, the language, and rendering."""

import asyncio
import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime, tzinfo
from http import HTTPStatus
from typing import Any, TypeVar

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape
from jinja2.loaders import ChoiceLoader
from litestar import Request, Response
from litestar.datastructures import Cookie, FormMultiDict
from litestar.exceptions import ClientException, HTTPException, NotFoundException
from litestar.handlers import BaseRouteHandler

from common import numbers
from common.language import Counted, Language, Speaker, Text, chosen
from common.login_guard import Budget, LoginGuard, LoginRules
from common.web import charts, formats
from common.web.assets import MenuItem, addresses, icon, is_here
from common.web.security import HEADERS, RIGHT, cookie_of, is_own_form, name_of
from common.wire.instants import now_millis
from headquarters.api.callers import AnyConnection, mark_key_accepted
from headquarters.core.reception import day_of
from headquarters.core.wording import KIND, sentence
from headquarters.intake.threads import Threads
from headquarters.store.people import HqPerson
from headquarters.store.register import is_name
from headquarters.store.store import HqStore

AnyRequest = Request[Any, Any, Any]
T = TypeVar("T")
COOKIE = "hq_session"
LANGUAGE_COOKIE = "hq_language"
RETURN_COOKIE = "hq_asked"
FILES = dict.fromkeys(("tabler.css", "kit.css", "icon.svg"), "common.web")
CALLER = "caller"
ROLE = "role"
"""In the `opt` of a handler that is not a page, as `RIGHT` is of a page."""
MAX_DIGITS = 9
SILENT_MILLIS = 900_000
"""A box without a presence for this long is in an unknown state."""
LONG_AT_ONCE = 2
LONG_SECONDS = 300.0
RULES = LoginRules(account=Budget(5, 600), address=Budget(20, 12))
"""From one address, which a whole building may share: twenty at once, then five a minute. For one account from unknown
devices: five at once, then six an hour."""
ROLE_NAMES = {"reader": Text("Reader"), "accountant": Text("Accountant"), "admin": Text("Administrator")}
NO_NAME = Text("A name has at most 64 characters that can be seen.")
NOT_PERMITTED = Text("Your role does not permit this.")
THROTTLED = Text("Too many tries for now; try again later.")
FOREIGN = Text("This request comes from another site.")
MENU = {
    "reader": (
        ("/ui/", Text("Closures"), "calendar-check"),
        ("/ui/totals", Text("Totals"), "chart-bar"),
        ("/ui/findings", Text("Findings"), "alert-triangle"),
        ("/ui/boxes", Text("Boxes"), "server"),
    ),
    "accountant": (("/ui/exports", Text("Exports"), "download"),),
    "admin": (("/ui/people", Text("People"), "users"),),
}
"""Pages of each role, in addition to those of lower roles."""


class NoSession(Exception):
    """Redirects to the login."""


@dataclass(frozen=True)
class Screens:
    """Dependencies of a page. `guard` checks passwords; `zone` and `language` are as configured; `is_secure` means
    that this server terminates TLS."""

    store: HqStore
    threads: Threads
    guard: LoginGuard
    zone: tzinfo
    language: Language
    is_secure: bool
    long_ones: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(LONG_AT_ONCE))

    async def run(self, work: Callable[..., T], *arguments: Any, **named: Any) -> T:
        return await self.threads.run(work, *arguments, **named)

    async def run_long(self, work: Callable[..., T], *arguments: Any) -> T:
        """For reads of a whole month of all shops; limited, so that others always have threads."""
        async with self.long_ones:
            return await self.threads.run_for(LONG_SECONDS, work, *arguments)

    def cookie_of(self, request: AnyConnection, name: str) -> str:
        return cookie_of(request.scope["headers"], name, tls=self.is_secure)

    async def person_of(self, request: AnyConnection) -> HqPerson | None:
        """The person of the session."""
        token = self.cookie_of(request, COOKIE)
        person = await self.run(self.store.people.of_session, token, now_millis()) if token else None
        if person is not None:
            mark_key_accepted(request)
        return person

    def language_of(self, request: AnyRequest) -> Language:
        accepted = request.headers.get("accept-language", "")
        return chosen(self.cookie_of(request, LANGUAGE_COOKIE), accepted, self.language)

    def today(self) -> date:
        now = int(datetime.now(self.zone).timestamp() * 1000)
        return date.fromisoformat(day_of(now, self.zone))

    def render(
        self,
        request: AnyRequest,
        template: str,
        status: int = 200,
        *,
        problem: Text | None = None,
        form: Mapping[str, str] | None = None,
        **values: Any,
    ) -> Response[bytes]:
        """`form` is the rejected input."""
        language, caller = self.language_of(request), request.scope["state"].get(CALLER)
        say = Speaker(language)
        context: dict[str, Any] = {
            "language": language,
            "say": say,
            "person": caller,
            "here": request.url.path,
            "menu": [
                MenuItem(path, say(words), icon, is_here(path, request.url.path))
                for role, screens in MENU.items()
                if caller and caller.may(role)
                for path, words, icon in screens
            ],
            "done": "",
            "bars": functools.partial(charts.bars, language=language),
            "typed": lambda path: (form or {}) if path == request.url.path else {},
            "day": functools.partial(formats.day, language=language),
            "month_name": functools.partial(formats.month, language=language),
            "moment": functools.partial(formats.moment, zone=self.zone, language=language),
            "kind_name": lambda kind: say(KIND[kind]),
            "said": lambda kind, facts: sentence(kind, facts, language),
            "silent": now_millis() - SILENT_MILLIS,
            "problem": say(problem) if problem is not None else None,
        }
        html = environment().get_template(template).render(**{**context, **values})
        html_type = "text/html; charset=utf-8"
        return Response(html.encode(), status_code=status, media_type=html_type, headers=HEADERS)

    def cookie(self, name: str, value: str, age: int | None = None) -> Cookie:
        """Not accessible to scripts and other sites; `age` 0 deletes it."""
        tls = self.is_secure
        return Cookie(name_of(name, tls=tls), "/", value, age, httponly=True, samesite="strict", secure=tls)


async def admit(connection: AnyConnection, handler: BaseRouteHandler) -> None:
    """Guard of all pages except the entrance: puts the person into the request. Raises NoSession, or 403 if the role
    does not permit it or a change comes from another site."""
    method = connection.scope.get("method")
    if method == "OPTIONS":  # Litestar's own answer, without content
        return
    role: str = handler.opt.get(RIGHT) or handler.opt[ROLE]
    if method == "POST" and not is_own_form(connection.headers):
        raise HTTPException(status_code=HTTPStatus.FORBIDDEN, detail=FOREIGN)
    screens: Screens = connection.app.state["screens"]
    caller = await screens.person_of(connection)
    if caller is None:
        raise NoSession
    if not caller.may(role):
        raise HTTPException(status_code=HTTPStatus.FORBIDDEN, detail=NOT_PERMITTED)
    connection.scope["state"][CALLER] = caller


def name_of_caller(request: AnyRequest) -> str:
    caller: HqPerson = request.scope["state"][CALLER]
    return caller.name


@functools.cache
def environment() -> Environment:
    loader = ChoiceLoader([PackageLoader("headquarters.page"), PackageLoader("common.web")])
    jinja = Environment(loader=loader, autoescape=select_autoescape(), undefined=StrictUndefined, trim_blocks=True)
    jinja.filters |= {"number": numbers.amount, "money": numbers.money, "cell": charts.money_cell}
    jinja.globals |= {
        "icon": icon,
        "Counted": Counted,
        "role_names": ROLE_NAMES,
        "site": "mcfd – siège",
        "assets": addresses(FILES),
    }
    return jinja


def with_neighbours(month: str) -> dict[str, Any]:
    """The displayed month and its neighbours."""
    return {"month": month, "months": (formats.month_after(month, -1), formats.month_after(month, 1))}


def month_of(request: AnyRequest, today: date) -> str:
    """The query's `month` (YYYY-MM), by default the current one; 404 if invalid."""
    month = request.query_params.get("month") or f"{today:%Y-%m}"
    if not formats.is_month(month):
        raise NotFoundException
    return str(month)


def days_of(month: str) -> list[str]:
    return [day.isoformat() for day in formats.days_of(month)]


def text_of(request: AnyRequest, name: str) -> str:
    return str(request.query_params.get(name) or "").replace("\0", "")


async def form_of(request: AnyRequest) -> FormMultiDict:
    """Raises 400 for an invalid form: Litestar lets through invalid text and unknown encodings."""
    try:
        return await request.form()
    except (UnicodeError, LookupError, RecursionError):
        raise ClientException from None


def names_of(form: FormMultiDict) -> dict[str, str] | None:
    """Label and region of a shop; None if one is no name."""
    named = {name: str(form.get(name, "")).strip() for name in ("label", "region")}
    return named if all(map(is_name, named.values())) else None


def page_of(request: AnyRequest) -> int:
    """The query's `page`, counted from 0; too large means the last."""
    return numbers.parse_integer(text_of(request, "page")[:MAX_DIGITS], MAX_DIGITS) or 0
