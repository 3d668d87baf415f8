"""The page of a box without a configuration, served by `mcfd setup --page` or the package's unit."""

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
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

import structlog

from common import notify, process
from common.front import BadCertificate, FrontError, FrontServer, check_pair
from common.http_server import HttpServer, ServerConfig
from common.language import Language, Text, ambient, tr
from common.sockets import box_names, host_names, is_loopback
from daemon.api.page.deps import SetupRequest
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

if TYPE_CHECKING:
    from daemon.probe.replies import ProbeFinding

__all__ = ["FirstAddress", "FirstAuthority", "SetupInPage", "link", "serve_first_start"]

log = structlog.get_logger(__name__)

LAST_ANSWER: Final = 5.0
"""Seconds for the last answer, which says that mcfd is starting."""
LOOK_SECONDS: Final = 0.5
CODE_BYTES: Final = 5
"""40 bits; an address has five guesses a minute at most."""
PRINTER_SECONDS: Final = 10.0
NARROW: Final = 32
"""Columns that every receipt printer has."""


def is_clock_wrong() -> bool:
    """Whether no certificate can be made at this time."""
    from daemon.tls.authority import YOUNGEST_CLOCK  # noqa: PLC0415  # loopback needs no cryptography

    return datetime.now(UTC) < YOUNGEST_CLOCK


class FirstAuthority:
    """The certificate authority for the page on the shop's network: the one in `home` or, if the box has none, a new
    one in `scratch`. Setup makes the new one the box's own, so that browsers continue to accept its certificate. Until
    then `home` has none: a backup may be restored there."""

    def __init__(self, home: Path, scratch: Path, host: str) -> None:
        self.folder = home if (home / AUTHORITY).exists() else scratch
        self._host = host

    def pem(self) -> bytes:
        """Certificate and key for the box's current names and addresses. AuthorityError, BadCertificate, OSError."""
        from daemon.tls.authority import create, renew_if_due  # noqa: PLC0415  # loopback needs no cryptography

        names, now = box_names(self._host, ()), datetime.now(UTC)
        with as_owner(self.folder):
            if (self.folder / AUTHORITY).exists():
                renew_if_due(self.folder, names, now)
            else:
                create(self.folder, names, now)
            return check_pair(self.folder / SERVER_PAIR, self.folder / SERVER_PAIR)


@dataclass(frozen=True)
class FirstAddress:
    """Where the page is served. With an `authority`, HAProxy in front encrypts and limits traffic from the network: the
    unit's HAProxy, which shares the folder `front`, or a child process without `front`. Loopback needs neither."""

    host: str
    port: int
    authority: FirstAuthority | None = None
    front: Path | None = None

    def urls(self) -> tuple[str, ...]:
        """The current URLs: a network may appear after the box has started."""
        return base_urls("https" if self.authority else "http", self.host, self.port)


class SetupInPage:
    """`plan` has the settings that the page leaves out, `ports` come from the command line, `place` is the path of the
    new configuration. `result` is the one setup's result; a repetition returns it again, and nothing is made twice."""

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
        """Searches the ports of the command line, or all, and `place`. Earlier results stay during a new search."""
        named = (*self._ports, *([place] if place else []))
        ports = candidates(named) if self._ports or not place else [*candidates(()), *candidates((place,))]
        async with self._line:
            results = await search(ports, self._plan.baudrate)
        found = {each.port: each for each in machines(results)}
        self._found |= {each.nim: each for each in found.values()}
        return [each for each in results if each.port in found or not each.nim]

    async def probe(self, nim: str) -> Sequence[ProbeFinding]:
        async with self._line:
            return await probed(self._port(nim), self._plan.baudrate)

    async def carry_out(self, request: SetupRequest) -> SetupResult:
        """In a thread: the ledger is made, synced and opened there. Raises BoxFailed, InvalidRequest."""
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

    @property
    def is_used(self) -> bool:
        """Whether a person has begun the setup."""
        return self._line.locked() or bool(self._found or self.result)

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
    """Serves until the person leaves the page or `is_over` (the box was set up in another way). `announce` gets the
    URLs at the start and at each change of address. Raises OSError (no such address), FrontError (no HAProxy)."""
    process.run(_serve(first, at, announce, is_over))


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
    """For the new addresses. On an error the old certificate stays in use; a browser warns of it in any case."""
    try:
        await front.renew(await asyncio.to_thread(authority.pem))
    except (AuthorityError, BadCertificate, FrontError, OSError) as error:
        log.warning("certificate.not_renewed", reason=str(error))


async def _print_code(first: SetupInPage, urls: Sequence[str]) -> None:
    """Prints URL and code on each USB receipt printer, for a box without a screen."""
    if is_loopback(urlsplit(urls[0]).hostname or ""):
        return  # a loopback link is for a box with a screen
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


async def probed(place: str, baudrate: int) -> list[ProbeFinding]:
    """Compares each assumption with the machine's answers; only reads. Raises BoxRefused if no machine answers."""
    from daemon.probe.connect import NoMachine  # noqa: PLC0415  rarely needed
    from daemon.probe.replies import ProbeFinding  # noqa: PLC0415
    from daemon.probe.run import probe  # noqa: PLC0415

    try:
        result = await probe(place, baudrate)
    except NoMachine as error:
        raise BoxRefused(*error.args) from None
    if result.broken_off:
        end = ProbeFinding(check="", expected="", came=result.broken_off, verdict="contradicted")
        return [*result.findings, end]
    return result.findings
