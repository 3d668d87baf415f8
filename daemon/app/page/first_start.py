"""The page of a box without a configuration: `mcfd setup --page` and the package's unit serve it until the person is done with it."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import secrets
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

import uvloop

from common import notify
from common.http_server import HttpServer, ServerConfig
from common.language import Language, Text, ambient, tell
from daemon.api.page.deps import PortChoice, Probed, SetupRequest
from daemon.api.page.rendering import BoxFailed, BoxRefused
from daemon.api.page.screens.first_start import link
from daemon.api.service import create_first_start
from daemon.app.runtime import Runtime
from daemon.core.errors import InvalidRequest, McfdError
from daemon.machines.port_reading import PortReading
from daemon.settings import SettingsError
from daemon.setup.carry_out import carry_out
from daemon.setup.plan import NETWORKS, SetupPlan
from daemon.setup.request import FirstPerson, SetupResult
from daemon.setup.search import PortResult, candidates, machines, search
from daemon.tls.names import AuthorityError

__all__ = ["SetupInPage", "link", "serve_first_start"]

LAST_ANSWER: Final = 5.0
"""Seconds left to the answer that says that mcfd is starting."""
LOOK_SECONDS: Final = 0.5
CODE_BYTES: Final = 5
"""Forty bits, guessed five times a minute at the most."""


class SetupInPage:
    """`plan` has what the page does not ask for, `ports` those of the command line, `place` is the configuration to be written. `made` is
    what the one setup has made; asked for again, it is given again and nothing is made twice."""

    def __init__(self, plan: SetupPlan, ports: Sequence[str], label: str, place: Path) -> None:
        code = base64.b32encode(secrets.token_bytes(CODE_BYTES)).decode()
        self.code = f"{code[:4]}-{code[4:]}"
        self.language: Language = ambient()
        self.made: SetupResult | None = None
        self.left = asyncio.Event()
        self._plan, self._ports, self._label, self._place = plan, tuple(ports), label, place
        self._found: dict[str, PortResult] = {}
        self._line = asyncio.Lock()

    async def search(self, place: str, language: Language) -> Sequence[PortChoice]:
        """Every port, or those of the command line, and `place`; what was found before stays known while its port is asked again."""
        named = (*self._ports, *([place] if place else []))
        asked_for = candidates(named) if self._ports or not place else [*candidates(()), *candidates((place,))]
        async with self._line:
            asked = await search(asked_for, self._plan.baudrate)
        found = {each.port: each for each in machines(asked)}
        self._found |= {each.nim: each for each in found.values()}
        return [_port_choice(each, language) for each in asked if each.port in found or not each.nim]

    async def probe(self, nim: str, language: Language) -> Sequence[Probed]:
        async with self._line:
            return await probed(self._port(nim), self._plan.baudrate, language)

    async def carry_out(self, request: SetupRequest) -> SetupResult:
        """In a thread: the ledger is made, synced and opened there. BoxFailed, InvalidRequest."""
        async with self._line:
            if self.made is None:
                plan = self._planned(request)
                person = FirstPerson(request.name, request.password)
                try:
                    self.made = await asyncio.to_thread(carry_out, plan, self._place, label=self._label, person=person)
                except InvalidRequest:
                    raise
                except (AuthorityError, SettingsError, OSError, McfdError) as error:
                    raise BoxFailed(str(error)) from error
            return self.made

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
            network=next(known for known in NETWORKS if known == request.network),
            isf=request.isf,
            operator_name=request.till,
        )


def _port_choice(asked: PortResult, language: Language) -> PortChoice:
    found = asked.found
    if isinstance(found, PortReading):
        return PortChoice(str(asked.port), asked.nim, found.state.ifu, found.taxpayer[0] if found.taxpayer else "")
    return PortChoice(str(asked.port), said=asked.silence.told(language) if asked.silence else "")


def serve_first_start(
    first: SetupInPage,
    host: str,
    port: int,
    *,
    listening: Callable[[], None],
    is_over: Callable[[], bool] | None = None,
) -> None:
    """Until the person leaves it, or `is_over` says that the box was set up in another way; `listening` is called when the page is there.
    OSError when the address cannot be had."""
    uvloop.run(_serve(first, host, port, listening, is_over))


async def _serve(
    first: SetupInPage, host: str, port: int, listening: Callable[[], None], is_over: Callable[[], bool] | None
) -> None:
    server = HttpServer(create_first_start(first), ServerConfig(host=host, port=port, grace=LAST_ANSWER))
    await server.start()
    try:
        listening()
        notify.ready()
        while is_over is None or not is_over():
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(None if is_over is None else LOOK_SECONDS):
                    await first.left.wait()
                    break
    finally:
        await server.stop()


IN_USE = Text(
    "this machine is in use: the probe needs its line for itself (enabled = false in its section, then restart)"
)


async def probed(place: str, baudrate: int, language: Language) -> list[Probed]:
    """What is assumed of a machine, asked of it; only reading. BoxRefused when there is none."""
    from daemon.probe.connect import NoMachine  # noqa: PLC0415  rarely needed
    from daemon.probe.run import probe  # noqa: PLC0415

    try:
        result = await probe(place, baudrate)
    except NoMachine as error:
        raise BoxRefused(error.text) from None
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


async def probe_unused(runtime: Runtime, nim: str, language: Language) -> list[Probed]:
    """Of a machine that is switched off in the configuration: nobody else is on its line then."""
    machine = runtime.settings.find_machine(nim)
    if machine is None or machine.enabled:
        raise BoxRefused(IN_USE)
    return await probed(str(machine.port), machine.baudrate, language)
