"""First start: sets up a box without a configuration, for a person with the code shown by the box.

Same steps as `mcfd setup`: search, decide, write, start. The last step is idempotent."""

import asyncio
import hmac
from collections.abc import Awaitable, Callable
from typing import Final
from urllib.parse import urlencode

from litestar import get, post
from litestar.handlers import HTTPRouteHandler

from common.language import Speaker, Text
from common.one_line import fault_of_line
from common.passwords import fault_of_password
from common.sockets import in_url
from common.web.security import cookie_of, is_own_form
from daemon.api.access.login import session_cookie
from daemon.api.http.answers import Reply
from daemon.api.http.middleware import address_of
from daemon.api.page.deps import FirstStart, SetupRequest
from daemon.api.page.downloads import authority_file
from daemon.api.page.rendering import BoxFailed, Foreign, NotLoggedIn, fault_of
from daemon.api.page.views.machine_view import qr_picture
from daemon.api.page.visit import POLICY, AnyRequest, fault_page, html, language_of, redirect
from daemon.api.refusals import Refusal, TooManyRequests
from daemon.api.request.body import SMALL_BODY, fields, read_bytes
from daemon.core.errors import FieldError, InvalidRequest, NotFound
from daemon.core.invoice.request import LONGEST_DEFAULT
from daemon.core.people import fault_of_name
from daemon.setup.request import SetupResult, for_till

COOKIE: Final = "mcfd_first_start"
START: Final = "/ui/setup"
NETWORKS: Final = ("local", "https", "plain")
CHOSEN: Final = "nim."
"""Prefix of the NIM in a check box's name."""
EVERYWHERE: Final = ("0.0.0.0", "::")  # noqa: S104  compared with, not listened on
LOOPBACK: Final = ("127.0.0.1", "localhost", "::1")
WRONG_CODES: Final = 5
"""Per minute and address."""

Step = Callable[[AnyRequest, FirstStart, dict[str, str]], Awaitable[Reply]]


def step(path: str, *, change: bool = False) -> Callable[[Step], HTTPRouteHandler]:
    """Route for a browser with the code; errors are shown as a page."""

    def route(show: Step) -> HTTPRouteHandler:
        async def handle(request: AnyRequest) -> Reply:
            headers = request.scope["headers"]
            try:
                if change and not is_own_form(request.headers):
                    raise Foreign  # noqa: TRY301  a page, as all else
                if not _is_code(cookie_of(headers, COOKIE, tls=False), _first(request)):
                    return redirect(f"{START}/code")
                form = fields((await read_bytes(headers, request.receive)).decode("utf-8", "replace")) if change else {}
                return await show(request, _first(request), form)
            except Exception as error:  # noqa: BLE001  as above
                return await fault_page(request, error)

        handle.__name__ = show.__name__
        handle.__annotations__ = {"request": AnyRequest, "return": Reply}
        return post(path, status_code=200)(handle) if change else get(path)(handle)

    return route


@get(["/", "/ui/", "/ui/login"])
async def beginning(request: AnyRequest) -> Reply:  # noqa: ARG001  the shape of a handler
    return redirect(START)


@get(f"{START}/code")
async def code_form(request: AnyRequest) -> Reply:
    """Also accepts a link that contains the code; the code then leaves the address bar."""
    code = fields(request.scope["query_string"].decode("latin-1")).get("code", "")
    return await _let_in(request, code) if code else await html(request, _first(request), "setup_code.html")


@post(f"{START}/code", status_code=200)
async def take_code(request: AnyRequest) -> Reply:
    try:
        if not is_own_form(request.headers):
            raise Foreign  # noqa: TRY301  a page, as all else
        raw = await read_bytes(request.scope["headers"], request.receive, SMALL_BODY)
    except (Foreign, Refusal) as error:
        return await fault_page(request, error)
    form = fields(raw.decode("utf-8", "replace"))
    return await _let_in(request, form.get("code", ""))


async def _let_in(request: AnyRequest, code: str) -> Reply:
    first, wrong = _first(request), request.app.state["wrong_codes"]
    address = address_of(request.scope)
    if wait := wrong.wait(address):
        return await fault_page(request, TooManyRequests(Text("too many wrong codes came from this address"), wait))
    if not _is_code(code, first):
        wrong.note(address)
        say = Speaker(language_of(request, first.language))
        return await html(
            request, first, "setup_code.html", status=401, problem=say("This is not the code that the box shows.")
        )
    secure = "; Secure" if request.scope["scheme"] == "https" else ""
    cookie = f"{COOKIE}={first.code}; Path=/ui; HttpOnly; SameSite=Strict{secure}"
    return redirect(START, (b"set-cookie", cookie.encode()))


@step(START)
async def setup(request: AnyRequest, first: FirstStart, form: dict[str, str]) -> Reply:
    """The search starts after the screen is loaded or, without a script, with `look`."""
    if first.result:
        return redirect(f"{START}/done")
    return await _form(request, first, form, looked="look" in _query(request))


async def _form(
    request: AnyRequest, first: FirstStart, form: dict[str, str], *, looked: bool, problem: str = "", status: int = 200
) -> Reply:
    found = await first.search(_query(request).get("place", "")) if looked else None
    here = _host_of(request)
    usual = {"network": "local" if here in LOOPBACK else "https", "till": "Caisse 1", "isf": "1", **form}
    return await html(
        request,
        first,
        "setup.html",
        status=status,
        found=found,
        form=usual,
        problem=problem,
        is_local=here in LOOPBACK,
    )


