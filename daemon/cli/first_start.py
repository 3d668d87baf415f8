"""`mcfd setup --page`: the same work as at the terminal, asked for by a browser that has the code; then mcfd itself."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

import click

from common.files import write_whole
from common.language import tr
from daemon.app.page.first_start import SetupInPage, link, serve_first_start
from daemon.cli.failures import Unavailable
from daemon.cli.output import say, warn
from daemon.setup.plan import SetupPlan
from daemon.time_sync import BOOTED

SERVICE_CONFIG = Path("/etc/mcfd/mcfd.toml")
LINK = Path("/run/mcfd-first-start/link")
"""Of the page that systemd/first-start-mcfd.service serves; there as long as it does."""
LOOPBACK = "127.0.0.1"


def serve(plan: SetupPlan, ports: Sequence[str], label: str, place: Path, address: str) -> int:
    """Until the box is set up and mcfd runs in its place; where systemd is the one that starts it, it is asked to."""
    host, port = _split(address, plan.port)
    if place == SERVICE_CONFIG and host == LOOPBACK and (served := _served_already()):
        say(tr("Open this in a browser: {link}", link=served))
        return 0
    _serve(SetupInPage(plan, ports, label, place), host, port)
    return _start(place)


def hand_over(plan: SetupPlan, ports: Sequence[str], label: str, folder: Path, address: str) -> int:
    """As the package's unit (systemd/first-start-mcfd.service): the link is in a file that only the box's own people read, what the person
    decided is left in `folder` for the unit to put in its place, and a box that is set up in another way meanwhile ends it."""
    host, port = _split(address, plan.port)
    _serve(SetupInPage(plan, ports, label, folder / SERVICE_CONFIG.name), host, port, link_file=folder / LINK.name)
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
        serve_first_start(first, host, port, listening=listening, is_over=is_over)
    except OSError as error:
        raise Unavailable(error) from None


def _served_already() -> str:
    """The link of the page that the package's unit serves; empty without one, or for who may not read it."""
    try:
        return LINK.read_text("utf-8").strip()
    except OSError:
        return ""


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
