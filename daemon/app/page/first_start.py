"""The page of a box without a configuration: `mcfd setup --page` and the package's unit serve it until the person is done with it."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import structlog
import uvloop

from common import notify
from common.front import BadCertificate, FrontError, FrontServer, check_pair
from common.http_server import HttpServer, ServerConfig
from common.language import Language, Text, ambient, tell, tr
from common.sockets import box_names, host_names, is_loopback
from daemon.api.page.deps import Probed, SetupRequest
from daemon.api.page.rendering import BoxFailed, BoxRefused
from daemon.api.page.screens.first_start import link
from daemon.api.service import create_first_start
from daemon.core.errors import InvalidRequest, McfdError, PrinterFailed
from daemon.owner import as_owner
from daemon.paper.escpos import as_escpos
from daemon.paper.layout import Document, QrCode, TextLine, Title
from daemon.printer import ReceiptPrinter, usb_printers
from daemon.settings import SettingsError
from daemon.settings.check import AUTHORITY
from daemon.setup.carry_out import carry_out
from daemon.setup.plan import NETWORKS, SetupPlan, base_urls
from daemon.setup.request import FirstPerson, PortResult, SetupResult
from daemon.setup.search import candidates, machines, search
from daemon.tls import SERVER_PAIR, AuthorityError

__all__ = ["FirstAddress", "FirstAuthority", "SetupInPage", "link", "serve_first_start"]

log = structlog.get_logger(__name__)

LAST_ANSWER: Final = 5.0
"""Seconds left to the answer that says that mcfd is starting."""
LOOK_SECONDS: Final = 0.5
CODE_BYTES: Final = 5
"""Forty bits, guessed five times a minute from an address at the most."""
PRINTER_SECONDS: Final = 10.0
NARROW: Final = 32
"""Columns that every receipt printer has."""


class FirstAuthority:
    """What vouches for a page that the shop's network sees: the authority in `home`, or, on a box that has none, a new one in `scratch`. That
    one becomes the box's own when the box is set up with it, so that browsers which took its certificate go on with it; until then nothing is
    in the place of a backup that may be put back."""

    def __init__(self, home: Path, scratch: Path, host: str) -> None:
        self.folder = home if (home / AUTHORITY).exists() else scratch
        self._host = host

    def pem(self) -> bytes:
        """Certificate and key for the box's names and addresses of now. AuthorityError, BadCertificate, OSError."""
        from daemon.tls.authority import create, renew_if_due  # noqa: PLC0415  # cryptography, which loopback does not need

        names, now = box_names(self._host, ()), datetime.now(UTC)
        with as_owner(self.folder):
            if (self.folder / AUTHORITY).exists():
                renew_if_due(self.folder, names, now)
            else:
                create(self.folder, names, now)
            return check_pair(self.folder / SERVER_PAIR, self.folder / SERVER_PAIR)


@dataclass(frozen=True)
class FirstAddress:
    """Where the page is. With an `authority` HAProxy is in front, which encrypts and bounds what a network sends: that of the unit, which
    shares the folder `front`, or, without one, a child. Loopback has neither."""

    host: str
    port: int
    authority: FirstAuthority | None = None
    front: Path | None = None

    def urls(self) -> tuple[str, ...]:
        """Those of now: a network may come after the box has started."""
        return base_urls("https" if self.authority else "http", self.host, self.port)


class SetupInPage:
    """`plan` has the settings that the page leaves out, `ports` those of the command line, `place` is the configuration to be written. `made` is
    what the one setup has made; a repetition gets it again, and nothing is made twice."""

    def __init__(
        self, plan: SetupPlan, ports: Sequence[str], label: str, place: Path, authority: FirstAuthority | None = None
    ) -> None:
        code = base64.b32encode(secrets.token_bytes(CODE_BYTES)).decode()
        self.code = f"{code[:4]}-{code[4:]}"
        self.language: Language = ambient()
        self.result: SetupResult | None = None
        self.left = asyncio.Event()
        self._plan, self._ports, self._label, self._place = plan, tuple(ports), label, place
        self._authority = authority
        self._found: dict[str, PortResult] = {}
        self._line = asyncio.Lock()

    async def search(self, place: str) -> Sequence[PortResult]:
        """Every port, or those of the command line, and `place`; earlier results stay while their port is searched again."""
        named = (*self._ports, *([place] if place else []))
        ports = candidates(named) if self._ports or not place else [*candidates(()), *candidates((place,))]
        async with self._line:
            results = await search(ports, self._plan.baudrate)
        found = {each.port: each for each in machines(results)}
        self._found |= {each.nim: each for each in found.values()}
        return [each for each in results if each.port in found or not each.nim]

    async def probe(self, nim: str, language: Language) -> Sequence[Probed]:
        async with self._line:
            return await probed(self._port(nim), self._plan.baudrate, language)

    async def carry_out(self, request: SetupRequest) -> SetupResult:
        """In a thread: the ledger is made, synced and opened there. BoxFailed, InvalidRequest."""
        async with self._line:
            if self.result is None:
                plan = self._planned(request)
                person = FirstPerson(request.name, request.password)
                folder = self._authority.folder if self._authority else None
                work = partial(carry_out, plan, self._place, label=self._label, person=person, authority=folder)
                try:
                    self.result = await asyncio.to_thread(work)
                except InvalidRequest:
                    raise
                except (AuthorityError, SettingsError, OSError, McfdError) as error:
                    raise BoxFailed(str(error)) from error
            return self.result

    def leave(self) -> None:
        self.left.set()

    def _port(self, nim: str) -> str:
        if nim not in self._found:
            raise BoxRefused(Text("no machine of this NIM has answered"))
        return str(self._found[nim].port)

    def _planned(self, request: SetupRequest) -> SetupPlan:
        return replace(
            self._plan,
            machines=tuple((nim, self._port(nim)) for nim in request.nims),
            network=next(each for each in NETWORKS if each == request.network),
            isf=request.isf,
            operator_name=request.till,
        )


