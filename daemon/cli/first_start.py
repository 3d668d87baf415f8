"""`mcfd setup --page`: the same work as at the terminal, asked for by a browser that has the code; then mcfd itself."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import os
import secrets
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import click

from common.passwords import hash_password
from daemon.app.page.first_start import BoxFailed, BoxRefused, FoundPort, Made, Probed, Wish, link, serve_first_start
from daemon.app.page.probing import probed
from daemon.app.upkeep.box_clock import BOOTED
from daemon.cli.failures import Failure, Unavailable
from daemon.cli.ledger import now, whoever_types, with_ledger
from daemon.cli.output import say, warn
from daemon.cli.setup_work import Wanted, authority, set_up
from daemon.core.errors import InvalidRequest, McfdError
from daemon.files import write_whole
from daemon.language import Language, Text, ambient, tr
from daemon.machines.port_reading import PortReading, Silence
from daemon.settings import Settings, SettingsError

if TYPE_CHECKING:
    from daemon.setup.plan import Plan
    from daemon.setup.search import Asked
    from daemon.store import Store

SERVICE_CONFIG = Path("/etc/mcfd/mcfd.toml")
LINK = Path("/run/mcfd-first-start/link")
"""Of the page that systemd/first-start-mcfd.service serves; there as long as it does."""
LOOPBACK = "127.0.0.1"
CODE_BYTES = 5
"""Forty bits, guessed five times a minute at the most."""
TEXTS = {
    "silent": Text("nobody answers"),
    "stranger": Text("something answers, but not as a fiscal machine"),
    "busy": Text("another program uses it"),
}


def serve(wanted: Wanted, place: Path, address: str) -> int:
    """Until the box is set up and mcfd runs in its place; where systemd is the one that starts it, it is asked to."""
    host, port = _split(address, wanted.http_port)
    if place == SERVICE_CONFIG and host == LOOPBACK and (served := _served_already()):
        say(tr("Open this in a browser: {link}", link=served))
        return 0
    _serve(SetupInPage(wanted, place), host, port)
    return _start(place)


def hand_over(wanted: Wanted, folder: Path, address: str) -> int:
    """As the package's unit (systemd/first-start-mcfd.service): the link is in a file that only the box's own people read, what the person
    decided is left in `folder` for the unit to put in its place, and a box that is set up in another way meanwhile ends it."""
    host, port = _split(address, wanted.http_port)
    _serve(SetupInPage(wanted, folder / SERVICE_CONFIG.name), host, port, link_file=folder / LINK.name)
    return 0


def _serve(first: SetupInPage, host: str, port: int, *, link_file: Path | None = None) -> None:
    from common import logs

    logs.configure("warning", "auto")
    base = f"http://{f'[{host}]' if ':' in host else host}:{port}"
    shown = link(base, first.code)

    def listening() -> None:
        """Nobody is told of a page that is not there yet."""
        if link_file:
            write_whole(link_file, f"{shown}\n".encode(), 0o600)
        say(tr("Open this in a browser: {link}", link=shown))
        say(tr("or {base} with the code {code}", base=base, code=first.code))

    is_over = SERVICE_CONFIG.exists if link_file else None
    try:
        serve_first_start(first, host, port, first.left, listening=listening, is_over=is_over)
    except OSError as error:
        raise Unavailable(error) from None


def _served_already() -> str:
    """The link of the page that the package's unit serves; empty without one, or for who may not read it."""
    try:
        return LINK.read_text("utf-8").strip()
    except OSError:
        return ""


