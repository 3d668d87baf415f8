"""Login, logout, the language, and the files of the page."""

from __future__ import annotations

import time
from importlib.resources import files

from litestar import Response, get, post
from litestar.datastructures import Cookie
from litestar.exceptions import NotFoundException
from litestar.response import Redirect

from headquarters.api.access import COOKIE, person_of_token
from headquarters.intake.threads import Busy
from headquarters.page.shared import ASKED_COOKIE, LANGUAGE_COOKIE, AnyRequest, Screens
from headquarters.page.words import word
from pagekit.asked import screen_asked_for, set_cookie
from pagekit.cookies import cookie_of
from pagekit.formats import LANGUAGES
from pagekit.passwords import is_password
from pagekit.security import HEADERS, Throttle, is_own_form

TYPES = {"css": "text/css; charset=utf-8", "svg": "image/svg+xml"}
FILES = ("kit.css", "icon.svg")
YEAR_SECONDS = 31_536_000
throttle = Throttle()


@get("/ui/login")
async def login_form(request: AnyRequest, screens: Screens) -> Response[bytes]:
    return screens.shown(request, "login.html", name="")


@post("/ui/login", status_code=303)
async def login(request: AnyRequest, screens: Screens) -> Response[bytes] | Redirect:
    """The same answer, in the same time, for a name that is wrong and for a password that is."""
    form = await request.form()
    name, password = str(form.get("name", ""))[:64], str(form.get("password", ""))
    problem = await _problem(request, screens, name, password)
    if problem is not None:
        status = {"throttled": 429, "foreign": 403}.get(problem, 401)
        said = word(problem, screens.language_of(request))
        return screens.shown(request, "login.html", status=status, name=name, problem=said)
    token = await screens.run(screens.store.people.begin, name, time.time_ns() // 1_000_000)
    cookie = Cookie(COOKIE, value=token, httponly=True, samesite="strict", secure=screens.is_secure, path="/")
    caller = await person_of_token(token, screens.store, screens.threads)
    place = screen_asked_for(request, ASKED_COOKIE, caller.may) if caller else "/ui/"
    return Redirect(place, status_code=303, cookies=[cookie], headers={"set-cookie": set_cookie(ASKED_COOKIE, "")})


async def _problem(request: AnyRequest, screens: Screens, name: str, password: str) -> str | None:
    if "sec-fetch-site" in request.headers and not is_own_form(request.headers):
        return "foreign"
    if not throttle.may(name):
        return "throttled"
    known = await screens.run(screens.store.people.password, name)
    try:
        is_right = await screens.passwords.run(is_password, password, known)
    except Busy:
        return "throttled"
    if not is_right:
        throttle.wrong(name)
        return "wrong"
    throttle.right(name)
    return None


@post("/ui/logout", status_code=303)
async def logout(request: AnyRequest, screens: Screens) -> Redirect:
    await screens.caller(request)
    await screens.run(screens.store.people.end, cookie_of(request.scope["headers"], COOKIE))
    return Redirect("/ui/login", status_code=303, cookies=[Cookie(COOKIE, value="", max_age=0, path="/")])


@get("/ui/language/{code:str}", status_code=303, sync_to_thread=False)
def choose_language(request: AnyRequest, code: str) -> Redirect:
    if code not in LANGUAGES:
        raise NotFoundException
    cookie = Cookie(LANGUAGE_COOKIE, value=code, samesite="lax", max_age=YEAR_SECONDS, path="/")
    back = request.headers.get("referer", "").partition("/ui/")[2].partition("#")[0]
    return Redirect(f"/ui/{back}", status_code=303, cookies=[cookie])


@get("/ui/static/{name:str}", sync_to_thread=False)
def static(name: str) -> Response[bytes]:
    if name not in FILES:
        raise NotFoundException
    content = files("pagekit").joinpath("static", name).read_bytes()
    headers = HEADERS | {"cache-control": "max-age=3600"}
    return Response(content, media_type=TYPES[name.rpartition(".")[2]], headers=headers)