@step(f"{START}/machines")
async def machines(request: AnyRequest, first: FirstStart, form: dict[str, str]) -> Reply:
    found = await first.search(_query(request).get("place", ""))
    return await html(request, first, "setup_machines.html", found=found, form=form)


@step(f"{START}/probe")
async def probe(request: AnyRequest, first: FirstStart, form: dict[str, str]) -> Reply:  # noqa: ARG001  as all steps
    """Compares each assumption with the machine's answers; only reads."""
    nim = _query(request).get("nim", "")
    findings = await first.probe(nim)
    return await html(request, first, "probe.html", nim=nim, findings=findings, back=START)


@step(START, change=True)
async def carry_out(request: AnyRequest, first: FirstStart, form: dict[str, str]) -> Reply:
    try:
        await first.carry_out(_request(form))
    except (InvalidRequest, BoxFailed) as error:
        fault = fault_of(error)
        problem = fault.message(Speaker(language_of(request, first.language)))
        return await _form(request, first, form, looked=True, problem=problem, status=fault.status)
    return redirect(f"{START}/done")


def _request(form: dict[str, str]) -> SetupRequest:
    """Raises InvalidRequest for invalid fields."""
    name, password, network = form.get("name", ""), form.get("password", ""), form.get("network", "")
    request = SetupRequest(
        nims=tuple(field.removeprefix(CHOSEN) for field in form if field.startswith(CHOSEN)),
        network=network,
        isf=form.get("isf", ""),
        till=form.get("till", ""),
        name=name,
        password=password,
    )
    faults = (
        ("machines", "" if request.nims else Text("choose one at least")),
        ("network", "" if network in NETWORKS else Text("has to be one of {choices}", choices=", ".join(NETWORKS))),
        ("isf", fault_of_line(request.isf, LONGEST_DEFAULT)),
        ("till", fault_of_line(request.till, LONGEST_DEFAULT)),
        ("name", fault_of_name(name)),
        ("password", fault_of_password(password, name)),
    )
    if wrong := [FieldError(field, fault) for field, fault in faults if fault]:
        raise InvalidRequest(wrong)
    return request


@step(f"{START}/done")
async def done(request: AnyRequest, first: FirstStart, form: dict[str, str]) -> Reply:  # noqa: ARG001  as all steps
    """Shows the keys while this page exists; its cookie logs the person in at the daemon."""
    route = first.result
    if route is None:
        return redirect(START)
    machines = [(each, await qr_picture(for_till(each))) for each in route.machines]
    cookie = session_cookie(route.session, tls=route.scheme == "https")
    return await html(
        request,
        first,
        "setup_done.html",
        headers=(*POLICY, cookie),
        machines=machines,
        first_person=route.person.name if route.person else "",
        has_authority=route.root is not None,
    )


@step(f"{START}/authority.pem")
async def authority(request: AnyRequest, first: FirstStart, form: dict[str, str]) -> Reply:  # noqa: ARG001  as all steps
    if not first.result or not first.result.root:
        raise NotFound("this box shows no certificate of its own")
    return authority_file(await asyncio.to_thread(first.result.root.read_bytes))


@step(f"{START}/start", change=True)
async def start(request: AnyRequest, first: FirstStart, form: dict[str, str]) -> Reply:  # noqa: ARG001  as all steps
    """The last answer of this page: it opens the daemon's page as soon as the daemon runs."""
    if (route := first.result) is None:
        raise NotLoggedIn
    origin = f"{route.scheme}://{in_url(_seen_from(request, route))}:{route.port}"
    (name, policy), *others = POLICY
    wider = policy.replace(b"connect-src 'self'", b"connect-src 'self' " + origin.encode())

    answer = await html(
        request,
        first,
        "setup_starting.html",
        headers=((name, wider), *others),
        opens=f"{origin}/ui/welcome",
        is_out_of_reach=route.host in LOOPBACK and _host_of(request) not in LOOPBACK,
        is_new_certificate=route.scheme == "https" != request.scope["scheme"],
    )
    first.leave()
    return answer


def _seen_from(request: AnyRequest, route: SetupResult) -> str:
    """The daemon's host name for this browser: the one of this page if the daemon listens there too."""
    here = _host_of(request)
    same = route.host in (*EVERYWHERE, here) or (route.host in LOOPBACK and here in LOOPBACK)
    return here if same else route.host


def _host_of(request: AnyRequest) -> str:
    host = request.headers.get("host", "")
    return host[1 : host.find("]")] if host.startswith("[") else host.partition(":")[0]


def _is_code(text: str, first: FirstStart) -> bool:
    letters = "".join(letter for letter in text.upper() if letter.isalnum())
    return hmac.compare_digest(letters.encode(), first.code.replace("-", "").encode())


def _first(request: AnyRequest) -> FirstStart:
    first: FirstStart = request.app.state["page"]
    return first


def _query(request: AnyRequest) -> dict[str, str]:
    text = request.scope["query_string"].decode("latin-1")
    return {**fields(text), **({"look": "1"} if "look=" in text else {})}


def link(base: str, code: str) -> str:
    """Link shown by the box, to be opened or scanned."""
    return f"{base}{START}/code?{urlencode({'code': code})}"