class SetupInPage:
    """`made` is what the one setup has made; asked for again, it is given again and nothing is made twice."""

    def __init__(self, wanted: Wanted, place: Path) -> None:
        code = base64.b32encode(secrets.token_bytes(CODE_BYTES)).decode()
        self.code = f"{code[:4]}-{code[4:]}"
        self.language: Language = ambient()
        self.made: Made | None = None
        self.left = asyncio.Event()
        self._wanted, self._place = wanted, place
        self._found: dict[str, Asked] = {}
        self._line = asyncio.Lock()

    async def search(self, place: str, language: Language) -> Sequence[FoundPort]:
        """Every port, or those of the command line, and `place`; what was found before stays known while its port is asked again."""
        from daemon.setup.search import candidates, machines, search

        named = (*self._wanted.ports, *([place] if place else []))
        asked_for = candidates(named) if self._wanted.ports or not place else [*candidates(()), *candidates((place,))]
        async with self._line:
            asked = await search(asked_for, self._wanted.baudrate)
        found = {each.port: each for each in machines(asked)}
        self._found |= {each.nim: each for each in found.values()}
        return [_shown(each, language) for each in asked if each.port in found or not each.nim]

    async def probe(self, nim: str, language: Language) -> Sequence[Probed]:
        if nim not in self._found:
            raise BoxRefused(Text("no machine of this NIM has answered"))
        async with self._line:
            return await probed(str(self._found[nim].port), self._wanted.baudrate, language)

    async def carry_out(self, wish: Wish) -> Made:
        """In a thread: the ledger is made, synced and opened there. BoxFailed, InvalidRequest."""
        async with self._line:
            if self.made is None:
                try:
                    self.made = await asyncio.to_thread(self._carry_out, wish)
                except (Failure, SettingsError, OSError) as error:
                    raise BoxFailed(str(error.format_message() if isinstance(error, Failure) else error)) from error
                except InvalidRequest:
                    raise
                except McfdError as error:
                    raise BoxFailed(str(error)) from error
            return self.made

    def leave(self) -> None:
        self.left.set()

    def _carry_out(self, wish: Wish) -> Made:
        """What can fail comes before the configuration, so that a setup that broke off is simply done again."""
        from daemon.setup.plan import checked, write

        chosen = [self._found[nim] for nim in wish.nims if nim in self._found]
        if len(chosen) != len(wish.nims):
            raise BoxRefused(Text("no machine of this NIM has answered"))
        plan = self._plan(wish, chosen)
        settings = checked(plan)
        root = authority(settings)
        session = _first_person(settings, wish)
        wanted = replace(self._wanted, key=True)
        done = [set_up(wanted, plan, settings, each) for each in chosen]
        write(plan, self._place)
        return Made(
            keys=tuple((each.asked.nim, each.key) for each in done),
            scheme=plan.scheme,
            host=plan.host,
            port=plan.port,
            address=done[0].address,
            session=session,
            authority=root.read_bytes() if root else b"",
        )

    def _plan(self, wish: Wish, chosen: Sequence[Asked]) -> Plan:
        from daemon.setup.plan import NETWORKS, Plan, default_host

        network = next(known for known in NETWORKS if known == wish.network)
        return Plan(
            machines=tuple((each.nim, each.port) for each in chosen),
            ledger=self._wanted.ledger.absolute(),
            network=network,
            host=self._wanted.host or default_host(network),
            port=self._wanted.http_port,
            baudrate=self._wanted.baudrate,
            isf=wish.isf,
            operator_id=self._wanted.operator_id,
            operator_name=wish.till,
        )


def _first_person(settings: Settings, wish: Wish) -> str:
    """What the cookie of the new technician holds. One that a setup which broke off has left gets this password."""
    password = hash_password(wish.password)
    token = secrets.token_urlsafe(32)
    by = whoever_types()

    async def make(store: Store) -> None:
        at = now()
        known = store.people.find(wish.name)
        if known is None or known[0].disabled_at or known[0].role != "technician":
            await store.people.create(wish.name, "technician", password, at=at, by=by)
        else:
            await store.people.set_password(wish.name, password, at=at, by=by)
        if made := store.people.find(wish.name):
            digest = hashlib.sha256(token.encode()).digest()
            await store.people.open_session(made[0].id, wish.name, digest, at=at, by=by)

    with_ledger(settings, make, make=True)
    return token


def _shown(asked: Asked, language: Language) -> FoundPort:
    found = asked.found
    if isinstance(found, PortReading):
        return FoundPort(str(asked.port), asked.nim, found.state.ifu, found.taxpayer[0] if found.taxpayer else "")
    return FoundPort(str(asked.port), said=_why(found, language))


def _why(silence: Silence, language: Language) -> str:
    return TEXTS[silence.why].told(language) if silence.why in TEXTS else silence.reason


def _split(address: str, port: int) -> tuple[str, int]:
    """ADDRESS or ADDRESS:PORT; an IPv6 address with a port stands in brackets."""
    if address.startswith("["):
        host, _, rest = address[1:].partition("]")
        text = rest.removeprefix(":")
    elif address.count(":") == 1:
        host, _, text = address.partition(":")
    else:
        host, text = address, ""
    if text and not text.isdigit():
        raise click.BadParameter(address, param_hint="--page")
    return host, int(text) if text else port


def _start(place: Path) -> int:
    """As the service where that is what runs it; otherwise this process becomes the daemon."""
    systemctl = shutil.which("systemctl")
    if not (systemctl and BOOTED.is_dir() and place == SERVICE_CONFIG and os.geteuid() == 0):
        say(tr("starting mcfd with {path}", path=place))
        _become_daemon(place)
    done = subprocess.run([systemctl, "restart", "mcfd.service"], check=False)  # noqa: S603  a program of the system
    if done.returncode:
        warn(tr("mcfd did not start: systemctl status mcfd"))
    return done.returncode


def _become_daemon(place: Path) -> NoReturn:
    sys.stdout.flush()
    program = "import sys; from daemon.cli import main; sys.exit(main())"
    os.execv(sys.executable, [sys.executable, "-c", program, "run", "--config", str(place)])  # noqa: S606  itself
