"""The person's password; a shared duplicate (a PDF by a link without login, as QR code, in the shop's network); the
card of a till (address, machine and key as QR code, shown once, also as PDF)."""

import hashlib
import hmac
from collections.abc import Iterator
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec
from litestar import get

from common.passwords import SHORTEST, fault_of_password
from common.sockets import is_loopback
from daemon.api.access.login import device_cookie, session_cookie
from daemon.api.http.answers import Answer, Reply
from daemon.api.page.deps import PageDeps
from daemon.api.page.downloads import PATH, address_here, authority_link
from daemon.api.page.rendering import ShareEnded
from daemon.api.page.screens.invoices import record_of
from daemon.api.page.screens.paper import pdf_answer
from daemon.api.page.views.machine_view import qr_picture
from daemon.api.page.visit import AnyRequest, Visit, fault_page, language_of, name_of, redirect, render, screen
from daemon.api.refusals import WrongPassword
from daemon.core.clock import DAY
from daemon.core.errors import InvalidRequest, NotFound
from daemon.paper.layout import Document, Element, Pair, QrCode, Rule, TextLine
from daemon.paper.shop import Style
from daemon.usecases.reports import acts, inspect, journal


async def _account(visit: Visit) -> Reply:
    done = visit.say("Your password is changed. Your other sessions have ended.")
    return await render(visit, "account.html", least=SHORTEST, done=done if visit.query.get("done") else "")


account = screen("/ui/account", "look")(_account)


@screen("/ui/account/password", "look", change=True, form=_account, faults=(InvalidRequest,))
async def change_own_password(visit: Visit) -> Reply:
    """Requires the current password, since a screen may be left open; a wrong one counts as a failed login."""
    new = visit.form.get("password", "")
    if fault := fault_of_password(new, visit.session.name):
        raise InvalidRequest.at("password", fault)
    if new != visit.form.get("again", ""):
        raise InvalidRequest.at("again", visit.say("is not the same"))
    try:
        session = await visit.page.logins.change_password(
            visit.session, visit.form.get("current", ""), new, visit.address
        )
    except WrongPassword:
        raise InvalidRequest.at("current", visit.say("is wrong")) from None
    tls = visit.page.tls
    cookie = device_cookie(visit.page.logins.device_of(visit.session.name), tls=tls)
    return redirect(visit.link("/ui/account", done="password"), session_cookie(session, tls=tls), cookie)


_SIGNATURE: Final = 24


@screen("/ui/journal/{seq:int}/share", "look", change=True)
async def share(visit: Visit) -> Reply:
    """Repeated forms and opened links count as one copy."""
    record = await record_of(visit)
    if record.state != "certified":
        raise NotFound("only a certified invoice can be shared")

    async def make() -> str:
        copy = await acts.make_copy(visit.worker, record, visit.call())
        return f"{name_of(visit.worker)}~{record.code}~{copy}~{visit.deps.clock() + DAY}"

    content = await visit.run_once(make)
    address = f"{address_here(visit)}/ui/shared/{content}~{_signed(visit.page, content)}"
    return await render(
        visit,
        "share.html",
        record=record,
        address=address,
        picture=await qr_picture(address),
        ends=int(content.rpartition("~")[2]),
        is_local=is_loopback(urlsplit(address).hostname or ""),
    )


@get("/ui/shared/{token:str}")
async def shared(request: AnyRequest) -> Reply:
    """The PDF for anyone with the link."""
    try:
        return await _shared(request)
    except Exception as error:  # noqa: BLE001  every error of a screen is a page
        return await fault_page(request, error)


async def _shared(request: AnyRequest) -> Answer:
    deps, page = request.app.state["deps"], _page(request)
    content, _, signature = str(request.path_params["token"]).rpartition("~")
    parts = content.split("~")
    if not hmac.compare_digest(_signed(page, content).encode(), signature.encode()):
        raise ShareEnded
    if not 0 <= int(parts[3]) - deps.clock() <= 2 * DAY:  # a link of a clock far ahead is invalid too
        raise ShareEnded
    worker = next((each for each in deps.workers.all() if name_of(each) == parts[0]), None)
    if worker is None:
        raise ShareEnded
    record, language = await journal.find(worker, parts[1]), language_of(request, page.language)
    await inspect.learn_taxpayer(worker)
    style = Style(language, is_duplicate=True, copy=int(parts[2]))
    return await pdf_answer(deps, "shared", await deps.paper.invoice(worker, record, style))


def _page(request: AnyRequest) -> PageDeps:
    page: PageDeps = request.app.state["page"]
    return page


def _signed(page: PageDeps, text: str) -> str:
    return hmac.new(page.share_key, text.encode(), hashlib.sha256).hexdigest()[:_SIGNATURE]


def for_till(visit: Visit, key: str) -> str:
    """JSON for a till's scanner: address of the box, machine, key."""
    content = {"url": address_here(visit), "nim": visit.worker.book.nim, "key": key}
    return msgspec.json.encode(content).decode()


async def on_screen(visit: Visit, key: str) -> dict[str, Any]:
    """Values of new_key.html."""
    address = address_here(visit)
    pages = f"{address}/ui/"
    return {
        "key": key,
        "address": address,
        "picture": await qr_picture(for_till(visit, key)),
        "pages": (pages, await qr_picture(pages)),
        "authority": await authority_link(visit),
    }


@screen("/ui/box/key/card", "administer", change=True)
async def card(visit: Visit) -> Reply:
    """The same as PDF. The box stores no keys, so the form contains it; only a key of this machine is accepted."""
    key = visit.form.get("key", "")
    owner = visit.deps.keyring.find(key)
    if owner is None or owner.nim != visit.worker.book.nim:
        raise NotFound("this is no key of the machine")
    elements = tuple(_elements(visit, key, owner.label))
    return await pdf_answer(visit.deps, visit.holder, Document(owner.label, visit.language, elements))


def _elements(visit: Visit, key: str, label: str) -> Iterator[Element]:
    say, address = visit.say, address_here(visit)
    yield TextLine(say("1. The till “{label}”", label=label), align="center", bold=True)
    yield QrCode(for_till(visit, key))
    yield Pair(say("Address"), address)
    yield Pair(say("Machine"), visit.worker.book.nim)
    yield Pair(say("Key"), key)
    if visit.page.authority():
        yield Rule()
        yield TextLine(say("2. The box's authority, for tills to trust"), align="center", bold=True)
        yield QrCode(address + PATH)
        yield TextLine(address + PATH, align="center")
    yield Rule()
    yield TextLine(say("The shop's page"), align="center", bold=True)
    yield QrCode(f"{address}/ui/")
    yield TextLine(f"{address}/ui/", align="center")
