"""`mcfd setup --page`: setup in a browser that has the code, then mcfd itself."""

import asyncio
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NoReturn
from urllib.parse import urlsplit

import click

from common import logs
from common.files import write_whole
from common.front import BadCertificate, FrontError, withdraw
from common.sockets import is_loopback
from daemon.app.page.first_start import (
    FirstAddress,
    FirstAuthority,
    SetupInPage,
    is_clock_wrong,
    link,
    serve_first_start,
)
from daemon.cli.output import UNAVAILABLE, Unavailable, complain, say
from daemon.setup.plan import SetupPlan
from daemon.time_sync import BOOTED
from daemon.tls import AuthorityError

SERVICE_CONFIG = Path("/etc/mcfd/mcfd.toml")
LINK = Path("/run/mcfd-first-start/link")
"""Links of the page of systemd/first-start-mcfd.service, one for each address; exists as long as the page."""
LOOPBACK = "127.0.0.1"


def serve(plan: SetupPlan, ports: Sequence[str], label: str, place: Path, address: str) -> int:
    """Serves until the box is set up, then starts mcfd (by systemd where it runs the service). If the unit serves the
    page already, prints its links instead."""
    if place == SERVICE_CONFIG and (served := _served_already()):
        for each in served:
            say("Open this in a browser: {link}", link=each)
        return 0
    with tempfile.TemporaryDirectory(prefix="mcfd-first-start-") as folder:
        at = _address(plan, address, Path(folder))
        first = SetupInPage(plan, ports, label, place, at.authority)
        _serve(first, at, lambda urls: _show(first, urls), lambda: False)
    return _start(place)


def hand_over(plan: SetupPlan, ports: Sequence[str], label: str, folder: Path, address: str) -> int:
    """For the package's unit (systemd/first-start-mcfd.service). The links are in a file for the box's own users; the
    unit installs the result from `folder`. Ends if the box is set up in another way meanwhile, and, to be started
    again, once a clock is right that kept the page from the network."""
    front = Path(os.environ["FRONT_FOLDER"])
    at, waits_for_clock = _address(plan, address, folder, front), False
    try:
        if at.authority:
            at.authority.pem()
    except (AuthorityError, BadCertificate, OSError) as error:
        # For example on a box whose clock begins in 1970: without encryption the page stays on the box.
        complain("the page is on this box alone, because it cannot be encrypted: {why}", why=error)
        waits_for_clock = is_clock_wrong()
        at = FirstAddress(LOOPBACK, at.port)
    if at.authority is None:
        asyncio.run(withdraw(front, at.host, at.port))
    first = SetupInPage(plan, ports, label, folder / SERVICE_CONFIG.name, at.authority)

    def announce(urls: Sequence[str]) -> None:
        links = "".join(f"{link(url, first.code)}\n" for url in urls)
        write_whole(folder / LINK.name, links.encode(), 0o600)
        _show(first, urls)

    def is_over() -> bool:
        return SERVICE_CONFIG.exists() or (waits_for_clock and not first.is_used and not is_clock_wrong())

    _serve(first, at, announce, is_over)
    return 0 if first.result or SERVICE_CONFIG.exists() else UNAVAILABLE


def _address(plan: SetupPlan, address: str, scratch: Path, front: Path | None = None) -> FirstAddress:
    """With encryption, except on loopback."""
    host, port = _split(address, plan.port)
    if is_loopback(host):
        return FirstAddress(host, port)
    return FirstAddress(host, port, FirstAuthority(plan.ledger.parent / "tls", scratch / "tls", host), front)


def _show(first: SetupInPage, urls: Sequence[str]) -> None:
    for url in urls:
        say("Open this in a browser: {link}", link=link(url, first.code))
    say("or {base} with the code {code}", base=urls[0], code=first.code)


def _serve(
    first: SetupInPage, at: FirstAddress, announce: Callable[[Sequence[str]], None], is_over: Callable[[], bool]
) -> None:
    logs.configure("warning", "auto")
    try:
        serve_first_start(first, at, announce=announce, is_over=is_over)
    except (AuthorityError, BadCertificate, FrontError, OSError) as error:
        raise Unavailable(error) from None


def _served_already() -> list[str]:
    """Links of the page that the package's unit serves; empty without one or without permission to read them."""
    try:
        return LINK.read_text("utf-8").split()
    except OSError:
        return []


def _split(address: str, port: int) -> tuple[str, int]:
    """ADDRESS or ADDRESS:PORT; IPv6 with a port in brackets."""
    if address.count(":") > 1 and not address.startswith("["):
        return address, port
    try:
        parts = urlsplit(f"//{address}")
        named = parts.port
    except ValueError:
        raise click.BadParameter(address, param_hint="--page") from None
    return parts.hostname or "", port if named is None else named


def _start(place: Path) -> int:
    """Restarts the service if systemd runs it; otherwise this process becomes the daemon."""
    systemctl = shutil.which("systemctl")
    if not (systemctl and BOOTED.is_dir() and place == SERVICE_CONFIG and os.geteuid() == 0):
        say("starting mcfd with {path}", path=place)
        _become_daemon(place)
    done = subprocess.run([systemctl, "restart", "mcfd.service"], check=False)  # noqa: S603  a program of the system
    if done.returncode:
        complain("mcfd did not start: systemctl status mcfd")
    return done.returncode


def _become_daemon(place: Path) -> NoReturn:
    from daemon.app.page.files import MCFD

    sys.stdout.flush()
    os.execv(MCFD[0], [*MCFD, "run", "--config", str(place)])  # noqa: S606  itself
