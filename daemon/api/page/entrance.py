"""Login, logout, language, and static files."""

from functools import partial
from typing import Any, Final

from litestar import Request, get, post
from litestar.exceptions import HTTPException, NotFoundException
from litestar.types import HTTPScope, Receive, Send

from common.language import LANGUAGES, Speaker
from common.web import security
from common.web.security import cookie_of, set_cookie
from daemon.api.access.login import COOKIE, DEVICE, device_cookie, session_cookie
from daemon.api.http.answers import Header, Reply, static_file
from daemon.api.http.middleware import address_of
from daemon.api.page.deps import PageDeps
from daemon.api.page.rendering import STATIC, Foreign, fault_of
from daemon.api.page.visit import (
    LANGUAGE_COOKIE,
    RETURN_COOKIE,
    AnyRequest,
    enter,
    fault_page,
    html,
    language_of,
    redirect,
)
from daemon.api.refusals import Refusal
from daemon.api.request.body import SMALL_BODY, fields, read_bytes
from daemon.core.errors import NotFound, StorageError
from daemon.core.people import Session, may

A_YEAR: Final = 31_536_000
FORGET_RETURN_URL: Final[Header] = (b"set-cookie", security.return_cookie(RETURN_COOKIE, "").encode())


@get("/")
async def root(request: AnyRequest) -> Reply:
    """The page for a browser; 404 for a program that accepts JSON."""
    accepted = request.headers.get("accept", "")
    if "text/html" not in accepted:
        raise NotFoundException
    return redirect("/ui/")


@get("/ui/login")
async def login_form(request: AnyRequest) -> Reply:
    page: PageDeps = request.app.state["page"]
    say = Speaker(language_of(request, page.language))
    problem = say(security.ENDED) if request.scope["query_string"] == b"ended=1" else ""
    return await html(request, page, "login.html", name="", problem=problem)


@post("/ui/login", status_code=200)
async def login(request: AnyRequest) -> Reply:
    """Wrong names and wrong passwords get the same answer in the same time."""
    page: PageDeps = request.app.state["page"]
    headers = request.scope["headers"]
    name = ""
    try:
        if not security.is_own_form(request.headers):
            raise Foreign  # noqa: TRY301  on the same screen as a wrong password
        form = fields((await read_bytes(headers, request.receive, SMALL_BODY)).decode("utf-8", "replace"))
        # A phone adds a capital letter and a blank; no name has one.
        name = form.get("name", "").strip()[:64].lower()
        device = cookie_of(headers, DEVICE, tls=page.tls)
        session = await page.logins.log_in(name, form.get("password", ""), address_of(request.scope), device)
    except (Foreign, Refusal, StorageError) as error:
        fault = fault_of(error)
        problem = fault.message(Speaker(language_of(request, page.language)))
        return await html(request, page, "login.html", status=fault.status, name=name, problem=problem)
    place = redirect_after_login(request, page.logins.who(session))
    cookie = device_cookie(page.logins.device_of(name), tls=page.tls)
    return redirect(place, session_cookie(session, tls=page.tls), FORGET_RETURN_URL, cookie)


def redirect_after_login(request: AnyRequest, session: Session | None) -> str:
    """The path after a login."""
    if session is None:
        return security.FIRST
    return security.redirect_after_login(request, RETURN_COOKIE, partial(may, session.role))


@post("/ui/logout", status_code=200)
async def logout(request: AnyRequest) -> Reply:
    page: PageDeps = request.app.state["page"]
    tls = page.tls
    session = cookie_of(request.scope["headers"], COOKIE, tls=tls)
    if security.is_own_form(request.headers) and session:
        try:
            await page.logins.log_out(session, address_of(request.scope))
        except StorageError as error:
            return await fault_page(request, error)
        return redirect("/ui/login", session_cookie("", tls=tls), FORGET_RETURN_URL)
    return redirect("/ui/login")


@get("/ui/language/{code:str}")
async def choose_language(request: AnyRequest) -> Reply:
    code = request.path_params["code"]
    if code not in LANGUAGES:
        raise NotFoundException
    back = request.headers.get("referer", "").partition("/ui/")[2].partition("#")[0]
    tls = request.scope["scheme"] == "https"
    cookie = set_cookie(LANGUAGE_COOKIE, code, tls=tls, age=A_YEAR, same_site="Lax", http_only=False)
    return redirect(f"/ui/{back}" if back.isascii() else "/ui/", (b"set-cookie", cookie.encode()))


@get("/ui/static/{name:str}")
async def static(request: AnyRequest) -> Reply:
    name = request.path_params["name"]
    if name not in STATIC:
        raise NotFoundException
    return static_file(request.scope, STATIC[name], name)


async def nowhere(scope: HTTPScope, receive: Receive, send: Send, error: Exception) -> Reply | None:
    """Error page for requests that the router refuses: unknown paths, invalid numbers, wrong methods. None for
    programs and other errors."""
    if not isinstance(error, HTTPException) or not _is_by_browser(scope):
        return None
    return await _page(Request[Any, Any, Any](scope, receive, send))


def _is_by_browser(scope: HTTPScope) -> bool:
    accepted = next((value for name, value in scope["headers"] if name == b"accept"), b"")
    return f"{scope['path']}/".startswith("/ui/") and scope["method"] in ("GET", "POST") and b"text/html" in accepted


async def _page(request: AnyRequest) -> Reply:
    """With the menu if the person is logged in. (Before the first start no one is.)"""
    visit = None
    try:
        if "deps" in request.app.state:
            visit = await enter(request, "look")
        raise NotFound("there is no such screen")  # noqa: TRY301  a page, as all else
    except Exception as error:  # noqa: BLE001  every error of a screen is a page
        return await fault_page(request, error, visit)
