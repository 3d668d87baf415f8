"""Login, logout, language, and static files."""

import contextlib
import time

from litestar import Response, get, post
from litestar.datastructures import Cookie
from litestar.exceptions import NotFoundException
from litestar.response import Redirect

from common.language import LANGUAGES, Text
from common.login_guard import DEVICE_SECONDS, Attempted, TooManyTries, new_device
from common.passwords import is_of_today
from common.turns import Busy
from common.web.assets import cache_control, content
from common.web.security import (
    ENDED,
    HEADERS,
    RIGHT,
    is_own_origin,
    name_of,
    redirect_after_login,
    return_cookie,
)
from common.wire.instants import now_millis
from headquarters.api.callers import address_of_request
from headquarters.page.shared import (
    COOKIE,
    FILES,
    FOREIGN,
    LANGUAGE_COOKIE,
    RETURN_COOKIE,
    THROTTLED,
    AnyRequest,
    Screens,
    form_of,
    text_of,
)

TYPES = {"css": "text/css; charset=utf-8", "svg": "image/svg+xml"}
YEAR_SECONDS = 31_536_000
DEVICE = "hq_device"
"""Cookie of a device known from an earlier login."""


@get("/ui/login")
async def login_form(request: AnyRequest, screens: Screens) -> Response[bytes]:
    problem = ENDED if text_of(request, "ended") else None
    return screens.render(request, "login.html", name="", problem=problem)


@post("/ui/login", status_code=303)
async def login(request: AnyRequest, screens: Screens) -> Response[bytes] | Redirect:
    """Wrong names and wrong passwords get the same answer in the same time."""
    form = await form_of(request)
    typed, password = str(form.get("name", ""))[:64], str(form.get("password", ""))
    name = await screens.run(screens.store.people.name_of, typed)
    problem, wait = await _problem(request, screens, name, password)
    if problem is not None:
        status = {THROTTLED: 429, FOREIGN: 403}.get(problem, 401)
        answer = screens.render(request, "login.html", status=status, name=typed, problem=problem)
        if wait:
            answer.headers["retry-after"] = str(wait)
        return answer
    token = await screens.run(screens.store.people.begin, name, now_millis())
    caller = await screens.run(screens.store.people.of_session, token, now_millis())
    place = redirect_after_login(request, RETURN_COOKIE, caller.may) if caller else "/ui/"
    stored = await screens.run(screens.store.people.password, name)
    cookies = [screens.cookie(COOKIE, token)]
    if stored is not None:
        cookies.append(screens.cookie(DEVICE, new_device(name, stored, time.time()), DEVICE_SECONDS))
    return Redirect(place, status_code=303, cookies=cookies, headers={"set-cookie": return_cookie(RETURN_COOKIE, "")})


async def _problem(request: AnyRequest, screens: Screens, name: str, password: str) -> tuple[Text | None, int]:
    """The fault, and the delay in seconds before the next attempt."""
    if not is_own_origin(request.headers):
        return FOREIGN, 0
    stored = await screens.run(screens.store.people.password, name)
    address = address_of_request(request, is_direct=screens.is_secure)
    tried = Attempted(name, password, address, screens.cookie_of(request, DEVICE))
    try:
        if not await screens.guard.check(tried, stored, time.time()) or stored is None:
            return Text("Wrong name or password."), 0
    except TooManyTries as error:
        return THROTTLED, error.seconds
    except Busy:
        return THROTTLED, 2
    if not is_of_today(stored):
        with contextlib.suppress(Busy):  # the next login rehashes
            await screens.run(screens.store.people.rehash, name, stored, await screens.guard.hash(password))
    return None, 0


@post("/ui/logout", status_code=303, opt={RIGHT: "reader"})
async def logout(request: AnyRequest, screens: Screens) -> Redirect:
    await screens.run(screens.store.people.end, screens.cookie_of(request, COOKIE))
    return Redirect("/ui/login", status_code=303, cookies=[screens.cookie(COOKIE, "", 0)])


@get("/ui/language/{code:str}", status_code=303, sync_to_thread=False)
def choose_language(request: AnyRequest, screens: Screens, code: str) -> Redirect:
    if code not in LANGUAGES:
        raise NotFoundException
    back = request.headers.get("referer", "").partition("/ui/")[2].partition("#")[0]
    name = name_of(LANGUAGE_COOKIE, tls=screens.is_secure)
    cookie = Cookie(name, value=code, samesite="lax", max_age=YEAR_SECONDS, path="/", secure=screens.is_secure)
    return Redirect(f"/ui/{back}", status_code=303, cookies=[cookie])


@get("/ui/static/{name:str}", sync_to_thread=False)
def static(request: AnyRequest, name: str) -> Response[bytes]:
    if name not in FILES:
        raise NotFoundException
    body = content(FILES[name], name)
    headers = HEADERS | {"cache-control": cache_control(body, request.scope["query_string"])}
    return Response(body, media_type=TYPES[name.rpartition(".")[2]], headers=headers)
