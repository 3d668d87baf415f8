"""`mcfd setup`: finds the machines, asks what only a person knows, writes the configuration, makes the first keys.

Whatever can fail comes before the configuration is put in its place: a setup that broke off is simply run again.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from daemon.cli import helps
from daemon.cli.ledger import now, with_ledger
from daemon.cli.setup_shown import Done, show_end, show_machines, show_ports, told
from daemon.cli.shared import FOUND_WRONG, Failure, check_nim, examples, json_option, print_json, warn
from daemon.core.settlement import same_machine
from daemon.settings import Settings
from daemon.setup import wording

if TYPE_CHECKING:
    from daemon.setup.plan import Network, Plan
    from daemon.setup.search import Asked


@dataclass(frozen=True)
class Wanted:
    """What the command line says; None and empty where it says nothing."""

    config: Path
    ports: tuple[Path, ...]
    baudrate: int
    nims: tuple[str, ...]
    network: Network | None
    host: str | None
    http_port: int
    ledger: Path
    isf: str | None
    operator_id: str
    operator_name: str | None
    key: bool
    label: str
    yes: bool
    force: bool
    as_json: bool

    @property
    def may_ask(self) -> bool:
        return not self.yes and not self.as_json and sys.stdin.isatty()


def _nims(context: click.Context, parameter: click.Parameter, given: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(check_nim(context, parameter, nim) for nim in given)


@click.command(
    "setup",
    help=str(helps.HELP_SETUP),
    epilog=examples(
        "sudo mcfd setup",
        "sudo mcfd setup --yes --network https",
        'sudo mcfd setup --yes --nim EL02000015-1 --operator-name "Caisse 1" --json',
        "sudo mcfd setup --port /dev/ttyS0 --force",
    ),
)
@click.option(
    "--config", type=click.Path(path_type=Path), default="/etc/mcfd/mcfd.toml", show_default=True,
    metavar=str(helps.FILE), envvar="MCFD_CONFIG", help=str(helps.HELP_SETUP_CONFIG),
)  # fmt: skip
@click.option("--port", "ports", type=click.Path(path_type=Path), multiple=True, help=str(helps.HELP_SETUP_PORT))
@click.option("--baudrate", type=int, default=115_200, show_default=True, help=str(helps.HELP_BAUDRATE))
@click.option("--nim", "nims", multiple=True, callback=_nims, help=str(helps.HELP_SETUP_NIM))
@click.option("--network", type=click.Choice(("local", "https", "plain")), help=str(helps.HELP_NETWORK))
@click.option("--host", help=str(helps.HELP_HOST))
@click.option("--http-port", type=click.IntRange(1, 65535), default=8480, show_default=True, help=str(helps.HELP_HTTP))
@click.option(
    "--ledger", type=click.Path(path_type=Path), default="/var/lib/mcfd/mcfd.sqlite3", show_default=True,
    metavar=str(helps.FILE), help=str(helps.HELP_LEDGER),
)  # fmt: skip
@click.option("--isf", help=str(helps.HELP_ISF))
@click.option("--operator-id", default="1", show_default=True, help=str(helps.HELP_OPERATOR_ID))
@click.option("--operator-name", help=str(helps.HELP_OPERATOR_NAME))
@click.option("--key/--no-key", default=True, show_default=True, help=str(helps.HELP_FIRST_KEY))
@click.option("--label", default="setup", show_default=True, help=str(helps.HELP_LABEL))
@click.option("--yes", is_flag=True, help=str(helps.HELP_YES))
@click.option("--force", is_flag=True, help=str(helps.HELP_SETUP_FORCE))
@json_option
def command(**flags: Any) -> int:
    wanted = Wanted(**flags)
    from daemon.setup.plan import checked, write
    from daemon.setup.search import candidates, machines, search

    place = _check_place(wanted)
    ports = candidates(wanted.ports)
    asked = asyncio.run(search(ports, wanted.baudrate))
    if not wanted.as_json:
        show_ports(asked)
    chosen = _choose(wanted, machines(asked))
    if not chosen:
        return _nothing(wanted, asked)
    if not wanted.as_json:
        show_machines(chosen)
    plan = _plan(wanted, chosen)
    settings = checked(plan)
    if wanted.may_ask:
        click.confirm(wording.ASK_WRITE(path=place), default=True, abort=True)
    root = _authority(settings)
    done = [_set_up(wanted, plan, settings, each) for each in chosen]
    kept = write(plan, place)
    if wanted.as_json:
        print_json(told(place, kept, root, asked, done))
    else:
        show_end(place, kept, root, done)
    return 0


def _check_place(wanted: Wanted) -> Path:
    """Where the configuration goes, before a port is touched for nothing."""
    place = wanted.config.absolute()
    try:
        exists = place.exists()
        place.parent.mkdir(parents=True, exist_ok=True)
    except OSError:
        raise Failure(wording.CANNOT_WRITE(folder=place.parent)) from None
    if exists and not wanted.force:
        raise Failure(wording.CONFIG_EXISTS(path=place))
    if not os.access(place.parent, os.W_OK):
        raise Failure(wording.CANNOT_WRITE(folder=place.parent))
    return place


# -- what is there, and what is wanted of it ----------------------------------------------------------------------------------


def _choose(wanted: Wanted, found: Sequence[Asked]) -> list[Asked]:
    """All machines, or those that were named; empty when one that was named has not answered."""
    named = wanted.nims
    if not named and len(found) > 1 and wanted.may_ask:
        everyone = ",".join(each.nim for each in found)
        named = tuple(click.prompt(str(wording.ASK_WHICH), default=everyone).replace(" ", "").split(","))
    if not named:
        return list(found)
    chosen = []
    for nim in named:
        match = [each for each in found if same_machine(nim, each.nim)]
        if not match:
            warn(wording.NOT_FOUND(nim=nim))
            return []
        chosen += match
    return chosen


def _plan(wanted: Wanted, chosen: Sequence[Asked]) -> Plan:
    from daemon.setup.plan import Plan, default_host

    network = wanted.network or _ask_network(wanted)
    return Plan(
        machines=tuple((each.nim, each.port) for each in chosen),
        ledger=wanted.ledger.absolute(),
        network=network,
        host=wanted.host or default_host(network),
        port=wanted.http_port,
        baudrate=wanted.baudrate,
        isf=wanted.isf or _ask(wanted, wording.ASK_ISF, "1"),
        operator_id=wanted.operator_id,
        operator_name=wanted.operator_name or _ask(wanted, wording.ASK_OPERATOR, "Caisse 1"),
    )


def _ask_network(wanted: Wanted) -> Network:
    from daemon.setup.plan import NETWORKS

    if not wanted.may_ask:
        return "local"
    asked: Network = click.prompt(str(wording.ASK_NETWORK), type=click.Choice(NETWORKS), default="local")
    return asked


def _ask(wanted: Wanted, question: object, default: str) -> str:
    return str(click.prompt(str(question), default=default)).strip() if wanted.may_ask else default


def _nothing(wanted: Wanted, asked: Sequence[Asked]) -> int:
    if wanted.as_json:
        print_json(told(None, None, None, asked, ()))
    warn(wording.NO_MACHINE if asked else wording.NO_PORT)
    return FOUND_WRONG


# -- what is made -------------------------------------------------------------------------------------------------------------


def _authority(settings: Settings) -> Path | None:
    """The root certificate that tills have to trust; one that is there already stays."""
    if not settings.server.tls:
        return None
    from daemon.cli.tls import ensure

    return ensure(settings, datetime.now(UTC))


def _set_up(wanted: Wanted, plan: Plan, settings: Settings, asked: Asked) -> Done:
    from daemon.setup.address import base_url

    key = ""
    if wanted.key:
        key = with_ledger(
            settings, lambda store: store.create_key(asked.nim, "live", wanted.label, at=now()), make=True
        )
    return Done(asked, base_url(plan.scheme, plan.host, plan.port), key)