def serve_first_start(
    first: SetupInPage, at: FirstAddress, *, announce: Callable[[Sequence[str]], None], is_over: Callable[[], bool]
) -> None:
    """Until the person leaves it, or `is_over` says that the box was set up in another way. `announce` gets the URLs of the page when it is
    there, and again when the box gets other addresses. OSError when the address cannot be had, FrontError without HAProxy."""
    uvloop.run(_serve(first, at, announce, is_over))


async def _serve(
    first: SetupInPage, at: FirstAddress, announce: Callable[[Sequence[str]], None], is_over: Callable[[], bool]
) -> None:
    app = create_first_start(first, host_names())
    async with contextlib.AsyncExitStack() as stack:
        front = None
        if at.authority:
            front = FrontServer(at.front, at.host, at.port, pem=await asyncio.to_thread(at.authority.pem))
            stack.push_async_callback(front.stop)
            await front.start()
        behind = front.socket if front else None
        server = HttpServer(app, ServerConfig(host=at.host, port=at.port, behind=behind, grace=LAST_ANSWER))
        await server.start()
        stack.push_async_callback(server.stop)
        urls = at.urls()
        announce(urls)
        notify.ready()
        printing = asyncio.create_task(_print_code(first, urls))
        stack.callback(printing.cancel)
        while not is_over():
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LOOK_SECONDS):
                    await first.left.wait()
                    return
            if (now := at.urls()) != urls:
                urls = now
                if front and at.authority:
                    await _renew(front, at.authority)
                announce(urls)


async def _renew(front: FrontServer, authority: FirstAuthority) -> None:
    """For the new addresses; without it the one before is in use, of which a browser warns in any case."""
    try:
        await front.renew(await asyncio.to_thread(authority.pem))
    except (AuthorityError, BadCertificate, FrontError, OSError) as error:
        log.warning("certificate.not_renewed", reason=str(error))


async def _print_code(first: SetupInPage, urls: Sequence[str]) -> None:
    """On each receipt printer that USB shows, for a box without a screen."""
    if is_loopback(urlsplit(urls[0]).hostname or ""):
        return  # who can use the link has a screen
    lines = [TextLine(tr("First start"), align="center"), TextLine(), TextLine(tr("Open this in a browser:"))]
    lines += [TextLine(url) for url in urls]
    lines += [TextLine(), TextLine(tr("Code: {code}", code=first.code), align="center", bold=True), TextLine()]
    document = Document("mcfd", first.language, (Title("mcfd"), *lines, QrCode(link(urls[0], first.code))))
    data = await asyncio.to_thread(as_escpos, document, NARROW)
    for device in usb_printers():
        try:
            await ReceiptPrinter(device, PRINTER_SECONDS).print(data)
        except PrinterFailed as error:
            log.warning("printer.failed", device=device, cause=str(error))


async def probed(place: str, baudrate: int, language: Language) -> list[Probed]:
    """Compares each assumption with the machine's answers; only reading. BoxRefused when there is none."""
    from daemon.probe.connect import NoMachine  # noqa: PLC0415  rarely needed
    from daemon.probe.run import probe  # noqa: PLC0415

    try:
        result = await probe(place, baudrate)
    except NoMachine as error:
        raise BoxRefused(*error.args) from None
    rows = [
        Probed(
            expected=str(tell(found.expected, language)),
            came=str(tell(found.came, language)),
            verdict=found.verdict,
            todo=str(tell(found.todo, language)),
        )
        for found in result.findings
    ]
    broken = str(tell(result.broken_off, language))
    return [*rows, *([Probed(expected="", came=broken, verdict="contradicted")] if broken else [])]
