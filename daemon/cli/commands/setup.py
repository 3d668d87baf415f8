"""`mcfd setup`: finds the machines, prompts for what only a person knows, writes the configuration, makes the first
keys.

All that can fail comes before the configuration is put in place: a setup that was interrupted is simply run again."""

import asyncio
import errno
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from common.language import tr
from daemon.cli.options import check_line, check_name, check_nim, examples, json_option
from daemon.cli.output import FOUND_WRONG, Failure, complain, not_written, print_json
from daemon.cli.setup_output import nothing_set_up, result_json, show_changes, show_machines, show_ports, show_result
from daemon.core.invoice.request import LONGEST_DEFAULT
from daemon.core.keys import LONGEST_LABEL
from daemon.core.machine.state import same_machine
from daemon.core.people import fault_of_name
from daemon.setup.carry_out import carry_out
from daemon.setup.plan import NETWORKS, Network, SetupPlan, checked, machine_before, network_of, previous, tables
from daemon.setup.request import FirstPerson, PortResult
from daemon.setup.search import candidates, machines, search
from daemon.tls import AuthorityError

FIRST_PERSON = "admin"


@dataclass(frozen=True)
class SetupOptions:
    """The command line; None or empty for options left out."""

    config: Path
    ports: tuple[str, ...]
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
    person: str | None
    yes: bool
    force: bool
    as_json: bool

    @property
    def is_interactive(self) -> bool:
        return not self.yes and not self.as_json and sys.stdin.isatty()


def check_place(wanted: SetupOptions) -> Path:
    """The path of the configuration; checked before any port is opened."""
    place = wanted.config.absolute()
    try:
        exists = place.exists()
        place.parent.mkdir(parents=True, exist_ok=True)
        is_writable = os.access(place.parent, os.W_OK)
    except OSError:
        exists = is_writable = False
    if exists and not wanted.force:
        raise Failure("{path} exists already; --force replaces it and keeps the old one beside it", path=place)
    if not is_writable and os.geteuid() == 0:  # nothing else keeps root from it
        raise not_written(place, OSError(errno.EROFS, os.strerror(errno.EROFS)))
    if not is_writable:
        raise Failure("{folder} cannot be written to: run it with sudo", folder=place.parent)
    return place


def _nims(context: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(check_nim(context, parameter, nim) for nim in values)


@click.command(
    "setup",
    epilog=examples(
        "sudo mcfd setup",
        "sudo mcfd setup --yes --network https",
        'sudo mcfd setup --yes --nim EL02000015-1 --operator-name "Caisse 1" --json',
        "sudo mcfd setup --port /dev/ttyS0 --force",
        "sudo mcfd setup --port tcp://192.168.1.50:4001",
        "sudo mcfd setup --page 192.168.1.20",
    ),
)
@click.option(
    "--config", type=click.Path(path_type=Path), default="/etc/mcfd/mcfd.toml", show_default=True,
    metavar=tr("FILE"), envvar="MCFD_CONFIG", help=tr("The configuration file to write."),
)  # fmt: skip
@click.option("--port", "ports", multiple=True, help=tr("Ask this port only; may be repeated. Otherwise all."))
@click.option("--baudrate", type=int, default=115_200, show_default=True, help=tr("The speed of the line, bit/s."))
@click.option(
    "--nim",
    "nims",
    multiple=True,
    callback=_nims,
    help=tr("Set up this machine only; may be repeated. Otherwise all that answer."),
)
@click.option(
    "--network",
    type=click.Choice(("local", "https", "plain")),
    help=tr(
        "Who uses it: this box alone (local), the shop's network encrypted (https), or in clear (plain); by default as configured, else local."
    ),
)
@click.option("--host", help=tr("The address to listen on; otherwise by --network."))
@click.option("--http-port", type=click.IntRange(1, 65535), default=8480, show_default=True, help=tr("The TCP port."))
@click.option(
    "--ledger", type=click.Path(path_type=Path), default="/var/lib/mcfd/mcfd.sqlite3", show_default=True,
    metavar=tr("FILE"), help=tr("The ledger."),
)  # fmt: skip
@click.option("--isf", callback=check_line(LONGEST_DEFAULT), help=tr("The ISF of invoices that name none."))
@click.option(
    "--operator-id",
    default="1",
    show_default=True,
    callback=check_line(LONGEST_DEFAULT),
    help=tr("The operator of invoices that name none."),
)
@click.option("--operator-name", callback=check_line(LONGEST_DEFAULT), help=tr('Its name, as "Caisse 1".'))
@click.option("--key/--no-key", default=True, show_default=True, help=tr("Make a key for each machine."))
@click.option(
    "--label",
    default="setup",
    show_default=True,
    callback=check_line(LONGEST_LABEL),
    help=tr('Whose key it is, as "till 1".'),
)
@click.option(
    "--person",
    callback=lambda context, parameter, value: value and check_name(context, parameter, value),
    metavar=tr("NAME"),
    help=tr(
        "Who logs in to the shop's page first, as technician: admin; empty for none. The password is made and shown once."
    ),
)
@click.option(
    "--page",
    is_flag=False,
    flag_value="127.0.0.1",
    metavar=tr("[ADDRESS]"),
    help=tr("Set it up in a browser instead: at this address of the box, or, without one, on the box alone."),
)
@click.option("--hand-over", type=click.Path(path_type=Path), hidden=True)
@click.option("--yes", is_flag=True, help=tr("Ask nothing."))
@click.option("--force", is_flag=True, help=tr("Replace a configuration that exists; the old one is kept beside it."))
@json_option
def command(**flags: Any) -> int:
    page, folder = flags.pop("page"), flags.pop("hand_over")
    wanted = SetupOptions(**flags)
    if page:
        return _in_page(wanted, page, folder)
    place = check_place(wanted)
    ports = candidates(wanted.ports)
    results = asyncio.run(search(ports, wanted.baudrate))
    if not wanted.as_json:
        show_ports(results)
    chosen = _choose(wanted, machines(results))
    if not chosen:
        return _nothing(wanted, results)
    if not wanted.as_json:
        show_machines(chosen)
    before = previous(place)
    plan = _plan(wanted, chosen, before)
    name = _person_name(wanted)
    checked(plan)
    if before and not wanted.as_json:
        show_changes(before, tables(plan))
    _confirm_loss(wanted, before, plan)
    if wanted.is_interactive:
        click.confirm(tr("Write {path}?", path=place), default=True, abort=True)
    try:
        done = carry_out(
            plan, place, label=wanted.label if wanted.key else None, person=FirstPerson(name) if name else None
        )
    except AuthorityError as error:
        raise Failure(error) from None
    if wanted.as_json:
        print_json(result_json(done, results, chosen))
    else:
        show_result(done)
    return 0


def _in_page(wanted: SetupOptions, address: str, folder: Path | None) -> int:
    from daemon.cli.first_start import hand_over, serve

    plan = SetupPlan(
        machines=(),
        ledger=wanted.ledger.absolute(),
        host=wanted.host or "",
        port=wanted.http_port,
        baudrate=wanted.baudrate,
        operator_id=wanted.operator_id,
    )
    if folder:
        return hand_over(plan, wanted.ports, wanted.label, folder, address)
    return serve(plan, wanted.ports, wanted.label, check_place(wanted), address)


# -- what is there, and what is wanted of it ---------------------------------------------------------------------------


def _choose(wanted: SetupOptions, found: Sequence[PortResult]) -> list[PortResult]:
    """All machines, or the named ones; empty if a named one has not answered."""
    named = wanted.nims
    if not named and len(found) > 1 and wanted.is_interactive:
        named = _prompt_nims(found)
    if not named:
        return list(found)
    chosen = []
    for nim in named:
        match = [each for each in found if same_machine(nim, each.nim)]
        if not match:
            complain("{nim} has answered on no port", nim=nim)
            return []
        chosen += match
    return chosen


def _prompt_nims(found: Sequence[PortResult]) -> tuple[str, ...]:
    """Repeats until each NIM has answered, so that a typing error does not end the setup."""
    everyone = ",".join(each.nim for each in found)
    while True:
        text = click.prompt(tr("Which machines (NIMs with commas)"), default=everyone)
        named = tuple(each for each in text.replace(" ", "").split(",") if each)
        strange = [nim for nim in named if not any(same_machine(nim, each.nim) for each in found)]
        if named and not strange:
            return named
        complain("{nim} has answered on no port", nim=", ".join(strange) or "–")


def _plan(wanted: SetupOptions, chosen: Sequence[PortResult], before: dict[str, Any]) -> SetupPlan:
    """Defaults of the prompts come from the configuration to be replaced, if any."""
    defaults = machine_before(before, chosen[0].nim)
    ledger = before.get("storage", {}).get("path") if _is_default("ledger") else None
    port = before.get("server", {}).get("port") if _is_default("http_port") else None
    operator_id = defaults.get("operator_id") if _is_default("operator_id") else None
    return SetupPlan(
        machines=tuple((each.nim, each.port) for each in chosen),
        ledger=Path(ledger or wanted.ledger).absolute(),
        network=wanted.network or _prompt_network(wanted, network_of(before) or "local"),
        host=wanted.host or "",
        port=port or wanted.http_port,
        baudrate=wanted.baudrate,
        isf=wanted.isf or _prompt(wanted, tr("ISF (identifier of the till software)"), defaults.get("isf", "1")),
        operator_id=operator_id or wanted.operator_id,
        operator_name=wanted.operator_name
        or _prompt(wanted, tr("Name of the till on invoices"), defaults.get("operator_name", "Caisse 1")),
        before=before,
    )


def _is_default(name: str) -> bool:
    return click.get_current_context().get_parameter_source(name) is ParameterSource.DEFAULT


def _prompt_network(wanted: SetupOptions, default: Network) -> Network:
    if not wanted.is_interactive:
        return default
    network: Network = click.prompt(
        tr(
            "Who uses it? local: this box alone; https: the shop's network, encrypted; plain: the network, in clear (HAProxy in front of both)"
        ),
        type=click.Choice(NETWORKS),
        default=default,
    )
    return network


def _confirm_loss(wanted: SetupOptions, before: dict[str, Any], plan: SetupPlan) -> None:
    """Lists what this run removes, and prompts separately for it."""
    was, now_is = network_of(before), plan.network
    if was in (None, "local", now_is):
        return
    if now_is == "local":
        complain("this takes every till off the network: only programs on this box reach mcfd from then on")
    elif was == "https":
        complain("this takes encryption away: what tills send goes over the network in clear from then on")
    else:
        complain("every till has to trust the box's certificate from then on, and to call https")
    if wanted.is_interactive:
        click.confirm(tr("Is that what you want?"), default=False, abort=True)


def _prompt(wanted: SetupOptions, question: object, default: str) -> str:
    return str(click.prompt(str(question), default=default)).strip() if wanted.is_interactive else default


def _person_name(wanted: SetupOptions) -> str:
    if wanted.person is not None:
        return wanted.person
    while True:
        name = _prompt(wanted, tr("Name of the first person of the shop's page"), FIRST_PERSON)
        if not (fault := fault_of_name(name)):
            return name
        complain(fault)


def _nothing(wanted: SetupOptions, results: Sequence[PortResult]) -> int:
    if wanted.as_json:
        print_json(nothing_set_up(results))
    complain(
        tr("no machine has answered. Is it switched on, its cable in, the daemon stopped (systemctl stop mcfd)?")
        if results
        else tr("no serial port on this box: plug in the machine's USB cable, then try again")
    )
    return FOUND_WRONG
